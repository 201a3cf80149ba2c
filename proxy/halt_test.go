package proxy

import (
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"keep-proxy/ledger"
)

// newHaltedWorld is a world whose operator says what is kept back.
func newHaltedWorld(t *testing.T, handler http.HandlerFunc, change ...func(*Config)) (*world, *atomic.Pointer[Halt]) {
	t.Helper()
	said := &atomic.Pointer[Halt]{}
	said.Store(&Halt{})
	change = append(change, func(c *Config) { c.Halted = func() Halt { return *said.Load() } })
	return newWorld(t, handler, change...), said
}

func TestAPauseKeepsMutationsBackAndNothingElse(t *testing.T) {
	t.Parallel()
	w, said := newHaltedWorld(t, created)
	wantAnswer(t, w.open("a").post("/pay", `{"to":"x"}`), 201, `{"id":1}`, false)
	said.Store(&Halt{Sending: true, Why: "the bank is down"})
	again := w.open("a", func(o *ledger.OpenRun) { o.Takeover = true })
	wantAnswer(t, again.post("/pay", `{"to":"x"}`), 201, `{"id":1}`, true)
	r := w.open("b")
	refused := r.post("/pay", `{"to":"y"}`)
	wantProblem(t, refused, "draining", 503, "paused keep-proxy, so that no mutation is sent (the bank is down). Nothing was sent")
	if wait := refused.header.Get("Retry-After"); wait != "30" {
		t.Errorf("Retry-After %q", wait)
	}
	w.noRecords("b")
	if got := r.get("/read"); got.err != nil || got.status != 201 {
		t.Errorf("a read: %+v", got)
	}
	if got := r.post("/telemetry", "{}"); got.err != nil || got.status != 201 {
		t.Errorf("what is ignored: %+v", got)
	}
	w.wantSends("/pay", 1)
	// The run goes on once the pause is over.
	said.Store(&Halt{})
	wantAnswer(t, r.post("/pay", `{"to":"y"}`), 201, `{"id":1}`, false)
	w.wantSends("/pay", 2)
}

func TestAPauseKeepsBackWhatNoRuleDeclares(t *testing.T) {
	t.Parallel()
	for _, policy := range []Policy{PolicyAllow, PolicyObserve} {
		w, said := newHaltedWorld(t, created, func(c *Config) { c.Unmatched = policy })
		w.use(`apiVersion: keep/v1
connector: elsewhere
version: 1
hosts: [elsewhere.test]
reads: safe-methods
operations: []
`)
		said.Store(&Halt{Sending: true})
		wantProblem(t, w.open("a").post("/pay", `{"to":"x"}`), "draining", 503, "Nothing was sent")
		w.wantSends("/pay", 0)
	}
}

func TestDrainingTakesNothing(t *testing.T) {
	t.Parallel()
	w, said := newHaltedWorld(t, created)
	r := w.open("a")
	said.Store(&Halt{Sending: true, Everything: true})
	wantProblem(t, r.get("/read"), "draining", 503, "draining keep-proxy, so that it takes no requests")
	wantProblem(t, r.post("/pay", `{"to":"x"}`), "draining", 503, "Nothing was sent")
	w.wantSends("/read", 0)
	w.wantSends("/pay", 0)
	said.Store(&Halt{})
	wantAnswer(t, r.post("/pay", `{"to":"x"}`), 201, `{"id":1}`, false)
}

func TestWhatIsUnderWayIsCountedUntilItHasEnded(t *testing.T) {
	t.Parallel()
	sending, answer := make(chan struct{}), make(chan struct{})
	w, said := newHaltedWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		close(sending)
		<-answer
		created(rw, r)
	})
	got := w.open("a").posting("/pay", `{"to":"x"}`)
	<-sending
	said.Store(&Halt{Sending: true, Everything: true})
	if requests, mutations := w.proxy.UnderWay(); requests != 1 || mutations != 1 {
		t.Errorf("%d requests and %d mutations are under way, want one of each", requests, mutations)
	}
	close(answer)
	wantAnswer(t, <-got, 201, `{"id":1}`, false)
	w.waitForEnds()
}

// What no rule declares is kept back with the mutations, so that it is counted with them, too: who
// waits until nothing is being sent would go on while it is.
func TestWhatNoRuleDeclaresIsUnderWayUntilItHasEnded(t *testing.T) {
	t.Parallel()
	for _, policy := range []Policy{PolicyAllow, PolicyObserve} {
		sending, answer := make(chan struct{}), make(chan struct{})
		w, said := newHaltedWorld(t, func(rw http.ResponseWriter, r *http.Request) {
			close(sending)
			<-answer
			created(rw, r)
		}, func(c *Config) { c.Unmatched = policy })
		w.use(strings.Replace(testRules, `hosts: ["HOST"]`, `hosts: ["api.test"]`, 1))
		got := w.open("a").posting("/pay", payX)
		<-sending
		said.Store(&Halt{Sending: true})
		if requests, mutations := w.proxy.UnderWay(); requests != 1 || mutations != 1 {
			t.Errorf("%s: %d requests and %d mutations are under way, want one of each", policy, requests, mutations)
		}
		close(answer)
		wantAnswer(t, <-got, 201, `{"id":1}`, false)
		w.waitForEnds()
	}
}

// waitForEnds returns once nothing is under way: a client may have its answer before that.
func (w *world) waitForEnds() {
	w.t.Helper()
	for deadline := time.Now().Add(waitLimit); ; runtime.Gosched() {
		requests, mutations := w.proxy.UnderWay()
		if requests+mutations == 0 {
			return
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("%d requests and %d mutations are under way after all was answered", requests, mutations)
		}
	}
}

// A pause that begins while a body comes in holds for it.
func TestAPauseHoldsForWhatWaitsForItsTurn(t *testing.T) {
	t.Parallel()
	w, q := newRatedWorld(t, created)
	said := &atomic.Pointer[Halt]{}
	said.Store(&Halt{})
	w.proxy.config.Halted = func() Halt { return *said.Load() }
	answer := w.open("a").posting("/pay", `{"to":"x"}`)
	<-q.waiting
	said.Store(&Halt{Sending: true})
	q.admit <- struct{}{}
	wantProblem(t, <-answer, "draining", 503, "Nothing was sent")
	w.noRecords("a")
	w.wantSends("/pay", 0)
}
