package reconcilers

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"keep-proxy/ledger"
)

// asAged is s as it counts where caches answered, whose ages (RFC 9111 §5.1) are given. What was
// made since isn't in such an answer, so that it tells no absence, nor what is still there. What
// it shows was there once: before the mutation was sent, for all it says, if it is that old, and
// then only an object that names the mutation is known to be of it.
func (t *try) asAged(s sighting, ages []string) sighting {
	if len(ages) == 0 {
		return s
	}
	var why string
	switch {
	case s.seen == ledger.SeenAbsent:
		why = "what was made since isn't in it"
	case t.verifies && (s.seen == ledger.SeenApplied || s.seen == ledger.SeenDuplicate && !s.strong):
		why = "what was taken away since is in it still"
	case (s.seen == ledger.SeenApplied || s.seen == ledger.SeenDuplicate) && !s.strong && slices.ContainsFunc(ages, t.mayPrecede):
		why = "it may have been so before this was sent"
	default:
		return s
	}
	s.reason = fmt.Sprintf("%s, but a cache answered (Age: %s): %s", s.seen, shorten(ages[0]), why)
	s.seen = ledger.SeenRetry
	return s
}

// mayPrecede reports whether an answer of this age, in whole seconds, may have been made before the
// first sending that may have taken effect.
func (t *try) mayPrecede(age string) bool {
	seconds, err := strconv.ParseUint(age, 10, 31)
	sent := sentAt(t.mutation, t.at)
	return err != nil || sent.IsZero() || time.Duration(seconds+1)*time.Second > t.at.Wall.Sub(sent)
}
