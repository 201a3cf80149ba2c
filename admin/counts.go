package admin

import (
	"context"
	"time"

	"keep-proxy/admin/wire"
	"keep-proxy/ledger"
)

// Counts are how much of each kind is open, for those who are called by numbers.
type Counts struct {
	// Unresolved counts unresolved mutations by their state.
	Unresolved map[ledger.State]int
	// Escalations counts the mutations that a person is asked about by the kind of question.
	Escalations map[string]int
	// Stopped counts the scopes that stand still by what they are: workflow, item or mutation.
	Stopped map[ledger.BlockScope]int
	// Waiting counts the items that wait for a person.
	Waiting int
	// Gaps counts the times of which the ledger knows nothing, until they are confirmed.
	Gaps int
}

// Count counts what GET /v1/status tells one by one, up to atMost records of each listing. It
// reads what is open alone, however many records there are.
func (s *Server) Count(ctx context.Context, atMost int) (Counts, error) {
	out := Counts{Unresolved: map[ledger.State]int{}, Escalations: map[string]int{}, Stopped: map[ledger.BlockScope]int{}}
	stopped := map[wire.Blocks]bool{}
	err := s.walkSome(ctx, ledger.Filter{Unresolved: true}, atMost, func(m *ledger.Mutation) {
		out.Unresolved[m.State]++
		if b := blocksOf(m); b != nil && !stopped[*b] {
			stopped[*b] = true
			out.Stopped[ledger.BlockScope(b.Scope)]++
		}
	})
	if err != nil {
		return Counts{}, err
	}
	err = s.walkSome(ctx, ledger.Filter{Escalated: true}, atMost, func(m *ledger.Mutation) {
		if m.Escalated() {
			out.Escalations[m.Escalation.Kind]++
		}
	})
	if err != nil {
		return Counts{}, err
	}
	if out.Waiting, err = s.waitingItems(ctx, atMost, func(time.Time) {}); err != nil {
		return Counts{}, err
	}
	gaps, err := s.openGaps(ctx)
	out.Gaps = len(gaps)
	return out, err
}
