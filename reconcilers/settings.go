package reconcilers

import (
	"cmp"
	"time"
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
	// Default 5.
	Rate float64
	// Concurrency is how many records the runner works on at a time, and
	// PerConnector how many of one connector. Defaults 8 and 4.
	Concurrency, PerConnector int
	// Poll is how often the runner looks at the queue although nothing woke it,
	// which also bounds how late it notices that the wall clock jumped. Default
	// 30 s.
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
