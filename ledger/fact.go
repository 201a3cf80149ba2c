package ledger

import (
	"slices"
	"strings"
)

// Facts are what a row of the table may depend on, as a set of bits. The zero value allows no more moves.
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
	// FactEnded: no dispatch of the record is being sent.
	FactEnded
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
	// FactDisputed: another payload was refused, and nothing else is asked about.
	FactDisputed
	// FactEscalated: an escalation is open.
	FactEscalated
	// FactRedispatch: it may be sent again by itself, see RedispatchOpen.
	FactRedispatch
	// FactUnsent: nothing was kept of the newest dispatch's first steps, so the last one was not sent. No earlier
	// dispatch is unresolved.
	FactUnsent

	// factEnd is one past the last fact.
	factEnd
)

// AllFacts is the set of every fact.
const AllFacts = factEnd - 1

// factNames are in the order of the bits.
var factNames = [...]string{
	"committed", "reconciler", "earlier dispatch unresolved", "inline try follows", "sendings ended",
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

// Trigger is what moves a mutation from state to state.
type Trigger string

// What the proxy sees.
const (
	OnClaim   Trigger = "claim"
	OnSuccess Trigger = "success"
	// OnTooLarge is a success whose body is over the limit.
	OnTooLarge Trigger = "success_too_large"
	// OnDefiniteFailure is a definite failure verdict, proven not sent included.
	OnDefiniteFailure Trigger = "failure"
	// OnUnknown is any other end without a whole success, after the inline try.
	OnUnknown Trigger = "unknown"
	// OnResend is a dispatch by the resend strategy.
	OnResend Trigger = "resend"
	// OnRedispatch is the sending that a believed absence queued.
	OnRedispatch Trigger = "redispatch"
	// OnOwed is the beginning of an obligation, which was not sent yet.
	OnOwed Trigger = "owed"
	// OnLateSuccess is a success of an earlier dispatch, whatever its fence.
	OnLateSuccess Trigger = "late_success"
	// OnWatch is a 202 that is followed to its end.
	OnWatch Trigger = "watch"
	// OnCommitted is a success that is known before its whole answer is, or without it.
	OnCommitted Trigger = "committed"
	// OnOwnerLost is a crash, a restart, or a lease that ran out.
	OnOwnerLost Trigger = "owner_lost"
)

// What reconciling sees.
const (
	OnObservedApplied   Trigger = "observed_applied"
	OnObservedDuplicate Trigger = "observed_duplicate"
	// OnObservedAbsent is a believable absence.
	OnObservedAbsent Trigger = "observed_absent"
	OnRetry          Trigger = "retry"
	OnExhausted      Trigger = "exhausted"
	// OnWatchFailed is what was accepted, and failed for good.
	OnWatchFailed Trigger = "watch_failed"
	// OnWatchOver is what was accepted, and didn't end in its time.
	OnWatchOver Trigger = "watch_over"
)

// What a person decides; the values are the names of the resolve actions.
const (
	OnCheckAgain   Trigger = "check_again"
	OnDidNotHappen Trigger = "did_not_happen"
	OnNewKey       Trigger = "new_key"
	OnHappened     Trigger = "happened"
	OnSkip         Trigger = "skip"
	OnAccept       Trigger = "accept_payload"
	OnAcknowledge  Trigger = "acknowledge"
)

// Triggers lists every trigger, in the order above.
func Triggers() []Trigger {
	return append([]Trigger{
		OnClaim, OnSuccess, OnTooLarge, OnDefiniteFailure, OnUnknown, OnResend, OnRedispatch, OnOwed, OnLateSuccess, OnCommitted, OnOwnerLost,
		OnObservedApplied, OnObservedDuplicate, OnObservedAbsent, OnRetry, OnExhausted, OnWatch, OnWatchFailed, OnWatchOver,
	}, PersonTriggers()...)
}

// PersonTriggers lists what a person may decide, in the order of the actions.
func PersonTriggers() []Trigger {
	return []Trigger{OnCheckAgain, OnHappened, OnDidNotHappen, OnNewKey, OnSkip, OnAccept, OnAcknowledge}
}

// ByPerson reports whether only a person may use t.
func (t Trigger) ByPerson() bool {
	return slices.Contains(PersonTriggers(), t)
}
