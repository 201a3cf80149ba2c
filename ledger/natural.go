package ledger

import (
	"context"
	"maps"
	"strings"
	"time"
)

// Bounds of sending a state again.
const (
	// naturalAge is how long after its first sending a state may be set again: the longer
	// ago, the likelier it is that somebody has set another one past the ledger.
	naturalAge = 24 * time.Hour
)

// NaturalOpen reports whether m, which sets a state, may be sent once more because doing
// so again changes nothing:
//
//  1. the rule says so;
//  2. fewer than three resends were made, and none met a failure verdict;
//  3. each sending so far ended at least settle ago, so that none of them can undo what
//     comes after this one;
//  4. the first one began less than a day ago, and since this start of the machine.
//
// Whether a later mutation has set the state of the same target is asked apart, see
// LaterOfTarget.
func NaturalOpen(m *Mutation, now Stamp, process Process) bool {
	p := m.Policy
	return p.Resend && p.Natural && !m.ResendClosed && m.ResendTries < m.maxResends() &&
		len(m.Dispatches) > 0 && now.sameBoot(m.Dispatches[0].Started) && now.Age(m.Dispatches[0].Started) < naturalAge && Settled(m, now, process)
}

// LaterOfTarget names a mutation that may have changed what m changes after m was first
// sent, and says why; "" if there is none. It looks at all mutations of the connector and
// the account that were sent since: another one is of another target only if its identity
// has the same names and another value, and it goes to another URL, query apart; and it has
// changed nothing only if each of its sendings since then met a definite failure.
// Under another version of the rule, identity and account may be other words for the same,
// so that they tell nothing apart.
func (l *Ledger) LaterOfTarget(ctx context.Context, m *Mutation) (string, error) {
	first := m.Dispatches[0].Started
	return l.touchedSince(ctx, m, func(*Mutation) bool { return true }, func(other *Mutation) string {
		if !otherTarget(m, other) && other.sentAfter(first) {
			return "mutation " + other.ID + " may have changed the same since"
		}
		return ""
	})
}

// otherTarget reports whether two mutations of one connector certainly don't change the
// same.
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
	at, _, _ := strings.Cut(m.Request.URL, "?")
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
