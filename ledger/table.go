package ledger

// Row is one move of the transition table of docs/semantics.md §3.
type Row struct {
	// From is "" for a mutation without a record.
	From State
	On   Trigger
	// Has are the facts that must hold, Not those that must not.
	Has, Not Facts
	To       State
	Effects  Effects
	// Escalation is the kind of escalation that the move opens, "" for none.
	Escalation string
}

// Fits reports whether the row is the one for this move.
func (r Row) Fits(from State, on Trigger, f Facts) bool {
	return r.From == from && r.On == on && f.Has(r.Has) && f&r.Not == 0
}

// Shorthands that keep one row on one line.
const (
	none      = ""
	committed = FactCommitted
	asks      = FactReconciler
	earlier   = FactEarlier
	inline    = FactInline
	ended     = FactEnded
	result    = FactResult
	believed  = FactBelievable
	again     = FactRedispatch
	unsent    = FactUnsent

	// keepAnswer and lostAnswer end a mutation as applied.
	keepAnswer = EffectAnswer | EffectCommitted | EffectResolve | EffectClose
	lostAnswer = EffectAnswerLost | EffectCommitted | EffectResolve
	// sendAgain queues what did not happen; a question about an earlier sending is over by that.
	sendAgain = EffectResolve | EffectRedispatch | EffectClose
	giveUp    = EscalationIndeterminate
	noResult  = EscalationNoResult
)

// table holds every move there is; what it doesn't hold is refused.
var table = []Row{
	{none, OnClaim, 0, 0, InFlight, EffectDispatch, ""},
	{none, OnOwed, 0, 0, Failed, 0, ""},
	{Failed, OnClaim, 0, committed, InFlight, EffectDispatch, ""},
	{Failed, OnRedispatch, again, committed, InFlight, EffectDispatch, ""},

	{InFlight, OnSuccess, 0, 0, Applied, keepAnswer, ""},
	{InFlight, OnTooLarge, 0, 0, Applied, keepAnswer, ""},

	{InFlight, OnDefiniteFailure, 0, committed | earlier, Failed, 0, ""},
	{InFlight, OnDefiniteFailure, earlier | asks | inline, committed, InFlight, 0, ""},
	{InFlight, OnDefiniteFailure, earlier | asks, committed | inline, NeedsReconcile, EffectQueue, ""},
	{InFlight, OnDefiniteFailure, earlier, committed | asks, Indeterminate, 0, giveUp},
	{InFlight, OnDefiniteFailure, committed | asks | inline, 0, InFlight, 0, ""},
	{InFlight, OnDefiniteFailure, committed | asks, inline, NeedsReconcile, EffectQueue, ""},
	{InFlight, OnDefiniteFailure, committed, asks, Applied, lostAnswer, noResult},

	{InFlight, OnUnknown, asks | inline, 0, InFlight, 0, ""},
	{InFlight, OnUnknown, asks, inline, NeedsReconcile, EffectQueue, ""},
	{InFlight, OnUnknown, 0, asks | committed, Indeterminate, 0, giveUp},
	{InFlight, OnUnknown, committed, asks, Applied, lostAnswer, noResult},

	{InFlight, OnOwnerLost, unsent, committed, Failed, 0, ""},
	{InFlight, OnOwnerLost, asks, unsent, NeedsReconcile, EffectQueue, ""},
	{InFlight, OnOwnerLost, asks | unsent | committed, 0, NeedsReconcile, EffectQueue, ""},
	{InFlight, OnOwnerLost, 0, asks | committed | unsent, Indeterminate, 0, giveUp},
	{InFlight, OnOwnerLost, committed, asks, Applied, lostAnswer, noResult},

	{InFlight, OnCommitted, 0, 0, InFlight, EffectCommitted, ""},
	{NeedsReconcile, OnCommitted, 0, 0, NeedsReconcile, EffectCommitted | EffectQueue, ""},
	{Indeterminate, OnCommitted, asks, 0, NeedsReconcile, EffectCommitted | EffectQueue | EffectClose, ""},
	{Indeterminate, OnCommitted, 0, asks, Applied, lostAnswer, noResult},
	{Failed, OnCommitted, asks, 0, NeedsReconcile, EffectCommitted | EffectQueue | EffectClose, ""},
	{Failed, OnCommitted, 0, asks, Applied, lostAnswer, noResult},

	{InFlight, OnLateSuccess, FactNewer, 0, InFlight, EffectAnswer | EffectCommitted, ""},
	{InFlight, OnLateSuccess, 0, FactNewer, Applied, keepAnswer, ""},
	{NeedsReconcile, OnLateSuccess, 0, 0, Applied, keepAnswer, ""},
	{Indeterminate, OnLateSuccess, 0, 0, Applied, keepAnswer, ""},
	{Failed, OnLateSuccess, 0, 0, Applied, keepAnswer, ""},
	{Applied, OnLateSuccess, FactResultMissing, 0, Applied, keepAnswer, ""},

	{InFlight, OnWatch, 0, committed, NeedsReconcile, EffectWatch | EffectQueue, ""},
	{NeedsReconcile, OnWatch, 0, committed, NeedsReconcile, EffectWatch | EffectQueue, ""},
	{Indeterminate, OnWatch, 0, committed, NeedsReconcile, EffectWatch | EffectQueue | EffectClose, ""},
	{Failed, OnWatch, 0, committed, NeedsReconcile, EffectWatch | EffectQueue | EffectClose, ""},
	{NeedsReconcile, OnWatchFailed, 0, committed, Failed, EffectResolve, ""},
	{NeedsReconcile, OnWatchOver, 0, committed, Indeterminate, 0, giveUp},

	{InFlight, OnResend, ended | FactResendOpen, committed, InFlight, EffectDispatch, ""},
	{NeedsReconcile, OnResend, ended | FactResendOpen, committed, NeedsReconcile, EffectDispatch, ""},
	{NeedsReconcile, OnUnknown, 0, 0, NeedsReconcile, EffectQueue, ""},
	{NeedsReconcile, OnDefiniteFailure, 0, 0, NeedsReconcile, EffectQueue, ""},

	{InFlight, OnObservedApplied, ended | result, 0, Applied, keepAnswer, ""},
	{InFlight, OnObservedApplied, ended, result, Applied, lostAnswer, noResult},
	{NeedsReconcile, OnObservedApplied, result, 0, Applied, keepAnswer, ""},
	{NeedsReconcile, OnObservedApplied, 0, result, Applied, lostAnswer, noResult},

	{InFlight, OnObservedDuplicate, ended | FactStrong | result, 0, Applied, keepAnswer, EscalationDuplicate},
	{InFlight, OnObservedDuplicate, ended | FactStrong, result, Applied, lostAnswer, EscalationDuplicate},
	{InFlight, OnObservedDuplicate, ended, FactStrong | committed, Indeterminate, 0, giveUp},
	{InFlight, OnObservedDuplicate, ended | committed, FactStrong, Applied, lostAnswer, noResult},
	{NeedsReconcile, OnObservedDuplicate, FactStrong | result, 0, Applied, keepAnswer, EscalationDuplicate},
	{NeedsReconcile, OnObservedDuplicate, FactStrong, result, Applied, lostAnswer, EscalationDuplicate},
	{NeedsReconcile, OnObservedDuplicate, 0, FactStrong | committed, Indeterminate, 0, giveUp},
	{NeedsReconcile, OnObservedDuplicate, committed, FactStrong, Applied, lostAnswer, noResult},

	{InFlight, OnObservedAbsent, ended | believed | FactAbsentFails | again, committed, Failed, sendAgain, ""},
	{InFlight, OnObservedAbsent, ended | believed | FactAbsentFails, committed | again, Failed, EffectResolve, ""},
	{InFlight, OnObservedAbsent, ended | believed, committed | FactAbsentFails, Indeterminate, 0, giveUp},
	{InFlight, OnObservedAbsent, ended, committed | believed, InFlight, 0, ""},
	{InFlight, OnObservedAbsent, ended | committed, 0, InFlight, 0, ""},
	{NeedsReconcile, OnObservedAbsent, believed | FactAbsentFails | again, committed, Failed, sendAgain, ""},
	{NeedsReconcile, OnObservedAbsent, believed | FactAbsentFails, committed | again, Failed, EffectResolve, ""},
	{NeedsReconcile, OnObservedAbsent, believed, committed | FactAbsentFails, Indeterminate, 0, giveUp},
	{NeedsReconcile, OnObservedAbsent, 0, committed | believed, NeedsReconcile, EffectQueue, ""},
	{NeedsReconcile, OnObservedAbsent, committed, 0, NeedsReconcile, EffectQueue, ""},

	{InFlight, OnRetry, ended, 0, InFlight, 0, ""},
	{NeedsReconcile, OnRetry, 0, 0, NeedsReconcile, EffectQueue, ""},
	{NeedsReconcile, OnExhausted, 0, committed, Indeterminate, 0, giveUp},
	{NeedsReconcile, OnExhausted, committed, 0, Applied, lostAnswer, noResult},

	{NeedsReconcile, OnCheckAgain, asks, 0, NeedsReconcile, EffectQueue | EffectReset | EffectClose, ""},
	{Indeterminate, OnCheckAgain, asks, 0, NeedsReconcile, EffectQueue | EffectReset | EffectClose, ""},
	{NeedsReconcile, OnDidNotHappen, FactDeniable, committed, Failed, EffectResolve | EffectClose, ""},
	{Indeterminate, OnDidNotHappen, FactDeniable, committed, Failed, EffectResolve | EffectClose, ""},
	{Failed, OnNewKey, 0, committed, Failed, EffectNewKey | EffectClose, ""},
	{NeedsReconcile, OnHappened, result, 0, Applied, keepAnswer, ""},
	{NeedsReconcile, OnHappened, 0, result, Applied, lostAnswer | EffectClose, ""},
	{Indeterminate, OnHappened, result, 0, Applied, keepAnswer, ""},
	{Indeterminate, OnHappened, 0, result, Applied, lostAnswer | EffectClose, ""},
	{Applied, OnHappened, FactResultMissing | result, 0, Applied, keepAnswer, ""},
	{NeedsReconcile, OnSkip, 0, 0, Skipped, EffectResolve | EffectClose, ""},
	{Indeterminate, OnSkip, 0, 0, Skipped, EffectResolve | EffectClose, ""},
	{Failed, OnSkip, 0, 0, Skipped, EffectResolve | EffectClose, ""},
	{Applied, OnAccept, FactDisputed, 0, Applied, EffectAccept | EffectClose, ""},
	{Applied, OnAcknowledge, FactEscalated, 0, Applied, EffectClose, ""},
	{Failed, OnAcknowledge, FactEscalated, 0, Failed, EffectClose | EffectKeepQueue, ""},
}

// rowsFrom are the rows by the state that they lead away from: each command looks one up.
var rowsFrom = func() map[State][]*Row {
	rows := map[State][]*Row{}
	for i := range table {
		rows[table[i].From] = append(rows[table[i].From], &table[i])
	}
	return rows
}()

// Table returns a copy of the transition table.
func Table() []Row { return append([]Row(nil), table...) }

// Next returns the one row that fits, or a *NotAllowedError: for none, or more than one.
func Next(from State, on Trigger, f Facts) (Row, error) {
	var found *Row
	for _, row := range rowsFrom[from] {
		if !row.Fits(from, on, f) {
			continue
		}
		if found != nil {
			return Row{}, &NotAllowedError{State: from, On: on, Reason: "the transition table is ambiguous"}
		}
		found = row
	}
	if found == nil {
		return Row{}, &NotAllowedError{State: from, On: on, Reason: "no such step leads out of this state"}
	}
	return *found, nil
}
