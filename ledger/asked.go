package ledger

import (
	"slices"
	"strconv"
)

// Escalated reports whether a person is asked about m now.
func (m *Mutation) Escalated() bool { return m.Escalation != nil && m.Escalation.ClosedAt.IsZero() }

// asked is the kind of the question that is open and shown, "" for none.
func (m *Mutation) asked() string {
	if !m.Escalated() {
		return ""
	}
	return m.Escalation.Kind
}

// asks reports whether a question of this kind is open, shown or displaced.
func (m *Mutation) asks(kind string) bool {
	return kind != "" && m.asked() == kind || m.displaced(kind) >= 0
}

// displaced is the index of the displaced question of this kind, -1 for none.
func (m *Mutation) displaced(kind string) int {
	return slices.IndexFunc(m.Displaced, func(e Escalation) bool { return e.Kind == kind })
}

// aboutOutcome reports whether a question of this kind is about what became of the newest sending. The
// outcome answers it, and a newer one of these takes its place. Any other kind only a person answers.
func aboutOutcome(kind string) bool {
	switch kind {
	case EscalationIndeterminate, EscalationNoResult, EscalationPermission, EscalationPrecondition, EscalationAbsent, EscalationUndo:
		return true
	}
	return false
}

// answers reports whether a move closes a question of this kind, where shown is the one that is shown.
func answers(on Trigger, kind, shown string) bool {
	switch on {
	case OnSkip:
		return true // It is over.
	case OnAccept:
		return kind == EscalationMismatch
	case OnNewKey:
		return kind == EscalationMismatch || aboutOutcome(kind)
	case OnAcknowledge:
		return kind == shown
	default:
		return aboutOutcome(kind)
	}
}

// escalate opens an escalation. One of its kind that is open stays as it is, so that it keeps its age. One
// of another kind is displaced: it is asked again after the new one, unless that answers it.
func (m *Mutation) escalate(kind string, mv move) {
	if m.Escalated() && m.Escalation.Kind == kind {
		return
	}
	e := Escalation{Kind: kind, Why: mv.why, OpenedAt: mv.now.Wall}
	if i := m.displaced(kind); i >= 0 {
		e = m.Displaced[i]
		e.AskedAgain = mv.now.Wall
		m.Displaced = slices.Delete(m.Displaced, i, i+1)
	}
	if aboutOutcome(kind) {
		m.Displaced = slices.DeleteFunc(m.Displaced, func(e Escalation) bool { return aboutOutcome(e.Kind) })
	}
	if m.Escalated() && (!aboutOutcome(kind) || !aboutOutcome(m.Escalation.Kind)) {
		m.Displaced = append(m.Displaced, *m.Escalation)
	}
	m.show(e)
}

// show makes e the escalation that is told of, under the next number.
func (m *Mutation) show(e Escalation) {
	e.Number = 1
	if m.Escalation != nil {
		e.Number = m.Escalation.Number + 1
	}
	e.ID = EscalationID(m.ID, e.Number)
	m.Escalation = &e
	if len(m.Displaced) == 0 {
		m.Displaced = nil
	}
}

// EscalationID is the id of a mutation's escalation by its number.
func EscalationID(mutation string, number int) string { return mutation + "-" + strconv.Itoa(number) }

// closeEscalation closes the escalation that is shown, if one is open.
func (m *Mutation) closeEscalation(mv move) {
	shown := m.asked()
	m.closeAsked(func(kind string) bool { return kind == shown }, mv)
}

// closeAsked closes the open questions of kinds that fit, and shows again the one that was displaced last.
func (m *Mutation) closeAsked(fits func(kind string) bool, mv move) {
	m.Displaced = slices.DeleteFunc(m.Displaced, func(e Escalation) bool { return fits(e.Kind) })
	if len(m.Displaced) == 0 {
		m.Displaced = nil
	}
	if !m.Escalated() || !fits(m.Escalation.Kind) {
		return
	}
	m.Escalation.ClosedAt, m.Escalation.ClosedBy = mv.now.Wall, mv.actor
	if last := len(m.Displaced) - 1; last >= 0 {
		e := m.Displaced[last]
		e.AskedAgain = mv.now.Wall
		m.Displaced = m.Displaced[:last]
		m.show(e)
	}
}
