package wire

import "time"

// Standings of an obligation.
const (
	// StandingOwed: nothing is sent before a person says so.
	StandingOwed = "owed"
	// StandingQueued: it is sent by itself, newer effects first.
	StandingQueued = "queued"
	// StandingSending: it is being sent.
	StandingSending = "sending"
	// StandingUnknown: whether it was undone is not known.
	StandingUnknown = "unknown"
	// StandingGivenUp: it was not undone, and a person is asked.
	StandingGivenUp = "given_up"
	// StandingDone and StandingWaived are its ends.
	StandingDone   = "done"
	StandingWaived = "waived"
)

// Obligation is the undoing of one effect of a mutation. It is a mutation itself, with
// the same id: GET /v1/mutations/{id} shows it whole.
type Obligation struct {
	ID      string `json:"id"`
	Version int64  `json:"version"`
	// Standing is owed, queued, sending, unknown, given_up, done or waived; State is the mutation's.
	Standing string `json:"standing"`
	State    string `json:"state"`
	// Mutation is the one of which an effect is undone, and Object the API's own id of
	// that effect.
	Mutation string `json:"mutation"`
	Object   string `json:"object"`
	// Order counts the obligations of Mutation, the oldest effect first; the highest is
	// sent first.
	Order int `json:"order"`
	// Auto says that the rule has it sent by itself.
	Auto      bool   `json:"auto"`
	Connector string `json:"connector"`
	Operation string `json:"operation"`
	Target    string `json:"target"`
	Account   string `json:"account,omitzero"`
	Workflow  string `json:"workflow"`
	Item      string `json:"item"`
	Attempt   int    `json:"attempt"`
	Request   string `json:"request" ledger:"-"`
	// Sent is how often it was sent, resends apart.
	Sent      int       `json:"sent"`
	Reason    string    `json:"reason,omitzero"`
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
	NextTryAt time.Time `json:"next_try_at,omitzero"`
}

// DecideObligation is a person's decision on an obligation. All of it is required.
type DecideObligation struct {
	Reason string `json:"reason"`
	Actor  string `json:"actor"`
	// Version is the version that the person saw.
	Version int64 `json:"version"`
}

// Undo is what a mutation takes back.
type Undo struct {
	Mutation string `json:"mutation" ledger:"Of"`
	Object   string `json:"object"`
}
