package clients

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"keep-proxy/internal/fakes/server"
)

// errand is one call of a client.
type errand struct {
	// on is whom it asks, and counts the name of what it changes in that one's log.
	on     *server.Server
	counts string
	// method, url and body are for the client's command, args come after it.
	method, url, body string
	args              []string
}

// done is what came of an errand.
type done struct {
	text string
	code int
}

// variables of a run.
type variables map[string]string

// underEnv does errands with the variables that keep-proxy env gives, and little else.
func (w *world) underEnv(t *testing.T, c client, workflow, item string) sending {
	t.Helper()
	argv := []string{w.program, "env", "--config", w.config, "--workflow", workflow, "--item", item, "--takeover", "--format", "json"}
	if c.listener {
		argv = append(argv, "--listener")
	}
	env := variables{}
	must(t, json.Unmarshal([]byte(w.command(t, argv...)), &env))
	return func(e errand, forged bool) done {
		if forged {
			env.forge(w.shared(t))
		}
		given := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + w.home}
		for name, value := range env {
			given = append(given, name+"="+value)
		}
		return w.start(t, given, e, w.argv(t, c, env, e))
	}
}

// underRun does errands under keep-proxy run, of an item that stays open. A shell puts the
// command together, as some clients need parts of the variables.
func (w *world) underRun(t *testing.T, c client, workflow, item string) sending {
	t.Helper()
	argv := slices.Concat(w.before, []string{w.program, "run", "--config", w.config, "--workflow", workflow, "--item", item, "--keep-open"}, w.flags)
	if c.listener {
		argv = append(argv, "--listener")
	}
	env := []string{"HOME=" + w.home}
	for _, kept := range os.Environ() {
		if !strings.HasPrefix(kept, "HOME=") {
			env = append(env, kept)
		}
	}
	return func(e errand, forged bool) done {
		script := ""
		if forged {
			for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"} {
				script += "export " + name + "=" + forgery(w.shared(t)) + "\n"
			}
		}
		script += "export HOME=" + w.home + `; host=${HTTPS_PROXY##*[@/]}; exec` // run --user takes it out.
		for _, word := range w.argv(t, c, variables{"HTTPS_PROXY": "/${host%:*}:${host##*:}", "SSL_CERT_FILE": "$SSL_CERT_FILE"}, e) {
			script += ` "` + strings.ReplaceAll(word, `"`, `\"`) + `"`
		}
		return w.start(t, env, e, append(argv, "--", "sh", "-c", script))
	}
}

// forge puts another token into the variables, at the listener that all share: at a
// run's own nobody is asked for one.
func (v variables) forge(shared string) {
	for name, value := range v {
		if strings.HasSuffix(strings.ToUpper(name), "_PROXY") && value != "" {
			v[name] = forgery(shared)
		}
	}
}

func forgery(shared string) string { return "http://run:wrong@" + shared }

// start starts a command with a file on its standard input, as wget reads no pipe.
func (w *world) start(t *testing.T, env []string, e errand, argv []string) done {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	name := filepath.Join(t.TempDir(), "body")
	must(t, os.WriteFile(name, []byte(e.body), 0o644))
	body, err := os.Open(name)
	must(t, err)
	defer func() { _ = body.Close() }()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env, cmd.Stdin = env, body
	out, err := cmd.CombinedOutput() // Clients differ in what is a failure to them.
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatalf("%q: %v", argv, err)
	}
	return done{string(out), cmd.ProcessState.ExitCode()}
}

// argv is the client's command for an errand; env holds the run's variables.
func (w *world) argv(t *testing.T, c client, env variables, e errand) []string {
	t.Helper()
	address := env["HTTPS_PROXY"]
	address = address[strings.LastIndexAny(address, "@/")+1:]
	at := strings.LastIndex(address, ":")
	if strings.HasPrefix(address, "$") {
		at = strings.Index(address, "}:") + 1
	}
	ca := env["SSL_CERT_FILE"]
	truststore := strings.TrimSuffix(ca, filepath.Ext(ca)) + ".p12"
	if strings.HasPrefix(ca, "$") {
		truststore = "${SSL_CERT_FILE%.*}.p12"
	}
	fill := strings.NewReplacer("{method}", e.method, "{url}", e.url, "{ca}", ca, "{self}", w.self, "{static}", w.static, "{home}", w.home,
		"{fresh}", t.TempDir(), "{truststore}", truststore, "{proxyhost}", address[:at], "{proxyport}", address[at+1:])
	var argv []string
	for _, word := range slices.Concat(c.argv, e.args) {
		argv = append(argv, fill.Replace(word))
	}
	return argv
}

// ca is the file with the proxy's CA.
func (w *world) ca() string { return filepath.Join(w.data, "ca-cert.pem") }
