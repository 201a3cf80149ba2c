package wire

import "time"

// AuditLine is one line of GET /v1/audit; one of its fields is there.
type AuditLine struct {
	Run      *Run      `json:"run,omitzero"`
	Mutation *Mutation `json:"mutation,omitzero"`
	Event    *Event    `json:"event,omitzero"`
	// End is the last line of an export that is whole.
	End *AuditEnd `json:"end,omitzero"`
}

// AuditEnd counts what an export held.
type AuditEnd struct {
	Ledger    string    `json:"ledger"`
	At        time.Time `json:"at"`
	Mutations int       `json:"mutations"`
	Events    int       `json:"events"`
	// Seq is the number of the newest event of the ledger then.
	Seq uint64 `json:"seq"`
}
