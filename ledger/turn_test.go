package ledger_test

import (
	"testing"

	"keep-proxy/ledger"
)

func awaitsTurn(q *ledger.Claim) { q.AwaitsTurn = true }

// Only what would be sent has to wait, and waiting is nowhere recorded.
func TestWhatWaitsForItsTurn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before func(*world)
		want   ledger.Decision
	}{
		"a new mutation":  {func(*world) {}, ledger.DecideTurn},
		"one that failed": {func(w *world) { r := w.open(returns); w.finish("a", w.send(r, "a"), ledger.VerdictFailed) }, ledger.DecideTurn},
		"an applied one":  {func(w *world) { w.applied("a") }, ledger.DecideReplay},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			c.before(w)
			r := w.open(func(o *ledger.OpenRun) { o.Takeover = true })
			out := w.claim(r, "a", awaitsTurn)
			if out.Decision != c.want {
				t.Fatalf("%q (%s), want %q", out.Decision, out.Detail, c.want)
			}
			if c.want != ledger.DecideTurn {
				return
			}
			if out.Dispatch != nil || out.RunRefused || out.Mutation != nil && out.Mutation.State != ledger.Failed {
				t.Errorf("waiting changed something: %+v", out)
			}
			if out := w.claim(r, "a"); out.Decision != ledger.DecideDispatch {
				t.Errorf("its turn came, and it was answered %q (%s)", out.Decision, out.Detail)
			}
		})
	}
}
