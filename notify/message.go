package notify

import (
	"time"

	"keep-proxy/internal/names"
	"keep-proxy/ledger"
)

// Types of message.
const (
	TypeOpened = "escalation.opened"
	TypeClosed = "escalation.closed"
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
	Escalation string    `json:"escalation"`
	Kind       string    `json:"kind"`
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
	// Resolve is the command that answers the question.
	Resolve string `json:"resolve"`
	// URL is the mutation in the admin API, where people reach that; empty elsewhere.
	URL    string `json:"url,omitzero"`
	Ledger string `json:"ledger"`
}

// change is what opened or closed an escalation, as the history tells it.
type change struct {
	number     int
	closed     bool
	at         time.Time
	why, actor string
}

// messageOf tells of an escalation of m, without what the record says of a later one. Of one that is over it tells what
// the history says.
func messageOf(m *ledger.Mutation, c change) Message {
	id := ledger.EscalationID(m.ID, c.number)
	out := Message{
		ID: id + "-opened", Type: TypeOpened, Timestamp: c.at,
		Data: Data{
			Escalation: id, Mutation: m.ID, State: string(m.State), Connector: m.Connector, Operation: m.Operation,
			Workflow: m.Workflow, Item: m.Item, Attempt: m.Attempt, Run: m.Run,
			Resolve: "keep-proxy resolve " + m.ID,
		},
	}
	out.Data.Target, out.Data.Account = names.OneLine(m.Target), names.OneLine(m.Account)
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
