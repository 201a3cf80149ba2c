package ledger

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// replayed answers a claim without a command, if it is a replay that leaves everything as it
// is: then neither the order of commands nor a commit matters to it, and what was durable at
// one moment since it was asked tells. Whatever else it may be is for the command to say;
// each condition here is one under which [claiming.decide] replays and changes nothing.
func (l *Ledger) replayed(ctx context.Context, q *Claim) (Claimed, bool) {
	if ctx.Err() != nil || q.check() != nil {
		return Claimed{}, false
	}
	told := q.Run == "" || q.RepeatReplay
	// Looked at before the ledger: what isn't here any more can be seen there.
	if !told && (!q.Redelivery || l.noted.has(answer{q.Run, q.Key})) {
		return Claimed{}, false
	}
	// What stops there without a record, a command holds against its scope.
	if l.unrecorded.any() || !l.worth.looking() {
		return Claimed{}, false
	}
	s, ok := l.See(q.Scope, q.Key)
	l.worth.looked(ok)
	if !ok || !q.replaysRecord(s.Mutation) || !q.replaysItem(s.Item) || !q.replaysRun(&s, l.config.Wall) {
		return Claimed{}, false
	}
	if !told && !l.undelivered(ctx, q) {
		return Claimed{}, false
	}
	return Claimed{Decision: DecideReplay, Mutation: s.Mutation, Run: s.Run}, true
}

// worth tells whether looking for a record is worth it. Where only new mutations are claimed
// nothing is ever found, and each is looked for once more by its command; a replay that isn't
// looked for is the command's to decide.
type worth struct {
	// vain counts the claims since something was found.
	vain atomic.Uint32
}

// After so many claims without a find only each so manieth looks.
const (
	manyVain  = 64
	eachAfter = 8
)

func (w *worth) looking() bool {
	n := w.vain.Load()
	if n < manyVain || n%eachAfter == 0 {
		return true
	}
	w.vain.Add(1)
	return false
}

func (w *worth) looked(found bool) {
	if found {
		w.vain.Store(0)
	} else {
		w.vain.Add(1)
	}
}

// replaysRecord reports whether m is of the claim's scope, and its result answers the payload.
func (q *Claim) replaysRecord(m *Mutation) bool {
	return m.State == Applied && m.Forgotten.IsZero() && m.Result != nil && m.ResultState == ResultKnown &&
		m.Workflow == q.Workflow && m.Item == q.Item && m.Attempt == q.Attempt &&
		m.Covers(q.Record.PayloadDigest, q.Record.SignificantDigest)
}

// replaysItem reports whether the item admits the claim, and has no mutation under another
// version of its rule.
func (q *Claim) replaysItem(i *Item) bool {
	return (i.State == ItemOpen || i.State == ItemFailed) && i.Attempt == q.Attempt && i.Rules != nil &&
		len(i.PastRules(q.Record.rule(), q.Was)) == 0
}

// replaysRun reports whether the run, if there is one, goes on as it is.
func (q *Claim) replaysRun(s *Sight, wall func() time.Time) bool {
	r := s.Run
	if r == nil {
		return q.Run == ""
	}
	switch {
	case r.State != RunRunning || r.Closing != "" || !r.FailingUntil.IsZero():
		return false
	case r.Workflow != q.Workflow || r.Item != q.Item && !r.Many():
		return false
	case r.Many() && s.Item.ActiveRun != r.ID:
		return false
	case r.Mutations != MutationsMany && (r.Mutations != MutationsOne || r.Only == nil || *r.Only != q.Key):
		return false
	}
	return r.ExpiresAt.IsZero() || wall().Before(r.ExpiresAt)
}

// undelivered reports whether nothing is known of a delivery of the record to the claim's run.
func (l *Ledger) undelivered(ctx context.Context, q *Claim) bool {
	none, run, key := false, q.Run, q.Key
	err := l.Peek(ctx, func(v View) error {
		d, err := found(v.Delivery(run, key))
		none = err == nil && d == nil
		return err
	})
	return err == nil && none
}

// noted counts the deliveries that were noted, until they can be seen. One whose command fails
// is never taken away: its run asks for that record by a command from then on, which is slower
// and reads what is stored. That is as it should be while nobody knows why it failed; it costs
// an entry here, until the process ends.
type noted struct {
	mu  sync.Mutex
	all map[answer]int
}

func (n *noted) add(a answer) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.all == nil {
		n.all = make(map[answer]int)
	}
	n.all[a]++
}

func (n *noted) has(a answer) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.all[a] > 0
}

// shown returns what takes one away again.
func (n *noted) shown(a answer) func() {
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		if n.all[a]--; n.all[a] <= 0 {
			delete(n.all, a)
		}
	}
}
