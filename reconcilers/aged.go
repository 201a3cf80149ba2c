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

// mayPrecede reports whether an answer of this age may have been made before the first sending that
// may have taken effect.
func (t *try) mayPrecede(age string) bool { return precedes(age, sentAt(t.mutation, t.at), t.at.Wall) }

// asLooked is what a look showed of what was accepted, as it counts where caches answered the asking
// that began at this moment: what they have from before the sending is of something else.
func (t *try) asLooked(s sighting, ages []string, at ledger.Stamp) sighting {
	accepted := acceptedAt(t.mutation, at)
	mayPrecede := func(age string) bool { return precedes(age, accepted, at.Wall) }
	if s.seen == ledger.SeenRetry || !slices.ContainsFunc(ages, mayPrecede) {
		return s
	}
	s.reason = fmt.Sprintf("%s, but a cache answered (Age: %s): it may have been so before this was sent", s.reason, shorten(ages[0]))
	s.seen = ledger.SeenRetry
	return s
}

// precedes reports whether an answer of this age, in whole seconds, may have been made before what was
// sent then, of which zero can't tell.
func precedes(age string, sent, now time.Time) bool {
	seconds, err := strconv.ParseUint(age, 10, 31)
	return err != nil || sent.IsZero() || time.Duration(seconds+1)*time.Second > now.Sub(sent)
}
