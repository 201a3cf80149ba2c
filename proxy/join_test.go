package proxy

import (
	"context"
	"errors"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"keep-proxy/internal/verdict"
	"keep-proxy/ledger"
)

// A run that joins another's sending gets its answer, but only as far as the run may
// have it, and shares what it means for a run.
func TestJoiningAnotherRun(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		path   string
		joiner func(*ledger.OpenRun)
		check  func(*testing.T, *run, got)
	}{
		"the answer of a success": {created, "/pay", nil, func(t *testing.T, r *run, g got) {
			t.Helper()
			wantAnswer(t, g, 201, `{"id":1}`, false)
			if s := r.state().State; s != ledger.RunRunning {
				t.Errorf("the joiner's run is %s", s)
			}
		}},
		"a run that may only read": {created, "/pay", func(o *ledger.OpenRun) { o.Mutations = ledger.MutationsNone }, func(t *testing.T, _ *run, g got) {
			t.Helper()
			wantProblem(t, g, "read-only-run", 403, "read only")
		}},
		"the one mutation of a run": {created, "/pay", func(o *ledger.OpenRun) { o.Mutations = ledger.MutationsOne }, func(t *testing.T, r *run, g got) {
			t.Helper()
			wantAnswer(t, g, 201, `{"id":1}`, false)
			wantProblem(t, r.post("/pay", `{"to":"another"}`), "one-mutation", 403, "one mutation")
			r.wantSends("/pay", 1)
		}},
		"a definite failure": {status(http.StatusBadRequest), "/pay", nil, func(t *testing.T, r *run, g got) {
			t.Helper()
			wantAnswer(t, g, 400, "", false)
			if got := r.state(); got.State != ledger.RunAborted || got.Class != verdict.Logic {
				t.Errorf("the joiner's run is %s, class %s", got.State, got.Class)
			}
		}},
		"a failure that other credentials may mend": {status(http.StatusUnauthorized), "/pay", nil, func(t *testing.T, r *run, g got) {
			t.Helper()
			wantAnswer(t, g, 401, "", false)
			if got := r.state(); got.State != ledger.RunFailing || got.Class != verdict.Permission {
				t.Errorf("the joiner's run is %s, class %s", got.State, got.Class)
			}
		}},
		"a redirect, which fails nobody": {status(http.StatusTemporaryRedirect), "/pay", nil, func(t *testing.T, r *run, g got) {
			t.Helper()
			wantAnswer(t, g, 307, "", false)
			if s := r.state().State; s != ledger.RunRunning {
				t.Errorf("the joiner's run is %s", s)
			}
		}},
		"an unknown outcome": {lost, "/pay", nil, func(t *testing.T, r *run, g got) {
			t.Helper()
			wantProblem(t, g, "unknown-outcome", 424, "unknown")
			if got := r.state(); got.State != ledger.RunAborted || got.Class != verdict.Transient {
				t.Errorf("the joiner's run is %s, class %s", got.State, got.Class)
			}
		}},
		"an outcome that can't be recorded": {nil, "/pay", nil, func(t *testing.T, r *run, g got) {
			t.Helper()
			wantProblem(t, g, "unknown-outcome", 424, "could not be recorded")
			wantProblem(t, r.get("/read"), "run-aborted", 424, "could not be recorded")
			r.wantSends("/read", 0)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			arrived, release := make(chan struct{}), make(chan struct{})
			var w *world
			w = newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
				if r.Method != http.MethodPost {
					return
				}
				close(arrived)
				<-release
				if c.answer == nil {
					w.store.FailBefore()
					created(rw, r)
					return
				}
				c.answer(rw, r)
			})
			first := w.open("a")
			leads := make(chan got, 1)
			go func() { leads <- first.post(c.path, `{"to":"x"}`) }()
			<-arrived
			joiner := w.open("a", func(o *ledger.OpenRun) {
				o.Takeover = true
				if c.joiner != nil {
					c.joiner(o)
				}
			})
			joins := make(chan got, 1)
			go func() { joins <- joiner.post(c.path, `{"to":"x"}`) }()
			w.waitForCallers(2)
			close(release)
			<-leads
			c.check(t, joiner, <-joins)
			w.wantSends(c.path, 1)
		})
	}
}

// A run that got the answer already asks again, also where somebody else's request
// for the same mutation is being answered just then.
func TestARepeatIsNoJoin(t *testing.T) {
	t.Parallel()
	w := newWorld(t, created)
	r := w.open("a")
	wantAnswer(t, r.post("/pay", `{"to":"x"}`), 201, `{"id":1}`, false)
	w.waitDelivered(r.id, "a")
	m := w.mutation("a")
	// An unmanaged caller of the same mutation leads.
	lead := &keyCaller{payload: m.PayloadDigest, client: context.Background()}
	_, call := w.proxy.calls.enter(m.Key, lead)
	answer := make(chan got, 1)
	go func() { answer <- r.post("/pay", `{"to":"x"}`) }()
	w.waitForCallers(2)
	w.proxy.calls.answer(m.Key, call, &reply{mutation: m, decision: ledger.DecideReplay, status: 201, shared: true, replayed: true})
	w.proxy.calls.leave(m.Key, lead)
	wantProblem(t, <-answer, "repeated", 422, "subkey")
	w.wantSends("/pay", 1)
}

// status answers with a status alone.
func status(code int) http.HandlerFunc {
	return func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(code) }
}

// What the ledger asks before a request may have another's answer, it is told.
func TestJoiningUnderARuleThatWasChanged(t *testing.T) {
	t.Parallel()
	arrived, release := make(chan struct{}), make(chan struct{})
	var w *world
	w = newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		if w.sends.of("/pay") == 2 {
			close(arrived)
			<-release
		}
		created(rw, r)
	})
	wantAnswer(t, w.open("a").post("/pay", `{"to":"earlier"}`), 201, `{"id":1}`, false)
	w.use(changed(`identity: {to: json.to}
    payload`, `identity: {payee: json.to}
    payload`))
	leads := w.open("a", takesOver).posting("/pay", payX)
	<-arrived
	joins := w.open("a", takesOver).posting("/pay", payX)
	w.waitForCallers(2)
	close(release)
	wantAnswer(t, <-leads, 201, `{"id":1}`, false)
	wantAnswer(t, <-joins, 201, `{"id":1}`, false)
	w.wantSends("/pay", 2)
}

// waitForWaiter returns once somebody waits for work under way. It fails if the second caller has
// its answer instead.
func (w *world) waitForWaiter(second <-chan got) {
	w.t.Helper()
	for deadline := time.Now().Add(waitLimit); time.Now().Before(deadline); runtime.Gosched() {
		w.proxy.calls.mu.Lock()
		waits := false
		for _, all := range w.proxy.calls.byKey {
			waits = waits || all.active != nil && all.active.answered != nil
		}
		w.proxy.calls.mu.Unlock()
		if waits {
			return
		}
		select {
		case g := <-second:
			w.t.Fatalf("the second caller got %d %s, and did not wait", g.status, g.body)
		default:
		}
	}
	w.t.Fatal("nobody waits")
}

// What is in flight by the rule of before has another key by that of now. It is waited for all the
// same: its outcome isn't unknown.
func TestWhatIsInFlightByTheRuleOfBeforeIsWaitedFor(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		check  func(*testing.T, *world, got)
	}{
		"a success": {created, func(t *testing.T, w *world, g got) {
			t.Helper()
			wantAnswer(t, g, 201, `{"id":1}`, true)
			w.wantSends("/pay", 1)
		}},
		"a failure, which is sent again": {status(http.StatusTooManyRequests), func(t *testing.T, w *world, g got) {
			t.Helper()
			wantAnswer(t, g, 201, `{"id":1}`, false)
			w.wantSends("/pay", 2)
		}},
		"an unknown outcome": {lost, func(t *testing.T, w *world, g got) {
			t.Helper()
			wantProblem(t, g, "blocked", 423, w.mutation("a").ID)
			w.wantSends("/pay", 1)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			arrived, release := make(chan struct{}), make(chan struct{})
			var w *world
			w = newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
				if w.sends.of("/pay") > 1 {
					created(rw, r)
					return
				}
				close(arrived)
				<-release
				c.answer(rw, r)
			})
			let := sync.OnceFunc(func() { close(release) })
			t.Cleanup(let)
			leads := w.open("a").posting("/pay", payX)
			<-arrived
			w.use(changed(`identity: {to: json.to}
    payload`, `identity: {payee: json.to}
    payload`))
			waits := w.open("a", takesOver).posting("/pay", payX)
			w.waitForWaiter(waits)
			let()
			<-leads
			c.check(t, w, <-waits)
		})
	}
}

// Who leaves while it waits for what another caller sends was refused nothing.
func TestACallerThatLeavesWaitsForNothingThatIsInFlight(t *testing.T) {
	t.Parallel()
	arrived, release := make(chan struct{}), make(chan struct{})
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-release
		created(rw, r)
	})
	let := sync.OnceFunc(func() { close(release) })
	t.Cleanup(let)
	leads := w.open("a").posting("/pay", payX)
	<-arrived
	w.use(changed(`identity: {to: json.to}
    payload`, `identity: {payee: json.to}
    payload`))
	r := w.open("a", takesOver)
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan got, 1)
	go func() {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.upstream.URL+"/pay", strings.NewReader(payX))
		if err == nil {
			_, err = r.client.Do(req)
		}
		left <- got{err: err}
	}()
	w.waitForWaiter(left)
	leave()
	if g := <-left; !errors.Is(g.err, context.Canceled) {
		t.Errorf("the caller got %v", g.err)
	}
	for deadline := time.Now().Add(waitLimit); w.proxy.under.requests.Load() > 1; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatal("its request goes on without it")
		}
	}
	if got := r.state(); got.State != ledger.RunRunning {
		t.Errorf("its run is %s: %s", got.State, got.Reason)
	}
	let()
	wantAnswer(t, <-leads, 201, `{"id":1}`, false)
	w.wantSends("/pay", 1)
}

// A record stays under the key of the version that made it, by which nobody is at work where a later
// one sends it again. Who asks by yet another version waits all the same.
func TestWhatIsSentAgainByAnotherRuleThanItsOwnIsWaitedFor(t *testing.T) {
	t.Parallel()
	const then = `identity: {to: json.to}
    payload`
	second := changed(then, `identity: {payee: json.to}
    payload`)
	for name, third := range map[string]string{
		"the first one": testRules,
		"a third one": changed(then, `identity: {whom: json.to}
    payload`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			arrived, release := make(chan struct{}), make(chan struct{})
			var w *world
			w = newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
				if w.sends.of("/pay") == 1 {
					rw.WriteHeader(http.StatusBadRequest)
					return
				}
				close(arrived)
				<-release
				created(rw, r)
			})
			let := sync.OnceFunc(func() { close(release) })
			t.Cleanup(let)
			wantAnswer(t, w.open("a").post("/pay", payX), 400, "", false)
			w.use(second)
			leads := w.open("a").posting("/pay", payX)
			<-arrived
			w.use(third)
			waits := w.open("a", takesOver).posting("/pay", payX)
			w.waitForWaiter(waits)
			let()
			wantAnswer(t, <-leads, 201, `{"id":1}`, false)
			wantAnswer(t, <-waits, 201, `{"id":1}`, true)
			w.wantSends("/pay", 2)
			w.waitAlone()
		})
	}
}

// waitAlone returns once nobody is a caller of anything, and nothing is kept of those who were.
func (w *world) waitAlone() {
	w.t.Helper()
	for deadline := time.Now().Add(waitLimit); ; runtime.Gosched() {
		w.proxy.calls.mu.Lock()
		left, foreign := len(w.proxy.calls.byKey), w.proxy.calls.foreign
		w.proxy.calls.mu.Unlock()
		if left == 0 && foreign == 0 {
			return
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("%d keys have callers, %d of them a record under another key", left, foreign)
		}
	}
}

// Work that ends between the ledger's word that it is in flight and the look for it is over, and not
// unknown. Where none is found again and again, it isn't waited for.
func TestWorkThatHasJustEndedIsAskedForAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, created)
	joins := ledger.Claimed{Decision: ledger.DecideJoin, Mutation: &ledger.Mutation{
		Intent:  ledger.Intent{Key: ledger.Key{1}},
		Outcome: ledger.Outcome{State: ledger.InFlight, Dispatches: []ledger.Dispatch{{}}},
	}}
	var until patience
	asked := 0
	for again := true; again; asked++ {
		var left bool
		if again, left = w.proxy.awaitOther(t.Context(), &work{callKey: ledger.Key{2}}, joins, &until); left {
			t.Fatal("it left")
		}
		if asked > maxMissed+1 {
			t.Fatal("it is waited for for ever")
		}
	}
	if asked != maxMissed+1 {
		t.Errorf("the ledger was asked %d times", asked)
	}
}

// A run that asks again while it is being answered means a second one, also if the rule was changed
// between the two.
func TestARepeatBesideTheRuleOfBefore(t *testing.T) {
	t.Parallel()
	arrived, release := make(chan struct{}), make(chan struct{})
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-release
		created(rw, r)
	})
	let := sync.OnceFunc(func() { close(release) })
	t.Cleanup(let)
	r := w.open("a")
	first := r.posting("/pay", payX)
	<-arrived
	w.use(changed(`identity: {to: json.to}
    payload`, `identity: {payee: json.to}
    payload`))
	second := r.posting("/pay", payX)
	wantProblem(t, w.answerAtOnce(second), "repeated", 422, "subkey")
	let()
	wantAnswer(t, <-first, 201, `{"id":1}`, false)
	w.wantSends("/pay", 1)
}

// answerAtOnce is the next answer. It fails if work under way is waited for instead.
func (w *world) answerAtOnce(answers <-chan got) got {
	w.t.Helper()
	for deadline := time.Now().Add(waitLimit); time.Now().Before(deadline); runtime.Gosched() {
		w.proxy.calls.mu.Lock()
		for _, all := range w.proxy.calls.byKey {
			if all.active != nil && all.active.answered != nil {
				w.proxy.calls.mu.Unlock()
				w.t.Fatal("it waits for the work under way")
			}
		}
		w.proxy.calls.mu.Unlock()
		select {
		case g := <-answers:
			return g
		default:
		}
	}
	w.t.Fatal("no answer")
	return got{}
}

// Its record stays under the key of then, and what comes of it is recorded there.
func TestAFailedMutationIsSentAgainUnderARuleThatWasChanged(t *testing.T) {
	t.Parallel()
	var w *world
	w = newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		if w.sends.of("/pay") == 1 {
			rw.WriteHeader(http.StatusBadRequest)
			return
		}
		created(rw, r)
	})
	wantAnswer(t, w.open("a").post("/pay", payX), 400, "", false)
	w.use(changed(`identity: {to: json.to}
    payload`, `identity: {payee: json.to}
    payload`))
	wantAnswer(t, w.open("a").post("/pay", payX), 201, `{"id":1}`, false)
	if m := w.mutation("a"); m.State != ledger.Applied || len(m.Dispatches) != 2 {
		t.Errorf("it is %s after %d sendings", m.State, len(m.Dispatches))
	}
}
