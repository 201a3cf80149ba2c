package ledger

import "time"

// Event is one appended line of history. Events are never edited; each holds
// the hash of the one before it, so that a ledger that lost its end, or whose
// history was changed, is found out.
type Event struct {
	// Seq counts from 1 without gaps; the Store sets it.
	Seq uint64 `json:"seq"`
	// At is wall time.
	At time.Time `json:"at"`
	// Actor is "proxy", "runner", "recovery" or "person:NAME".
	Actor string `json:"actor"`
	// What names the trigger or the refusal.
	What string `json:"what"`
	Why  string `json:"why,omitempty"`

	// Mutation is the mutation's ID.
	Mutation string `json:"mutation,omitempty"`
	Dispatch string `json:"dispatch,omitempty"`
	Run      string `json:"run,omitempty"`
	Workflow string `json:"workflow,omitempty"`
	Item     string `json:"item,omitempty"`

	From State `json:"from,omitempty"`
	To   State `json:"to,omitempty"`
	// Evidence is readable, bounded to 4 KiB, and free of secrets; longer
	// content is named by its digest.
	Evidence string `json:"evidence,omitempty"`
}

// Actors of events that no person caused.
const (
	ActorProxy    = "proxy"
	ActorRunner   = "runner"
	ActorRecovery = "recovery"
)

// PersonActor names a person in an event.
func PersonActor(name string) string { return "person:" + name }
