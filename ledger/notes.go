package ledger

import "time"

// Deliver notes that the answer of m, as it was then, reached the run whole,
// without waiting: a delivery that is not known to be durable counts as not
// delivered. clientKey is the digest of the client's own Idempotency-Key, ""
// without one.
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

// Replayed appends, without waiting, that a stored answer was given to the run ("" for
// an unmanaged scope), and if it was delivered, notes that as Deliver does, unless the
// same is known.
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

// Refuse appends a refusal to the history, without waiting. At is set if it is
// zero, Actor if it is empty.
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
