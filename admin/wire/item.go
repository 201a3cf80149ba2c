package wire

import "time"

// Item is the unit of work that must not be done twice.
type Item struct {
	ID       string `json:"id"`
	Version  int64  `json:"version"`
	Workflow string `json:"workflow"`
	Item     string `json:"item"`
	State    string `json:"state"`
	Attempt  int    `json:"attempt"`
	Title    string `json:"title,omitzero"`
	Reason   string `json:"reason,omitzero"`
	// Cause is the mutation that needs attention, if one does.
	Cause string `json:"cause,omitzero"`
	// ActiveRun is the running run of the current attempt, if any.
	ActiveRun string    `json:"active_run,omitzero"`
	OpenedAt  time.Time `json:"opened_at"`
	UpdatedAt time.Time `json:"updated_at"`
	// Runs are the newest runs, up to 100; listings leave them out.
	Runs []string `json:"runs,omitzero"`
	// Mutations are oldest first; listings leave them out.
	Mutations []MutationRef `json:"mutations,omitzero"`
}
