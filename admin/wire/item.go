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
	// Attempts tell the item's history, oldest attempt first; listings leave them out.
	Attempts []ItemAttempt `json:"attempts,omitzero"`
	// Changes are the latest decisions on the item, oldest first.
	Changes []ItemChange `json:"changes"`
	// Actions are the decisions that the item's state allows; listings leave them out.
	Actions []string `json:"actions,omitzero"`
}

// ItemAttempt is what was done in one attempt.
type ItemAttempt struct {
	Attempt int `json:"attempt"`
	// Runs are oldest first: of the item's newest 100.
	Runs      []ItemRun      `json:"runs"`
	Mutations []ItemMutation `json:"mutations"`
}

// ItemRun is a run in an item's history.
type ItemRun struct {
	ID       string    `json:"id"`
	State    string    `json:"state"`
	Class    string    `json:"class,omitzero"`
	Reason   string    `json:"reason,omitzero"`
	Cause    string    `json:"cause,omitzero"`
	OpenedAt time.Time `json:"opened_at"`
	EndedAt  time.Time `json:"ended_at,omitzero"`
}

// ItemMutation is a mutation in an item's history.
type ItemMutation struct {
	MutationRef
	Run       string    `json:"run,omitzero"`
	Class     string    `json:"class,omitzero"`
	Reason    string    `json:"reason,omitzero"`
	CreatedAt time.Time `json:"created_at"`
	// Next is what a re-run that asks for it meets: replay, send, wait, blocked or refused. It is none
	// for an attempt that is over and for an undo.
	Next string `json:"next"`
}

// ItemChange is a decision on an item.
type ItemChange struct {
	At      time.Time `json:"at"`
	Actor   string    `json:"actor"`
	What    string    `json:"what"`
	Why     string    `json:"why,omitzero"`
	Attempt int       `json:"attempt"`
	From    string    `json:"from"`
	To      string    `json:"to"`
}

// DecideItem decides on a whole item. Reason and Actor are required.
type DecideItem struct {
	Reason string `json:"reason"`
	Actor  string `json:"actor"`
	// Version is the item's version that was seen; absent takes any.
	Version int64 `json:"version,omitzero"`
}

// SkipItem skips an item.
type SkipItem struct {
	DecideItem
	// WithMutations skips those of its mutations which a person may skip, too.
	WithMutations bool `json:"with_mutations,omitzero"`
}

// NewAttempt begins an item anew.
type NewAttempt struct {
	DecideItem
	// Attempt is the number of the attempt that ends, so that a repeated request
	// raises it once.
	Attempt int `json:"attempt"`
}
