package app

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"keep-proxy/config"
	"keep-proxy/internal/fakes/testca"
	"keep-proxy/ledger"
	"keep-proxy/proxy"
)

// things is an API of several names at a port.
const things = `apiVersion: keep/v1
connector: things
version: 1
hosts: [HOSTS]
reads: safe-methods
operations:
  - name: make
    match: {method: POST, path: /things}
    effect: mutation
    identity: {to: json.to}
    reconcile: [{none: "it can't be asked"}]
    manual_check: "look"
`

// dialled is the program between a client and upstreams at addresses of their own.
type dialled struct {
	t  *testing.T
	ca *testca.CA
	// port is the same at each address.
	port string
	// dir holds config.yaml, and rules/things.yaml.
	dir    string
	app    *App
	client *http.Client
}

// setup is how a program differs from the usual.
type setup struct {
	// proxy are more keys of the configuration's proxy, a line each, and settings are those
	// of connectors.
	proxy, settings string
	// dial is how long connecting may take; empty for long.
	dial    string
	options Options
}

// newDialled starts the program with this resolver. It may reach 127.0.0.2 and 127.0.0.3.
func newDialled(t *testing.T, port string, ca *testca.CA, resolver *net.Resolver, edits ...func(*setup)) *dialled {
	t.Helper()
	w := &dialled{t: t, ca: ca, port: port}
	var s setup
	for _, edit := range edits {
		edit(&s)
	}
	dir := t.TempDir()
	w.dir = dir
	file := filepath.Join(dir, "config.yaml")
	text := fmt.Sprintf(`proxy:
  listen: ["127.0.0.1:0"]
  upstream_ca: %q
  egress: {allow: [127.0.0.2, 127.0.0.3]}
  timeouts: {dial: %s}
%sadmin: {listen: "127.0.0.1:0", health_listen: "127.0.0.1:0"}
ledger: {dir: %q, min_free: 1MiB}
connectors: {dirs: [%q], settings: [%s]}
`, filepath.Join(dir, "upstreams.pem"), or(s.dial, "1m"), s.proxy, filepath.Join(dir, "state"), dir+"/rules", s.settings)
	var hosts []string
	for _, name := range []string{"lost", "denied", "aliased", "second", "refused", "silent"} {
		hosts = append(hosts, fmt.Sprintf("%q", name+".things.test:"+port))
	}
	rules := strings.Replace(things, "HOSTS", strings.Join(hosts, ", "), 1)
	if err := errors.Join(os.Mkdir(dir+"/rules", 0o700), os.WriteFile(dir+"/rules/things.yaml", []byte(rules), 0o600),
		os.WriteFile(dir+"/upstreams.pem", ca.PEM(), 0o600), os.WriteFile(file, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
	s.options.Load = func() (config.Config, error) { return config.Load(config.Options{File: file}) }
	c, err := s.options.Load()
	if err != nil {
		t.Fatal(err)
	}
	s.options.Config, s.options.Log, s.options.Version = c, zerolog.Nop(), "test"
	if w.app, err = New(t.Context(), s.options); err != nil {
		t.Fatal(err)
	}
	if resolver != nil {
		w.app.egress.resolver = resolver
	}
	if err := w.app.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.app.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	roots := x509.NewCertPool()
	pem, err := os.ReadFile(filepath.Join(dir, "state", "ca-cert.pem"))
	if err != nil || !roots.AppendCertsFromPEM(pem) {
		t.Fatalf("the CA: %v", err)
	}
	tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, DisableKeepAlives: true}
	tr.Proxy = func(r *http.Request) (*url.URL, error) {
		return &url.URL{Scheme: "http", Host: w.app.ProxyAddr(), User: url.UserPassword("run", r.URL.Hostname())}, nil
	}
	w.client = &http.Client{Transport: tr}
	return w
}

// post makes a thing at a host, in a run of the host's own, and tells the answer.
func (w *dialled) post(host string) (int, string) {
	w.t.Helper()
	_, err := w.app.ledger.OpenRun(w.t.Context(), ledger.OpenRun{Workflow: host, Item: "i", TTL: time.Hour, TokenSHA256: proxy.TokenDigest(host)})
	if err != nil {
		w.t.Fatal(err)
	}
	return w.answer(w.client.Post("https://"+host+":"+w.port+"/things", "application/json", strings.NewReader(`{"to":"x"}`)))
}

// get reads what is at a host, in the run that post opened.
func (w *dialled) get(host string) (int, string) {
	w.t.Helper()
	return w.answer(w.client.Get("https://" + host + ":" + w.port + "/things"))
}

func (w *dialled) answer(resp *http.Response, err error) (int, string) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// site is an upstream at one address that counts for itself.
type site struct{ connections, requests atomic.Int64 }

// newSite listens at an address and answers 201 for what lost doesn't name; for that it
// reads the request and answers nothing.
func newSite(t *testing.T, ca *testca.CA, address, lost string, edits ...func(*http.Server)) (s *site, port string) {
	t.Helper()
	leaf, err := ca.Leaf("second.things.test", "lost.things.test", "refused.things.test")
	if err != nil {
		t.Fatal(err)
	}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	s = &site{}
	server := &http.Server{
		ErrorLog: log.New(io.Discard, "", 0), ReadHeaderTimeout: time.Minute,
		ConnState: func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				s.connections.Add(1)
			}
		},
		Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			s.requests.Add(1)
			if name, _, _ := net.SplitHostPort(r.Host); name == lost {
				panic(http.ErrAbortHandler)
			}
			rw.WriteHeader(http.StatusCreated)
		}),
	}
	server.TLSConfig = &tls.Config{Certificates: []tls.Certificate{*leaf}, MinVersion: tls.VersionTLS12}
	for _, edit := range edits {
		edit(server)
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(tls.NewListener(l, server.TLSConfig))
	}()
	t.Cleanup(func() { _ = server.Close(); <-served })
	_, port, _ = net.SplitHostPort(l.Addr().String())
	return s, port
}

// A mutation goes to the next address of a name only if nothing can have come to the one
// before.
func TestAMutationIsSentToOneOfTheAddressesOfAName(t *testing.T) {
	t.Parallel()
	ca, err := testca.New()
	if err != nil {
		t.Fatal(err)
	}
	first, port := newSite(t, ca, "127.0.0.2:0", "lost.things.test")
	second, _ := newSite(t, ca, "127.0.0.3:"+port, "")
	w := newDialled(t, port, ca, nameserver(t, func(name string, _ int) []string {
		return map[string][]string{
			"lost.things.test":    {"127.0.0.2", "127.0.0.3"},
			"denied.things.test":  {"cname meta.test", "169.254.169.254"},
			"aliased.things.test": {"cname meta.test", "127.0.0.4"},
			"second.things.test":  {"127.0.0.4", "127.0.0.3"},
		}[name]
	}))

	// The first one read the request: whether it did it is unknown, and the second is never asked.
	if status, text := w.post("lost.things.test"); status != http.StatusFailedDependency || !strings.Contains(text, "unknown-outcome") {
		t.Errorf("lost at the first address: %d %s", status, text)
	}
	if first.requests.Load() != 1 || second.connections.Load() != 0 {
		t.Errorf("%d requests at the first address, %d connections to the second", first.requests.Load(), second.connections.Load())
	}
	// What an alias leads to is what counts (169.254.169.254 is the clouds' metadata service).
	for _, host := range []string{"denied.things.test", "aliased.things.test"} {
		if status, text := w.post(host); status != http.StatusForbidden || !strings.Contains(text, "urn:keep:problem:egress") {
			t.Errorf("%s: %d %s", host, status, text)
		}
	}
	// An address that isn't allowed is passed over.
	if status, text := w.post("second.things.test"); status != http.StatusCreated {
		t.Errorf("at the second address: %d %s", status, text)
	}
	if first.requests.Load() != 1 || second.requests.Load() != 1 {
		t.Errorf("%d and %d requests, want 1 and 1", first.requests.Load(), second.requests.Load())
	}
}

// Where nobody listens nothing was sent: the next address is tried.
func TestAMutationGoesOnFromAnAddressThatRefuses(t *testing.T) {
	t.Parallel()
	ca, err := testca.New()
	if err != nil {
		t.Fatal(err)
	}
	only, port := newSite(t, ca, "127.0.0.3:0", "")
	w := newDialled(t, port, ca, nameserver(t, func(string, int) []string { return []string{"127.0.0.2", "127.0.0.3"} }))
	if status, text := w.post("refused.things.test"); status != http.StatusCreated || only.requests.Load() != 1 {
		t.Errorf("%d %s, %d requests", status, text, only.requests.Load())
	}
}

// A nameserver that doesn't answer holds a mutation up no longer than a dial may take, and
// nothing was sent.
func TestAMutationWhoseNameIsNeverFoundWasNotSent(t *testing.T) {
	t.Parallel()
	ca, err := testca.New()
	if err != nil {
		t.Fatal(err)
	}
	// The resolver itself doesn't go on before this test ends.
	over := make(chan struct{})
	w := newDialled(t, "443", ca, &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		<-over
		return nil, net.ErrClosed
	}}, func(s *setup) { s.dial = "600ms" })
	t.Cleanup(func() { close(over) })
	status, text := w.post("silent.things.test")
	if status != http.StatusBadGateway || !strings.Contains(text, "urn:keep:problem:not-sent") {
		t.Errorf("%d %s", status, text)
	}
	page, err := w.app.ledger.Mutations(t.Context(), ledger.Filter{Item: "i"})
	if err != nil || len(page.Items) != 1 || page.Items[0].State != ledger.Failed || len(page.Items[0].Dispatches) != 1 ||
		page.Items[0].Dispatches[0].Verdict != ledger.VerdictNotSent {
		t.Errorf("its record: %+v, %v", page.Items, err)
	}
}
