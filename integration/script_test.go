package integration

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"

	"keep-proxy/admin/wire"
)

// scriptRun is a run as its script sees it: an HTTP client that knows nothing but
// the environment it was given.
type scriptRun struct {
	w      *world
	id     string
	opened *wire.OpenedRun
	client *http.Client
}

// open opens a managed run of an item.
func (w *world) open(item string, edits ...func(*wire.OpenRun)) *scriptRun {
	w.t.Helper()
	s, err := w.tryOpen(item, edits...)
	if err != nil {
		w.t.Fatalf("open a run of item %s: %v", item, err)
	}
	return s
}

func (w *world) tryOpen(item string, edits ...func(*wire.OpenRun)) (*scriptRun, error) {
	w.t.Helper()
	o := wire.OpenRun{Workflow: "books", Item: item, ResumeHint: "make books"}
	for _, edit := range edits {
		edit(&o)
	}
	opened, err := w.api.OpenRun(w.t.Context(), o, "")
	if err != nil {
		return nil, err
	}
	return &scriptRun{w: w, id: opened.ID, opened: opened, client: scriptClient(w.t, opened.Env)}, nil
}

// again ends an item's run, if it goes on, and opens another.
func (w *world) again(item string) *scriptRun {
	w.t.Helper()
	return w.open(item, takeover)
}

func takeover(o *wire.OpenRun) { o.Takeover = true }

func onFailureReturn(o *wire.OpenRun) { o.OnFailure = "return" }

func blockScope(scope string) func(*wire.OpenRun) {
	return func(o *wire.OpenRun) { o.BlockScope = scope }
}

// scriptClient is an HTTP client that takes proxy and roots from an environment.
func scriptClient(tb testing.TB, env map[string]string) *http.Client {
	tb.Helper()
	text, err := os.ReadFile(env["SSL_CERT_FILE"])
	if err != nil {
		tb.Fatalf("SSL_CERT_FILE of the run: %v", err)
	}
	roots := rootsOf(string(text))
	if roots == nil {
		tb.Fatal("SSL_CERT_FILE of the run holds no certificate")
	}
	proxy, err := url.Parse(env["HTTPS_PROXY"])
	if err != nil {
		tb.Fatal(err)
	}
	tr := &http.Transport{
		Proxy: http.ProxyURL(proxy), DisableCompression: true, MaxIdleConnsPerHost: 32,
		TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
	}
	tb.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// certificates are those that were read, by their text.
var certificates sync.Map

// rootsOf are the roots of a file, nil for none. Every run gets the hundred and more of the
// machine beside the program's own, so each is read once.
func rootsOf(text string) *x509.CertPool {
	const end = "-----END CERTIFICATE-----"
	var roots *x509.CertPool
	for {
		block, rest, more := strings.Cut(text, end)
		if !more {
			return roots
		}
		text = rest
		cert := certificateOf(block + end)
		if cert == nil {
			continue // As a pool leaves out what it can't read.
		}
		if roots == nil {
			roots = x509.NewCertPool()
		}
		roots.AddCert(cert)
	}
}

// certificateOf is the certificate that the text ends in, nil for none.
func certificateOf(text string) *x509.Certificate {
	if known, ok := certificates.Load(text); ok {
		return known.(*x509.Certificate)
	}
	var cert *x509.Certificate
	if block, _ := pem.Decode([]byte(text)); block != nil {
		cert, _ = x509.ParseCertificate(block.Bytes)
	}
	certificates.Store(text, cert)
	return cert
}

// leaveByReset has the client's connections end by a reset, as those of a process that
// is killed with something unread do: what is written to one afterwards fails at once.
func (s *scriptRun) leaveByReset() {
	s.w.t.Helper()
	tr, ok := s.client.Transport.(*http.Transport)
	if !ok {
		s.w.t.Fatalf("the client sends by a %T", s.client.Transport)
	}
	tr.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
		if tcp, ok := c.(*net.TCPConn); ok {
			err = errors.Join(err, tcp.SetLinger(0))
		}
		return c, err
	}
}

// reply is what a script got.
type reply struct {
	t      testing.TB
	status int
	header http.Header
	body   string
	err    error
}

func field(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

// try sends one request and reads the whole answer.
func (s *scriptRun) try(ctx context.Context, method, target, body string, edits ...func(*http.Request)) reply {
	var content io.Reader
	if body != "" {
		content = strings.NewReader(body)
	}
	r, err := http.NewRequestWithContext(ctx, method, target, content)
	if err != nil {
		return reply{t: s.w.t, err: err}
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, edit := range edits {
		edit(r)
	}
	resp, err := s.client.Do(r)
	if err != nil {
		return reply{t: s.w.t, err: err}
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	return reply{t: s.w.t, status: resp.StatusCode, header: resp.Header, body: string(text), err: err}
}

// do is try for a request that must be answered.
func (s *scriptRun) do(method, target, body string, edits ...func(*http.Request)) reply {
	s.w.t.Helper()
	a := s.try(s.w.t.Context(), method, target, body, edits...)
	if a.err != nil {
		s.w.t.Fatalf("%s %s: %v", method, target, a.err)
	}
	return a
}

// order is the body of a transfer of 12.50 EUR.
func order(reference string) string {
	return orderOf(map[string]any{"reference": reference})
}

// orderOf is order with some members changed.
func orderOf(members map[string]any) string {
	all := map[string]any{"from": "ann", "to": "bob", "amount": 1250, "currency": "EUR"}
	maps.Copy(all, members)
	var text bytes.Buffer
	if err := json.NewEncoder(&text).Encode(all); err != nil {
		panic(err) // Only for members that aren't JSON.
	}
	return text.String()
}

// transfer orders one at a bank.
func (s *scriptRun) transfer(bank *upstream, reference string, edits ...func(*http.Request)) reply {
	s.w.t.Helper()
	return s.do(http.MethodPost, bank.URL()+"/transfers", order(reference), edits...)
}

// deliver posts to a hook.
func (s *scriptRun) deliver(hook string, edits ...func(*http.Request)) reply {
	s.w.t.Helper()
	return s.do(http.MethodPost, s.w.hooks.URL()+"/hook/"+hook, "hello", edits...)
}

// read asks a bank for something that changes nothing.
func (s *scriptRun) read(bank *upstream) reply {
	s.w.t.Helper()
	return s.do(http.MethodGet, bank.URL()+"/balance", "")
}

// state is the run's, as the API shows it.
func (s *scriptRun) state() string {
	s.w.t.Helper()
	r, err := s.w.api.Run(s.w.t.Context(), s.id)
	if err != nil {
		s.w.t.Fatal(err)
	}
	return r.State
}

// wantState holds the run's state.
func (s *scriptRun) wantState(want string) {
	s.w.t.Helper()
	if got := s.state(); got != want {
		s.w.t.Errorf("the run is %s, want %s", got, want)
	}
}

// finish ends the run by its script's word.
func (s *scriptRun) finish(outcome string) error {
	_, err := s.w.api.FinishRun(s.w.t.Context(), s.id, wire.FinishRun{Outcome: outcome, KeepOpen: true})
	return err
}

// wantApplied holds an answer of the upstream that was recorded as a success.
func (a reply) wantApplied(status int) reply {
	a.t.Helper()
	if a.status != status || a.header.Get("Keep-State") != "applied" || a.header.Get("Keep-Replayed") != "" {
		a.t.Errorf("got %v, want %d, applied, not replayed", a, status)
	}
	return a
}

// wantReplay holds a stored answer against the first one.
func (a reply) wantReplay(first reply) reply {
	a.t.Helper()
	if a.status != first.status || a.body != first.body || a.header.Get("Keep-Replayed") != "true" || a.header.Get("Keep-Mutation") != first.header.Get("Keep-Mutation") {
		a.t.Errorf("got %v, want the replay of %v", a, first)
	}
	return a
}

// refusal is the body of an answer that the proxy makes itself.
type refusal struct {
	Type     string   `json:"type"`
	Title    string   `json:"title"`
	Detail   string   `json:"detail"`
	Status   int      `json:"status"`
	Run      string   `json:"run"`
	Item     string   `json:"item"`
	Class    string   `json:"class"`
	Actions  []string `json:"actions"`
	Mutation *struct {
		ID    string `json:"id"`
		State string `json:"state"`
	} `json:"mutation"`
}

// wantRefusal holds name, status and sentence of a refusal.
func (a reply) wantRefusal(name string, status int, sentence string) refusal {
	a.t.Helper()
	var got refusal
	if err := json.Unmarshal([]byte(a.body), &got); err != nil || a.header.Get("Content-Type") != "application/problem+json" {
		a.t.Fatalf("got %v, want the refusal %s", a, name)
	}
	if got.Type != "urn:keep:problem:"+name || got.Status != status || a.status != status || !strings.Contains(got.Detail, sentence) || got.Title == "" {
		a.t.Errorf("got %v, want %d %s with %q", a, status, name, sentence)
	}
	if !strings.HasPrefix(a.header.Get("Proxy-Status"), "keep-proxy; error=") {
		a.t.Errorf("Proxy-Status is %q", a.header.Get("Proxy-Status"))
	}
	return got
}

// String tells an answer to a person.
func (a reply) String() string {
	if a.err != nil {
		return "no answer: " + a.err.Error()
	}
	return fmt.Sprintf("%d state=%q replayed=%q %s", a.status, a.header.Get("Keep-State"), a.header.Get("Keep-Replayed"), strings.TrimSpace(a.body))
}
