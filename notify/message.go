package notify

import (
	"cmp"
	"time"

	"keep-proxy/internal/names"
	"keep-proxy/ledger"
)

// Types of message.
const (
	TypeOpened = "escalation.opened"
	TypeClosed = "escalation.closed"
	// TypeStandsStill and TypeGoesOn tell of work that stands still while the API is asked in vain.
	TypeStandsStill = "standing.opened"
	TypeGoesOn      = "standing.closed"
)

// Message is what a destination gets, as JSON in the form of Standard Webhooks.
type Message struct {
	// ID is the same for each try, so that a receiver can tell repeats.
	ID        string    `json:"id"`
	Type      string    `json:"type"`
	Timestamp time.Time `json:"timestamp"`
	Data      Data      `json:"data"`
}

// Data says what a person is asked, as it was when the message was made. What a script or an API wrote is in one line
// and in its own order, wherever it is shown.
type Data struct {
	// Escalation and Kind are empty in what tells of a standstill, Standing in what tells of an escalation.
	Escalation string    `json:"escalation,omitzero"`
	Standing   string    `json:"standing,omitzero"`
	Kind       string    `json:"kind,omitzero"`
	Why        string    `json:"why"`
	OpenedAt   time.Time `json:"opened_at,omitzero"`
	ClosedAt   time.Time `json:"closed_at,omitzero"`
	ClosedBy   string    `json:"closed_by,omitzero"`
	Mutation   string    `json:"mutation"`
	State      string    `json:"state"`
	Connector  string    `json:"connector"`
	Operation  string    `json:"operation"`
	Target     string    `json:"target"`
	Account    string    `json:"account,omitzero"`
	Workflow   string    `json:"workflow"`
	Item       string    `json:"item"`
	Attempt    int       `json:"attempt"`
	Run        string    `json:"run,omitzero"`
	// ResumeHint is how the run's host says that the work is started again.
	ResumeHint string `json:"resume_hint,omitzero"`
	// CanVerify says whether keep-proxy can ask the API; CannotVerify why not.
	CanVerify    bool   `json:"can_verify"`
	CannotVerify string `json:"cannot_verify,omitzero"`
	// ManualCheck says how a person finds out, with values filled in; empty once it is over.
	ManualCheck string `json:"manual_check,omitzero"`
	// Blocks is what stands still meanwhile; null if nothing does.
	Blocks *ledger.Blocks `json:"blocks"`
	// Resolve is the command that answers the question.
	Resolve string `json:"resolve"`
	// URL is the mutation in the admin API, where people reach that; empty elsewhere.
	URL    string `json:"url,omitzero"`
	Ledger string `json:"ledger"`
}

// subject is what the message is about: messages of one subject stay in order.
func (m *Message) subject() string { return cmp.Or(m.Data.Escalation, m.Data.Standing) }

// change is what opened or closed an escalation, as the history tells it.
type change struct {
	number     int
	closed     bool
	at         time.Time
	why, actor string
}

// dataOf is what a message says of m itself.
func dataOf(m *ledger.Mutation) Data {
	return Data{
		Mutation: m.ID, State: string(m.State), Connector: m.Connector, Operation: m.Operation,
		Target: names.OneLine(m.Target), Account: names.OneLine(m.Account),
		Workflow: m.Workflow, Item: m.Item, Attempt: m.Attempt, Run: m.Run,
		CanVerify: m.Policy.Reconciler, Blocks: m.Blocks(), Resolve: "keep-proxy resolve " + m.ID,
	}
}

// messageOf tells of an escalation of m, without what the record says of a later one. Of one that is over it tells what
// the history says.
func messageOf(m *ledger.Mutation, c change) Message {
	id := ledger.EscalationID(m.ID, c.number)
	out := Message{ID: id + "-opened", Type: TypeOpened, Timestamp: c.at, Data: dataOf(m)}
	out.Data.Escalation = id
	e := asked(m, c.number)
	switch {
	case e != nil:
		out.Data.Kind, out.Data.Why, out.Data.OpenedAt = e.Kind, names.OneLine(e.Why), e.OpenedAt
	case !c.closed:
		out.Data.Why, out.Data.OpenedAt = names.OneLine(c.why), c.at
	}
	if !c.closed {
		return out
	}
	out.ID, out.Type, out.Data.Resolve = id+"-closed", TypeClosed, ""
	out.Data.ClosedAt, out.Data.ClosedBy = c.at, c.actor
	if e != nil && !e.ClosedAt.IsZero() {
		out.Data.ClosedAt, out.Data.ClosedBy = e.ClosedAt, e.ClosedBy
	}
	return out
}

// asked is the escalation of this number, if the record still has it. It is shown, or was displaced by the one that is.
func asked(m *ledger.Mutation, number int) *ledger.Escalation {
	if e := m.Escalation; e != nil && e.Number == number {
		return e
	}
	for i := range m.Displaced {
		if m.Displaced[i].Number == number {
			return &m.Displaced[i]
		}
	}
	return nil
}
