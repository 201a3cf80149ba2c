package ledger

import "slices"

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

// PersonTriggers lists what a person may decide, in the order in which actions
// are offered.
func PersonTriggers() []Trigger {
	return []Trigger{OnCheckAgain, OnHappened, OnDidNotHappen, OnNewKey, OnSkip, OnAccept, OnAcknowledge}
}

// ByPerson reports whether only a person may use t.
func (t Trigger) ByPerson() bool {
	return slices.Contains(PersonTriggers(), t)
}
