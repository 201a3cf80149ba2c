package ledger_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"keep-proxy/internal/verdict"
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

// A run that is over doesn't finish as done because the ledger hasn't been told yet: it has seen the
// world with a hole in it.
func TestARunThatIsOverUnrecordedDoesNotFinish(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*ledger.OpenRun){
		"of one item":   func(*ledger.OpenRun) {},
		"of many items": func(o *ledger.OpenRun) { o.Item, o.Items = "", ledger.ItemsMany },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			r := w.open(change)
			w.Unrecorded().End(r.ID, ledger.Over{Cause: "m-1", Why: "its open streams were cut because of a stop"})
			_, err := w.FinishRun(t.Context(), r.ID, ledger.OutcomeDone, false)
			if !errors.Is(err, ledger.ErrRunUnfinished) || !strings.Contains(err.Error(), "its open streams were cut") {
				t.Errorf("it finishes: %v", err)
			}
			if got := w.run(r.ID); got.State != ledger.RunAborted || got.Class != verdict.Transient {
				t.Errorf("it is %s, %s", got.State, got.Class)
			}
		})
	}
}

// Nor is such a run one that failed: what ended it is an outcome that is unknown, or a stop.
func TestARunThatIsOverUnrecordedIsNotFinishedAsFailed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.open()
	w.Unrecorded().End(r.ID, ledger.Over{Cause: "m-1", Why: "the outcome of m-1 could not be recorded"})
	if _, err := w.FinishRun(t.Context(), r.ID, ledger.OutcomeFailed, false); !errors.Is(err, ledger.ErrRunEnded) {
		t.Errorf("it finishes: %v", err)
	}
	got := w.run(r.ID)
	if got.State != ledger.RunAborted || got.Class != verdict.Transient || got.Cause != "m-1" || got.Reason != "the outcome of m-1 could not be recorded" {
		t.Errorf("it is %s, %s, because of %q: %s", got.State, got.Class, got.Cause, got.Reason)
	}
	if i := w.item("i"); i.State != ledger.ItemOpen {
		t.Errorf("its item is %s", i.State)
	}
}
