package ledger_test

import (
	"context"
	"errors"
	"fmt"

	"keep-proxy/ledger"
)

// history is the last version of each record, and the payload that each
// generation of a record with a native key carried.
type history map[ledger.Key]*past

type past struct {
	last     *ledger.Mutation
	payloads map[int]string
	sent     map[string]bool
}

// checkedStore checks what must hold of every record that is stored.
type checkedStore struct {
	ledger.Store
	w *world
}

func (s *checkedStore) Update(ctx context.Context, fn func(ledger.Tx) error) error {
	if s.w.stopAfter > 0 {
		if s.w.stopAfter--; s.w.stopAfter == 0 {
			return errStopped
		}
	}
	return s.Store.Update(ctx, func(tx ledger.Tx) error { return fn(&checkedTx{Tx: tx, w: s.w}) })
}

// errStopped is where a test lets a crash come.
var errStopped = errors.New("stopped by the test")

type checkedTx struct {
	ledger.Tx
	w *world
}

func (t *checkedTx) PutMutation(m *ledger.Mutation) error {
	if err := t.Tx.PutMutation(m); err != nil {
		return err
	}
	if problem := t.w.checked.note(m, t.Process()); problem != "" {
		return fmt.Errorf("invariant: %s: %s", m.ID, problem)
	}
	return nil
}

func (t *checkedTx) DropMutation(m *ledger.Mutation) error {
	if m.Forgotten.IsZero() || m.State != ledger.Applied && m.State != ledger.Failed && m.State != ledger.Skipped {
		return fmt.Errorf("invariant: %s is dropped although it is %s, forgotten %v", m.ID, m.State, m.Forgotten)
	}
	delete(t.w.checked, m.Key)
	return t.Tx.DropMutation(m)
}

// note compares the record with its past and returns what doesn't hold.
func (h history) note(m *ledger.Mutation, process ledger.Process) string {
	p := h[m.Key]
	if p == nil {
		p = &past{payloads: map[int]string{}, sent: map[string]bool{}}
		h[m.Key] = p
	}
	problem := compare(p.last, m)
	if problem == "" {
		problem = standing(m, process)
	}
	for i := range m.Dispatches {
		d := &m.Dispatches[i]
		if !p.sent[d.ID] && p.last != nil && p.last.Committed {
			problem = "a committed mutation was sent again"
		}
		p.sent[d.ID] = true
		if known, ok := p.payloads[d.Generation]; m.Policy.NativeKey && ok && known != d.PayloadDigest {
			problem = fmt.Sprintf("generation %d carries two payloads", d.Generation)
		}
		p.payloads[d.Generation] = d.PayloadDigest
	}
	p.last = m.Clone()
	return problem
}

// compare says what may not change from one version to the next.
func compare(before, after *ledger.Mutation) string {
	if before == nil {
		begins := ledger.InFlight
		if after.Undo != nil {
			begins = ledger.Failed
		}
		if after.Version != 1 || after.State != begins {
			return fmt.Sprintf("a new record is version %d in %s", after.Version, after.State)
		}
		return ""
	}
	switch {
	case after.Version != before.Version+1:
		return fmt.Sprintf("version %d follows version %d", after.Version, before.Version)
	case before.State == ledger.Applied && after.State != ledger.Applied, before.State == ledger.Skipped && after.State != ledger.Skipped:
		return fmt.Sprintf("%s follows the final %s", after.State, before.State)
	case before.Committed && (!after.Committed || after.State == ledger.Failed):
		return "committed was taken back"
	case after.Generation < before.Generation:
		return "the generation fell"
	case before.ResultState == ledger.ResultKnown && after.ResultState != ledger.ResultKnown && (!before.Watching || after.Watching):
		// A 202 that came to nothing is nobody's result.
		return "a known result was lost"
	}
	return ""
}

// standing says what must hold of a record by itself.
func standing(m *ledger.Mutation, process ledger.Process) string {
	current := m.Current()
	switch {
	case !m.State.Valid():
		return fmt.Sprintf("state %q", m.State)
	case current == nil && m.Undo != nil && (m.State == ledger.Failed || m.State == ledger.Skipped):
		return ""
	case current == nil:
		return "no dispatch"
	case m.State == ledger.InFlight && current.Owner != process.ID:
		return "in flight without an owner"
	case m.State == ledger.Indeterminate && !m.Escalated():
		return "indeterminate, and nobody is asked"
	case m.State == ledger.NeedsReconcile && m.NextTryAt.IsZero():
		return "needs_reconcile, and the runner never looks"
	case !m.Queued() && !m.NextTryAt.IsZero():
		return "the runner looks at a record in " + string(m.State)
	case m.State == ledger.Applied && (!m.Committed || m.ResultState == ledger.ResultNone):
		return "applied without committed, or without a word on its result"
	case m.State == ledger.Applied && m.ResultState == ledger.ResultKnown && m.Result == nil:
		return "its known result is missing"
	case m.State == ledger.NeedsReconcile && m.Unresolved() == m.Watching:
		return "needs_reconcile, and stops nothing, or accepted, and stops its scope"
	}
	return ""
}
