package proxy

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"keep-proxy/internal/clock"
	"keep-proxy/ledger"
	"keep-proxy/ledger/ledgertest"
	"keep-proxy/rules"
	"keep-proxy/upstream"
)

// testRules is a small API with every kind of operation that the proxy tells
// apart. HOST is replaced by the upstream's authority.
const testRules = `apiVersion: keep/v1
connector: api
version: 1
title: Test API
hosts: ["HOST"]
reads: safe-methods
operations:
  - name: pay
    match: {method: POST, path: /pay}
    effect: mutation
    describe: "Pay {json.to}"
    identity: {to: json.to}
    payload: {minor: [json.note]}
    native_key: {header: Idempotency-Key, format: uuid}
    reconcile:
      - none: "the test API can't be asked"
    manual_check: "look"
    max_body: 4KiB
  - name: shape
    match: {method: POST, path: /shape}
    effect: mutation
    describe: "Shape {json.to}"
    identity: {to: json.to}
    success: response.json.ok == true
    reconcile:
      - none: "the test API can't be asked"
    manual_check: "look"
  - name: again
    match: {method: POST, path: /again}
    effect: mutation
    describe: "Again {json.to}"
    identity: {to: json.to}
    repeat: replay
    reconcile:
      - none: "the test API can't be asked"
    manual_check: "look"
  - name: ask
    match: {method: POST, path: /ask}
    effect: mutation
    describe: "Ask {json.to}"
    identity: {to: json.to}
    reconcile:
      - probe:
          get: /asked
          observe:
            - {when: response.status == 200, is: applied}
    manual_check: "look"
  - name: upload
    match: {method: POST, path: "/files/{name}"}
    effect: mutation
    describe: "Upload {path.name}"
    identity: {name: path.name}
    reconcile:
      - none: "the test API can't be asked"
    manual_check: "look"
  - name: hook
    match: {method: POST, path: "/hooks/{token}"}
    effect: mutation
    describe: "Hook {json.to}"
    identity: {to: json.to}
    secret: [path.token, json.password, response.json.key]
    reconcile:
      - none: "the test API can't be asked"
    manual_check: "look"
  - name: telemetry
    match: {method: POST, path: /telemetry}
    effect: ignore
  - name: never
    match: {method: POST, path: /never}
    effect: deny
`

// world is a proxy, its ledger, and an upstream that counts for itself.
type world struct {
	t        testing.TB
	proxy    *Proxy
	address  string
	ledger   *ledger.Ledger
	store    *ledgertest.Memory
	upstream *httptest.Server
	// sends counts what the upstream was sent, by path.
	sends   counter
	inliner *fakeInliner
	clock   clock.Clock
	ids     atomic.Int64
	roots   *x509.CertPool
	// rules are those in force; authority is the upstream's.
	rules     atomic.Pointer[rules.Set]
	authority string
	// settings are the user's.
	settings []rules.Settings
}

// use puts other rules in force.
func (w *world) use(file string) {
	w.t.Helper()
	set, findings := rules.Load([]rules.File{{Name: "api.yaml", Data: []byte(strings.ReplaceAll(file, "HOST", w.authority))}}, w.settings, rules.Defaults{})
	if set == nil {
		w.t.Fatalf("test rules don't load: %v", findings)
	}
	w.rules.Store(set)
}

type counter struct {
	mu sync.Mutex
	n  map[string]int
}

func (c *counter) add(key string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = map[string]int{}
	}
	c.n[key]++
	return c.n[key]
}

func (c *counter) of(key string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n[key]
}

// fakeInliner answers inline tries by a function.
type fakeInliner struct {
	try func(context.Context, *ledger.Mutation) (*ledger.Mutation, error)
}

func (f *fakeInliner) Inline(ctx context.Context, m *ledger.Mutation) (*ledger.Mutation, error) {
	if f.try == nil {
		return m, nil
	}
	return f.try(ctx, m)
}

func (*fakeInliner) NextTry(*ledger.Mutation) time.Time { return time.Now().Add(time.Hour) }
func (*fakeInliner) Verify(context.Context, *ledger.Mutation) ledger.Verified {
	return ledger.Verified{Said: ledger.SaidNothing, Reason: "nobody was asked"}
}
func (*fakeInliner) Kick() {}

// noTurns admits everything.
type noTurns struct{}

func (noTurns) Turn(context.Context, *rules.Connector) error { return nil }

type noCredentials struct{}

func (noCredentials) Always(string, string, string) (string, string, bool, error) {
	return "", "", false, nil
}

// pinned loads a stored version of a rule file.
func (w *world) pinned(ctx context.Context, hash string) (*rules.Connector, error) {
	content, err := w.ledger.Connector(ctx, hash)
	if err != nil {
		return nil, err
	}
	c, findings := rules.LoadPinned(content, w.settings, rules.Defaults{})
	if c == nil {
		return nil, findings
	}
	return c, nil
}

// newWorld starts an upstream with this handler and a proxy in front of it.
func newWorld(tb testing.TB, handler http.HandlerFunc, change ...func(*Config)) *world {
	tb.Helper()
	w := &world{t: tb, inliner: &fakeInliner{}, clock: clock.System()}
	w.upstream = httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.sends.add(r.URL.Path)
		handler(rw, r)
	}))
	w.upstream.Config.ErrorLog = quietLog(zerolog.Nop())
	w.upstream.StartTLS()
	tb.Cleanup(w.upstream.Close)
	w.roots = x509.NewCertPool()
	w.roots.AddCert(w.upstream.Certificate())

	now := func() ledger.Stamp { return ledger.Stamp(clock.Take(w.clock)) }
	newID := func() string { return fmt.Sprintf("id%d", w.ids.Add(1)) }
	w.store = ledgertest.NewMemory(ledger.Process{ID: "process1", Started: now()})
	w.ledger = ledger.New(w.store, ledger.Config{Now: now, NewID: newID})
	authority := strings.TrimPrefix(w.upstream.URL, "https://")
	w.authority = authority
	w.use(testRules)
	ca, err := LoadCA(tb.TempDir()+"/ca.pem", tb.TempDir()+"/ca.key", time.Now())
	if err != nil {
		tb.Fatal(err)
	}
	sender := upstream.Config{Roots: w.roots, Clock: w.clock}
	c := Config{
		Ledger: w.ledger, Rules: w.rules.Load, Pinned: w.pinned, Sender: upstream.New(sender), Reads: upstream.NewPassthrough(sender),
		Dial:    (&net.Dialer{}).DialContext,
		Inliner: w.inliner, Turns: noTurns{}, Credentials: noCredentials{}, CA: ca, Clock: w.clock, NewID: newID, Log: zerolog.Nop(),
		Unmatched: PolicyDeny,
		// What stops something has to tell of itself.
		lookEvery: time.Hour,
	}
	for _, f := range change {
		f(&c)
	}
	w.proxy, err = New(c)
	if err != nil {
		tb.Fatal(err)
	}
	w.roots.AppendCertsFromPEM(ca.PEM())
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	w.address = l.Addr().String()
	served := make(chan error, 1)
	go func() { served <- w.proxy.Serve(l) }()
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := w.proxy.Shutdown(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			tb.Errorf("shutdown: %v", err)
		}
		if err := <-served; err != nil {
			tb.Errorf("serve: %v", err)
		}
	})
	return w
}

// run is a managed run and a client that speaks for it.
type run struct {
	*world
	id     string
	token  string
	client *http.Client
}

func (w *world) open(item string, change ...func(*ledger.OpenRun)) *run {
	w.t.Helper()
	r, err := w.tryOpen(item, change...)
	if err != nil {
		w.t.Fatalf("open run of %s: %v", item, err)
	}
	return r
}

func (w *world) tryOpen(item string, change ...func(*ledger.OpenRun)) (*run, error) {
	token := fmt.Sprintf("token-%d", w.ids.Add(1))
	o := ledger.OpenRun{Workflow: "wf", Item: item, TTL: time.Hour, TokenSHA256: TokenDigest(token)}
	for _, f := range change {
		f(&o)
	}
	opened, err := w.ledger.OpenRun(context.Background(), o)
	if err != nil {
		return nil, err
	}
	r := &run{world: w, id: opened.ID, token: token}
	r.client = w.newClient(r.user(), false)
	return r, nil
}

// user are the run's credentials.
func (r *run) user() *url.Userinfo { return url.UserPassword("run", r.token) }

// newClient is an unmodified Go client behind the proxy.
func (w *world) newClient(user *url.Userinfo, h2 bool) *http.Client {
	proxyURL := &url.URL{Scheme: "http", Host: w.address, User: user}
	tr := &http.Transport{Proxy: http.ProxyURL(proxyURL), TLSClientConfig: &tls.Config{RootCAs: w.roots, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: h2}
	w.t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// got is an answer as a script sees it.
type got struct {
	status int
	header http.Header
	body   string
	err    error
}

func (g got) problem() string {
	var p struct {
		Type string `json:"type"`
	}
	if json.Unmarshal([]byte(g.body), &p) != nil {
		return ""
	}
	return strings.TrimPrefix(p.Type, "urn:keep:problem:")
}

func (r *run) post(path, body string, header ...string) got {
	return send(r.client, http.MethodPost, r.upstream.URL+path, body, header...)
}

func (r *run) get(path string) got { return send(r.client, http.MethodGet, r.upstream.URL+path, "") }

func send(c *http.Client, method, target, body string, header ...string) got {
	var content io.Reader
	if body != "" {
		content = strings.NewReader(body)
	}
	req, err := http.NewRequest(method, target, content)
	if err != nil {
		return got{err: err}
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := c.Do(req)
	if err != nil {
		return got{err: err}
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	return got{resp.StatusCode, resp.Header, string(text), err}
}

// wantProblem asserts a refusal: its name, its status, and words of its sentence.
func wantProblem(t *testing.T, g got, name string, status int, words string) {
	t.Helper()
	if g.err != nil {
		t.Fatalf("no answer: %v", g.err)
	}
	if g.problem() != name || g.status != status || !strings.Contains(g.body, words) {
		t.Errorf("got %d %s, want %d %s with %q\n%s", g.status, g.problem(), status, name, words, g.body)
	}
	if ct := g.header.Get("Content-Type"); ct != "application/problem+json" {
		t.Errorf("Content-Type %q", ct)
	}
	if !strings.HasPrefix(g.header.Get("Proxy-Status"), "keep-proxy; error=") {
		t.Errorf("Proxy-Status %q", g.header.Get("Proxy-Status"))
	}
}

// wantAnswer asserts the upstream's answer as it was passed or replayed.
func wantAnswer(t *testing.T, g got, status int, body string, replayed bool) {
	t.Helper()
	if g.err != nil {
		t.Fatalf("no answer: %v", g.err)
	}
	if g.status != status || g.body != body {
		t.Errorf("got %d %q, want %d %q", g.status, g.body, status, body)
	}
	if (g.header.Get("Keep-Replayed") == "true") != replayed {
		t.Errorf("Keep-Replayed %q, want %t", g.header.Get("Keep-Replayed"), replayed)
	}
}

// wantSends asserts what the upstream itself counted.
func (w *world) wantSends(path string, n int) {
	w.t.Helper()
	if got := w.sends.of(path); got != n {
		w.t.Errorf("the upstream was sent %d requests for %s, want %d", got, path, n)
	}
}

// mutation returns the one record of an item.
func (w *world) mutation(item string) *ledger.Mutation {
	w.t.Helper()
	page, err := w.ledger.Mutations(context.Background(), ledger.Filter{Item: item})
	if err != nil || len(page.Items) != 1 {
		w.t.Fatalf("records of %s: %d, %v", item, len(page.Items), err)
	}
	return page.Items[0]
}

func (r *run) state() *ledger.Run {
	r.t.Helper()
	var found *ledger.Run
	err := r.ledger.View(context.Background(), func(v ledger.View) (err error) {
		found, err = v.Run(r.id)
		return err
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return found
}

// raw sends bytes to the proxy and returns the first answer.
func (w *world) raw(text string) (*http.Response, string) {
	w.t.Helper()
	c, err := net.Dial("tcp", w.address)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = c.Close() })
	_, _ = io.WriteString(c, text)
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		w.t.Fatalf("no answer to %q: %v", text, err)
	}
	body, _ := io.ReadAll(resp.Body)
	return resp, string(body)
}
