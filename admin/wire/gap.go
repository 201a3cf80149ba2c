package wire

import "time"

// Gap is a time of which the ledger knows nothing, and that isn't confirmed yet: what
// may have been sent in it is asked about before it is sent.
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
