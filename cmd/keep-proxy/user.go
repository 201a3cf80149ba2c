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

// passwordVariable is the variable of the one secret key that may be written out in a variable. A command gets a
// reference that names nothing instead. Without a value its configuration would have a user without a password.
var (
	passwordVariable = config.EnvName("proxy.upstream_proxy.password")
	withheld         = "${env:WITHHELD_FROM_COMMANDS}"
)

// secretNames are the variables that configuration names as a secret's source.
func secretNames(c config.Config) []string {
	names := c.Proxy.UpstreamProxy.Password.EnvNames()
	for _, s := range c.Connectors.Settings {
		if s.Credentials != nil {
			for _, secret := range s.Credentials.Secrets() {
				names = append(names, secret.EnvNames()...)
			}
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

// otherUser is as whom run starts its command, nil for ourselves. The command can't read what makes an operator, or
// it isn't started.
func otherUser(name string, h *host) (u *child.User, err error) {
	if name == "" {
		return nil, nil //nolint:nilnil // no other user
	}
	defer func() {
		if err != nil {
			u, err = nil, fmt.Errorf("run: --user %s: %w", name, err)
		}
	}()
	if err := child.Switchable(); err != nil {
		return nil, err
	}
	if u, err = child.LookupUser(name); err != nil {
		return nil, err
	}
	c := h.config
	files := []string{tokenFile(c, nil), c.Admin.TokenFile, c.Proxy.CA.KeyFile, filepath.Join(c.Ledger.Dir, "ledger")}
	if h.state != nil {
		files = append(files, h.state.TokenFile) // A proxy that runs may have another configuration.
	}
	for _, file := range files {
		if file == "" {
			continue
		}
		if can, err := u.CanRead(file); err != nil {
			return nil, err
		} else if can {
			return nil, fmt.Errorf("that user can read %s, and could decide in your name; "+
				"take the right away (chmod 700 of its folder), or name another user", file)
		}
	}
	if can, err := u.CanChange(c.Ledger.Dir); err != nil {
		return nil, err
	} else if can {
		return nil, fmt.Errorf("that user can change %s, and could put another token in the place of yours; "+
			"take the right away (chmod 700 and its owner), or name another user", c.Ledger.Dir)
	}
	return u, nil
}

// trustFor copies the certificates that the run's variables name to where another user can read them. They are no
// secret, and lie in a folder that is ours alone. The variables name the copies from then on, and remove deletes
// them.
func trustFor(env map[string]string, u *child.User) (remove func(), err error) {
	dir, err := os.MkdirTemp("", "keep-ca-")
	if err != nil {
		return nil, fmt.Errorf("copy certificates: %w", err)
	}
	remove = func() { _ = os.RemoveAll(dir) }
	err = os.Chmod(dir, 0o755) //nolint:gosec // others are to read it
	copies := map[string]string{}
	for name, value := range env {
		if strings.HasPrefix(name, "KEEP_") || !filepath.IsAbs(value) {
			continue
		}
		if copies[value] == "" {
			copies[value] = filepath.Join(dir, fmt.Sprintf("%d-%s", len(copies), filepath.Base(value)))
			err = errors.Join(err, copyFor(u, value, copies[value]))
			// Java finds its roots beside the bundle.
			if _, missing := os.Stat(config.TrustStore(value)); missing == nil {
				err = errors.Join(err, copyFor(u, config.TrustStore(value), config.TrustStore(copies[value])))
			}
		}
		env[name] = copies[value]
	}
	if err != nil {
		remove()
		return nil, fmt.Errorf("copy certificates: %w", err)
	}
	return remove, nil
}

// copyFor copies a file so that the user can read it.
func copyFor(u *child.User, from, to string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	//nolint:gosec // others are to read it
	if err := errors.Join(os.WriteFile(to, content, 0o600), os.Chmod(to, 0o644)); err != nil {
		return err
	}
	can, err := u.CanRead(to)
	if err == nil && !can {
		err = fmt.Errorf("user %d:%d can't read %s; set TMPDIR to a folder that all can enter", u.UID, u.GID, to)
	}
	return err
}

// asUser changes an environment to the user's.
func asUser(env []string, u *child.User) []string {
	ours := []string{"HOME", "USER", "LOGNAME", "XDG_RUNTIME_DIR", tokenVariable}
	env = slices.DeleteFunc(env, func(line string) bool {
		name, _, _ := strings.Cut(line, "=")
		return slices.Contains(ours, name)
	})
	if u.Name != "" {
		env = append(env, "HOME="+u.Home, "USER="+u.Name, "LOGNAME="+u.Name)
	}
	return env
}
