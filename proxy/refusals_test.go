package proxy

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"keep-proxy/dispatch"
	"keep-proxy/ledger"
	"keep-proxy/rules"
	"keep-proxy/upstream"
)

// provoked is one way to a refusal.
type provoked struct {
	handler http.HandlerFunc
	change  func(*Config)
	rules   string
	// ask provokes it, as a script does, over a socket.
	ask func(w *world) got
	// words are of its sentence.
	words string
	// sends is what the upstream saw of mutations, in all.
	sends int
	// run is the state of the run of item a afterwards; empty where there is none.
	run ledger.RunState
	// retryAfter says that the client is told when.
	retryAfter bool
}

const payX = `{"to":"x"}`

// text sends bytes to the proxy, and nothing after them.
func (w *world) text(text string) got {
	w.t.Helper()
	c, err := net.Dial("tcp", w.address)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(waitLimit))
	_, _ = io.WriteString(c, text)
	if half, ok := c.(*net.TCPConn); ok && strings.HasSuffix(text, "half") {
		_ = half.CloseWrite()
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		w.t.Fatalf("no answer to %q: %v", text, err)
	}
	body, _ := io.ReadAll(resp.Body)
	return got{resp.StatusCode, resp.Header, string(body), nil}
}

// plain is the head of a request in clear, of a body of so many bytes.
func (r *run) plain(method, path, fields string, length int) string {
	return fmt.Sprintf("%s http://%s%s HTTP/1.1\r\nHost: %s\r\n%s%sContent-Length: %d\r\n\r\n",
		method, r.authority, path, r.authority, r.basic(r.token), fields, length)
}

// gone is what an API says that no longer shows what it did.
type goneInliner struct{ fakeInliner }

func (*goneInliner) Verify(context.Context, *ledger.Mutation) ledger.Verified {
	return ledger.Verified{Said: ledger.SaidDisagrees, Reason: "it isn't there"}
}

// turning does something while a request waits for its turn.
type turning func()

func (f turning) Turn(context.Context, *rules.Connector) error {
	f()
	return nil
}

func nobodySays(context.Context, *rules.Connector, *rules.Request) (string, error) {
	return "", errors.New("it was answered 401")
}

func payOnce(path, body string) func(*world) got {
	return func(w *world) got { return w.open("a").post(path, body) }
}

// forget drops the contents of a record as soon as its rule lets it.
func (w *world) forget(key ledger.Key) {
	w.t.Helper()
	for deadline := time.Now().Add(waitLimit); time.Now().Before(deadline); runtime.Gosched() {
		n, err := w.ledger.Forget(w.t.Context(), []ledger.Key{key}, ledger.Retention{Keep: 1})
		if err != nil {
			w.t.Fatal(err)
		}
		if n.Dropped == 1 {
			return
		}
	}
	w.t.Fatal("its contents stay")
}

// decide makes a person's decision on an item without a run.
func (w *world) decide(what ledger.ItemAction, item string) {
	w.t.Helper()
	r := w.open(item)
	w.end(r)
	attempt := 0
	if what == ledger.ItemNewAttempt {
		attempt = 1
	}
	_, err := w.ledger.DecideItem(w.t.Context(), ledger.DecideItem{Workflow: "wf", Item: item, Action: what, Attempt: attempt, Actor: "ann", Reason: "test"})
	if err != nil {
		w.t.Fatal(err)
	}
}

// refusals are a way to each problem of the proxy.
func refusals(t *testing.T) map[problem]provoked {
	t.Helper()
	fine := changed(`identity: {to: json.to}
    payload`, `identity: {to: json.to, n: json.n}
    payload`)
	soon := changed(`identity: {to: json.to}
    payload`, `identity: {to: json.to}
    bounds: {commit: 1ms, lag: 1ms, source: "a test"}
    settle: 3ms
    payload`)
	many := func(o *ledger.OpenRun) { o.Items = ledger.ItemsMany }
	strict := changed("    identity: {to: json.to}\n    reconcile:\n      - probe:", "    identity: {to: json.to}\n    verify_on_replay: strict\n    reconcile:\n      - probe:")
	return map[problem]provoked{
		problemUnknownOutcome: {handler: lost, ask: payOnce("/pay", payX), words: "Don't send it again", sends: 1, run: ledger.RunPausedReconciliation},
		problemBlocked: {handler: lost, ask: func(w *world) got {
			r := w.open("a")
			w.open("b").post("/pay", payX)
			return r.get("/read")
		}, words: "whose outcome is unknown", sends: 1, run: ledger.RunAborted},
		problemRunAborted: {ask: func(w *world) got {
			r := w.open("a")
			w.end(r)
			return r.post("/pay", payX)
		}, words: "run is over", run: ledger.RunAborted},
		problemRunFailing: {handler: status(http.StatusTooManyRequests), ask: func(w *world) got {
			r := w.open("a")
			r.post("/pay", payX)
			return r.post("/pay", `{"to":"y"}`)
		}, words: "failed for the moment", sends: 1, retryAfter: true, run: ledger.RunFailing},
		problemMismatch: {ask: func(w *world) got {
			_, g := w.payThen(testRules, `{"to":"x","amount":1}`, `{"to":"x","amount":2}`, "/pay")
			return g
		}, words: "json.amount was 1, is 2", sends: 1, run: ledger.RunPausedAttention},
		problemRepeated: {ask: func(w *world) got {
			r := w.open("a")
			r.post("/pay", payX)
			return r.post("/pay", payX)
		}, words: "subkey", sends: 1, run: ledger.RunRunning},
		problemDrift: {ask: func(w *world) got {
			_, g := w.payThen(changed("describe: \"Pay {json.to}\"", "describe: \"Pay {json.to}\"\n    drift: refuse"), payX, `{"to":"y"}`, "/pay")
			return g
		}, words: `identity.to was \"x\", is \"y\"`, sends: 1, run: ledger.RunPausedAttention},
		problemAmbiguousRecord: {rules: fine, ask: func(w *world) got {
			r := w.open("a")
			r.post("/pay", `{"to":"x","n":1}`)
			w.use(testRules)
			r.post("/pay", `{"to":"x","n":2}`)
			return r.post("/pay", `{"to":"x","n":1}`)
		}, words: "two records fit", sends: 2, run: ledger.RunAborted},
		problemForgotten: {rules: soon, ask: func(w *world) got {
			first := w.open("a")
			first.post("/pay", payX)
			w.end(first)
			w.forget(w.mutation("a").Key)
			return w.open("a").post("/pay", payX)
		}, words: "not sent again", sends: 1, run: ledger.RunAborted},
		problemIdentity: {ask: payOnce("/pay", `{"n":1}`), words: "has no value in this request", run: ledger.RunRunning},
		problemAccount: {rules: askingRules(), change: func(c *Config) { c.Accounts = nobodySays },
			ask: payOnce("/pay", payX), words: "nothing was sent", run: ledger.RunRunning},
		problemAmbiguous: {ask: payOnce("/pay", `{"to":"x","to":"y"}`), words: "repeats a member name", run: ledger.RunRunning},
		problemMalformed: {ask: func(w *world) got {
			return w.text(w.open("a").plain("POST", "/pay", "Bad Name: 1\r\n", 0))
		}, words: "RFC 9112", run: ledger.RunRunning},
		problemRequestTimeout: {change: func(c *Config) { c.RequestTimeout = 50 * time.Millisecond }, ask: func(w *world) got {
			return w.text(w.open("a").plain("POST", "/pay", "Content-Type: application/json\r\n", 10) + "{")
		}, words: "proxy.timeouts.request", run: ledger.RunRunning},
		problemIncomplete: {ask: func(w *world) got {
			return w.text(w.open("a").plain("POST", "/pay", "Content-Type: application/json\r\n", 10) + "half")
		}, words: "ended", run: ledger.RunRunning},
		problemItemDone: {ask: func(w *world) got {
			w.decide(ledger.ItemClose, "b")
			return w.open("", many).post("/pay", payX, "Keep-Item", "b")
		}, words: "can't produce new effects"},
		problemItemBusy: {ask: func(w *world) got {
			w.open("b")
			return w.open("", many).post("/pay", payX, "Keep-Item", "b")
		}, words: "busy"},
		problemItemAttention: {ask: func(w *world) got {
			w.payThen(testRules, `{"to":"x","amount":1}`, `{"to":"x","amount":2}`, "/pay")
			return w.open("", many).post("/pay", `{"to":"y"}`, "Keep-Item", "a")
		}, words: "person's attention", sends: 1},
		problemAttempt: {ask: func(w *world) got {
			// A person begins the item anew while the request waits for its turn.
			w.proxy.config.Turns = turning(func() { w.decide(ledger.ItemNewAttempt, "b") })
			return send(w.newClient(nil, false), http.MethodPost, w.upstream.URL+"/pay", payX)
		}, rules: strings.Replace(testRules, "reads: safe-methods\n", ratedRules, 1),
			change: func(c *Config) { c.Unmanaged = Unmanaged{"wf", "b"} }, words: "attempt 2"},
		problemOneMutation: {ask: func(w *world) got {
			r := w.open("a", func(o *ledger.OpenRun) { o.Mutations = ledger.MutationsOne })
			r.post("/pay", payX)
			return r.post("/pay", `{"to":"y"}`)
		}, words: "one mutation", sends: 1, run: ledger.RunAborted},
		problemReadOnlyRun: {ask: func(w *world) got {
			return w.open("a", func(o *ledger.OpenRun) { o.Mutations = ledger.MutationsNone }).post("/pay", payX)
		}, words: "may read only", run: ledger.RunAborted},
		problemSkipped: {handler: lost, ask: func(w *world) got {
			w.open("a").post("/pay", payX)
			m := w.mutation("a")
			_, err := w.ledger.Resolve(w.t.Context(), ledger.Resolve{Key: m.Key, Action: ledger.OnSkip, Version: m.Version, Actor: "ann", Reason: "test"})
			if err != nil {
				w.t.Fatal(err)
			}
			return w.open("a").post("/pay", payX)
		}, words: "decided to go on without", sends: 1, run: ledger.RunRunning},
		problemUnmatched:      {ask: payOnce("/elsewhere", payX), words: "POST on this path", run: ledger.RunRunning},
		problemDenied:         {ask: payOnce("/never", payX), words: "denies", run: ledger.RunRunning},
		problemMethodOverride: {ask: payOnce("/pay?_method=DELETE", payX), words: "_method", run: ledger.RunRunning},
		problemEgress: {change: func(c *Config) {
			private := upstream.Config{Clock: c.Clock, Egress: func(netip.AddrPort) error { return errors.New("private") }}
			c.Sender, c.Reads = upstream.New(private), upstream.NewPassthrough(private)
		}, ask: payOnce("/pay", payX), words: "egress", run: ledger.RunAborted},
		problemMisdirected: {ask: func(w *world) got {
			r := w.open("a")
			req := httptest.NewRequest(http.MethodPost, w.upstream.URL+"/pay", strings.NewReader(payX))
			req.RequestURI, req.Host = "", "elsewhere.example"
			resp, err := r.client.Do(req)
			if err != nil {
				w.t.Fatal(err)
			}
			defer func() { _ = resp.Body.Close() }()
			body, err := io.ReadAll(resp.Body)
			return got{resp.StatusCode, resp.Header, string(body), err}
		}, words: "elsewhere.example", run: ledger.RunRunning},
		problemTooLarge: {ask: payOnce("/pay", `{"to":"`+strings.Repeat("x", 5000)+`"}`), words: "4096", run: ledger.RunRunning},
		problemNotSent:  {change: unreachable(t), ask: payOnce("/pay", payX), words: "safe to try again", run: ledger.RunFailing},
		problemNoResult: {handler: lost, ask: func(w *world) got {
			w.open("a").post("/pay", payX)
			m := w.mutation("a")
			_, err := w.ledger.Resolve(w.t.Context(), ledger.Resolve{Key: m.Key, Action: ledger.OnHappened, NoResult: true, Version: m.Version, Actor: "ann", Reason: "test"})
			if err != nil {
				w.t.Fatal(err)
			}
			return w.open("a").post("/pay", payX)
		}, words: "answer is not known", sends: 1, run: ledger.RunRunning},
		problemVerifyFailed: {rules: strict, change: func(c *Config) { c.Inliner = &goneInliner{} }, ask: func(w *world) got {
			_, g := w.payThen(strict, payX, payX, "/ask")
			return g
		}, words: "no longer shows it", sends: 1, run: ledger.RunAborted},
		problemStale: {ask: func(w *world) got {
			var left atomic.Int32
			w.proxy.config.Pinned = w.renaming(&left)
			w.open("a").post("/pay", payX)
			w.use(changed("name: pay\n", "name: transfer\n    was: [pay]\n"))
			left.Store(9)
			return w.open("a", takesOver).post("/pay", payX)
		}, words: "changed twice", sends: 1, retryAfter: true, run: ledger.RunRunning},
		problemLedgerUnavailable: {ask: func(w *world) got {
			r := w.open("a")
			w.store.FailBefore()
			return r.post("/pay", payX)
		}, words: "nothing was sent", retryAfter: true, run: ledger.RunRunning},
		problemDraining: {change: func(c *Config) { c.Halted = func() Halt { return Halt{Sending: true, Why: "the bank is down"} } },
			ask: payOnce("/pay", payX), words: "the bank is down", retryAfter: true, run: ledger.RunRunning},
		problemOverloaded: {change: func(c *Config) { c.MaxConnections = 1 }, ask: func(w *world) got {
			first, err := net.Dial("tcp", w.address)
			if err != nil {
				w.t.Fatal(err)
			}
			w.t.Cleanup(func() { _ = first.Close() })
			_, _ = io.WriteString(first, "GET / HTTP/1.1\r\nHost: h\r\n\r\n")
			if _, err := io.ReadFull(first, make([]byte, len("HTTP/1.1 400"))); err != nil {
				w.t.Fatal(err)
			}
			return w.text("")
		}, words: "nothing was sent", retryAfter: true},
		problemNotAProxyRequest: {ask: func(w *world) got {
			return w.text("GET / HTTP/1.1\r\nHost: " + w.address + "\r\n\r\n")
		}, words: "http_proxy"},
		problemInternal: {change: func(c *Config) { c.Sender = panicking{} }, ask: payOnce("/pay", payX), words: "unknown", run: ledger.RunPausedReconciliation},
	}
}

// TestEveryRefusalAsAScriptSeesIt provokes each problem that the proxy knows, and holds
// all of what a client is told, what the upstream saw, and what became of the run.
func TestEveryRefusalAsAScriptSeesIt(t *testing.T) {
	t.Parallel()
	all := refusals(t)
	for p := range all {
		if _, known := kinds[p]; !known {
			t.Errorf("%s is provoked, and is no problem of the proxy", p)
		}
	}
	for p, k := range kinds {
		c, ok := all[p]
		if !ok {
			t.Errorf("%s can't be provoked here", p)
			continue
		}
		t.Run(string(p), func(t *testing.T) {
			t.Parallel()
			handler := c.handler
			if handler == nil {
				handler = created
			}
			w := newWorld(t, handler, func(config *Config) {
				if c.change != nil {
					c.change(config)
				}
			})
			if c.rules != "" {
				w.use(c.rules)
			}
			g := c.ask(w)
			wantProblem(t, g, string(p), k.status, "")
			wantTold(t, g, p, k, c)
			if n := w.sends.total(); n != c.sends {
				t.Errorf("the upstream saw %d requests, want %d", n, c.sends)
			}
			if c.run == "" {
				return
			}
			if p == problemInternal {
				// What the handler didn't come to record is recorded beside the answer.
				for deadline := time.Now().Add(waitLimit); w.lastRun("a").State == ledger.RunRunning && time.Now().Before(deadline); {
					runtime.Gosched()
				}
			}
			if state := w.lastRun("a").State; state != c.run {
				t.Errorf("the run is %s, want %s", state, c.run)
			}
			w.wantNotDone(p)
		})
	}
}

// meant are the refusals after which a run may be done, with what becomes of its item.
var meant = map[problem]ledger.ItemState{problemDenied: ledger.ItemDone, problemSkipped: ledger.ItemSkipped}

// wantNotDone finishes the run of item a as done, as the host of a script does that takes no notice of refusals.
func (w *world) wantNotDone(p problem) {
	w.t.Helper()
	_, err := w.ledger.FinishRun(w.t.Context(), w.lastRun("a").ID, ledger.OutcomeDone, false)
	want, done := meant[p]
	if (err == nil) != done {
		w.t.Errorf("finished as done: %v", err)
	}
	var item *ledger.Item
	_ = w.ledger.View(w.t.Context(), func(v ledger.View) (err error) {
		item, err = v.Item("wf", "a")
		return err
	})
	if over := item.State == ledger.ItemDone || item.State == ledger.ItemSkipped; over != done || done && item.State != want {
		w.t.Errorf("the item is %s", item.State)
	}
}

// wantTold holds the sentence and the fields of a refusal.
func wantTold(t *testing.T, g got, p problem, k kind, c provoked) {
	t.Helper()
	var told problemBody
	if err := json.Unmarshal([]byte(g.body), &told); err != nil {
		t.Fatal(err)
	}
	if told.Title != k.title || told.Status != k.status || told.Class == "" || !strings.Contains(g.body, c.words) {
		t.Errorf("told %+v, want the title %q, a class, and %q", told, k.title, c.words)
	}
	t.Log(told.Detail)
	if !strings.HasSuffix(told.Detail, ".") || strings.Contains(told.Detail, "..") {
		t.Errorf("%q is no sentence", told.Detail)
	}
	// Two say that it may have been sent, and one answers whom no request went through.
	sent := p == problemUnknownOutcome || p == problemInternal || p == problemNotAProxyRequest
	if says := strings.Contains(told.Detail, "othing was sent") || strings.Contains(told.Detail, "is not sent"); says == sent {
		t.Errorf("%q doesn't say whether anything was sent", told.Detail)
	}
	for name, want := range map[string]string{
		"Proxy-Status": proxyStatus(k.proxyError, p), "Cache-Control": "no-store",
		"X-Should-Retry": map[bool]string{true: "", false: "false"}[k.retryable], "Stripe-Should-Retry": map[bool]string{true: "", false: "false"}[k.retryable],
	} {
		if have := g.header.Get(name); have != want {
			t.Errorf("%s is %q, want %q", name, have, want)
		}
	}
	if (g.header.Get("Retry-After") != "") != c.retryAfter {
		t.Errorf("Retry-After %q", g.header.Get("Retry-After"))
	}
	if m := told.Mutation; (m != nil) != (g.header.Get(dispatch.FieldMutation) != "") || m != nil && (m.ID != g.header.Get(dispatch.FieldMutation) || string(m.State) != g.header.Get(dispatch.FieldState)) {
		t.Errorf("told of %+v, by the fields of %s in %s", m, g.header.Get(dispatch.FieldMutation), g.header.Get(dispatch.FieldState))
	}
}

// lastRun is the newest run of an item.
func (w *world) lastRun(item string) *ledger.Run {
	w.t.Helper()
	page, err := w.ledger.Runs(w.t.Context(), ledger.Filter{Workflow: "wf", Item: item})
	if err != nil || len(page.Items) == 0 {
		w.t.Fatalf("runs of %s: %+v, %v", item, page, err)
	}
	return page.Items[0]
}
