package ledger

import "time"

// Event is one line of history, never edited. Each holds the hash of the one before it, so that a lost end
// or a change is found out.
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
	// Evidence is readable, free of secrets, and at most 4 KiB.
	Evidence string `cbor:"13,keyasint,omitempty" json:"evidence,omitempty"`

	// Escalation is the number of the question that this opened, or closed (EscalationClosed); 0 for neither.
	Escalation       int  `cbor:"14,keyasint,omitempty" json:"escalation,omitempty"`
	EscalationClosed bool `cbor:"15,keyasint,omitempty" json:"escalation_closed,omitempty"`
}

// event is an event about m.
func (m *Mutation) event() Event {
	return Event{Mutation: m.ID, Run: m.Run, Workflow: m.Workflow, Item: m.Item}
}

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

// Deliver notes, without waiting, that the answer of m reached the run whole. What isn't durable counts as not
// delivered. The digest of the client's own Idempotency-Key is clientKey, "" without one.
func (l *Ledger) Deliver(run string, m *Mutation, clientKey string) {
	if run == "" {
		return
	}
	d, key := deliveryOf(m, clientKey), m.Key
	l.note(func(tx Tx, at time.Time) error {
		defer l.answers.Delete(answer{run, key})
		// It is the answer of a sending that has just ended, so that nothing is known of it.
		d.At = at
		return tx.PutDelivery(run, key, d)
	})
}

// Replayed appends, without waiting, that a stored answer was given to the run ("" for an unmanaged scope). If
// it was delivered, that is noted as by Deliver.
func (l *Ledger) Replayed(run string, m *Mutation, clientKey string, delivered bool) {
	e := Event{Actor: ActorProxy, What: "replayed", Mutation: m.ID, Run: run, Workflow: m.Workflow, Item: m.Item}
	d, key := deliveryOf(m, clientKey), m.Key
	l.note(func(tx Tx, at time.Time) error {
		e.At, d.At = at, at
		tx.Append(e)
		if !delivered || run == "" {
			return nil
		}
		defer l.answers.Delete(answer{run, key})
		return deliver(tx, run, key, d)
	})
}

// deliveryOf is the delivery of the answer of m.
func deliveryOf(m *Mutation, clientKey string) Delivery {
	d := Delivery{ClientKey: clientKey, State: m.State}
	if current := m.Current(); current != nil {
		d.Dispatch = current.ID
	}
	return d
}

// deliver stores a delivery, unless the same is known.
func deliver(tx Tx, run string, k Key, d Delivery) error {
	known, err := found(tx.Delivery(run, k))
	if err != nil {
		return err
	}
	if known != nil && known.ClientKey == d.ClientKey && known.Dispatch == d.Dispatch && known.State == d.State {
		return nil
	}
	return tx.PutDelivery(run, k, d)
}

// Refuse appends a refusal to the history, without waiting. At and Actor have defaults.
func (l *Ledger) Refuse(e Event) {
	l.note(func(tx Tx, at time.Time) error {
		if e.At.IsZero() {
			e.At = at
		}
		if e.Actor == "" {
			e.Actor = ActorProxy
		}
		e.Evidence = bound(e.Evidence)
		tx.Append(e)
		return nil
	})
}
