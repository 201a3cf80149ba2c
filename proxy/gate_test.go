package proxy

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"keep-proxy/ledger"
)

func TestARunThatIsOverSaysWhyInWholeSentences(t *testing.T) {
	t.Parallel()
	const want = "This run is over (aborted): the upstream refused. Nothing was sent; what it does from now on has no effect."
	for _, reason := range []string{"the upstream refused", "the upstream refused."} {
		f := overRefusal(ledger.Admission{
			Problem: string(problemRunAborted),
			Run:     ledger.Run{State: ledger.RunAborted, Class: ledger.ClassLogic, Reason: reason},
		})
		if f.problem != problemRunAborted || f.class != ledger.ClassLogic || f.detail != want {
			t.Errorf("reason %q: %s (%s): %q", reason, f.problem, f.class, f.detail)
		}
	}
}

// A scope may be stopped after the gate let a request in. Its claim finds that, and waits as
// the gate would have.
func TestAClaimWaitsForAStopThatTheGateDidNotSee(t *testing.T) {
	t.Parallel()
	var w *world
	var first *run
	// step is 1 when the next id is for the claim of b, 3 once its scope was stopped, and 4
	// once the gate was asked again.
	var step atomic.Int32
	w = newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		if content, _ := io.ReadAll(r.Body); strings.Contains(string(content), "lost") {
			lost(rw, r)
		}
		created(rw, r)
	}, func(c *Config) {
		c.Hold = waitLimit
		newID := c.NewID
		c.NewID = func() string {
			if step.CompareAndSwap(1, 2) {
				if g := first.post("/pay", `{"to":"lost"}`); g.problem() != "unknown-outcome" {
					t.Errorf("what was lost: %d %s, %v", g.status, g.body, g.err)
				}
				step.Store(3)
			}
			return newID()
		}
		c.Halted = func() Halt {
			// The gate is asked again only after the claim waited.
			if step.CompareAndSwap(3, 4) {
				m := w.mutation("a")
				if _, err := w.ledger.Resolve(t.Context(), ledger.Resolve{
					Key: m.Key, Version: m.Version, Action: ledger.OnSkip, Actor: "ann", Reason: "test",
				}); err != nil {
					t.Error(err)
				}
			}
			return Halt{}
		}
	})
	first = w.open("a")
	second := w.open("b")
	step.Store(1)
	wantAnswer(t, second.post("/pay", `{"to":"y"}`), http.StatusCreated, `{"id":1}`, false)
	if step.Load() != 4 {
		t.Error("the gate was not asked again")
	}
	if got := second.state().State; got != ledger.RunRunning {
		t.Errorf("the run is %s", got)
	}
	w.wantSends("/pay", 2)
}
