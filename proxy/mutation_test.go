package proxy

import (
	"context"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"keep-proxy/internal/fault"
	"keep-proxy/internal/verdict"
	"keep-proxy/ledger"
	"keep-proxy/ledger/ledgertest"
	"keep-proxy/upstream"
)

// created answers like an API that makes a thing.
func created(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Location", "/things/1")
	w.Header().Set("X-Request-ID", "upstream-1")
	w.WriteHeader(http.StatusCreated)
	_, _ = io.WriteString(w, `{"id":1}`)
}

// lost commits and drops the connection.
func lost(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

func TestAnAppliedMutationIsReplayedToALaterRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t, created)
	first := w.open("a")
	wantAnswer(t, first.post("/pay", `{"to":"x","amount":1}`), 201, `{"id":1}`, false)
	if _, err := w.ledger.EndRun(t.Context(), first.id, verdict.Transient, "test", "test"); err != nil {
		t.Fatal(err)
	}
	again := w.open("a").post("/pay", `{"amount":1,"to":"x"}`)
	wantAnswer(t, again, 201, `{"id":1}`, true)
	if again.header.Get("Location") != "/things/1" || again.header.Get("X-Request-ID") != "upstream-1" {
		t.Errorf("headers of the replay: %v", again.header)
	}
	w.wantSends("/pay", 1)
}

func TestItemsAreSeparate(t *testing.T) {
	t.Parallel()
	w := newWorld(t, created)
	wantAnswer(t, w.open("a").post("/pay", `{"to":"x"}`), 201, `{"id":1}`, false)
	wantAnswer(t, w.open("b").post("/pay", `{"to":"x"}`), 201, `{"id":1}`, false)
	w.wantSends("/pay", 2)
}

func TestPayloadChanges(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		second   string
		mismatch bool
	}{
		"a minor place differs":       {`{"to":"x","amount":1,"note":"two"}`, false},
		"a significant place differs": {`{"to":"x","amount":2,"note":"one"}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, created)
			first := w.open("a")
			wantAnswer(t, first.post("/pay", `{"to":"x","amount":1,"note":"one"}`), 201, `{"id":1}`, false)
			if _, err := w.ledger.EndRun(t.Context(), first.id, verdict.Transient, "test", "test"); err != nil {
				t.Fatal(err)
			}
			second := w.open("a")
			answer := second.post("/pay", c.second)
			w.wantSends("/pay", 1)
			if !c.mismatch {
				wantAnswer(t, answer, 201, `{"id":1}`, true)
				return
			}
			wantProblem(t, answer, "payload-mismatch", 422, "another payload")
			if s := second.state().State; s != ledger.RunPausedAttention {
				t.Errorf("run is %s", s)
			}
			wantProblem(t, second.get("/read"), "run-aborted", 424, "over")
			if _, err := w.tryOpen("a"); err == nil {
				t.Error("a run of an item that needs attention was opened")
			}
		})
	}
}

func TestALostAcknowledgementStopsTheWorkflow(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lost)
	other := w.open("b")
	first := w.open("a")
	answer := first.post("/pay", `{"to":"x"}`)
	wantProblem(t, answer, "unknown-outcome", 424, "Don't send it again")
	if answer.header.Get("X-Should-Retry") != "false" || answer.header.Get("Keep-State") != "indeterminate" || answer.header.Get("Keep-Mutation") == "" {
		t.Errorf("headers: %v", answer.header)
	}
	if s := first.state().State; s != ledger.RunPausedReconciliation {
		t.Errorf("run is %s", s)
	}
	wantProblem(t, first.post("/pay", `{"to":"x"}`), "run-aborted", 424, "over")
	decide := "keep-proxy resolve " + w.mutation("a").ID
	blocked := other.get("/read")
	wantProblem(t, blocked, "blocked", 423, "A person must decide: "+decide+".")
	if !strings.Contains(blocked.body, `"actions":["`+decide+`"]`) {
		t.Errorf("it names no action: %s", blocked.body)
	}
	wantProblem(t, other.get("/read"), "run-aborted", 424, "over")
	if _, err := w.tryOpen("c"); err == nil {
		t.Error("a run of a stopped workflow was opened")
	}
	w.wantSends("/pay", 1)
	w.wantSends("/read", 0)
}

func TestTheInlineTryFindsTheResult(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lost)
	w.inliner.try = func(ctx context.Context, m *ledger.Mutation) (*ledger.Mutation, error) {
		if m.State != ledger.InFlight || !m.Unresolved() {
			t.Errorf("tried inline in state %s", m.State)
		}
		done, err := w.ledger.Observe(ctx, ledger.Observe{
			Key: m.Key, Version: m.Version, Inline: true, Reached: true,
			Observation: ledger.Observation{At: m.Current().Ended, Strategy: "probe", Seen: ledger.SeenApplied},
			Result:      &ledger.Result{Status: 200, Header: ledger.Header{"Content-Type": {"text/plain"}}, Body: ledgertest.SampleBody([]byte("found"))},
			Body:        []byte("found"),
		})
		return done.Mutation, err
	}
	r := w.open("a")
	wantAnswer(t, r.post("/ask", `{"to":"x"}`), 200, "found", false)
	if s := r.state().State; s != ledger.RunRunning {
		t.Errorf("run is %s", s)
	}
	w.wantSends("/ask", 1)
}

func TestAnUnfoundOutcomeIsParked(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lost)
	wantProblem(t, w.open("a").post("/ask", `{"to":"x"}`), "unknown-outcome", 424, "goes on asking")
	if m := w.mutation("a"); m.State != ledger.NeedsReconcile || m.NextTryAt.IsZero() {
		t.Errorf("record is %s, next try %s", m.State, m.NextTryAt)
	}
}

func TestDefiniteFailures(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status int
		class  verdict.Class
		run    ledger.RunState
	}{
		"400 aborts, logic":                   {400, verdict.Logic, ledger.RunAborted},
		"403 aborts, permission":              {403, verdict.Permission, ledger.RunAborted},
		"422 aborts, precondition":            {422, verdict.Precondition, ledger.RunAborted},
		"401 leaves a grace, permission":      {401, verdict.Permission, ledger.RunFailing},
		"429 leaves a grace, transient":       {429, verdict.Transient, ledger.RunFailing},
		"307 is passed on and aborts nothing": {307, "", ledger.RunRunning},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(rw http.ResponseWriter, _ *http.Request) {
				rw.Header().Set("Location", "/elsewhere")
				rw.Header().Set("Retry-After", "7")
				rw.WriteHeader(c.status)
				_, _ = io.WriteString(rw, "no")
			})
			r := w.open("a")
			answer := r.post("/pay", `{"to":"x"}`)
			wantAnswer(t, answer, c.status, "no", false)
			if answer.header.Get("Retry-After") != "7" || answer.header.Get("Keep-State") != "failed" {
				t.Errorf("headers: %v", answer.header)
			}
			if s := r.state(); s.State != c.run || c.run != ledger.RunRunning && s.Class != c.class {
				t.Errorf("run is %s, class %s", s.State, s.Class)
			}
			w.wantSends("/pay", 1)
		})
	}
}

func TestTwentyCallersOfOneKey(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		header            []string
		answers, repeated int
	}{
		"with the same Idempotency-Key all get the answer": {[]string{"Idempotency-Key", "k"}, 20, 0},
		"without one, nineteen are second intents":         {nil, 1, 19},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const callers = 20
			release := make(chan struct{})
			releaseAll := sync.OnceFunc(func() { close(release) })
			w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
				<-release
				created(rw, r)
			})
			t.Cleanup(releaseAll)
			r := w.open("a")
			answers := make(chan got, callers)
			for range callers {
				go func() { answers <- r.post("/pay", `{"to":"x"}`, c.header...) }()
			}
			var all []got
			for range c.repeated {
				all = append(all, w.answerBeside(answers))
			}
			if c.repeated == 0 {
				w.waitForCallers(callers)
			}
			releaseAll()
			for range callers - c.repeated {
				all = append(all, <-answers)
			}
			counts := map[string]int{}
			for _, g := range all {
				counts[strings.TrimSpace(g.problem()+" "+g.body)]++
			}
			if counts[`{"id":1}`] != c.answers {
				t.Errorf("answers: %v", counts)
			}
			for _, g := range all[:c.repeated] {
				wantProblem(t, g, "repeated", 422, "subkey")
			}
			w.wantSends("/pay", 1)
			if s := r.state().State; s != ledger.RunRunning {
				t.Errorf("run is %s", s)
			}
		})
	}
}

// waitLimit bounds the wait for what another goroutine is about to do.
const waitLimit = 3 * time.Minute

// sharing is how many callers share one key.
func (w *world) sharing() (most int) {
	w.proxy.calls.mu.Lock()
	defer w.proxy.calls.mu.Unlock()
	for _, all := range w.proxy.calls.byKey {
		most = max(most, len(all.live))
	}
	return most
}

// waitForCallers returns once n callers share one key.
func (w *world) waitForCallers(n int) {
	w.t.Helper()
	for deadline := time.Now().Add(waitLimit); time.Now().Before(deadline); runtime.Gosched() {
		if w.sharing() == n {
			return
		}
	}
	w.t.Fatalf("%d callers didn't come together", n)
}

// answerBeside is the next answer to a caller whose key another one works on. It fails if
// they share the work instead.
func (w *world) answerBeside(answers <-chan got) got {
	w.t.Helper()
	for deadline := time.Now().Add(waitLimit); time.Now().Before(deadline); runtime.Gosched() {
		select {
		case g := <-answers:
			return g
		default:
		}
		if w.sharing() > 1 {
			w.t.Fatal("a second intent waits for the answer of the first")
		}
	}
	w.t.Fatal("nobody was answered")
	return got{}
}

// waitForJoiner returns once two callers share one key. It fails if the second has its
// answer instead.
func (w *world) waitForJoiner(second <-chan got) {
	w.t.Helper()
	for deadline := time.Now().Add(waitLimit); time.Now().Before(deadline); runtime.Gosched() {
		if w.sharing() == 2 {
			return
		}
		select {
		case g := <-second:
			w.t.Fatalf("the second caller got %d %s, and did not wait", g.status, g.body)
		default:
		}
	}
	w.t.Fatal("two callers didn't come together")
}

// waitForGoneCaller returns once the proxy knows that a caller's connection is gone.
func (w *world) waitForGoneCaller() {
	w.t.Helper()
	for deadline := time.Now().Add(waitLimit); time.Now().Before(deadline); runtime.Gosched() {
		w.proxy.calls.mu.Lock()
		gone := false
		for _, all := range w.proxy.calls.byKey {
			for _, c := range all.live {
				gone = gone || c.gone()
			}
		}
		w.proxy.calls.mu.Unlock()
		if gone {
			return
		}
	}
	w.t.Fatal("the proxy didn't notice that the caller went away")
}

func TestRepeatsInsideOneRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t, created)
	r := w.open("a")
	wantAnswer(t, r.post("/pay", `{"to":"x"}`), 201, `{"id":1}`, false)
	w.waitDelivered(r.id, "a")
	wantProblem(t, r.post("/pay", `{"to":"x"}`), "repeated", 422, "subkey")
	wantProblem(t, r.post("/pay", `{"to":"x","amount":2}`), "repeated", 422, "subkey")
	wantAnswer(t, r.post("/pay", `{"to":"y"}`, "Idempotency-Key", "k"), 201, `{"id":1}`, false)
	wantAnswer(t, r.post("/again", `{"to":"x"}`), 201, `{"id":1}`, false)
	w.wantSends("/pay", 2)
}

func TestARuleMayReplayRepeats(t *testing.T) {
	t.Parallel()
	w := newWorld(t, created)
	r := w.open("a")
	wantAnswer(t, r.post("/again", `{"to":"x"}`), 201, `{"id":1}`, false)
	w.waitDelivered(r.id, "a")
	wantAnswer(t, r.post("/again", `{"to":"x"}`), 201, `{"id":1}`, true)
	w.wantSends("/again", 1)
}

// waitDelivered returns once the ledger knows that the item's one mutation was
// delivered to the run.
func (w *world) waitDelivered(run, item string) {
	w.t.Helper()
	m := w.mutation(item)
	for deadline := time.Now().Add(waitLimit); time.Now().Before(deadline); runtime.Gosched() {
		known := false
		if err := w.store.Update(w.t.Context(), func(tx ledger.Tx) error {
			_, err := tx.Delivery(run, m.Key)
			known = err == nil
			return nil
		}); err != nil {
			w.t.Fatal(err)
		}
		if known {
			return
		}
	}
	w.t.Fatal("the delivery was not noted")
}

func TestACallerThatGoesAwayCancelsNothing(t *testing.T) {
	t.Parallel()
	arrived, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	releaseAll := sync.OnceFunc(func() { close(release) })
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		once.Do(func() { close(arrived) })
		<-release
		created(rw, r)
	})
	t.Cleanup(releaseAll)
	r := w.open("a")
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.upstream.URL+"/pay", strings.NewReader(`{"to":"x"}`))
		if err == nil {
			_, err = r.client.Do(req)
		}
		gone <- err
	}()
	<-arrived
	cancel()
	if err := <-gone; err == nil {
		t.Fatal("the caller got an answer")
	}
	w.waitForGoneCaller()
	answer := make(chan got, 1)
	go func() { answer <- r.post("/pay", `{"to":"x"}`) }()
	w.waitForJoiner(answer)
	releaseAll()
	if g := <-answer; g.status != 201 || g.body != `{"id":1}` {
		t.Errorf("asking again: %d %q", g.status, g.body)
	}
	w.wantSends("/pay", 1)
}

func TestAnUnrecordableOutcomeIsUnknown(t *testing.T) {
	t.Parallel()
	var w *world
	w = newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		w.store.FailBefore()
		created(rw, r)
	})
	r := w.open("a")
	wantProblem(t, r.post("/pay", `{"to":"x"}`), "unknown-outcome", 424, "could not be recorded")
	if g := r.get("/read"); g.problem() != "run-aborted" && g.problem() != "ledger-unavailable" {
		t.Errorf("the run went on: %d %s", g.status, g.body)
	}
	w.wantSends("/pay", 1)
	w.wantSends("/read", 0)
}

func TestALedgerThatCantClaimSendsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, created)
	r := w.open("a")
	w.store.FailBefore()
	answer := r.post("/pay", `{"to":"x"}`)
	wantProblem(t, answer, "ledger-unavailable", 503, "nothing was sent")
	if answer.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	w.wantSends("/pay", 0)
}

func TestAPanicAfterTheClaimLeavesAnOwner(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]string{
		"before the answer is judged": "answer",
		"during the inline try":       "inline",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, lost, func(c *Config) {
				if at == "answer" {
					c.Sender = panicking{}
				}
			})
			w.inliner.try = func(context.Context, *ledger.Mutation) (*ledger.Mutation, error) { panic("inline") }
			r := w.open("a")
			wantProblem(t, r.post("/ask", `{"to":"x"}`), "internal", 500, "unknown")
			for deadline := time.Now().Add(waitLimit); w.mutation("a").State != ledger.NeedsReconcile; runtime.Gosched() {
				if time.Now().After(deadline) {
					t.Fatalf("record is %s", w.mutation("a").State)
				}
			}
			wantProblem(t, r.get("/read"), "run-aborted", 424, "over")
		})
	}
}

// panicking is a sender that fails in a way that nobody foresaw.
type panicking struct{}

func (panicking) Send(context.Context, *upstream.Request) *upstream.Answer { panic("sender") }

// A panic between the record of an uncertain end and its inline try must not leave
// the requests of the scope waiting for a try that never begins. It arms a point of
// the whole process, so it runs alone.
func TestAPanicBeforeTheInlineTryLetsOthersGo(t *testing.T) {
	w := newWorld(t, lost)
	other := w.open("b")
	disarm, err := fault.Do("proxy.outcome_recorded", 1, func() { panic("recorded") })
	if err != nil {
		t.Fatal(err)
	}
	defer disarm()
	other.client.Timeout = waitLimit
	wantProblem(t, w.open("a").post("/ask", `{"to":"x"}`), "internal", 500, "unknown")
	wantProblem(t, other.get("/read"), "blocked", 423, "Stopped by")
	w.wantSends("/read", 0)
}
