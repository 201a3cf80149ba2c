package notify

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"time"

	"keep-proxy/internal/names"
	"keep-proxy/ledger"
)

// standstill is a scope that stands still, as it was told. Its ID is the same whenever it is looked at.
type standstill struct {
	ID       string        `json:"id"`
	Mutation string        `json:"mutation"`
	Blocks   ledger.Blocks `json:"blocks"`
}

// lookEvery is after how many polls it is looked what stands still.
func (n *Notifier) lookEvery() int {
	return int(min(max(cmp.Or(n.config.StandingAfter, time.Hour)/4, poll), 10*poll) / poll)
}

// stand queues what stands still for long although the API is asked, and what goes on that did. It compares what is so
// with what was told, which is kept in the same write. So a restart loses nothing, and tells nothing twice.
func (n *Notifier) stand(ctx context.Context) error {
	told, blocked, messages := n.queue.standing(), map[string]bool{}, []Message(nil)
	err := n.each(ctx, ledger.Filter{Unresolved: true}, func(m *ledger.Mutation) {
		s := standstill{m.ID + "-standing-" + strconv.FormatInt(m.UnknownSince.Wall.Unix(), 10), m.ID, *m.Blocks()}
		scope := string(s.Blocks.Scope) + " " + s.Blocks.Name
		blocked[scope] = true
		if _, is := told[scope]; !is && n.standsStill(m) {
			told[scope] = s
			messages = append(messages, n.stands(ctx, m, s))
		}
	})
	if err != nil {
		return err
	}
	for _, scope := range slices.Sorted(maps.Keys(told)) {
		if s := told[scope]; !blocked[scope] {
			m, err := n.record(ctx, s.Mutation)
			if err != nil {
				return err
			}
			out := n.stands(ctx, m, s)
			out.ID, out.Type, out.Data.ClosedAt = s.ID+"-closed", TypeGoesOn, out.Timestamp
			out.Data.Resolve, out.Data.ManualCheck, out.Data.CannotVerify = "", "", ""
			messages = append(messages, out)
			delete(told, scope)
		}
	}
	if len(messages) == 0 {
		return nil
	}
	defer n.wakeAll()
	return n.queue.add(messages, func(s *stored) { s.Standing = told })
}

// standsStill reports whether the API was asked about m for long, in vain. An absence is seen again and again until
// settle is over: only after that it tells nothing.
func (n *Notifier) standsStill(m *ledger.Mutation) bool {
	after := n.config.StandingAfter
	if after <= 0 || m.State != ledger.NeedsReconcile {
		return false
	}
	if seen := len(m.Observations); seen > 0 && m.Observations[seen-1].Seen == ledger.SeenAbsent {
		after += cmp.Or(m.Policy.Settle, ledger.DefaultSettle)
	}
	return n.config.Now().Sub(m.UnknownSince.Wall) >= after
}

// stands tells that a scope stands still because of m.
func (n *Notifier) stands(ctx context.Context, m *ledger.Mutation, s standstill) Message {
	out := Message{ID: s.ID + "-opened", Type: TypeStandsStill, Timestamp: n.config.Now(), Data: dataOf(m)}
	out.Data.Standing, out.Data.Blocks = s.ID, &s.Blocks
	out.Data.Why, out.Data.OpenedAt = names.OneLine(m.LastReason()), m.UnknownSince.Wall
	return n.whole(ctx, m, out)
}

// standing is what was told to stand still, by its scope.
func (q *queue) standing() map[string]standstill {
	q.mu.Lock()
	defer q.mu.Unlock()
	told := map[string]standstill{}
	maps.Copy(told, q.Standing)
	return told
}
