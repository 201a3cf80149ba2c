package ledger

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"keep-proxy/internal/verdict"
)

// Resolve carries out a person's decision, which needs actor, reason and the version that they saw. It answers
// ErrVersion if the record moved, *InvalidError for a wrong decision, *NotAllowedError for one that isn't
// open.
func (l *Ledger) Resolve(ctx context.Context, r Resolve) (Moved, error) {
	if err := r.Check(); err != nil {
		return Moved{}, err
	}
	return l.moving(ctx, func(c *command) (*Mutation, *Run, error) { return c.resolve(&r) })
}

// maxObject is the longest id of what is to be undone, in bytes.
const maxObject = 1 << 10

// Check reports what is wrong with the decision itself: an *InvalidError.
func (r *Resolve) Check() error {
	var e InvalidError
	actions := make([]string, 0, len(PersonTriggers()))
	for _, t := range PersonTriggers() {
		actions = append(actions, string(t))
	}
	oneOf := "give one of " + strings.Join(actions, ", ")
	e.add(r.Action == "", "action", "missing", oneOf)
	e.add(r.Action != "" && !r.Action.ByPerson(), "action", fmt.Sprintf("unknown value %q", r.Action), oneOf)
	e.decided(r.Actor, r.Reason)
	e.add(r.Version < 1, "version", "missing", "give the version of the record that you saw")
	e.add(r.Force && r.Action != OnDidNotHappen, "force", "goes with did_not_happen only", "leave it out")
	e.add(r.NewKey && r.Action != OnDidNotHappen && r.Action != OnNewKey, "new_key", "goes with did_not_happen only", "leave it out")
	happened := r.Action == OnHappened
	if r.Compensate != nil {
		e.add(!happened, "compensate", "goes with happened only", "leave it out")
		e.add(r.Compensate.Object == "", "object", "missing", "give the API's own id of what is to be undone")
		e.add(len(r.Compensate.Object) > maxObject, "object", fmt.Sprintf("longer than %d bytes", maxObject), "give the API's own id")
	}
	e.add(happened && r.Result != nil && r.NoResult, "no_result", "given together with result", "give one of them")
	e.add(happened && r.Result == nil && !r.NoResult, "result", "missing", "give what the script shall get, or no_result: true")
	e.add(!happened && r.Result != nil, "result", "goes with happened only", "leave it out")
	e.add(!happened && r.NoResult, "no_result", "goes with happened only", "leave it out")
	e.add(r.Result != nil && (r.Result.Status < 200 || r.Result.Status > 599), "result/status", "no final HTTP status", "give one from 200 to 599")
	return e.err()
}

func (c *command) resolve(r *Resolve) (*Mutation, *Run, error) {
	m, err := c.expect(r.Key, r.Version)
	if err != nil {
		return nil, nil, err
	}
	if (r.Action == OnNewKey || r.NewKey) && !m.Policy.NativeKey {
		return nil, nil, &NotAllowedError{
			State: m.State, On: r.Action, Reason: "the rule has no native key, so there is no vendor key to change",
			Open: openTriggers(m, c.now, c.Process()),
		}
	}
	if err := c.undecidable(m, r); err != nil {
		return nil, nil, err
	}
	known := FactResult.If(r.Result != nil) | FactDeniable.If(Deniable(m, c.now, c.Process(), r.Force))
	from, mv, asked := m.State, c.at(PersonActor(r.Actor), r.Reason), m.asked()
	if r.Result != nil {
		if err := c.keepResult(m, r.Result, "person", r.Body); err != nil {
			return nil, nil, err
		}
	}
	if r.Action != OnAcknowledge {
		m.NextTryAt = r.NextTryAt
	}
	if err := c.move(m, r.Action, c.facts(m, nil, known), mv); err != nil {
		return nil, nil, c.explain(err, m, r)
	}
	if r.NewKey && r.Action == OnDidNotHappen {
		if err := m.newGeneration(); err != nil {
			return nil, nil, err
		}
	}
	m.decided(r, asked)
	if err := c.oweByPerson(m, r, mv); err != nil {
		return nil, nil, err
	}
	if err := c.store(m, from, r.Action, mv, "", ""); err != nil {
		return nil, nil, err
	}
	if r.Action == OnAccept || r.Action == OnNewKey || r.Action == OnSkip || r.Action == OnAcknowledge && asked == EscalationVerify {
		if err := c.attended(m); err != nil {
			return nil, nil, err
		}
	}
	if r.Action == OnAcknowledge && asked == EscalationDrift {
		if err := c.acceptDrift(m); err != nil {
			return nil, nil, err
		}
	}
	run, err := c.runOf(m.Run)
	return m, run, err
}

// decided writes the person's reason into the record; asked is the kind of the question shown.
func (m *Mutation) decided(r *Resolve, asked string) {
	switch r.Action {
	case OnDidNotHappen:
		m.Class, m.Reason = verdict.Transient, r.Reason
	case OnHappened, OnSkip:
		m.Reason = r.Reason
	case OnAcknowledge:
		if asked == EscalationVerify && m.Verification != nil {
			m.Verification.Acknowledged = true
		}
	default:
		// The others leave the record's own reason as it is.
	}
}

// explain says why a decision is refused, where the table alone doesn't.
func (c *command) explain(err error, m *Mutation, r *Resolve) error {
	refusal, ok := errors.AsType[*NotAllowedError](err)
	if !ok {
		return err
	}
	switch {
	case r.Action == OnDidNotHappen && m.Committed:
		refusal.Reason = "the mutation is known to have happened"
	case r.Action == OnDidNotHappen && allowedToPerson(m, OnDidNotHappen):
		refusal.Reason = stillPossible(m, c.now, c.Process())
	case r.Action == OnCheckAgain && !m.Policy.Reconciler:
		refusal.Reason = "the rule has no way to ask the API"
	}
	return refusal
}
