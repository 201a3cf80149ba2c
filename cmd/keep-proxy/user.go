package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"keep-proxy/cli/child"
	"keep-proxy/config"
)

// passwordVariable is of the one key that is a secret and has a variable of its own, in which
// it may be written out. A command gets it with a reference to nothing: without any value
// the configuration would have a user without a password for what keep-proxy does there.
var (
	passwordVariable = config.EnvName("proxy.upstream_proxy.password")
	withheld         = "${env:WITHHELD_FROM_COMMANDS}"
)

// secretNames are the variables that configuration names as a secret's source.
func secretNames(c config.Config) []string {
	names := c.Proxy.UpstreamProxy.Password.EnvNames()
	for _, s := range c.Connectors.Settings {
		if s.Credentials != nil {
			names = append(names, s.Credentials.Value.EnvNames()...)
		}
	}
	for _, w := range c.Notify.Webhooks {
		names = append(names, w.URL.EnvNames()...)
		if w.Secret != nil {
			names = append(names, w.Secret.EnvNames()...)
		}
	}
	return names
}

// childEnvironment is the inherited environment without secrets, with the run's
// variables over it.
func childEnvironment(inherited []string, run map[string]string, secrets []string) []string {
	var out []string
	for _, line := range inherited {
		name, value, _ := strings.Cut(line, "=")
		if _, replaced := run[name]; replaced || slices.Contains(secrets, name) {
			continue
		}
		if name == passwordVariable && value != "" {
			line = name + "=" + withheld
		}
		out = append(out, line)
	}
	for _, name := range slices.Sorted(maps.Keys(run)) {
		out = append(out, name+"="+run[name])
	}
	return out
}

// otherUser is as whom run starts its command, nil for ourselves. The command can't read
// what makes an operator, or it isn't started.
func otherUser(name string, h *host) (*child.User, error) {
	c := h.config
	if name == "" {
		return nil, nil //nolint:nilnil // no other user
	}
	if err := child.Switchable(); err != nil {
		return nil, fmt.Errorf("run: --user %s: %w", name, err)
	}
	u, err := child.LookupUser(name)
	if err != nil {
		return nil, fmt.Errorf("run: --user: %w", err)
	}
	files := []string{tokenFile(c, nil), c.Admin.TokenFile, c.Proxy.CA.KeyFile, filepath.Join(c.Ledger.Dir, "ledger")}
	if h.state != nil {
		files = append(files, h.state.TokenFile) // A proxy that runs may have another configuration.
	}
	for _, file := range files {
		if file == "" {
			continue
		}
		can, err := u.CanRead(file)
		if err != nil {
			return nil, fmt.Errorf("run: --user %s: %w", name, err)
		}
		if can {
			return nil, fmt.Errorf("run: --user %s: that user can read %s, and could decide in your name; "+
				"take the right away (chmod 700 of its folder), or name another user", name, file)
		}
	}
	can, err := u.CanChange(c.Ledger.Dir)
	if err != nil {
		return nil, fmt.Errorf("run: --user %s: %w", name, err)
	}
	if can {
		return nil, fmt.Errorf("run: --user %s: that user can change %s, and could put another token in the place of yours; "+
			"take the right away (chmod 700 and its owner), or name another user", name, c.Ledger.Dir)
	}
	return u, nil
}

// trustFor copies what the run's variables name as files to where another user can read
// it: certificates, which are no secret, lie in a folder that is ours alone. The variables
// name the copies from then on, and remove lets them go.
func trustFor(env map[string]string, u *child.User) (remove func(), err error) {
	dir, err := os.MkdirTemp("", "keep-ca-")
	if err != nil {
		return nil, fmt.Errorf("copy certificates: %w", err)
	}
	remove = func() { _ = os.RemoveAll(dir) }
	copies := map[string]string{}
	for name, value := range env {
		if strings.HasPrefix(name, "KEEP_") || !filepath.IsAbs(value) {
			continue
		}
		if copies[value] == "" {
			to := filepath.Join(dir, fmt.Sprintf("%d-%s", len(copies), filepath.Base(value)))
			if err := copyReadable(value, to); err != nil {
				remove()
				return nil, fmt.Errorf("copy certificates: %w", err)
			}
			copies[value] = to
		}
		env[name] = copies[value]
	}
	// MkdirTemp makes it ours alone.
	err = os.Chmod(dir, 0o755) //nolint:gosec // others are to read it
	for _, name := range slices.Sorted(maps.Values(copies)) {
		err = errors.Join(err, readableBy(u, name))
	}
	if err != nil {
		remove()
		return nil, fmt.Errorf("copy certificates: %w", err)
	}
	return remove, nil
}

func readableBy(u *child.User, name string) error {
	can, err := u.CanRead(name)
	if err == nil && !can {
		err = fmt.Errorf("user %d:%d can't read %s; set TMPDIR to a folder that all can enter", u.UID, u.GID, name)
	}
	return err
}

func copyReadable(from, to string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(to, content, 0o600), os.Chmod(to, 0o644)) //nolint:gosec // others are to read it
}

// asUser changes an environment to the user's.
func asUser(env []string, u *child.User) []string {
	var out []string
	for _, line := range env {
		switch name, _, _ := strings.Cut(line, "="); name {
		case "HOME", "USER", "LOGNAME", "XDG_RUNTIME_DIR", tokenVariable:
		default:
			out = append(out, line)
		}
	}
	if u.Name != "" {
		out = append(out, "HOME="+u.Home, "USER="+u.Name, "LOGNAME="+u.Name)
	}
	return out
}
