package notify

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"

	"keep-proxy/internal/names"
	"keep-proxy/ledger"
)

// standstill is a scope that stands still, as it was told.
type standstill struct {
	ID       string `json:"id"`
	Mutation string `json:"mutation"`
	// Blocks names the scope.
	Blocks Blocks `json:"blocks"`
}

// lookEvery is after how many polls it is looked what stands still.
func (n *Notifier) lookEvery() int {
	return int(min(max(n.config.StandingAfter/4, poll), 10*poll) / poll)
}

// stand queues what stands still for long although the API is asked, and what goes on that did. It compares what is so
// with what was told, which is kept in the same write. So nothing is lost at a restart, and nothing is told twice.
func (n *Notifier) stand(ctx context.Context) error {
	told, blocked, messages := n.queue.standing(), map[string]bool{}, []Message(nil)
	for f := (ledger.Filter{Unresolved: true, Limit: batch}); ; {
		page, err := n.config.Ledger.Mutations(ctx, f)
		if err != nil {
			return err
		}
		for _, m := range page.Items {
			s := standstillOf(m)
			scope := s.Blocks.Scope + " " + s.Blocks.Name
			blocked[scope] = true
			if _, is := told[scope]; !is && n.standsStill(m) {
				told[scope] = s
				messages = append(messages, n.stands(ctx, m, s))
			}
		}
		if f.Cursor = page.Next; f.Cursor == "" {
			break
		}
	}
	for _, scope := range slices.Sorted(maps.Keys(told)) {
		if blocked[scope] {
			continue
		}
		m, err := n.record(ctx, told[scope].Mutation)
		if err != nil {
			return err
		}
		messages = append(messages, n.goesOn(ctx, m, told[scope]))
		delete(told, scope)
	}
	if len(messages) == 0 {
		return nil
	}
	defer n.wakeAll()
	return n.queue.stand(told, messages)
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

// standstillOf names the standstill that m makes. It has the same name whenever it is looked at.
func standstillOf(m *ledger.Mutation) standstill {
	return standstill{m.ID + "-standing-" + strconv.FormatInt(m.UnknownSince.Wall.Unix(), 10), m.ID, *blocksOf(m)}
}

// stands tells that a scope stands still because of m.
func (n *Notifier) stands(ctx context.Context, m *ledger.Mutation, s standstill) Message {
	out := Message{ID: s.ID + "-opened", Type: TypeStandsStill, Timestamp: n.config.Now(), Data: dataOf(m)}
	out.Data.Standing, out.Data.Why, out.Data.OpenedAt = s.ID, names.OneLine(m.LastReason()), m.UnknownSince.Wall
	return n.whole(ctx, m, out)
}

// goesOn tells that a scope goes on, of which m was told.
func (n *Notifier) goesOn(ctx context.Context, m *ledger.Mutation, s standstill) Message {
	out := Message{ID: s.ID + "-closed", Type: TypeGoesOn, Timestamp: n.config.Now(), Data: dataOf(m)}
	out.Data.Standing, out.Data.Resolve, out.Data.Blocks, out.Data.ClosedAt = s.ID, "", &s.Blocks, out.Timestamp
	return n.whole(ctx, m, out)
}

// stillStanding tells destinations that are new what the others were told.
func (n *Notifier) stillStanding(ctx context.Context) (messages []Message, err error) {
	for _, s := range n.queue.standing() {
		m, err := n.record(ctx, s.Mutation)
		if err != nil {
			return nil, err
		}
		if m.State != "" && m.Unresolved() {
			messages = append(messages, n.stands(ctx, m, s))
		}
	}
	return messages, nil
}

// standing is what was told to stand still, by its scope.
func (q *queue) standing() map[string]standstill {
	q.mu.Lock()
	defer q.mu.Unlock()
	told := map[string]standstill{}
	maps.Copy(told, q.Standing)
	return told
}

// stand queues messages for every destination, and what they tell to stand still.
func (q *queue) stand(told map[string]standstill, messages []Message) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.Standing = told
	for _, l := range q.Queues {
		l.push(messages)
	}
	return q.save()
}
