package reconcilers

import (
	"cmp"
	"time"

	"keep-proxy/ledger"
)

// Settings bound the work on records of unknown outcome. A zero field takes its
// default, except where it says otherwise.
type Settings struct {
	// Inline bounds the try made before the script is answered. Default 10 s;
	// negative for no such try.
	Inline time.Duration
	// Base is the wait before the runner's first try. Default 10 s.
	Base time.Duration
	// Factor multiplies the wait after each try; at least 1. Default 2.
	Factor float64
	// Cap bounds the wait. Default 10 min.
	Cap time.Duration
	// Jitter spreads each wait by this share of it, both ways: 0 to 1. Zero means
	// none; [DefaultSettings] has 0.2.
	Jitter float64
	// MaxAge bounds how long a Retry-After can put a record off, so that a person
	// is asked in the end. The ledger counts running time against the same
	// number. Default 24 h.
	MaxAge time.Duration
	// Ask bounds one read of a probe, from dialling to the end of its answer.
	// Default 30 s.
	Ask time.Duration
	// MaxAnswer is the longest answer of one read, in bytes; a longer one is a
	// retry. Default 10 MiB.
	MaxAnswer int64
	// Rate bounds the requests per second to a connector whose rule has no rate.
	// Default 5; infinite for no bound, whatever rules say.
	Rate float64
	// Concurrency is how many records the runner works on at a time, and
	// PerConnector how many of one connector. Defaults 8 and 4.
	Concurrency, PerConnector int
	// Poll is how often the runner looks at the queue without being woken. It bounds how late the
	// runner notices a jump of the wall clock. Default 30 s.
	Poll time.Duration
}

// DefaultSettings are the documented defaults.
func DefaultSettings() Settings { return Settings{Jitter: 0.2}.filled() }

// filled returns s with every zero field set to its default and every other
// brought into its range.
func (s Settings) filled() Settings {
	s.Inline = cmp.Or(s.Inline, 10*time.Second)
	s.Base = positive(s.Base, 10*time.Second)
	s.Factor = max(cmp.Or(s.Factor, 2), 1)
	s.Cap = max(positive(s.Cap, 10*time.Minute), s.Base)
	s.Jitter = min(max(s.Jitter, 0), 1)
	s.MaxAge = positive(s.MaxAge, 24*time.Hour)
	s.Ask = positive(s.Ask, 30*time.Second)
	s.MaxAnswer = positive(s.MaxAnswer, 10<<20)
	s.Rate = positive(s.Rate, 5)
	s.Concurrency = positive(s.Concurrency, 8)
	s.PerConnector = positive(s.PerConnector, 4)
	s.Poll = positive(s.Poll, 30*time.Second)
	return s
}

func positive[T int | int64 | float64 | time.Duration](v, fallback T) T {
	if v > 0 {
		return v
	}
	return fallback
}

// outlook is what the time of the next try depends on.
type outlook struct {
	now ledger.Stamp
	// elapsed is the running time since the outcome became unknown.
	elapsed time.Duration
	// settle is what is left of it, and settling says whether it runs. It doesn't while a dispatch has
	// no end.
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

// next decides when a record is looked at again. It is pure, and decides in this order:
//
//  1. An absence that awaits confirmation is asked about as soon as its spacing allows.
//  2. Otherwise by backoff. Before settle is over tries can only find presence. So a try due shortly
//     before its end, or after it, is made at the end. Only then does absence count.
//  3. At the end of MaxAge at the latest. That try is the last one.
//  4. Never before a Retry-After, of which at most MaxAge is obeyed.
func (s Settings) next(o outlook) time.Time {
	wait := s.backoff(o.elapsed, o.random)
	switch {
	case o.confirming:
		wait = o.confirm
	case o.settling && o.settle > 0 && wait > o.settle-s.Base:
		wait = o.settle
	}
	if left := s.MaxAge - o.elapsed; left > 0 {
		wait = min(wait, left)
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

// backoff is the wait after the given running time, spread by Jitter; random is in [0, 1). Waits of
// Base that grow by Factor follow from their sum alone. So no count is kept, and tries that could
// not be made count as well.
func (s Settings) backoff(elapsed time.Duration, random float64) time.Duration {
	wait := float64(s.Base) + float64(max(elapsed, 0))*(s.Factor-1)
	wait = min(wait, float64(s.Cap))
	return time.Duration(wait * (1 + s.Jitter*(2*random-1)))
}
