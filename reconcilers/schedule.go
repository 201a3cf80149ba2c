package reconcilers

import (
	"time"

	"keep-proxy/ledger"
)

// outlook is what the time of the next try depends on.
type outlook struct {
	now ledger.Stamp
	// elapsed is the running time since the outcome became unknown.
	elapsed time.Duration
	// settle is what is left of it, and settling whether it runs at all: it does
	// not while a dispatch has no end.
	settle   time.Duration
	settling bool
	// confirm is how long until the next confirmation of an absence may begin;
	// confirming says that one is awaited.
	confirm    time.Duration
	confirming bool
	// notBefore is when the API wants to be asked again; zero if it did not say.
	notBefore time.Time
	// random is in [0, 1).
	random float64
}

// next decides when a record is looked at again. It is pure, and decides in this
// order:
//
//  1. An absence that awaits confirmation is asked about as soon as its spacing
//     allows.
//  2. Otherwise by backoff. Tries before settle is over can find presence only, so
//     one that would come shortly before its end waits for the end, and one that
//     would come after it is made at the end: that is the earliest at which
//     absence counts.
//  3. Never before a Retry-After, of which at most MaxAge is obeyed.
func (s Settings) next(o outlook) time.Time {
	wait := s.backoff(o.elapsed, o.random)
	switch {
	case o.confirming:
		wait = o.confirm
	case o.settling && o.settle > 0 && wait > o.settle-s.Base:
		wait = o.settle
	}
	at := o.now.Wall.Add(max(wait, 0))
	if latest := o.now.Wall.Add(s.MaxAge); o.notBefore.After(latest) {
		return latest
	}
	if o.notBefore.After(at) {
		return o.notBefore
	}
	return at
}

// backoff is the wait after the given running time, spread by Jitter; random is in
// [0, 1). Waits of Base that grow by Factor add up so that the next one follows from
// their sum alone: no count has to be kept, and tries that could not be made count
// as well.
func (s Settings) backoff(elapsed time.Duration, random float64) time.Duration {
	wait := float64(s.Base) + float64(max(elapsed, 0))*(s.Factor-1)
	wait = min(wait, float64(s.Cap))
	return time.Duration(wait * (1 + s.Jitter*(2*random-1)))
}
