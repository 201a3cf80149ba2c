package app

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"keep-proxy/config"
	"keep-proxy/internal/clock"
	"keep-proxy/internal/fakes/testca"
	"keep-proxy/notify"
)

const mapped = "second.things.test"

// guide is another proxy, the only one that knows where names are: at one address.
type guide struct {
	at, address, credentials string

	mu    sync.Mutex
	asked []string
}

func newGuide(t *testing.T, at, credentials string) *guide {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &guide{at: at, address: l.Addr().String(), credentials: "Basic " + base64.StdEncoding.EncodeToString([]byte(credentials))}
	var all sync.WaitGroup
	t.Cleanup(func() { _ = l.Close(); all.Wait() })
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { g.serve(c) })
		}
	})
	return g
}

func (g *guide) serve(c net.Conn) {
	defer func() { _ = c.Close() }()
	from := bufio.NewReader(c)
	r, err := http.ReadRequest(from)
	if err != nil {
		return
	}
	g.mu.Lock()
	g.asked = append(g.asked, r.Method+" "+r.Host)
	g.mu.Unlock()
	if r.Header.Get("Proxy-Authorization") != g.credentials {
		_, _ = io.WriteString(c, "HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
		return
	}
	to, err := net.Dial("tcp", g.at)
	if err != nil {
		return
	}
	defer func() { _ = to.Close() }()
	_, _ = io.WriteString(c, tunnelled)
	back := make(chan struct{})
	go func() { defer close(back); _, _ = io.Copy(c, to); _ = c.Close() }()
	_, _ = io.Copy(to, from)
	_ = to.Close()
	<-back
}

// With proxy.upstream_proxy mutations, reads and blind tunnels all go through it, and by no
// way around.
func TestTheProgramGoesOutThroughTheOtherProxy(t *testing.T) {
	t.Parallel()
	ca, err := testca.New()
	if err != nil {
		t.Fatal(err)
	}
	s, port := newSite(t, ca, "127.0.0.2:0", "")
	other := newGuide(t, "127.0.0.2:"+port, "keep:s3cret")
	password := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(password, []byte("s3cret"), 0o600); err != nil {
		t.Fatal(err)
	}
	w := newDialled(t, port, ca, nameserver(t, func(string, int) []string { return nil }), func(s *setup) {
		s.proxy = fmt.Sprintf("  upstream_proxy: {url: %q, user: keep, password: %q}\n  passthrough: [blind.test]\n", "http://"+other.address, "${file:"+password+"}")
	})
	if status, text := w.post(mapped); status != http.StatusCreated {
		t.Errorf("a mutation: %d %s", status, text)
	}
	if status, text := w.get(mapped); status != http.StatusCreated {
		t.Errorf("a read: %d %s", status, text)
	}
	if n := s.requests.Load(); n != 2 {
		t.Errorf("%d requests arrived", n)
	}
	c, err := net.Dial("tcp", w.app.ProxyAddr())
	if err != nil {
		t.Fatal(err)
	}
	_, _ = fmt.Fprintf(c, "CONNECT blind.test:443 HTTP/1.1\r\nHost: blind.test:443\r\nProxy-Authorization: Basic %s\r\n\r\n",
		base64.StdEncoding.EncodeToString([]byte("run:"+mapped)))
	resp, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: http.MethodConnect})
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("a blind tunnel: %v, %v", resp, err)
	}
	_ = c.Close()
	other.mu.Lock()
	defer other.mu.Unlock()
	want := "CONNECT second.things.test:" + port
	if got := strings.Join(other.asked, ", "); got != want+", "+want+", CONNECT blind.test:443" {
		t.Errorf("the other proxy was asked for %s", got)
	}
}

// An upstream that wants a certificate is shown the configured one, by mutations and reads.
func TestTheProgramShowsItsCertificates(t *testing.T) {
	t.Parallel()
	ca, err := testca.New()
	if err != nil {
		t.Fatal(err)
	}
	s, port := newSite(t, ca, "127.0.0.2:0", "", func(s *http.Server) { s.TLSConfig.ClientAuth = tls.RequireAnyClientCert })
	pair := writePair(t, ca)
	w := newDialled(t, port, ca, nameserver(t, func(string, int) []string { return []string{"127.0.0.2"} }), func(s *setup) {
		s.proxy = fmt.Sprintf("  client_certs: [{host: %s, cert_file: %q, key_file: %q}]\n", mapped, pair.CertFile, pair.KeyFile)
	})
	if status, text := w.post(mapped); status != http.StatusCreated {
		t.Errorf("a mutation: %d %s", status, text)
	}
	if status, text := w.get(mapped); status != http.StatusCreated {
		t.Errorf("a read: %d %s", status, text)
	}
	// To another host nothing is shown.
	if status, text := w.post("refused.things.test"); status != http.StatusFailedDependency && status != http.StatusBadGateway {
		t.Errorf("a host for which there is none: %d %s", status, text)
	}
	if n := s.requests.Load(); n != 2 {
		t.Errorf("%d requests arrived", n)
	}
}

// Where others would take the ledger's descriptors, mutations and reads aren't sent, and
// nobody gets at the admin API; a client beyond its own is turned away.
func TestTheProgramLeavesTheLedgerItsDescriptors(t *testing.T) {
	t.Parallel()
	ca, err := testca.New()
	if err != nil {
		t.Fatal(err)
	}
	const many = 1 << 20
	s, port := newSite(t, ca, "127.0.0.2:0", "")
	bounded := func(clients, others int) *dialled {
		return newDialled(t, port, ca, nameserver(t, func(string, int) []string { return []string{"127.0.0.2"} }), func(s *setup) {
			s.options.descriptors = func() (int, int) { return clients, others }
		})
	}
	w := bounded(many, 1)
	if status, text := w.post(mapped); status != http.StatusBadGateway || !strings.Contains(text, "the ledger's") {
		t.Errorf("a mutation: %d %s", status, text)
	}
	if status, text := w.get(mapped); status != http.StatusBadGateway || !strings.Contains(text, "the ledger's") {
		t.Errorf("a read: %d %s", status, text)
	}
	for name, address := range map[string]string{"the admin API": w.app.AdminAddr(), "the probes": w.app.HealthAddr()} {
		if resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Get("http://" + address + "/healthz"); err == nil {
			_ = resp.Body.Close()
			t.Errorf("%s: %s", name, resp.Status)
		}
	}
	if n := s.connections.Load(); n != 0 {
		t.Errorf("%d connections to the upstream", n)
	}
	over := bounded(1, many)
	if _, err := over.client.Get("https://" + mapped + ":" + port + "/things"); err == nil || !strings.Contains(err.Error(), "Service Unavailable") {
		t.Errorf("a client beyond its descriptors: %v", err)
	}
	// Whoever sets no bounds for a test has the system's.
	if clients, others := highestDescriptors(); clients <= 0 || others < clients {
		t.Errorf("%d descriptors of clients, %d of others", clients, others)
	}
}

// A reload that fails leaves the credentials that were in force, as it leaves the rules.
func TestAReloadThatFailsLeavesTheCredentials(t *testing.T) {
	t.Parallel()
	ca, err := testca.New()
	if err != nil {
		t.Fatal(err)
	}
	keys := make(chan string, 8)
	_, port := newSite(t, ca, "127.0.0.2:0", "", func(s *http.Server) {
		inner := s.Handler
		s.Handler = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			keys <- r.Header.Get("X-Key")
			inner.ServeHTTP(rw, r)
		})
	})
	dir := t.TempDir()
	for _, name := range []string{"old", "new"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w := newDialled(t, port, ca, nameserver(t, func(string, int) []string { return []string{"127.0.0.2"} }), func(s *setup) {
		s.settings = fmt.Sprintf("{connector: things, credentials: {header: X-Key, value: %q, use: always}}", "${file:"+dir+"/old}")
	})
	sent := func() string {
		t.Helper()
		if status, text := w.get(mapped); status != http.StatusCreated {
			t.Fatalf("%d %s", status, text)
		}
		return <-keys
	}
	if status, text := w.post(mapped); status != http.StatusCreated || <-keys != "old" {
		t.Fatalf("%d %s", status, text)
	}
	file, broken := filepath.Join(w.dir, "config.yaml"), filepath.Join(w.dir, "rules", "broken.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(file, []byte(strings.Replace(string(text), dir+"/old", dir+"/new", 1)), 0o600),
		os.WriteFile(broken, []byte("apiVersion: keep/v1\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := w.app.Reload(t.Context(), "test"); err == nil || !strings.Contains(err.Error(), "broken.yaml") {
		t.Fatalf("a broken file: %v", err)
	}
	if got := sent(); got != "old" {
		t.Errorf("after a reload that failed %q is sent", got)
	}
	if err := os.Remove(broken); err != nil {
		t.Fatal(err)
	}
	if _, err := w.app.Reload(t.Context(), "test"); err != nil {
		t.Fatal(err)
	}
	if got := sent(); got != "new" {
		t.Errorf("after a whole reload %q is sent", got)
	}
}

// Who is called by a webhook is called by the way that leads out.
func TestWebhooksGoTheWayThatLeadsOut(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "keep.yaml")
	text := "ledger: {dir: " + dir + "}\nnotify: {webhooks: [{name: pager, url: 'https://pager.test/x'}]}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(config.Options{File: file})
	if err != nil {
		t.Fatal(err)
	}
	var dialled []string
	a := &App{config: c, clock: clock.System(), dialNamed: func(_ context.Context, _, addr string) (net.Conn, error) {
		dialled = append(dialled, addr)
		return nil, errors.New("nobody is there")
	}}
	all, err := a.destinations()
	if err != nil || len(all) != 1 {
		t.Fatalf("%v, %v", all, err)
	}
	if err := all[0].Deliver(t.Context(), notify.Message{ID: "m"}, []byte("{}")); err == nil || len(dialled) != 1 || dialled[0] != "pager.test:443" {
		t.Errorf("dialled %q: %v", dialled, err)
	}
}

// What proxy.upstream_ca names is trusted by webhooks and by the way through another proxy too.
func TestANamedCertificateIsTrustedWhereverTheFileCounts(t *testing.T) {
	t.Parallel()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "127.0.0.1"}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusNoContent)
		if r.Method == http.MethodPost && r.ProtoMajor != 2 {
			t.Error("the webhook is called by " + r.Proto)
		}
	}))
	srv.EnableHTTP2 = true
	srv.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, MinVersion: tls.VersionTLS12}
	srv.StartTLS()
	t.Cleanup(srv.Close)
	dir := t.TempDir()
	file, named := filepath.Join(dir, "keep.yaml"), filepath.Join(dir, "appliance.pem")
	text := "ledger: {dir: " + dir + "}\nproxy: {upstream_ca: " + named + "}\nnotify: {webhooks: [{name: pager, url: '" + srv.URL + "/x'}]}\n"
	other, _ := authority(t)
	all := append(other.PEM(), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...)
	if err := errors.Join(os.WriteFile(file, []byte(text), 0o600), os.WriteFile(named, all, 0o600)); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(config.Options{File: file})
	if err != nil {
		t.Fatal(err)
	}
	webhooks, err := (&App{config: c, clock: clock.System()}).destinations()
	if err != nil || len(webhooks) != 1 {
		t.Fatalf("%v, %v", webhooks, err)
	}
	if err := webhooks[0].Deliver(t.Context(), notify.Message{ID: "m"}, []byte("{}")); err != nil {
		t.Error(err)
	}
	trust, err := upstreamTrust(named)
	if err != nil {
		t.Fatal(err)
	}
	through, err := newUpstreamProxy(newEgress(config.Egress{}), config.UpstreamProxy{URL: srv.URL}, config.Sources{}, trust)
	if err != nil {
		t.Fatal(err)
	}
	if c, err := through.reach(t.Context()); err != nil {
		t.Error(err)
	} else {
		_ = c.Close()
	}
}
