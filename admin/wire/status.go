package wire

import "time"

// Status is the state of the whole in a few numbers.
type Status struct {
	// LedgerID is the ledger's own id.
	LedgerID string `json:"ledger_id"`
	// Healthy says that the ledger takes records; Health why not.
	Healthy bool   `json:"healthy"`
	Health  string `json:"health,omitzero"`
	// Unknown counts unresolved mutations, Escalated those with an open question.
	Unknown   int `json:"unknown"`
	Escalated int `json:"escalated"`
	// Stopped lists the scopes that admit nothing now.
	Stopped []Stopped `json:"stopped"`
	// Since is when the oldest of these began; absent if there is none.
	Since time.Time `json:"since,omitzero"`
}

// Stopped is a scope that admits nothing until its mutation is settled.
type Stopped struct {
	Blocks
	Mutation string    `json:"mutation"`
	State    string    `json:"state"`
	Since    time.Time `json:"since"`
}
