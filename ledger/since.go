package ledger

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"strings"
	"time"
)

// Bounds of looking for what was sent since a mutation was.
const (
	// wallJump is how far the wall clock may have been set back meanwhile.
	wallJump = 25 * time.Hour
	// maxSince is how many mutations are looked at.
	maxSince = 20_000
)

// touchedSince shows told the mutations of m's connector that matter and were touched since m was first sent. It ends
// once told says something, and returns that; "" if it said nothing. What can't be looked through is said, too.
func (l *Ledger) touchedSince(ctx context.Context, m *Mutation, matters func(other *Mutation) bool, told func(other *Mutation) string) (string, error) {
	first, since := m.Dispatches[0].Started, m.Dispatches[0].Started.Wall
	if shown, ok := l.config.Now().WallOf(first); ok && shown.Before(since) {
		since = shown // The clock was ahead then.
	}
	if why, err := l.gapSince(ctx, &m.Dispatches[0]); err != nil || why != "" {
		return why, err
	}
	filter := Filter{Connector: m.Connector, Touched: Touched{Since: since.Add(-wallJump)}, Limit: 1000}
	for looked := 0; looked < maxSince; {
		page, err := l.Mutations(ctx, filter)
		if err != nil {
			return "", fmt.Errorf("mutations since %s: %w", m.ID, err)
		}
		for _, other := range page.Items {
			if other.Key == m.Key || !matters(other) {
				continue
			}
			looked++
			if why := told(other); why != "" {
				return why, nil
			}
		}
		if filter.Cursor = page.Next; filter.Cursor == "" {
			return "", nil
		}
	}
	return "too many mutations were made since to look through", nil
}

// gapSince tells of a time of which the ledger knows nothing.
func (l *Ledger) gapSince(ctx context.Context, first *Dispatch) (why string, err error) {
	err = l.View(ctx, func(v View) error {
		gaps, err := v.Gaps()
		for i := range gaps {
			if gaps[i].Open() || gaps[i].Number > first.Gaps {
				why = "the ledger doesn't know all that was sent since"
			}
		}
		return err
	})
	return why, err
}

// Touches are the times at which something happened to m.
func (m *Mutation) Touches() iter.Seq[time.Time] {
	return func(yield func(time.Time) bool) {
		if !yield(m.CreatedAt) || !yield(m.UpdatedAt) {
			return
		}
		for i := range m.Dispatches {
			if d := &m.Dispatches[i]; !yield(d.Started.Wall) || !yield(d.Ended.Wall) {
				return
			}
		}
		for i := range m.Observations {
			if !yield(m.Observations[i].At.Wall) {
				return
			}
		}
	}
}

// Touched selects mutations by when something happened to them; the zero value all.
type Touched struct {
	// Since and Until belong to it; a zero one is no limit.
	Since, Until time.Time
}

// All reports whether it selects all.
func (t Touched) All() bool { return t.Since.IsZero() && t.Until.IsZero() }

// Selects reports whether something happened to m in that time.
func (t Touched) Selects(m *Mutation) bool {
	if t.All() {
		return true
	}
	for at := range m.Touches() {
		if !at.IsZero() && !at.Before(t.Since) && (t.Until.IsZero() || !at.After(t.Until)) {
			return true
		}
	}
	return false
}

// Bounds of sending a state again.
const (
	// naturalAge is how long after its first sending a state may be set again, before others have likely set
	// it.
	naturalAge = 24 * time.Hour
)

// NaturalOpen reports whether m, which sets a state, may be sent again without changing anything:
//
//  1. The rule says so. Fewer than three resends were made, and none of them failed.
//  2. Each sending ended at least settle ago, so that none can undo the next.
//  3. The first one began less than a day ago, and since this start of the machine.
//
// LaterOfTarget tells whether a later mutation has set the same.
func NaturalOpen(m *Mutation, now Stamp, process Process) bool {
	p := m.Policy
	return p.Resend && p.Natural && !m.ResendClosed && m.ResendTries < m.maxResends() &&
		len(m.Dispatches) > 0 && now.sameBoot(m.Dispatches[0].Started) && now.Age(m.Dispatches[0].Started) < naturalAge && Settled(m, now, process)
}

// LaterOfTarget names a mutation that may have changed the same after m was first sent, and why; "" for none. One of
// the connector and account counts, unless its URL and an identity value differ, or all its sendings failed. Under
// another version of the rule identity and account tell nothing.
func (l *Ledger) LaterOfTarget(ctx context.Context, m *Mutation) (string, error) {
	first := m.Dispatches[0].Started
	return l.touchedSince(ctx, m, func(*Mutation) bool { return true }, func(other *Mutation) string {
		if !otherTarget(m, other) && other.sentAfter(first) {
			return "mutation " + other.ID + " may have changed the same since"
		}
		return ""
	})
}

// otherTarget reports whether two mutations of one connector certainly change different things.
func otherTarget(m, other *Mutation) bool {
	if m.ConnectorHash != other.ConnectorHash || m.ConnectorHosts != other.ConnectorHosts {
		return false
	}
	if m.Account != other.Account {
		return true
	}
	if len(m.Identity) == 0 || len(m.Identity) != len(other.Identity) {
		return false
	}
	for name := range m.Identity {
		if _, named := other.Identity[name]; !named {
			return false
		}
	}
	// Two settings of one thing may be told apart by a step or a state in their identity.
	return !maps.Equal(m.Identity, other.Identity) && place(m) != place(other)
}

// place is where m is sent, without the query.
func place(m *Mutation) string {
	at, _, _ := strings.Cut(cmp.Or(m.SentTo, m.Request.URL), "?")
	return at
}

// sentAfter reports whether m may have been sent after then, with an effect.
func (m *Mutation) sentAfter(then Stamp) bool {
	for i := range m.Dispatches {
		d := &m.Dispatches[i]
		if d.Verdict.Failure() {
			continue
		}
		if _, later := d.Started.MonoSince(then); later {
			return true
		}
		if d.Started.BootID == "" || d.Started.BootID != then.BootID {
			return true // Of another boot: the wall clock alone proves no order.
		}
	}
	return false
}

// SentAlike names another mutation that may have made what was made since m was first sent, and why; "" for none. It
// asks alike about those of the operation, or of another version of the rule. Only those count that may have taken
// effect since. What failed made nothing, and what names its object made that.
func (l *Ledger) SentAlike(ctx context.Context, m *Mutation, alike func(other *Mutation) bool) (string, error) {
	first := m.Dispatches[0].Started
	mayHaveMadeIt := func(other *Mutation) bool {
		return (other.Operation == m.Operation || other.ConnectorHash != m.ConnectorHash) &&
			other.State != Failed && !other.namesItsObject() && other.mayTakeEffectAfter(first)
	}
	return l.touchedSince(ctx, m, mayHaveMadeIt, func(other *Mutation) string {
		if !alike(other) {
			return ""
		}
		why := "it may be what mutation " + other.ID + " made, which can't be told apart"
		if other.ConnectorHash != m.ConnectorHash {
			why += " under another version of the rule file"
		}
		return why
	})
}

// namesItsObject reports whether what m made is its evidence. Several objects without a strong tie are
// nobody's.
func (m *Mutation) namesItsObject() bool {
	if m.State != Applied {
		return false
	}
	for i := range m.Observations {
		o := &m.Observations[i]
		if (o.Seen == SeenApplied || o.Seen == SeenDuplicate && o.Strong) && len(o.Objects) > 0 {
			return true
		}
	}
	return false
}

// mayTakeEffectAfter reports whether a sending of m may have taken effect after then; a success did before its
// end.
func (m *Mutation) mayTakeEffectAfter(then Stamp) bool {
	for i := range m.Dispatches {
		d := &m.Dispatches[i]
		ago, known := then.MonoSince(d.Ended)
		before := known && ago > 0 || d.Ended.BootID != "" && d.Ended.BootID != then.BootID
		succeeded := d.Verdict == VerdictApplied || d.Verdict == VerdictCommitted
		if !d.Verdict.Failure() && !d.unsent() && (!succeeded || !before) {
			return true
		}
	}
	return false
}
