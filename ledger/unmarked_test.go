package ledger_test

import (
	"testing"

	"keep-proxy/ledger"
)

// A failed mutation may be claimed again with another payload, in which its marker has room.
func TestARecordSaysWhetherItsMarkerWasLeftOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.open(returns)
	marker := ledger.Marker(key("a"))
	for i, unmarked := range []bool{true, false, true} {
		d := w.send(r, "a", func(q *ledger.Claim) {
			q.Record.Unmarked = unmarked
			q.Record.PayloadDigest = string(rune('a' + i))
		})
		if m := w.mutation("a"); m.Unmarked != unmarked || m.Marker != marker {
			t.Errorf("claim %d: unmarked %t, marker %s", i, m.Unmarked, m.Marker)
		}
		w.finish("a", d, ledger.VerdictFailed)
	}
}
