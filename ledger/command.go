package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// command is one command at work: a transaction, and the moment at which it is evaluated.
type command struct {
	Tx
	now    Stamp
	config *Config
	newID  func() string
	ledger *Ledger
}

// update evaluates fn as one command of the store.
func (l *Ledger) update(ctx context.Context, fn func(*command) error) error {
	return l.Update(ctx, func(tx Tx) error { return fn(l.command(tx)) })
}

// evaluate is update for a command with an answer, which is zero after an error.
func evaluate[T any](ctx context.Context, l *Ledger, fn func(*command) (T, error)) (T, error) {
	var out, none T
	if err := l.update(ctx, func(c *command) (err error) { out, err = fn(c); return err }); err != nil {
		return none, err
	}
	return out, nil
}

// note evaluates fn without waiting for the sync, at the time that it is given.
func (l *Ledger) note(fn func(tx Tx, at time.Time) error) {
	l.Note(func(tx Tx) error { return fn(tx, l.config.Wall()) })
}

func (l *Ledger) command(tx Tx) *command {
	return &command{Tx: tx, now: l.config.Now(), config: &l.config, newID: l.config.NewID, ledger: l}
}

// at says who acts now and why.
func (c *command) at(actor, why string) move { return move{now: c.now, actor: actor, why: why} }

// owner reports whether the dispatch belongs to this process.
func (c *command) owns(d *Dispatch) bool { return d.Owner == c.Process().ID }

// facts gathers what the table may ask about m, seen from dispatch d (nil for the current one).
func (c *command) facts(m *Mutation, d *Dispatch, known Facts) Facts {
	at := len(m.Dispatches) - 1
	for i := range m.Dispatches {
		if d != nil && m.Dispatches[i].ID == d.ID {
			at = i
		}
	}
	return known | m.facts() |
		FactEarlier.If(at > 0 && m.openBefore(at)) |
		FactEnded.If(!c.sending(m, 0)) |
		FactUnsent.If(m.unsent()) |
		FactNewer.If(c.sending(m, at+1))
}

// facts are those that the record tells by itself.
func (m *Mutation) facts() Facts {
	return FactCommitted.If(m.Committed) |
		FactReconciler.If(m.Policy.Reconciler && !m.Watching) |
		FactAbsentFails.If(m.Policy.OnAbsent == AbsentFail || m.Policy.OnAbsent == AbsentRedispatch) |
		FactRedispatch.If(RedispatchOpen(m)) |
		FactResultMissing.If(m.State == Applied && m.ResultState != ResultKnown) |
		FactDisputed.If(m.Disputed != "" && (m.asked() == EscalationMismatch || !m.Escalated())) |
		FactEscalated.If(m.Escalated())
}

// openBefore reports whether one of the first n dispatches is unresolved.
func (m *Mutation) openBefore(n int) bool {
	for _, d := range m.Dispatches[:n] {
		if !d.Resolved {
			return true
		}
	}
	return false
}

// sending reports whether this process sends a dispatch from index i on.
func (c *command) sending(m *Mutation, i int) bool {
	for ; i < len(m.Dispatches); i++ {
		if d := &m.Dispatches[i]; d.Verdict == "" && !d.Lost && c.owns(d) {
			return true
		}
	}
	return false
}

// move looks the table up and carries the row out on m, without storing it.
func (c *command) move(m *Mutation, on Trigger, f Facts, mv move) error {
	row, err := Next(m.State, on, f)
	if err != nil {
		if refused, ok := errors.AsType[*NotAllowedError](err); ok {
			refused.Open = openTriggers(m, c.now, c.Process())
		}
		return err
	}
	return m.apply(row, mv)
}

// store keeps m and appends what happened to it.
func (c *command) store(m *Mutation, from State, on Trigger, mv move, dispatch, evidence string) error {
	m.Version++
	m.UpdatedAt = c.now.Wall
	if err := c.PutMutation(m); err != nil {
		return fmt.Errorf("%s of %s: %w", on, m.ID, err)
	}
	e := m.event()
	e.Dispatch, e.From, e.To, e.Evidence = dispatch, from, m.State, bound(evidence)
	e.tellEscalation(m, c.now.Wall)
	c.tell(string(on), mv, e)
	return nil
}

// tell appends what happened to what about names.
func (c *command) tell(what string, mv move, about Event) {
	about.At, about.Actor, about.What, about.Why = c.now.Wall, mv.actor, what, bound(mv.why)
	c.Append(about)
}

// tellEscalation notes that this command opened or closed a question. It may be noted twice, by one number.
func (e *Event) tellEscalation(m *Mutation, now time.Time) {
	switch q := m.Escalation; {
	case q == nil:
	case q.ClosedAt.IsZero() && (q.OpenedAt.Equal(now) || q.AskedAgain.Equal(now)):
		e.Escalation = q.Number
	case !q.ClosedAt.IsZero() && q.ClosedAt.Equal(now):
		e.Escalation, e.EscalationClosed = q.Number, true
	}
}

// maxEvidence is the longest evidence of an event, in bytes.
const maxEvidence = 4 << 10

// bound cuts s to maxEvidence at a character's border.
func bound(s string) string {
	if len(s) <= maxEvidence {
		return s
	}
	cut := maxEvidence - len("…")
	for cut > 0 && s[cut]&0xc0 == 0x80 {
		cut--
	}
	return s[:cut] + "…"
}

// keepBody stores content that travels with the command, and names it in b, which may name it already.
func (c *command) keepBody(b *Body, content []byte) error {
	if len(content) == 0 {
		return nil
	}
	stored, err := c.PutBody(content)
	if err != nil {
		return err
	}
	if *b != (Body{}) && *b != stored {
		return fmt.Errorf("body %s: the content has another digest or size", b.SHA256)
	}
	*b = stored
	return nil
}

// invalid is an ErrInvalid with its reason.
func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrInvalid}, args...)...)
}

// found turns ErrNotFound into an absent record.
func found[T any](record *T, err error) (*T, error) {
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	return record, err
}

// over reports whether the moment t, if set, has come.
func over(now Stamp, t time.Time) bool { return !t.IsZero() && !now.Wall.Before(t) }
