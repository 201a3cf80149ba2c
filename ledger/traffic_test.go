package ledger_test

import (
	"testing"

	"keep-proxy/internal/verdict"
	"keep-proxy/ledger"
)

// A run that requires traffic isn't done before a request of it came. It ends aborted, and its item can be tried again.
func TestARunWithoutItsTrafficIsNotDone(t *testing.T) {
	t.Parallel()
	for name, scope := range map[string]func(*ledger.OpenRun){
		"one item":         func(*ledger.OpenRun) {},
		"many items":       func(o *ledger.OpenRun) { o.Item, o.Items = "", ledger.ItemsMany },
		"returned answers": func(o *ledger.OpenRun) { o.OnFailure = ledger.FailureReturn },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			needs := func(o *ledger.OpenRun) { scope(o); o.RequireTraffic = true }
			for range 2 {
				r := w.open(needs)
				for _, keepOpen := range []bool{false, true} {
					if _, err := w.FinishRun(t.Context(), r.ID, ledger.OutcomeDone, keepOpen); err == nil {
						t.Error("a run without a request is done")
					}
				}
				w.unfinished(r, 0)
				for range 2 {
					_, err := w.FinishRun(t.Context(), r.ID, ledger.OutcomeFailed, false)
					w.ok(err)
				}
				w.stands(r, ledger.RunAborted, verdict.Logic)
			}
			r := w.open(needs)
			w.Traffic(*r)
			_, err := w.FinishRun(t.Context(), r.ID, ledger.OutcomeDone, false)
			w.ok(err)
			if ended := w.stands(r, ledger.RunFinished, ""); !ended.Traffic {
				t.Errorf("the run knows of no traffic: %+v", ended)
			}
		})
	}
}

func TestARunThatRequiresNoTrafficIsDoneWithoutIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.done(w.open(), "i", ledger.ItemDone)
}
