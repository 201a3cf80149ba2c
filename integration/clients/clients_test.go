package clients

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"keep-proxy/internal/fakes"
	"keep-proxy/internal/fakes/testca"
)

// runVar is set by make clients; its value may be a regular expression over the
// clients' names.
const runVar = "CLIENTS"

// limit is for one call of a client. Only what is broken reaches it.
const limit = time.Minute

// client is one that people run: the same call for all, METHOD and URL as the last
// arguments and a body on standard input; it prints status and fields.
type client struct {
	name string
	// argv is its command; {method}, {url} and {proxyhost}, {proxyport} are put in.
	argv []string
	// version prints what it is.
	version []string
	// needs is a file without which it isn't there.
	needs string
	// listener opens its runs with listeners of their own.
	listener bool
	// note is for the table.
	note string
	// around says that it goes around the proxy: the table's warning, as a test.
	around func() bool
}

var all = []client{
	{name: "curl", argv: []string{"curl", "-sS", "-i", "--suppress-connect-headers", "-X", "{method}", "-H", "Content-Type: application/json", "--data-binary", "@-", "{url}"}, version: []string{"curl", "--version"}},
	{name: "wget", argv: []string{"wget", "-nv", "-S", "-O", "-", "--tries=1", "--content-on-error", "--ca-certificate={ca}", "--method={method}", "--header=Content-Type: application/json", "--body-file=/dev/stdin", "{url}"}, version: []string{"wget", "--version"}, note: "`--ca-certificate=\"$SSL_CERT_FILE\"`, or `ca_certificate` in its wgetrc"},
	{name: "Python urllib", argv: []string{"/usr/bin/python3", "testdata/urllib_client.py", "{method}", "{url}"}, version: []string{"/usr/bin/python3", "--version"}},
	{name: "requests", argv: []string{"/usr/bin/python3", "testdata/requests_client.py", "{method}", "{url}"}, version: []string{"/usr/bin/python3", "-c", "import requests; print(requests.__version__)"}},
	{name: "httpx", argv: []string{"/usr/bin/python3", "testdata/httpx_client.py", "{method}", "{url}"}, version: []string{"/usr/bin/python3", "-c", "import httpx; print(httpx.__version__)"}},
	{name: "aiohttp", argv: []string{"/usr/bin/python3", "testdata/aiohttp_client.py", "{method}", "{url}"}, version: []string{"/usr/bin/python3", "-c", "import aiohttp; print(aiohttp.__version__)"}, note: "`trust_env=True`"},
	{name: "Node fetch", argv: []string{"node", "node/fetch.mjs", "{method}", "{url}"}, version: []string{"node", "--version"}, note: "only from 22.21 or 24; before that it goes around the proxy", around: olderNode},
	{name: "undici's EnvHttpProxyAgent", argv: []string{"node", "node/undici.mjs", "{method}", "{url}"}, needs: "node/node_modules/undici/package.json", version: []string{"node", "-p", "require('./node/node_modules/undici/package.json').version"}, note: "for Node before 22.21"},
	{name: "axios", argv: []string{"node", "node/axios.mjs", "{method}", "{url}"}, needs: "node/node_modules/axios/package.json", version: []string{"node", "-p", "require('./node/node_modules/axios/package.json').version"}},
	{name: "Go net/http", argv: []string{"{self}", "{method}", "{url}"}, version: []string{"go", "version"}, note: "never for `localhost` and 127.0.0.0/8"},
	{name: "Java HttpClient", argv: []string{"java", "-Dhttp.proxyHost={proxyhost}", "-Dhttp.proxyPort={proxyport}", "-Dhttps.proxyHost={proxyhost}", "-Dhttps.proxyPort={proxyport}", "-Dhttp.nonProxyHosts=", "-Djavax.net.ssl.trustStore={truststore}", "-Djavax.net.ssl.trustStorePassword=changeit", "testdata/Client.java", "{method}", "{url}"}, version: []string{"java", "--version"}, listener: true, note: "`--listener`; see below"},
	{name: "Ruby net/http", argv: []string{"ruby", "testdata/client.rb", "{method}", "{url}"}, version: []string{"ruby", "--version"}},
	{name: "PHP curl", argv: []string{"php", "testdata/client.php", "{method}", "{url}"}, version: []string{"php", "--version"}, note: "`CURLOPT_CAINFO` from `SSL_CERT_FILE`, or `curl.cainfo` in php.ini"},
	{name: "Perl LWP", argv: []string{"perl", "testdata/client.pl", "{method}", "{url}"}, version: []string{"perl", "-e", "use LWP; print LWP->VERSION"}, note: "`env_proxy => 1`, `SSL_ca_file` from `SSL_CERT_FILE`"},
}

// TestMain makes this binary an unmodified Go client when it is called as one.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && (os.Args[1] == "GET" || os.Args[1] == "POST") {
		os.Exit(goClient(os.Args[1], os.Args[2]))
	}
	os.Exit(m.Run())
}

func TestClients(t *testing.T) {
	chosen := os.Getenv(runVar)
	if chosen == "" {
		t.Skip("not run: the clients are many; make clients installs and tries them")
	}
	pattern, err := regexp.Compile(chosen)
	if err != nil {
		t.Fatalf("%s: %v", runVar, err)
	}
	w := newWorld(t)
	results := make([]result, len(all))
	var rows sync.WaitGroup
	for i, c := range all {
		results[i] = result{client: c}
		if chosen != "write" && !pattern.MatchString(c.name) {
			continue
		}
		rows.Add(1)
		t.Run(c.name, func(t *testing.T) {
			defer rows.Done()
			w.try(t, i, &results[i])
		})
	}
	rows.Wait()
	table := printed(results)
	t.Logf("\n%s", table)
	if chosen == "write" {
		writeTable(t, table)
	}
}

// world is the program, started as its users start it, and two upstreams.
type world struct {
	dir, program, config string
	bank, hooks          *fakes.Fake
	truststore           string
}

const configuration = `proxy:
  listen: ["127.0.0.1:0"]
  upstream_ca: %[1]s/upstreams.pem
  egress: {deny_private: false}
admin: {listen: "127.0.0.1:0"}
ledger: {dir: %[1]s/data, min_free: 1MiB}
connectors:
  dirs: [%[2]s]
  bundled: false
  settings:
    - {connector: probed-bank, hosts: ["%[3]s"]}
    - {connector: hooks, hosts: ["%[4]s"]}
reconcile: {inline: 5s, base: 100ms, cap: 1s}
log: {level: warn}
`

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{dir: t.TempDir()}
	ca, err := testca.New()
	must(t, err)
	must(t, os.WriteFile(filepath.Join(w.dir, "upstreams.pem"), ca.PEM(), 0o600))
	// Some clients never send a loopback address to a proxy; 0.0.0.0 is none to them.
	start := func(api, settings string) *fakes.Fake {
		o := fakes.Options{API: api, Log: filepath.Join(w.dir, api+".log"), CA: ca, Hosts: []string{"0.0.0.0"}}
		if settings != "" {
			o.Settings = []byte(settings)
		}
		f, err := fakes.Start(o)
		must(t, err)
		t.Cleanup(func() { _ = f.Close() })
		return f
	}
	w.bank, w.hooks = start("bank", `{"native_keys": false}`), start("webhook", "")
	connectors, err := filepath.Abs("../testdata/connectors")
	must(t, err)
	w.config = filepath.Join(w.dir, "config.yaml")
	must(t, os.WriteFile(w.config, fmt.Appendf(nil, configuration, w.dir, connectors, anywhere(w.bank), anywhere(w.hooks)), 0o600))
	w.program = filepath.Join(w.dir, "keep-proxy")
	w.command(t, nil, "go", "build", "-o", w.program, "keep-proxy/cmd/keep-proxy")

	serve := exec.CommandContext(context.Background(), w.program, "serve", "--config", w.config)
	log, err := os.Create(filepath.Join(w.dir, "serve.log"))
	must(t, err)
	serve.Stdout, serve.Stderr = log, log
	t.Cleanup(func() {
		if text, err := os.ReadFile(log.Name()); err == nil && t.Failed() {
			t.Logf("the program: %s", text)
		}
	})
	must(t, serve.Start())
	t.Cleanup(func() {
		_ = serve.Process.Signal(os.Interrupt)
		_ = serve.Wait()
	})
	w.until(t, func() bool { return exec.Command(w.program, "health", "--config", w.config).Run() == nil })
	return w
}

// anywhere is a fake's host:port by the address of every interface.
func anywhere(f *fakes.Fake) string {
	_, port, _ := strings.Cut(f.Addr(), ":")
	return "0.0.0.0:" + port
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (w *world) until(t *testing.T, done func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for late := time.After(limit); !done(); {
		select {
		case <-late:
			t.Fatal("the program never became ready")
		case <-tick.C:
		}
	}
}

// command runs a program that must succeed.
func (w *world) command(t *testing.T, env []string, argv ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	if env != nil {
		cmd.Env = env
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%q: %v\n%s", argv, err, out)
	}
	return string(out)
}

// opened is a run that env opened.
type opened map[string]string

// open opens a run of an item, as keep-proxy env does.
func (w *world) open(t *testing.T, c client, item string) opened {
	t.Helper()
	argv := []string{w.program, "env", "--config", w.config, "--workflow", c.name, "--item", item, "--takeover", "--format", "json"}
	if c.listener {
		argv = append(argv, "--listener")
	}
	env := opened{}
	must(t, json.Unmarshal([]byte(w.command(t, nil, argv...)), &env))
	return env
}

// argv is the client's command for one call; env holds the run's variables.
func (w *world) argv(c client, env opened, method, url string) []string {
	address := env["HTTPS_PROXY"]
	address = address[strings.LastIndexAny(address, "@/")+1:]
	at := strings.LastIndex(address, ":")
	if strings.HasPrefix(address, "$") {
		at = strings.Index(address, "}:") + 1
	}
	host, port := address[:at], address[at+1:]
	self, _ := os.Executable()
	fill := strings.NewReplacer("{method}", method, "{url}", url, "{ca}", env["SSL_CERT_FILE"],
		"{proxyhost}", host, "{proxyport}", port, "{self}", self, "{truststore}", w.truststore)
	argv := make([]string, len(c.argv))
	for i, a := range c.argv {
		argv[i] = fill.Replace(a)
	}
	return argv
}

// call is one call of the client with a run's variables and little else. It returns
// all that was printed.
func (w *world) call(t *testing.T, c client, env opened, method, url, body string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	argv := w.argv(c, env, method, url)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + w.dir}
	for name, value := range env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	cmd.Stdin = w.file(t, body)
	out, _ := cmd.CombinedOutput() // Clients differ in which statuses are failures of theirs.
	return string(out)
}

// file is a body as a file, as wget reads no pipe.
func (w *world) file(t *testing.T, body string) *os.File {
	t.Helper()
	f, err := os.CreateTemp(w.dir, "body")
	must(t, err)
	t.Cleanup(func() { _ = f.Close() })
	_, err = f.WriteString(body)
	must(t, err)
	_, err = f.Seek(0, 0)
	must(t, err)
	return f
}

// under is one call under keep-proxy run. It returns what was printed. A shell puts
// the command together, as some clients need parts of the variables.
func (w *world) under(t *testing.T, c client, item, method, url, body string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	argv := []string{"run", "--config", w.config, "--workflow", c.name, "--item", item}
	if c.listener {
		argv = append(argv, "--listener")
	}
	script := `host=${HTTPS_PROXY##*[@/]}; exec`
	for _, word := range w.argv(c, opened{"HTTPS_PROXY": "/${host%:*}:${host##*:}", "SSL_CERT_FILE": "$SSL_CERT_FILE"}, method, url) {
		script += ` "` + word + `"`
	}
	cmd := exec.CommandContext(ctx, w.program, append(argv, "--", "sh", "-c", script)...)
	cmd.Stdin = w.file(t, body)
	out, _ := cmd.CombinedOutput()
	return string(out)
}
