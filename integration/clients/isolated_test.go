package clients

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"keep-proxy/internal/fakes/server"
)

// The ways of having a network of one's own.
const (
	proxyAlone  = "--isolate"
	transparent = "--isolate=transparent"
)

// isolated is a client in a network of its own.
type isolated struct {
	client
	// passes are the ways in which its mutation goes through. In the other ways it must fail.
	passes []string
	// site is where it asks; by default it asks for a name.
	site func(*server.Server) string
	// bank is whom it asks; by default the one with TLS.
	bank func(w *world) *server.Server
}

// Clients that heed the variables pass in both ways, those that go to an address or a name by themselves in one.
var (
	both = []string{proxyAlone, transparent}
	one  = []string{transparent}
)

var allIsolated = []isolated{
	{client: the("curl"), passes: both},
	{client: the("curl").as("curl, `--noproxy '*'`", "--noproxy", "*"), passes: one},
	{client: the("wget"), passes: both},
	{client: the("Python urllib"), passes: both},
	{client: the("Python urllib").as("Python urllib, `ProxyHandler({})`", "direct"), passes: one},
	{client: the("requests"), passes: both},
	{client: the("httpx"), passes: both},
	{client: the("Node fetch").as("Node 20 fetch"), passes: one},
	{client: the("Node 24 fetch"), passes: both},
	{client: the("undici's EnvHttpProxyAgent"), passes: both},
	{client: the("undici's EnvHttpProxyAgent").as("undici", "direct"), passes: one},
	{client: the("axios"), passes: both},
	{client: the("Java HttpClient").as("Java HttpClient, `-Dhttps.proxyHost`"), passes: both},
	{client: client{name: "Java HttpClient", argv: []string{"java", "testdata/Client.java", "{method}", "{url}"}, version: []string{"java", "--version"}}, passes: one},
	{client: the("Go net/http"), passes: both},
	{client: the("Go net/http").as("Go net/http, to 127.0.0.1"), passes: one, site: here},
	{client: the("Go net/http").as("Go net/http, `Proxy: nil`", "direct"), passes: one},
	{client: client{name: "a static binary, its own resolver", argv: []string{"{static}", "{method}", "{url}", "direct"}, version: []string{"go", "version"}}, passes: one},
	{client: gitClient, passes: both, site: here}, // The program that asks for its outcome knows no names of ours.
	{client: the("gh"), passes: both},
	{client: raw("a raw TCP client, by hand"), passes: one, site: plainly, bank: func(w *world) *server.Server { return w.plain }},
	{client: raw("a raw TCP client, to another port"), site: plainly, bank: func(w *world) *server.Server { return w.uncovered }},
}

// the is the client of that name.
func the(name string) client {
	return all[slices.IndexFunc(all, func(c client) bool { return c.name == name })]
}

// as is the client with other words after its own.
func (c client) as(name string, words ...string) client {
	c.name, c.argv = name, slices.Concat(c.argv, words)
	return c
}

func raw(name string) client {
	return client{name: name, argv: []string{"/usr/bin/python3", "testdata/raw_client.py", "{method}", "{url}"}, version: []string{"/usr/bin/python3", "--version"}}
}

// become lets another user run a whole keep-proxy, with a proxy of its own. Our own commands go through the proxy that runs.
var become = []string{"setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"}

// asRoot is the world as it is.
func (w *world) asRoot(*testing.T) *world { return w }

// asNobody is the world of that user.
func (w *world) asNobody(t *testing.T) *world {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("not run: it takes root to become another user")
	}
	if exec.Command(become[0], append(become[1:len(become):len(become)], "test", "-r", "testdata/Client.java")...).Run() != nil {
		t.Skip("not run: that user can't read these files")
	}
	other := *w
	dir := filepath.Join(w.dir, strings.ReplaceAll(t.Name(), "/", "-"))
	other.home, other.data, other.config = filepath.Join(dir, "home"), filepath.Join(dir, "data"), filepath.Join(dir, "config.yaml")
	text, err := os.ReadFile(w.config)
	text = bytes.Replace(text, []byte(w.data), []byte(other.data), 1)
	must(t, errors.Join(err, os.MkdirAll(other.home, 0o700), os.WriteFile(other.config, text, 0o600)))
	// git wants its repository to be its user's.
	must(t, os.WriteFile(filepath.Join(other.home, ".gitconfig"), []byte("[safe]\ndirectory = *\n"), 0o600))
	w.command(t, "chown", "-R", "65534:65534", dir)
	other.before = become
	return &other
}

// userNobody is the world of that user's commands, which we start.
func (w *world) userNobody(t *testing.T) *world {
	t.Helper()
	other := *w.asNobody(t)
	other.config, other.data, other.before, other.flags = w.config, w.data, nil, []string{"--user", "65534:65534"}
	return &other
}

// opened lets other users read what is in the world's folders, and puts this binary there.
func (w *world) opened(t *testing.T) {
	t.Helper()
	self, err := os.ReadFile(w.self)
	must(t, err)
	w.self = filepath.Join(w.dir, "self")
	must(t, errors.Join(os.WriteFile(w.self, self, 0o755), os.Chmod(filepath.Dir(w.dir), 0o755)))
	w.command(t, "chmod", "-R", "a+rX", filepath.Join(w.dir, "upstreams.pem"), filepath.Join(w.dir, "connectors"))
	w.static = filepath.Join(w.dir, "static")
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-tags", "netgo", "-o", w.static, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// whoms are as whom the clients run.
var whoms = []struct {
	name string
	in   func(*world, *testing.T) *world
}{
	{"root", (*world).asRoot},
	{"65534", (*world).asNobody},
	{"--user 65534", (*world).userNobody},
}

func TestIsolatedClients(t *testing.T) {
	chosen := os.Getenv(runVar)
	if chosen == "" {
		t.Skip("not run: the clients are many; make clients installs and tries them")
	}
	w := newWorld(t)
	w.opened(t)
	passed := map[string][]string{}
	var tried []string
	for _, whom := range whoms {
		t.Run(whom.name, func(t *testing.T) {
			w := whom.in(w, t)
			w.needsNetwork(t)
			tried = append(tried, whom.name)
			for _, c := range allIsolated {
				if chosen != "write" && !regexp.MustCompile(chosen).MatchString(c.name) {
					continue
				}
				for _, way := range both {
					t.Run(c.name+" "+way, func(t *testing.T) {
						if missing := c.missing(); missing != "" {
							t.Skipf("not run: %s is not on this machine", missing)
						}
						if c.around != nil && !c.around() {
							t.Skip("not run: this version heeds the variables")
						}
						w.tryIsolated(t, c, way, whom.name+way)
						if !t.Failed() {
							passed[c.name+way] = append(passed[c.name+way], whom.name)
						}
					})
				}
			}
		})
	}
	table := printedIsolated(passed, tried)
	t.Logf("\n%s", table)
	if chosen == "write" {
		writeTable(t, "isolated", table)
	}
}

// needsNetwork leaves the test out where no namespace can be had.
func (w *world) needsNetwork(t *testing.T) {
	t.Helper()
	argv := slices.Concat(w.before, []string{w.program, "run", "--config", w.config, "--workflow", "w", "--once", proxyAlone, "--", "true"})
	if d := w.start(t, os.Environ(), errand{}, argv); strings.Contains(d.text, "no network namespace can be had here") {
		t.Skipf("not run: %s", d.text)
	} else if d.code != 0 {
		t.Fatalf("exit %d: %s", d.code, d.text)
	}
}

// tryIsolated plays a mutation whose answer is lost, and its replay; or a mutation that must not go anywhere.
func (w *world) tryIsolated(t *testing.T, c isolated, way, word string) {
	t.Helper()
	must(t, os.Chmod(filepath.Dir(t.TempDir()), 0o755)) // For the other user.
	in := *w
	in.flags, in.site = append([]string{way}, w.flags...), named
	if c.site != nil {
		in.site = c.site
	}
	if c.bank != nil {
		in.bank = c.bank(w)
	}
	if c.trade == nil {
		c.trade = calling{}
	}
	word = strings.ToLower(regexp.MustCompile(`[^A-Za-z0-9]+`).ReplaceAllString(c.name+word, "-"))
	ask := func(e errand) done { t.Helper(); return in.underRun(t, c.client, word, "i")(e, false) }
	if !slices.Contains(c.passes, way) {
		in.tryRefused(t, c, ask, word)
		if way == proxyAlone {
			in.bank, in.site = w.plain, plainly // Outside, this bank would take it from anyone.
			in.tryRefused(t, c, ask, word+"-plain")
			in.flags = w.flags
			if e := c.trade.change(t, &in, word+"-around"); ask(e).code != 0 || in.sends(t, e) != 1 {
				t.Error("this client doesn't go around the proxy, so that its failure shows nothing")
			}
		}
		return
	}
	e := c.trade.change(t, &in, word)
	lose(t, e, "commit-close")
	first := ask(e)
	e = c.trade.change(t, &in, word)
	again := ask(e)
	if !c.trade.content(first, "change") || !c.trade.content(again, "replay") || in.effects(t, e) != 1 || in.sends(t, e) != 1 {
		t.Errorf("%d effects of %d sendings; exit %d:\n%s\nthen %d:\n%s", in.effects(t, e), in.sends(t, e), first.code, first.text, again.code, again.text)
	}
}

// tryRefused plays a mutation that the client itself must say it failed to send.
func (w *world) tryRefused(t *testing.T, c isolated, ask func(errand) done, word string) {
	t.Helper()
	e := c.trade.change(t, w, word)
	d := ask(e)
	if d.code <= 0 || d.code >= codeUnknown || c.trade.content(d, "change") || w.sends(t, e) != 0 {
		t.Errorf("%d sendings; exit %d:\n%s", w.sends(t, e), d.code, d.text)
	}
}

// printedIsolated is the table of what was tried in a network of its own.
func printedIsolated(passed map[string][]string, tried []string) string {
	var b strings.Builder
	b.WriteString("| client | `--isolate` | `--isolate=transparent` | as whom |\n| --- | --- | --- | --- |\n")
	for _, c := range allIsolated {
		fmt.Fprintf(&b, "| %s |", c.name)
		var by []string
		for _, way := range both {
			what := "fails"
			if slices.Contains(c.passes, way) {
				what = "once"
			}
			switch by = passed[c.name+way]; {
			case len(by) == 0:
				what = "not shown"
			case !slices.Equal(by, tried):
				what += ", as " + strings.Join(by, ", ")
			}
			fmt.Fprintf(&b, " %s |", what)
		}
		as := strings.Join(by, ", ")
		if len(by) == len(whoms) {
			as = "all"
		}
		fmt.Fprintf(&b, " %s |\n", as)
	}
	return b.String()
}
