package ledger

import "time"

// Event is one appended line of history. Events are never edited; each holds
// the hash of the one before it, so that a ledger that lost its end, or whose
// history was changed, is found out.
type Event struct {
	// Seq counts from 1 without gaps; the Store sets it.
	Seq uint64 `cbor:"1,keyasint" json:"seq"`
	// At is wall time.
	At time.Time `cbor:"2,keyasint" json:"at"`
	// Actor is "proxy", "runner", "recovery", "retention" or "person:NAME".
	Actor string `cbor:"3,keyasint" json:"actor"`
	// What names the trigger or the refusal.
	What string `cbor:"4,keyasint"           json:"what"`
	Why  string `cbor:"5,keyasint,omitempty" json:"why,omitempty"`

	// Mutation is the mutation's ID.
	Mutation string `cbor:"6,keyasint,omitempty"  json:"mutation,omitempty"`
	Dispatch string `cbor:"7,keyasint,omitempty"  json:"dispatch,omitempty"`
	Run      string `cbor:"8,keyasint,omitempty"  json:"run,omitempty"`
	Workflow string `cbor:"9,keyasint,omitempty"  json:"workflow,omitempty"`
	Item     string `cbor:"10,keyasint,omitempty" json:"item,omitempty"`

	From State `cbor:"11,keyasint,omitempty" json:"from,omitempty"`
	To   State `cbor:"12,keyasint,omitempty" json:"to,omitempty"`
	// Evidence is readable, bounded to 4 KiB, and free of secrets; longer
	// content is named by its digest.
	Evidence string `cbor:"13,keyasint,omitempty" json:"evidence,omitempty"`

	// Escalation is the number of the mutation's escalation that this opened, or closed if
	// EscalationClosed is set; 0 for neither.
	Escalation       int  `cbor:"14,keyasint,omitempty" json:"escalation,omitempty"`
	EscalationClosed bool `cbor:"15,keyasint,omitempty" json:"escalation_closed,omitempty"`
}

// event is an event about m.
func (m *Mutation) event() Event { return Event{Mutation: m.ID, Run: m.Run, Workflow: m.Workflow, Item: m.Item} }

// Actors of events that no person caused.
const (
	ActorProxy    = "proxy"
	ActorRunner   = "runner"
	ActorRecovery = "recovery"
	// ActorRetention lets go of what is old.
	ActorRetention = "retention"
)

// PersonActor names a person in an event.
func PersonActor(name string) string { return "person:" + name }
