package ledger

import (
	"slices"
	"time"
)

// Caution is what is asked for before an absence is believed, and what it leads to. A zero
// field asks for nothing.
type Caution struct {
	Settle, Spacing time.Duration
	Confirmations   int
	OnAbsent        OnAbsent
}

// careful are what an absence may lead to, the most careful last.
var careful = []OnAbsent{AbsentRedispatch, AbsentFail, AbsentEscalate}

// Heeding is p as careful as c, and nowhere less careful than it was: who learns that an
// API is slower than it was taken for mends open questions, too, and what was sent
// under long bounds is not judged by short ones.
func (p Policy) Heeding(c Caution) Policy {
	settle, confirmations, spacing := p.bounds()
	if c.Settle > settle {
		p.Settle = c.Settle
	}
	if c.Confirmations > confirmations {
		p.Confirmations = c.Confirmations
	}
	if c.Spacing > spacing {
		p.Spacing = c.Spacing
	}
	if slices.Index(careful, c.OnAbsent) > slices.Index(careful, p.OnAbsent) && p.OnAbsent != "" {
		p.OnAbsent = c.OnAbsent
	}
	return p
}
