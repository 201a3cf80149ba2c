package ledger

import (
	"errors"
	"slices"
	"testing"
)

// expected says in plain code what docs/semantics.md §3 says about a move; false
// means that it isn't in the table.
func expected(from State, on Trigger, f Facts) (State, bool) {
	has := func(g Facts) bool { return f.Has(g) }
	unsure := from == InFlight && has(FactEnded) || from == NeedsReconcile
	asked := from == NeedsReconcile || from == Indeterminate
	switch on {
	case OnClaim:
		return InFlight, from == "" || from == Failed && !has(FactCommitted)
	case OnOwed:
		return Failed, from == ""
	case OnRedispatch:
		return InFlight, from == Failed && has(FactRedispatch) && !has(FactCommitted)
	case OnWatch:
		return NeedsReconcile, (from == InFlight || asked || from == Failed) && !has(FactCommitted)
	case OnWatchFailed:
		return Failed, from == NeedsReconcile && !has(FactCommitted)
	case OnWatchOver:
		return Indeterminate, from == NeedsReconcile && !has(FactCommitted)
	case OnSuccess, OnTooLarge:
		return Applied, from == InFlight
	case OnDefiniteFailure:
		if from == InFlight && !has(FactCommitted) && !has(FactEarlier) {
			return Failed, true
		}
		return lostEnd(from, f)
	case OnUnknown:
		return lostEnd(from, f)
	case OnOwnerLost:
		if from == InFlight && has(FactUnsent) && !has(FactCommitted) {
			return Failed, true
		}
		to, _ := lostEnd(from, f&^FactInline)
		return to, from == InFlight
	case OnCommitted:
		return expectedCommitted(from, f)
	case OnLateSuccess:
		switch from {
		case InFlight:
			if has(FactNewer) {
				return InFlight, true
			}
			return Applied, true
		case NeedsReconcile, Indeterminate, Failed:
			return Applied, true
		case Applied:
			return Applied, has(FactResultMissing)
		}
		return "", false
	case OnResend:
		return from, unsure && has(FactEnded) && has(FactResendOpen) && !has(FactCommitted)
	case OnObservedApplied:
		return Applied, unsure
	case OnObservedDuplicate:
		if has(FactStrong) || has(FactCommitted) {
			return Applied, unsure
		}
		return Indeterminate, unsure
	case OnObservedAbsent:
		switch {
		case has(FactCommitted) || !has(FactBelievable):
			return from, unsure
		case has(FactAbsentFails):
			return Failed, unsure
		}
		return Indeterminate, unsure
	case OnRetry:
		return from, unsure
	case OnExhausted:
		if has(FactCommitted) {
			return Applied, from == NeedsReconcile
		}
		return Indeterminate, from == NeedsReconcile
	case OnCheckAgain:
		return NeedsReconcile, asked && has(FactReconciler)
	case OnDidNotHappen:
		return Failed, asked && has(FactDeniable) && !has(FactCommitted)
	case OnNewKey:
		return Failed, from == Failed && !has(FactCommitted)
	case OnHappened:
		return Applied, asked || from == Applied && has(FactResultMissing) && has(FactResult)
	case OnSkip:
		return Skipped, asked || from == Failed
	case OnAccept:
		return Applied, from == Applied && has(FactDisputed)
	case OnAcknowledge:
		return from, (from == Applied || from == Failed) && has(FactEscalated)
	}
	return "", false
}

// lostEnd is any end without a whole success.
func lostEnd(from State, f Facts) (State, bool) {
	switch {
	case from == NeedsReconcile:
		return NeedsReconcile, true
	case from != InFlight:
		return "", false
	case f.Has(FactReconciler) && f.Has(FactInline):
		return InFlight, true
	case f.Has(FactReconciler):
		return NeedsReconcile, true
	case f.Has(FactCommitted):
		return Applied, true
	}
	return Indeterminate, true
}

// expectedCommitted is success known without its answer.
func expectedCommitted(from State, f Facts) (State, bool) {
	switch from {
	case InFlight, NeedsReconcile:
		return from, true
	case Indeterminate, Failed:
		if f.Has(FactReconciler) {
			return NeedsReconcile, true
		}
		return Applied, true
	}
	return "", false
}

func TestTheTableHoldsWhatSemanticsSays(t *testing.T) {
	t.Parallel()
	moves := 0
	for _, from := range append([]State{""}, States()...) {
		for _, on := range Triggers() {
			rows := slices.DeleteFunc(Table(), func(r Row) bool { return r.From != from || r.On != on })
			for f := Facts(0); f <= AllFacts; f++ {
				fits := 0
				var to State
				for i := range rows {
					if rows[i].Fits(from, on, f) {
						fits, to = fits+1, rows[i].To
					}
				}
				want, allowed := expected(from, on, f)
				if fits > 1 || (fits == 1) != allowed || allowed && to != want {
					t.Fatalf("%q on %s with [%s]: %d rows fit, to %q; want %q, %v", from, on, f, fits, to, want, allowed)
				}
				moves += fits
			}
		}
	}
	if moves == 0 {
		t.Fatal("no move was tried")
	}
}

func TestNextRefusesWhatTheTableDoesNotHold(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		from State
		on   Trigger
		f    Facts
	}{
		{"the zero trigger", InFlight, "", AllFacts},
		{"an unknown trigger", NeedsReconcile, "guess", AllFacts},
		{"an unknown state", State("perhaps"), OnClaim, 0},
		{"a claim on an applied mutation", Applied, OnClaim, AllFacts},
		{"a claim on a skipped mutation", Skipped, OnClaim, 0},
		{"absence of what is applied", Applied, OnObservedAbsent, AllFacts},
		{"denying what is committed", NeedsReconcile, OnDidNotHappen, FactCommitted | FactDeniable},
		{"observing what is being sent", InFlight, OnObservedApplied, FactResult},
	} {
		row, err := Next(c.from, c.on, c.f)
		var refused *NotAllowedError
		if !errors.As(err, &refused) || !errors.Is(err, ErrNotAllowed) || row != (Row{}) {
			t.Errorf("%s: got %+v, %v", c.name, row, err)
		} else if refused.State != c.from || refused.On != c.on {
			t.Errorf("%s: the refusal names %s on %s", c.name, refused.On, refused.State)
		}
	}
}

func TestEveryRowCanFit(t *testing.T) {
	t.Parallel()
	for _, r := range Table() {
		if r.Has&r.Not != 0 {
			t.Errorf("%s on %s asks for a fact and its opposite: %s", r.From, r.On, r.Has&r.Not)
		}
		if got, err := Next(r.From, r.On, r.Has); err != nil || got != r {
			t.Errorf("%s on %s with [%s]: got %+v, %v", r.From, r.On, r.Has, got, err)
		}
	}
}

func TestEffectsFollowFromTheState(t *testing.T) {
	t.Parallel()
	for _, r := range Table() {
		name := string(r.From) + " on " + string(r.On) + " with [" + r.Has.String() + "]"
		if r.To == Indeterminate && r.Escalation == "" {
			t.Errorf("%s: indeterminate is always escalated", name)
		}
		answers := r.Effects&EffectAnswer != 0 || r.Effects&EffectAnswerLost != 0
		if r.To == Applied && r.From != Applied && (!answers || !r.Effects.Has(EffectCommitted|EffectResolve)) {
			t.Errorf("%s: applied needs an answer or its loss, committed, and its dispatches resolved", name)
		}
		if r.Effects.Has(EffectAnswer | EffectAnswerLost) {
			t.Errorf("%s: the answer is both kept and lost", name)
		}
		if r.Effects.Has(EffectDispatch) && r.From != "" && !r.Not.Has(FactCommitted) {
			t.Errorf("%s: a committed mutation must not be sent again", name)
		}
		if r.To == NeedsReconcile && r.From != NeedsReconcile && !r.Effects.Has(EffectQueue) {
			t.Errorf("%s: nobody would move it on", name)
		}
		if r.Effects.Has(EffectRedispatch) && (r.To != Failed || !r.Has.Has(FactBelievable|FactRedispatch)) {
			t.Errorf("%s: only a believed absence lets a mutation be sent again by itself", name)
		}
		if r.On.ByPerson() && r.Escalation != "" {
			t.Errorf("%s: a person's decision asks a person", name)
		}
	}
}

func TestOnlyPersonsMoveWhatAutomationGaveUp(t *testing.T) {
	t.Parallel()
	late := []Trigger{OnLateSuccess, OnCommitted, OnWatch}
	for _, r := range Table() {
		if r.From == Skipped || r.From == Applied && r.To != Applied {
			t.Errorf("%s on %s leaves a final state", r.From, r.On)
		}
		if r.From == Indeterminate && !r.On.ByPerson() && !slices.Contains(late, r.On) {
			t.Errorf("indeterminate moves on %s", r.On)
		}
	}
}

func TestFactsAndEffectsHaveNames(t *testing.T) {
	t.Parallel()
	if got := len(AllFacts.Names()); got != len(factNames) || AllFacts != 1<<len(factNames)-1 {
		t.Errorf("%d facts have names, the set is %b", got, AllFacts)
	}
	if all := Effects(1<<len(effectNames) - 1); !all.Has(EffectKeepQueue) || all.Has(EffectKeepQueue<<1) {
		t.Errorf("%d effects have names", len(effectNames))
	}
	if s := (EffectCommitted | EffectClose).String(); s != "committed; escalation closed" {
		t.Errorf("effects print as %q", s)
	}
	if s := (FactCommitted | FactEscalated).String(); s != "committed, escalated" {
		t.Errorf("facts print as %q", s)
	}
}
