package clients

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"keep-proxy/internal/fakes"
	"keep-proxy/internal/fakes/bank"
	"keep-proxy/internal/fakes/oracle"
	"keep-proxy/internal/fakes/server"
	"keep-proxy/internal/fakes/testca"
)

// world is the program, started as its users start it, and the upstreams.
type world struct {
	// dir holds all files, data the proxy's. home is the clients' home.
	dir, data, home, program, config string

	bank, hooks, git, objects, cluster *server.Server
	// plain is a bank that speaks no TLS. uncovered is another one, of no connector.
	plain, uncovered *server.Server
	// site is the address of an upstream, as clients ask for it.
	site func(*server.Server) string
	// before comes before the program's name, flags after those of run.
	before, flags []string
	// self is this binary, static the same without C's libraries.
	self, static string
}

const configuration = `proxy:
  listen: ["127.0.0.1:0"]
  upstream_ca: %[1]s/upstreams.pem
  egress: {deny_private: false}
  upstream_proxy: {url: "http://%[8]s", no_proxy: [127.0.0.1, 0.0.0.0]}
admin: {listen: "127.0.0.1:0"}
ledger: {dir: %[1]s/data, min_free: 1MiB}
connectors:
  dirs: [%[2]s, %[1]s/connectors]
  bundled: false
  settings:
    - {connector: probed-bank, hosts: [%[3]s]}
    - {connector: plain-bank, hosts: [%[9]s]}
    - {connector: hooks, hosts: [%[4]s]}
    - {connector: git, hosts: [%[5]s]}
    - {connector: objects, hosts: [%[6]s], credentials: {exec: [/bin/echo, reader]}} # What a script signed can't be signed again.
    - {connector: cluster, hosts: [%[7]s]}
reconcile: {inline: 5s, base: 100ms, cap: 1s}
log: {level: warn}
`

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{dir: t.TempDir(), site: anywhere}
	w.data, w.home = filepath.Join(w.dir, "data"), filepath.Join(w.dir, "home")
	must(t, os.Mkdir(w.home, 0o700))
	w.startUpstreams(t)
	w.copyConnectors(t)
	connectors, err := filepath.Abs("../testdata/connectors")
	must(t, err)
	w.self, err = os.Executable()
	must(t, err)
	w.config = filepath.Join(w.dir, "config.yaml")
	must(t, os.WriteFile(w.config, fmt.Appendf(nil, configuration, w.dir, connectors,
		hosts(w.bank), hosts(w.hooks), hosts(w.git), hosts(w.objects), hosts(w.cluster), startNames(t), hosts(w.plain)), 0o600))
	w.program = filepath.Join(w.dir, "keep-proxy")
	w.command(t, "go", "build", "-o", w.program, "keep-proxy/cmd/keep-proxy")
	w.serve(t)
	return w
}

func (w *world) startUpstreams(t *testing.T) {
	t.Helper()
	ca, err := testca.New()
	must(t, err)
	must(t, os.WriteFile(filepath.Join(w.dir, "upstreams.pem"), ca.PEM(), 0o600))
	// Some clients never send a loopback address to a proxy; 0.0.0.0 is none to them.
	leaf, err := ca.Leaf("0.0.0.0", "*"+domain)
	must(t, err)
	start := func(api server.API, name string, leaf *tls.Certificate) *server.Server {
		log, err := oracle.Open(filepath.Join(w.dir, name+".log"), nil)
		must(t, err)
		s, err := server.Start(server.Config{API: api, Log: log, Certificate: leaf})
		must(t, err)
		t.Cleanup(func() { must(t, errors.Join(s.Close(), log.Close())) })
		return s
	}
	settings := bank.Defaults()
	settings.NativeKeys = false
	w.bank = start(paged{bank.New(settings), "/page"}, "bank", leaf)
	w.plain = start(bank.New(settings), "plain", nil)
	w.uncovered = start(bank.New(settings), "uncovered", nil)
	hooks, err := fakes.New("webhook")
	must(t, err)
	w.hooks = start(paged{hooks, "/hook/read/page"}, "hooks", leaf)
	w.git = start(newGitHost(t, filepath.Join(w.dir, "repositories")), "git", leaf)
	w.objects = start(newObjects(), "objects", leaf)
	w.cluster = start(newCluster(), "cluster", leaf)
}

// copyConnectors puts our own connectors where their hosts and programs are.
func (w *world) copyConnectors(t *testing.T) {
	t.Helper()
	dir := filepath.Join(w.dir, "connectors")
	must(t, os.CopyFS(dir, os.DirFS("testdata/connectors")))
	text, err := os.ReadFile("../testdata/connectors/probed.yaml")
	must(t, err)
	// A connector's hosts are one API, and two banks are two.
	plain := strings.Replace(string(text), "connector: probed-bank", "connector: plain-bank", 1)
	must(t, os.WriteFile(filepath.Join(dir, "plain.yaml"), []byte(plain), 0o600))
	gitConnector(t, w, dir)
	clusterConnector(t, w, dir)
}

// serve starts the program and waits until it is ready.
func (w *world) serve(t *testing.T) {
	t.Helper()
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
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for late := time.After(limit); exec.Command(w.program, "health", "--config", w.config).Run() != nil; {
		select {
		case <-late:
			t.Fatal("the program never became ready")
		case <-tick.C:
		}
	}
}

// anywhere is an upstream's URL by the address of every interface. here has a loopback
// address, which clients that go by it are told to send to the proxy. named has a name, and
// plainly has no TLS.
func anywhere(s *server.Server) string { return "https://0.0.0.0:" + port(s) }

func here(s *server.Server) string { return "https://127.0.0.1:" + port(s) }

func named(s *server.Server) string { return "https://" + name(s) }

func plainly(s *server.Server) string { return "http://127.0.0.1:" + port(s) }

func port(s *server.Server) string {
	_, port, _ := strings.Cut(s.Addr(), ":")
	return port
}

// hosts are all of them, as a connector's hosts.
func hosts(s *server.Server) string {
	return fmt.Sprintf(`"0.0.0.0:%[1]s", "127.0.0.1:%[1]s", "%[2]s"`, port(s), name(s))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// command runs a program that must succeed.
func (w *world) command(t *testing.T, argv ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	out, err := exec.CommandContext(ctx, argv[0], argv[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%q: %v\n%s", argv, err, out)
	}
	return string(out)
}

// shared is the address of the proxy's listener.
func (w *world) shared(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(w.data, "serving.json"))
	must(t, err)
	var serving struct {
		Proxy string `json:"proxy"`
	}
	must(t, json.Unmarshal(text, &serving))
	return serving.Proxy
}
