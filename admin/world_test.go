package admin_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/rs/zerolog"

	"keep-proxy/admin"
	"keep-proxy/admin/client"
	"keep-proxy/admin/wire"
	"keep-proxy/internal/verdict"
	"keep-proxy/ledger"
	"keep-proxy/ledger/ledgertest"
)

// operatorToken is the operator's token of every test world.
const operatorToken = "operator-token-of-at-least-32-bytes"

// start is when every test world begins.
var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// world is a ledger in memory and the admin API over it, on a socket of its own.
type world struct {
	t      *testing.T
	clock  *clock
	store  *ledgertest.Memory
	ledger *ledger.Ledger
	server *admin.Server
	// base is http://127.0.0.1:port.
	base string
	// http sends raw requests.
	http   *http.Transport
	client *client.Client
	log    *syncBuffer
}

// clock is set by hand; all its clocks run together.
type clock struct {
	mu    sync.Mutex
	since time.Duration
}

func (c *clock) now() ledger.Stamp {
	c.mu.Lock()
	defer c.mu.Unlock()
	return ledger.Stamp{Wall: start.Add(c.since), Mono: c.since, Boot: c.since, BootID: "boot"}
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.since += d
}

// syncBuffer is a log that a test may read while the server writes.
type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// place is the proxy of a test world.
type place struct{}

func (place) ProxyAddr() string  { return "127.0.0.1:8080" }
func (place) CAPEM() []byte      { return []byte("-----BEGIN CERTIFICATE-----\n") }
func (place) CAFile() string     { return "/data/ca.pem" }
func (place) BundleFile() string { return "/data/bundle.pem" }

func (place) OpenListener(context.Context, string) (string, error) { return "127.0.0.1:9090", nil }
func (place) CloseListener(string)                                 {}

// rule explains for a test world.
type rule struct {
	check admin.ManualCheck
	err   error
}

func (r rule) ManualCheck(context.Context, *ledger.Mutation) (admin.ManualCheck, error) {
	return r.check, r.err
}

func (r rule) Explain(_ context.Context, e wire.Explain) (wire.Explanation, error) {
	if strings.Contains(e.URL, "unreadable") {
		return nil, admin.BadRequest("/url", "no rule can read it", "mend it")
	}
	return wire.Explanation(fmt.Sprintf(`{"operation":"transfer","method":%q}`, e.Method)), nil
}

// bankRules are those of one connector.
type bankRules struct{}

func (bankRules) ConnectorHost(authority string) bool { return authority == "bank.example:443" }
func (bankRules) Ports() []uint16                     { return []uint16{80, 443} }

// serving is a program that serves, whatever it is told.
type serving struct{}

func (serving) Mode() wire.Mode { return wire.Mode{Mode: wire.ModeServing} }

func (serving) SetMode(context.Context, string, wire.SetMode) (wire.Mode, error) {
	return wire.Mode{Mode: wire.ModeServing}, nil
}

// newWorld starts a server; change, which may be nil, changes its configuration.
func newWorld(t *testing.T, change func(*admin.Config)) *world {
	t.Helper()
	w := newSilentWorld(t, change)
	ln, err := admin.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatalf("Listen: %v", err)
	}
	w.base = "http://" + ln.Addr().String()
	served := make(chan error, 1)
	go func() { served <- w.server.Serve(ln) }()
	w.client = w.as(operatorToken)
	t.Cleanup(func() {
		w.client.Close()
		w.http.CloseIdleConnections()
		if err := errors.Join(w.server.Shutdown(context.Background()), <-served); err != nil {
			t.Errorf("shutting down: %v", err)
		}
	})
	return w
}

// newSilentWorld is a world whose server doesn't listen yet.
func newSilentWorld(t *testing.T, change func(*admin.Config)) *world {
	t.Helper()
	w := &world{t: t, clock: &clock{}, log: &syncBuffer{}, http: &http.Transport{}}
	w.store = ledgertest.NewMemory(ledger.Process{ID: "process-1", Started: w.clock.now()})
	ids := 0
	w.ledger = ledger.New(w.store, ledger.Config{Now: w.clock.now, NewID: func() string {
		ids++
		return fmt.Sprintf("id%d", ids)
	}})
	c := admin.Config{
		Ledger:        w.ledger,
		OperatorToken: operatorToken,
		Tokens: []admin.Token{
			{Name: "dashboard", Role: admin.RoleViewer, SHA256: digest("viewer-token")},
			{Name: "scheduler", Role: admin.RoleHost, SHA256: digest("host-token")},
			{Name: "night-shift", Role: admin.RoleOperator, SHA256: digest("second-operator-token")},
		},
		Environment: place{},
		Explainer:   rule{check: admin.ManualCheck{Text: "Look for transfer 7 in the bank's books."}},
		Rules:       func() admin.Rules { return bankRules{} },
		Now:         w.clock.now,
		Random:      newCounter(),
		Log:         zerolog.New(w.log),
		Metrics:     http.NotFoundHandler(),
		Ready:       func() error { return nil },
		Verify: func(context.Context, func(wire.Progress)) (wire.VerifyReport, error) {
			return wire.VerifyReport{Sound: true}, nil
		},
		Backup:     func(context.Context, io.Writer) error { return nil },
		Reload:     func(context.Context, string) (wire.Reloaded, error) { return wire.Reloaded{}, nil },
		LastReload: func() *wire.LastReload { return nil },
		Modes:      serving{},
		PlanUndo: func(context.Context, *ledger.Mutation, string) (ledger.Owed, error) {
			return ledger.Owed{}, errors.New("no rule says how")
		},
		Destinations: func() []wire.Destination { return nil },
		Requests: func(context.Context, func(*wire.Served) bool, func() error, func(wire.Served) error) error {
			return nil
		},
	}
	if change != nil {
		change(&c)
	}
	server, err := admin.New(c)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	w.server = server
	return w
}

// as is a client with another token.
func (w *world) as(token string) *client.Client {
	w.t.Helper()
	c, err := client.New(client.Config{URL: w.base, Token: token})
	if err != nil {
		w.t.Fatalf("client: %v", err)
	}
	w.t.Cleanup(c.Close)
	return c
}

// counter is randomness that differs at every read.
type counter struct {
	mu sync.Mutex
	n  byte
}

func newCounter() io.Reader { return &counter{} }

func (c *counter) Read(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
	for i := range p {
		p[i] = c.n
	}
	return len(p), nil
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// ask is one request as an unmodified client would send it.
type ask struct {
	method, path, body string
	// token is the operator's for "", none for "-".
	token  string
	header map[string]string
	// host overrides the Host field.
	host string
}

// answer is what came back.
type answer struct {
	status int
	header http.Header
	body   string
}

// do sends a raw request.
func (w *world) do(q ask) answer {
	w.t.Helper()
	var body io.Reader
	if q.body != "" {
		body = strings.NewReader(q.body)
	}
	method := q.method
	if method == "" {
		method = http.MethodGet
	}
	r, err := http.NewRequestWithContext(w.t.Context(), method, w.base+q.path, body)
	if err != nil {
		w.t.Fatalf("%s %s: %v", method, q.path, err)
	}
	switch q.token {
	case "":
		r.Header.Set("Authorization", "Bearer "+operatorToken)
	case "-":
	default:
		r.Header.Set("Authorization", "Bearer "+q.token)
	}
	if q.body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for name, value := range q.header {
		r.Header.Set(name, value)
	}
	r.Host = q.host
	got, err := w.http.RoundTrip(r)
	if err != nil {
		w.t.Fatalf("%s %s: %v", method, q.path, err)
	}
	defer got.Body.Close()
	content, err := io.ReadAll(got.Body)
	if err != nil {
		w.t.Fatalf("%s %s: reading the answer: %v", method, q.path, err)
	}
	return answer{got.StatusCode, got.Header, string(content)}
}

// problem reads an answer that must be one.
func (a answer) problem(t *testing.T) wire.Problem {
	t.Helper()
	if got := a.header.Get("Content-Type"); got != wire.ProblemContentType {
		t.Fatalf("Content-Type %q (status %d, body %s), want %s", got, a.status, a.body, wire.ProblemContentType)
	}
	var p wire.Problem
	if err := json.Unmarshal([]byte(a.body), &p, json.RejectUnknownMembers(true)); err != nil {
		t.Fatalf("problem %s: %v", a.body, err)
	}
	if p.Status != a.status {
		t.Errorf("the problem says status %d, the answer %d", p.Status, a.status)
	}
	return p
}

// refused asserts a refusal: its status, its name, and words of its sentence.
func (w *world) refused(q ask, status int, name string, words ...string) wire.Problem {
	w.t.Helper()
	got := w.do(q)
	p := got.problem(w.t)
	checkProblem(w.t, &p, status, name, words...)
	return p
}

// checkProblem asserts a problem's status, name and words of its sentence.
func checkProblem(t *testing.T, p *wire.Problem, status int, name string, words ...string) {
	t.Helper()
	if p.Status != status || p.Type != wire.ProblemPrefix+name {
		t.Errorf("got %d %s (%s), want %d %s", p.Status, p.Type, p.Detail, status, name)
	}
	if p.Title == "" || p.Detail == "" {
		t.Errorf("a problem says what is wrong: %+v", p)
	}
	for _, word := range words {
		if !strings.Contains(p.Detail, word) {
			t.Errorf("detail %q doesn't say %q", p.Detail, word)
		}
	}
}

// problemIn asserts that a client's error is the API's refusal.
func problemIn(t *testing.T, err error, status int, name string, words ...string) *wire.Problem {
	t.Helper()
	p, ok := errors.AsType[*client.Problem](err)
	if !ok {
		t.Fatalf("got error %v, want the problem %s", err, name)
	}
	checkProblem(t, p, status, name, words...)
	return p
}

// intent is a mutation that a test world claims.
type intent struct {
	item, run string
	n         int
	policy    ledger.Policy
	body      string
}

// transfer is an intent of a managed run whose API can't be asked.
func transfer(run *wire.Run) intent {
	return intent{item: run.Item, run: run.ID, n: 1, policy: ledger.Policy{BlockScope: ledger.BlockWorkflow}, body: `{"amount":7}`}
}

// claim makes a mutation in flight.
func (w *world) claim(i intent) *ledger.Mutation {
	w.t.Helper()
	key, err := ledger.MutationKey(ledger.KeyParts{
		Workflow: "billing", Item: i.item, Attempt: 1, Connector: "bank", Operation: "transfer", HostGroup: "bank",
		Identity: map[string]string{"n": fmt.Sprint(i.n)},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	claimed, err := w.ledger.Claim(w.t.Context(), ledger.Claim{
		Scope:      ledger.Scope{Workflow: "billing", Item: i.item, Attempt: 1, Run: i.run},
		Key:        key,
		DispatchID: fmt.Sprintf("d-%s-%d-%d", i.item, i.n, w.store.Syncs()),
		Record: ledger.Mutation{
			Intent: ledger.Intent{
				Connector: "bank", ConnectorVersion: 3, Operation: "transfer", Target: "Transfer 7 to Ann", Account: "acct-1",
				HostGroup: "bank", Identity: map[string]string{"n": fmt.Sprint(i.n)},
			},
			Payload: ledger.Payload{
				PayloadDigest: digest(i.body), SignificantDigest: digest(i.body), Policy: i.policy,
				Request: ledger.Request{
					Method: "POST", URL: "https://bank.example/transfers",
					Header: ledger.Header{"Content-Type": {"application/json"}, "X-Twice": {"a", "b"}},
					Body:   storedBody(i.body),
				},
			},
		},
		Body: []byte(i.body),
	})
	if err != nil || claimed.Decision != ledger.DecideDispatch {
		w.t.Fatalf("claim: %+v, %v", claimed, err)
	}
	return claimed.Mutation
}

func storedBody(content string) ledger.Body {
	if content == "" {
		return ledger.Body{}
	}
	return ledger.Body{SHA256: digest(content), Size: int64(len(content))}
}

// lose ends the newest dispatch with a reset after its bytes went out.
func (w *world) lose(m *ledger.Mutation) *ledger.Mutation {
	w.t.Helper()
	w.clock.advance(1500 * time.Millisecond)
	return w.finish(ledger.EndDispatch{Key: m.Key, Dispatch: ledger.Dispatch{
		ID: m.Current().ID, Verdict: ledger.VerdictUncertain, Class: verdict.Indeterminate,
		Reason: "the connection broke before an answer",
		Wire: ledger.Wire{
			BytesWritten: 412,
			ErrorClass:   "reset", Error: "connection reset by peer", Protocol: "HTTP/1.1", Remote: "127.0.0.1:4430",
		},
	}})
}

// apply ends the newest dispatch with an answer.
func (w *world) apply(m *ledger.Mutation, status int, body string) *ledger.Mutation {
	w.t.Helper()
	return w.finish(ledger.EndDispatch{
		Key: m.Key,
		Dispatch: ledger.Dispatch{
			ID: m.Current().ID, Verdict: ledger.VerdictApplied,
			Wire: ledger.Wire{BytesWritten: 412, Head: true, Status: status, BodyComplete: true},
		},
		Result: &ledger.Result{Status: status, Header: ledger.Header{"Content-Type": {"application/json"}}, Body: storedBody(body)},
		Body:   []byte(body),
	})
}

func (w *world) finish(f ledger.EndDispatch) *ledger.Mutation {
	w.t.Helper()
	f.NextTryAt = w.clock.now().Wall.Add(10 * time.Second)
	done, err := w.ledger.EndDispatch(w.t.Context(), f)
	if err != nil {
		w.t.Fatalf("finish: %v", err)
	}
	return done.Mutation
}

// open opens a run of an item.
func (w *world) open(item string) *wire.OpenedRun {
	w.t.Helper()
	run, err := w.client.OpenRun(w.t.Context(), wire.OpenRun{Workflow: "billing", Item: item, ResumeHint: "make bill ITEM=" + item}, "")
	if err != nil {
		w.t.Fatalf("opening a run: %v", err)
	}
	return run
}

// unknown makes a run whose only mutation is indeterminate.
func (w *world) unknown(item string) (*wire.OpenedRun, *ledger.Mutation) {
	w.t.Helper()
	run := w.open(item)
	return run, w.lose(w.claim(transfer(&run.Run)))
}

// indent makes JSON readable in a failed test.
func indent(text string) string {
	v := jsontext.Value(text)
	if v.Indent() != nil {
		return text
	}
	return string(v)
}

// different returns both values as JSON unless they are alike.
func different(got, want any) string {
	a, errA := json.Marshal(got, json.Deterministic(true))
	b, errB := json.Marshal(want, json.Deterministic(true))
	if err := errors.Join(errA, errB); err != nil {
		return err.Error()
	}
	if bytes.Equal(a, b) {
		return ""
	}
	return fmt.Sprintf("got\n%s\nwant\n%s", indent(string(a)), indent(string(b)))
}
