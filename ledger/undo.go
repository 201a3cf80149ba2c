package ledger

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"keep-proxy/internal/verdict"
)

// Undo says that a mutation is an obligation: it takes one effect of another mutation back. It begins as failed,
// which is not sent, and is queued if the rule says so or a person does.
type Undo struct {
	// Of is the mutation of which an effect is taken back.
	Of Key `cbor:"1,keyasint" json:"of"`
	// Object is the upstream's own id of what is taken back.
	Object string `cbor:"2,keyasint" json:"object"`
	// Operation is the operation of Of, whose rule says how.
	Operation string `cbor:"3,keyasint" json:"operation"`
	// Order counts the obligations of Of from 1, the oldest effect first.
	Order int `cbor:"4,keyasint" json:"order"`
	// Auto says that the rule lets it be sent without a person.
	Auto bool `cbor:"5,keyasint,omitempty" json:"auto,omitempty"`
	// Sent is how often it was sent without resends, Allowed how often it is sent by itself.
	Sent    int `cbor:"6,keyasint,omitempty" json:"sent,omitempty"`
	Allowed int `cbor:"7,keyasint,omitempty" json:"allowed,omitempty"`
	// Since is when it was queued, Next when the next sending is due.
	Since time.Time `cbor:"8,keyasint,omitzero" json:"since,omitzero"`
	Next  time.Time `cbor:"9,keyasint,omitzero" json:"next,omitzero"`
}

// DefaultUndoTries is how often an undo is sent before a person is asked.
const DefaultUndoTries = 8

// UndoSuffix ends the operation's name of an obligation, and of nothing else.
const UndoSuffix = "/undo"

// UndoKey is the key of the obligation to take object back, whose identity is mutation and object.
func UndoKey(of *Mutation, object string) (Key, error) {
	quoted, err := jsontext.AppendQuote(nil, object)
	if err != nil {
		return Key{}, invalid("the object's id is not UTF-8")
	}
	return MutationKey(KeyParts{
		Workflow: of.Workflow, Item: of.Item, Attempt: of.Attempt, Connector: of.Connector, Operation: of.Operation + UndoSuffix,
		Account: of.Account, HostGroup: of.HostGroup,
		Identity: map[string]string{"mutation": strconv.Quote(of.Key.String()), "object": string(quoted)},
	})
}

// oweNewer owes the undoing of every object but the oldest, as the rule lists; else a person undoes them.
func (c *command) oweNewer(m *Mutation, o *Observation, list []Owed, mv move) error {
	if len(list) == 0 {
		return nil
	}
	newer := o.Objects[min(1, len(o.Objects)):]
	if !slices.EqualFunc(newer, list, func(object string, owed Owed) bool { return owed.Object == object }) {
		return invalid("the obligations of %s are not about the newer objects", m.ID)
	}
	for i := range list {
		key, err := UndoKey(m, list[i].Object)
		if err == nil && !slices.Contains(m.Obligations, key) {
			err = c.owe(m, &list[i], list[i].Auto, mv)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// oweByPerson owes the undoing of what a person says has happened, and has it done.
func (c *command) oweByPerson(m *Mutation, r *Resolve, mv move) error {
	if r.Compensate == nil {
		return nil
	}
	object := r.Compensate.Object
	taken, err := c.evidenceTaken(m, &Observation{Objects: []string{object}})
	if err != nil {
		return err
	}
	if taken != "" {
		return invalid("%s, so it is not this mutation's to undo", taken)
	}
	if err := c.PutEvidence(m.Connector, m.Account, object, m.Key); err != nil {
		return err
	}
	return c.owe(m, r.Compensate, true, mv)
}

// owe records an obligation of m, in the transaction that m is moved in.
func (c *command) owe(m *Mutation, owed *Owed, queued bool, mv move) error {
	if owed.Object == "" || owed.Record.PayloadDigest == "" || owed.Record.Request.Method == "" {
		return invalid("an obligation of %s needs an object and a request", m.ID)
	}
	if m.Undo != nil {
		return invalid("%s is an obligation itself, and an undo is not undone", m.ID)
	}
	key, err := UndoKey(m, owed.Object)
	if err != nil {
		return err
	}
	r := &owed.Record
	u := &Mutation{
		CreatedAt: c.now.Wall,
		Intent: Intent{
			Key: key, ID: key.ID(), Scope: m.Scope, Generation: 1,
			Connector: m.Connector, ConnectorVersion: m.ConnectorVersion, ConnectorHash: m.ConnectorHash, ConnectorHosts: m.ConnectorHosts,
			Operation: m.Operation + UndoSuffix, Target: r.Target, Account: m.Account, HostGroup: m.HostGroup,
			Undo: &Undo{Of: m.Key, Object: owed.Object, Operation: m.Operation, Order: len(m.Obligations) + 1, Auto: owed.Auto},
		},
		Payload: Payload{PayloadDigest: r.PayloadDigest, SignificantDigest: r.PayloadDigest, Policy: r.Policy, Request: r.Request},
	}
	// No run asked for it, and none is ended by it.
	u.Run = ""
	if err := c.mark(u); err != nil {
		return err
	}
	if err := u.deriveVendorKey(); err != nil {
		return err
	}
	if err := c.move(u, OnOwed, 0, mv); err != nil {
		return err
	}
	u.Reason = "owed, as " + m.ID + " has an effect that is to be taken back"
	if queued {
		u.allowUndo(c.now.Wall)
	}
	if err := c.keepBody(&u.Request.Body, owed.Body); err != nil {
		return err
	}
	m.Obligations = append(m.Obligations, key)
	return c.store(u, "", OnOwed, mv, "", "")
}

// undoTries is how often an undo is sent by itself.
func (m *Mutation) undoTries() int {
	if m.Policy.MaxDispatches > 0 {
		return m.Policy.MaxDispatches
	}
	return DefaultUndoTries
}

// allowUndo queues an obligation for as many sendings as its rule says.
func (m *Mutation) allowUndo(now time.Time) {
	m.Undo.Allowed, m.Undo.Since = m.Undo.Sent+m.undoTries(), now
	m.RedispatchSince, m.NextTryAt = now, now
}

// beginUndo counts a sending. Only after failures alone its vendor key is a new one.
func (m *Mutation) beginUndo(next time.Time) error {
	m.Undo.Sent++
	m.Undo.Next = next
	if m.generationFailed() {
		return m.newGeneration()
	}
	return nil
}

// undoFailed queues a failed undo once more, or asks a person: after the last try, or if waiting mends
// nothing.
func (m *Mutation) undoFailed(next time.Time, mv move) {
	if m.State != Failed {
		return
	}
	if m.Class == verdict.Transient && RedispatchOpen(m) {
		m.RedispatchSince, m.NextTryAt = m.Undo.Since, next
		return
	}
	m.RedispatchSince, m.NextTryAt = time.Time{}, time.Time{}
	mv.why = fmt.Sprintf("it was not undone after %d sendings: %s", m.Undo.Sent, mv.why)
	m.escalate(EscalationUndo, mv)
}

// newerOwed is an obligation of a newer effect that comes before m; nil for none.
func (c *command) newerOwed(m *Mutation) (*Mutation, error) {
	if m.Undo == nil {
		return nil, nil
	}
	of, err := c.Mutation(m.Undo.Of)
	if err != nil {
		return nil, err
	}
	for _, key := range of.Obligations {
		other, err := found(c.Mutation(key))
		if err != nil {
			return nil, err
		}
		if other == nil || other.Undo == nil || other.Undo.Order <= m.Undo.Order || other.State == Applied || other.State == Skipped {
			continue
		}
		if other.State != Failed || !other.givenUp() {
			return other, nil
		}
	}
	return nil, nil
}

// givenUp reports whether a failed undo isn't sent unless a person says so: they were asked since it was
// queued.
func (m *Mutation) givenUp() bool {
	return m.Escalated() || m.Escalation != nil && m.Escalation.Kind == EscalationUndo && !m.Queued() && !m.Escalation.OpenedAt.Before(m.Undo.Since)
}

// undoneActive says why an undo has to wait, "" if it hasn't. A sending that may still take effect would come behind
// it.
func (c *command) undoneActive(m *Mutation, now Caution) (string, error) {
	if m.Undo == nil {
		return "", nil
	}
	of, err := c.Mutation(m.Undo.Of)
	if err != nil {
		return "", err
	}
	careful := *of
	careful.Policy = of.Policy.Heeding(now)
	if Settled(&careful, c.now, c.Process()) {
		return "", nil
	}
	return "a sending of " + of.ID + ", of which it takes an effect back, may still take effect", nil
}

// owes reports whether an obligation of m is neither met nor waived.
func (c *command) owes(m *Mutation) (bool, error) {
	for _, key := range m.Obligations {
		u, err := found(c.Mutation(key))
		if err != nil {
			return false, err
		}
		if u != nil && u.State != Applied && u.State != Skipped {
			return true, nil
		}
	}
	return false, nil
}

// RunObligation queues an obligation to be sent now. It answers *NotAllowedError for what is no obligation, or is
// met, waived, being sent or unknown. So it does if a newer one comes first.
func (l *Ledger) RunObligation(ctx context.Context, q RunObligation) (*Mutation, error) {
	var e InvalidError
	e.decided(q.Actor, q.Reason)
	e.add(q.Version < 1, "version", "missing", "give the version of the obligation that you saw")
	if err := e.err(); err != nil {
		return nil, err
	}
	return evaluate(ctx, l, func(c *command) (*Mutation, error) { return c.runObligation(&q) })
}

func (c *command) runObligation(q *RunObligation) (*Mutation, error) {
	m, err := c.expect(q.Key, q.Version)
	if err != nil {
		return nil, err
	}
	if why := notOwed(m); why != "" {
		return nil, c.notAllowed(m, OnRedispatch, why)
	}
	newer, err := c.newerOwed(m)
	if err != nil {
		return nil, err
	}
	if newer != nil {
		return nil, c.notAllowed(m, OnRedispatch, newer.ID+" takes back a newer effect; run or waive that one first")
	}
	mv := c.at(PersonActor(q.Actor), q.Reason)
	m.allowUndo(c.now.Wall)
	m.closeEscalation(mv)
	return m, c.store(m, m.State, "obligation_run", mv, "", "")
}

// notOwed says why there is nothing to run; "" if there is.
func notOwed(m *Mutation) string {
	switch {
	case m.Undo == nil:
		return "it is no obligation"
	case m.State == Failed && !m.Committed:
		return ""
	case m.State == Applied:
		return "it is done already"
	case m.State == Skipped:
		return "it was waived"
	case m.State == InFlight:
		return "it is being sent"
	}
	return "whether it was done is unknown; that must be known first"
}

// notAllowed is the refusal of a person's decision.
func (c *command) notAllowed(m *Mutation, on Trigger, why string) error {
	return &NotAllowedError{State: m.State, On: on, Reason: why, Open: openTriggers(m, c.now, c.Process())}
}

// undecidable refuses what a person must not decide about compensation.
func (c *command) undecidable(m *Mutation, r *Resolve) error {
	switch {
	case r.Action == OnSkip && m.Undo != nil && (m.State == Applied || m.State == Skipped):
		return c.notAllowed(m, OnSkip, notOwed(m))
	case r.Action == OnSkip && !waivable(m, c.now, c.Process()):
		return c.notAllowed(m, OnSkip, "a sending of it may still take effect; it can be waived once its outcome is known")
	case r.Compensate != nil && m.State != NeedsReconcile && m.State != Indeterminate:
		return c.notAllowed(m, OnHappened, "only what is unknown can be said to have happened and to be undone")
	case r.Compensate != nil && m.Undo != nil:
		return c.notAllowed(m, OnHappened, "it is an undo itself, and an undo is not undone")
	}
	return nil
}

// waivable reports whether m may be skipped: an obligation only once no sending of it can take effect.
func waivable(m *Mutation, now Stamp, process Process) bool {
	return m.Undo == nil || m.State == Failed && quietAsFailed(m, now, process) || Deniable(m, now, process, false)
}

// quietAsFailed is Deniable without the dispatches that failed for certain.
func quietAsFailed(m *Mutation, now Stamp, process Process) bool {
	rest := *m
	rest.Dispatches = slices.DeleteFunc(slices.Clone(m.Dispatches), func(d Dispatch) bool { return d.Verdict.Failure() })
	return len(rest.Dispatches) == 0 || Deniable(&rest, now, process, false)
}

// undoConsequence says what a decision on an obligation leads to, where that differs.
func undoConsequence(m *Mutation, on Trigger) string {
	if m.Undo == nil {
		return ""
	}
	switch on {
	case OnHappened:
		return "It counts as undone and is never sent again."
	case OnDidNotHappen:
		return "It counts as not undone, and is owed again; run or waive it then (keep-proxy obligations run, or waive)."
	case OnSkip:
		return "The obligation is waived: what it would take back stays, and is never undone."
	case OnAcknowledge:
		if m.asked() == EscalationUndo {
			return "The question is closed, and the effect stays owed: keep-proxy obligations run tries again to take it back, " +
				"keep-proxy obligations waive lets it stay."
		}
		return "The escalation is closed; nothing else changes."
	default:
		return ""
	}
}
