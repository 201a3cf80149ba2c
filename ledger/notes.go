package ledger

// Deliver notes that the answer of m, as it was then, reached the run whole,
// without waiting: a delivery that is not known to be durable counts as not
// delivered. clientKey is the digest of the client's own Idempotency-Key, ""
// without one.
func (l *Ledger) Deliver(run string, m *Mutation, clientKey string) {
	if run == "" {
		return
	}
	d := Delivery{ClientKey: clientKey, State: m.State}
	if current := m.Current(); current != nil {
		d.Dispatch = current.ID
	}
	key := m.Key
	l.note(func(c *command) error {
		d.At = c.now.Wall
		defer l.answers.Delete(answer{run, key})
		return c.PutDelivery(run, key, d)
	})
}

// Refuse appends a refusal to the history, without waiting. At is set if it is
// zero, Actor if it is empty.
func (l *Ledger) Refuse(e Event) {
	l.note(func(c *command) error {
		if e.At.IsZero() {
			e.At = c.now.Wall
		}
		if e.Actor == "" {
			e.Actor = ActorProxy
		}
		e.Evidence = bound(e.Evidence)
		c.Append(e)
		return nil
	})
}

// Replayed appends that a stored answer was given to the run ("" for an
// unmanaged scope), without waiting.
func (l *Ledger) Replayed(run string, m *Mutation) {
	e := Event{What: "replayed", Mutation: m.ID, Run: run, Workflow: m.Workflow, Item: m.Item}
	l.Refuse(e)
}
