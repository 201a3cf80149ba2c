package ledger

import "fmt"

// Action is one decision that a person may take now.
type Action struct {
	Action Trigger `json:"action"`
	// Consequence says what happens then, in a sentence.
	Consequence string `json:"consequence"`
	// NeedsForce says that it is refused without force, and Consequence why.
	NeedsForce bool `json:"needs_force,omitempty"`
}

// Actions lists what the table lets a person decide about m now; none for a nil record.
func (l *Ledger) Actions(m *Mutation, now Stamp) []Action {
	return OpenActions(m, now, l.Process())
}

// OpenActions is Actions for a given process.
func OpenActions(m *Mutation, now Stamp, process Process) []Action {
	if m == nil {
		return nil
	}
	var open []Action
	for _, on := range PersonTriggers() {
		if !allowedToPerson(m, on) || on == OnNewKey && !m.Policy.NativeKey || on == OnSkip && !waivable(m, now, process) {
			continue
		}
		a := Action{Action: on, Consequence: consequence(m, on)}
		if on == OnDidNotHappen && !Deniable(m, now, process, false) {
			a.NeedsForce = true
			a.Consequence += " But " + stillPossible(m, now, process) + "."
		}
		open = append(open, a)
	}
	return open
}

// openTriggers names the open actions, for a NotAllowedError.
func openTriggers(m *Mutation, now Stamp, process Process) []Trigger {
	var open []Trigger
	for _, a := range OpenActions(m, now, process) {
		open = append(open, a.Action)
	}
	return open
}

// allowedToPerson reports whether the table lets a person use the trigger, whatever they say with it.
func allowedToPerson(m *Mutation, on Trigger) bool {
	_, err := Next(m.State, on, m.facts()|FactResult|FactDeniable)
	return err == nil
}

// consequence says what a decision leads to.
func consequence(m *Mutation, on Trigger) string {
	if said := undoConsequence(m, on); said != "" {
		return said
	}
	switch on {
	case OnCheckAgain:
		return "keep-proxy asks the API again, from the beginning; the scope stays stopped until the outcome is known."
	case OnHappened:
		if m.State == Applied {
			return "The result you give is stored, and later runs get it as the answer."
		}
		return "The mutation counts as applied and is never sent again; later runs get the result you give, " +
			"or, if you give none, are refused unless the rule says what they get (on_no_result)."
	case OnDidNotHappen:
		return fmt.Sprintf("The mutation counts as failed, the scope is free, and the next run sends it again%s.", sameKey(m))
	case OnNewKey:
		return "The next run sends the mutation under a new vendor key, so that the API no longer recognises earlier sendings as the same."
	case OnSkip:
		return "The mutation is left out for good: it is never sent again, and later runs are refused at it, " +
			"unless the rule says what they get (on_skip)."
	case OnAccept:
		return "The refused payload counts as covered by the stored result: later runs that send it get that result, and nothing is sent."
	case OnAcknowledge:
		return acknowledged(m)
	default:
		return ""
	}
}

// acknowledged says what follows where a question is closed, and what still waits after that.
func acknowledged(m *Mutation) string {
	switch m.asked() {
	case EscalationDrift:
		return "The item is free, and its runs may make other mutations of this operation than the earlier ones did; what was done stays done. " +
			"If the script is wrong, mend it and open the item again instead (keep-proxy items reopen); the question stays open then."
	case EscalationVerify:
		return "The item is free, and later runs get the stored answer from then on, whatever the API shows of it; nothing is sent. " +
			"To have the work of the item done again instead, begin it anew (keep-proxy items new-attempt)."
	case EscalationMismatch:
		return "The question is closed, and the payload stays refused. An item that waits because of it goes on waiting, " +
			"until a person decides on the item itself, such as to open it again (keep-proxy items reopen)."
	case EscalationAmbiguous:
		return "The question is closed, and the request stays refused in this item until its rule says which record is its own. " +
			"Mend the rule as the question says. Else finish its work by hand (keep-proxy items done), or begin it anew (keep-proxy items new-attempt). " +
			"Put into the identity of the rule what tells the two apart, before other items come to the same."
	case EscalationNoResult:
		return "The question is closed. The answer is still missing: later runs are refused at it, unless the rule says what they get (on_no_result)."
	case EscalationPermission, EscalationPrecondition, EscalationAbsent:
		return "The question is closed; the next run that asks for the mutation sends it again. Such a run closes the question by itself if it succeeds."
	case EscalationDuplicate:
		return "The question is closed, and nothing is taken back by that. What is owed stays owed (keep-proxy obligations list); " +
			"without a compensate in the rule, undo the newer objects in the other system first."
	default:
		return "The escalation is closed; nothing else changes."
	}
}

// sameKey tells what a new sending means to an API that takes our key.
func sameKey(m *Mutation) string {
	if m.Policy.NativeKey {
		return " with the same vendor key, unless you ask for a new one"
	}
	return ""
}
