package reconcilers

import (
	"time"

	"keep-proxy/ledger"
)

// setBackTolerance is how far the wall clock may fall behind the monotonic one
// between two passes without having been set back: it is slewed now and then.
const setBackTolerance = time.Second

// beyond is later than any next try.
const beyond = 100 * 365 * 24 * time.Hour

// wallWatch notices that the wall clock was set back, by which next tries move into
// a distance that nobody meant. Its zero value looks once, for what another process
// left.
type wallWatch struct {
	last ledger.Stamp
	open bool
}

// setBack reports whether records may be waiting for a time of a clock that was set
// back since.
func (w *wallWatch) setBack(now ledger.Stamp) bool {
	passed, sameBoot := now.MonoSince(w.last)
	if !sameBoot || now.Wall.Sub(w.last.Wall) < passed-setBackTolerance {
		w.open = true
	}
	w.last = now
	return w.open
}

// looked ends the looking: what was found stands in line.
func (w *wallWatch) looked() { w.open = false }

// stranded reports whether the record was last written at a time that is still to
// come: its next try was planned by a clock that was set back since.
func stranded(m *ledger.Mutation, now time.Time) bool { return m.UpdatedAt.After(now) }
