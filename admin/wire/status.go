package wire

import "time"

// Status is the state of the whole in a few numbers.
type Status struct {
	// LedgerID is the ledger's own id.
	LedgerID string `json:"ledger_id"`
	// Healthy says that the ledger takes records; Health why not.
	Healthy bool   `json:"healthy"`
	Health  string `json:"health,omitzero"`
	// NotReady says why new mutations are refused although the ledger takes records, such as a disk
	// that is nearly full. It is empty if they aren't.
	NotReady string `json:"not_ready,omitzero"`
	// Unknown counts unresolved mutations, Escalated those with an open question.
	Unknown   int `json:"unknown"`
	Escalated int `json:"escalated"`
	// Owed counts effects that are to be taken back and are not yet. OwedByPerson of them wait for a
	// person; see GET /v1/obligations.
	Owed         int `json:"owed,omitzero"`
	OwedByPerson int `json:"owed_by_person,omitzero"`
	// ItemsWaiting counts items that wait for a person, with an open question or without one.
	ItemsWaiting int `json:"items_waiting,omitzero"`
	// Stopped lists the scopes that admit nothing now.
	Stopped []Stopped `json:"stopped"`
	// Mode is what the proxy does.
	Mode *Mode `json:"mode,omitzero"`
	// Reload tells how the latest reload ended; absent before any.
	Reload *LastReload `json:"reload,omitzero"`
	// Destinations tell how notifications stand; absent without any.
	Destinations []Destination `json:"destinations,omitzero"`
	// Gaps are times of which the ledger knows nothing, until they are confirmed.
	Gaps []Gap `json:"gaps,omitzero"`
	// Since is when the oldest of these began; absent if there is none.
	Since time.Time `json:"since,omitzero"`
}

// LastReload is how the latest reload of the connectors ended.
type LastReload struct {
	At time.Time `json:"at"`
	// Error says why it failed, so that what was in force before still is.
	Error string `json:"error,omitzero"`
}

// Reloaded says what a reload did.
type Reloaded struct {
	// Connectors are those that changed, came, or went.
	Connectors []string `json:"connectors"`
	// Waiting are keys that changed and wait for a restart.
	Waiting []string `json:"waiting"`
	// Findings are warnings about what is in force now.
	Findings []string `json:"findings"`
}

// Destination is one that is called when a person is asked.
type Destination struct {
	Name string `json:"name"`
	// Waiting counts messages that were not delivered yet, Dropped those that never will be.
	Waiting int `json:"waiting"`
	Dropped int `json:"dropped,omitzero"`
	// Tries, Since and Error tell of the message that is tried now; Error alone, of why none is
	// queued.
	Tries int       `json:"tries,omitzero"`
	Since time.Time `json:"since,omitzero"`
	Error string    `json:"error,omitzero"`
}

// Stopped is a scope that admits nothing until its mutation is resolved.
type Stopped struct {
	Blocks
	Mutation string    `json:"mutation"`
	State    string    `json:"state"`
	Since    time.Time `json:"since"`
	// Reason is why the last try told nothing, or, before any, why the outcome is unknown.
	Reason string `json:"reason,omitzero"`
	// Target is the operation in the rule's words.
	Target string `json:"target,omitzero"`
	// Tries counts how often the API was asked; NextTryAt is when it is asked next.
	Tries     int       `json:"tries,omitzero"`
	NextTryAt time.Time `json:"next_try_at,omitzero"`
}

// Modes of a proxy.
const (
	// ModeServing is the usual one.
	ModeServing = "serving"
	// ModePaused keeps mutations and asking back. It outlives a restart.
	ModePaused = "paused"
	// ModeDraining keeps every new request back. It ends with the process.
	ModeDraining = "draining"
)

// Mode is what the proxy does, and what it is still doing.
type Mode struct {
	// Mode is serving, paused or draining.
	Mode string `json:"mode"`
	// Since, Actor and Reason tell of the command that made it so; absent while serving.
	Since  time.Time `json:"since,omitzero"`
	Actor  string    `json:"actor,omitzero"`
	Reason string    `json:"reason,omitzero"`
	// Requests counts those that are being answered, and Mutations those among them that may still send
	// one. Tries counts the runner's questions about outcomes that are under way.
	Requests  int `json:"requests"`
	Mutations int `json:"mutations"`
	Tries     int `json:"tries"`
}

// SetMode is an operator's command.
type SetMode struct {
	Reason string `json:"reason"`
	Actor  string `json:"actor"`
}

// Gap is a time of which the ledger knows nothing, and that isn't confirmed yet. What may have been
// sent in it is asked about before it is sent.
type Gap struct {
	Number int `json:"number"`
	// Since is absent where nothing says when it began.
	Since time.Time `json:"since,omitzero"`
	Until time.Time `json:"until"`
	// Cause is restored or loss.
	Cause  string `json:"cause"`
	Actor  string `json:"actor"`
	Reason string `json:"reason"`
	// Confirmed are the scopes that are confirmed one by one.
	Confirmed []ConfirmedScope `json:"confirmed,omitzero"`
}

// ConfirmedScope is a workflow, or one item of it.
type ConfirmedScope struct {
	Workflow string    `json:"workflow"`
	Item     string    `json:"item,omitzero"`
	At       time.Time `json:"at"`
}

// ConfirmGap says that a person knows what happened in the gaps: for an item, a
// workflow, or, with All, everything. Reason and Actor are required.
type ConfirmGap struct {
	Workflow string `json:"workflow,omitzero"`
	Item     string `json:"item,omitzero"`
	All      bool   `json:"all,omitzero"`
	Reason   string `json:"reason"`
	Actor    string `json:"actor"`
}

// GapConfirmed says what followed.
type GapConfirmed struct {
	// Items counts those that an accepted loss held, and that are let in.
	Items int `json:"items"`
	// Gaps are those that are still open.
	Gaps []Gap `json:"gaps"`
}
