package ledger_test

import (
	"errors"
	"testing"
	"time"

	"keep-proxy/ledger"
)

// What the ledger hasn't taken is in none of its records, and stops all that they would stop.
func TestWhatIsNotRecordedStopsItsScope(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.unknown("queued", redispatches)
	queued := w.absent("queued")
	r := w.open(returns, func(o *ledger.OpenRun) { o.Takeover = true })
	flying := w.send(r, "flying")
	told := 0
	w.Unrecorded().Watch(func() { told++ })
	if a := w.Gate(r.ID); !a.Open {
		t.Fatalf("the gate is shut before: %+v", a)
	}
	m := w.mutation("flying")
	w.Unrecorded().Add(m, "", ledger.Over{})
	if a := w.Gate(r.ID); a.Open || a.Blocker.Key != m.Key || told != 1 {
		t.Errorf("the gate of a run is %+v, told %d times", a, told)
	}
	if a := w.GateUnmanaged("w", "other"); a.Open {
		t.Error("the gate of what is unmanaged is open")
	}
	if a := w.GateUnmanaged("another", "i"); !a.Open {
		t.Errorf("the gate of another workflow is %+v", a)
	}
	if got := w.claim(r, "new", held); got.Decision != ledger.DecideBlocked {
		t.Errorf("a claim: %+v", got)
	}
	if _, d := w.again(queued); d != nil {
		t.Error("what is queued is sent")
	}
	_, err := w.OpenRun(t.Context(), ledger.OpenRun{Workflow: "w", Item: "other", TTL: time.Hour})
	if blocked, ok := errors.AsType[*ledger.BlockedError](err); !ok || len(blocked.Blockers) != 1 {
		t.Errorf("a run is opened: %v", err)
	}
	w.finish("flying", flying, ledger.VerdictApplied)
	w.Unrecorded().Recorded(m.Key)
	if a := w.Gate(r.ID); !a.Open {
		t.Errorf("once it is recorded the gate is %+v", a)
	}
}
