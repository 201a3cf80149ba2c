package ledger

import "strings"

// Facts are what a row of the transition table may depend on, as a set of bits.
// The zero value knows nothing in favour of a move.
type Facts uint32

// The facts.
const (
	// FactCommitted: success is known.
	FactCommitted Facts = 1 << iota
	// FactReconciler: a strategy other than none exists.
	FactReconciler
	// FactEarlier: an earlier dispatch of the record is unresolved.
	FactEarlier
	// FactInline: the inline try follows.
	FactInline
	// FactJudged: no dispatch of the record is being sent.
	FactJudged
	// FactNewer: a newer dispatch than the one at hand is being sent.
	FactNewer
	// FactResult: an answer for the script is at hand.
	FactResult
	// FactResultMissing: the record is applied without a known result.
	FactResultMissing
	// FactBelievable: the absence is believable, see docs/semantics.md §6.
	FactBelievable
	// FactAbsentFails: the rule says on_absent: fail or redispatch.
	FactAbsentFails
	// FactStrong: the tie is a vendor key or a marker.
	FactStrong
	// FactResendOpen: one more resend is allowed, see ResendOpen and NaturalOpen.
	FactResendOpen
	// FactDeniable: a person may say that it did not happen, see Deniable.
	FactDeniable
	// FactDisputed: a request with another payload was refused, and nothing else is asked
	// about.
	FactDisputed
	// FactEscalated: an escalation is open.
	FactEscalated
	// FactRedispatch: the rule lets the mutation be sent again by itself, see
	// RedispatchOpen.
	FactRedispatch
	// FactUnsent: the newest dispatch has steps, nothing was kept of the first ones, so
	// that the one which can take effect was not sent; and no earlier dispatch is
	// unresolved.
	FactUnsent

	// factEnd is one past the last fact.
	factEnd
)

// AllFacts is the set of every fact.
const AllFacts = factEnd - 1

// factNames are in the order of the bits.
var factNames = [...]string{
	"committed", "reconciler", "earlier dispatch unresolved", "inline try follows", "judged",
	"newer dispatch in flight", "result at hand", "result missing", "believable", "on_absent: fail or redispatch",
	"strong tie", "resend open", "deniable", "payload disputed", "escalated", "redispatch open",
	"first step not kept",
}

// Has reports whether every fact of g is in f.
func (f Facts) Has(g Facts) bool { return f&g == g }

// If returns f if it holds, else no fact.
func (f Facts) If(holds bool) Facts {
	if holds {
		return f
	}
	return 0
}

// Names lists the facts of f in prose.
func (f Facts) Names() []string { return namesOf(uint64(f), factNames[:]) }

// namesOf are the names of the bits that are set.
func namesOf(bits uint64, names []string) (set []string) {
	for i, name := range names {
		if bits&(1<<i) != 0 {
			set = append(set, name)
		}
	}
	return set
}

// String joins the names.
func (f Facts) String() string { return strings.Join(f.Names(), ", ") }
