package notify

import (
	"time"

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

// Data says what a person is asked, as it was when the message was made.
type Data struct {
	Escalation string    `json:"escalation"`
	Kind       string    `json:"kind"`
	Why        string    `json:"why"`
	OpenedAt   time.Time `json:"opened_at"`
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

// messageOf tells of the escalation number of m, which has ended if closed is set.
// What the record says of a later escalation is not told of an earlier one.
func messageOf(m *ledger.Mutation, number int, at time.Time, closed bool) Message {
	id := ledger.EscalationID(m.ID, number)
	out := Message{
		ID: id + "-opened", Type: TypeOpened, Timestamp: at,
		Data: Data{
			Escalation: id, Mutation: m.ID, State: string(m.State), Connector: m.Connector, Operation: m.Operation,
			Target: m.Target, Account: m.Account, Workflow: m.Workflow, Item: m.Item, Attempt: m.Attempt, Run: m.Run,
			Resolve: "keep-proxy resolve " + m.ID,
		},
	}
	if e := m.Escalation; e != nil && e.Number == number {
		out.Data.Kind, out.Data.Why, out.Data.OpenedAt = e.Kind, e.Why, e.OpenedAt
		if closed {
			out.Data.ClosedAt, out.Data.ClosedBy = e.ClosedAt, e.ClosedBy
		}
	}
	if closed {
		out.ID, out.Type = id+"-closed", TypeClosed
		out.Data.Resolve = ""
		if out.Data.ClosedAt.IsZero() {
			out.Data.ClosedAt = at
		}
	}
	return out
}
