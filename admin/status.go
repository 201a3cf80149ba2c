package admin

import (
	"cmp"
	"context"
	"math"
	"net/http"
	"slices"
	"time"

	"keep-proxy/admin/wire"
	"keep-proxy/ledger"
)

// showStatus answers GET /v1/status.
func showStatus(s *Server, r *http.Request) (*wire.Status, error) {
	out := &wire.Status{LedgerID: s.config.Ledger.ID(), Healthy: true, Stopped: []wire.Stopped{}}
	if err := s.config.Ledger.Healthy(); err != nil {
		out.Healthy, out.Health = false, err.Error()
	} else if err := s.config.Ready(); err != nil {
		out.NotReady = err.Error()
	}
	earliest := func(at time.Time) {
		if !at.IsZero() && (out.Since.IsZero() || at.Before(out.Since)) {
			out.Since = at
		}
	}
	err := s.walkOpen(r.Context(), math.MaxInt, func(m *ledger.Mutation) {
		out.Unknown++
		earliest(unknownSince(m))
		if b := blocksOf(m); b != nil {
			out.Stopped = append(out.Stopped, wire.Stopped{
				Blocks: *b, Mutation: m.ID, State: string(m.State), Since: unknownSince(m), Reason: m.LastReason(),
				Target: m.Target, Tries: len(m.Observations) + m.Dropped, NextTryAt: m.NextTryAt,
			})
		}
	}, func(m *ledger.Mutation) {
		out.Escalated++
		earliest(m.Escalation.OpenedAt)
	}, func(i *ledger.Item) {
		out.ItemsWaiting++
		earliest(i.UpdatedAt)
	})
	if err != nil {
		return nil, err
	}
	owed, err := s.owed(r.Context(), math.MaxInt)
	if err != nil {
		return nil, err
	}
	for _, n := range owed {
		out.Owed += n
	}
	// Nobody but a person goes on with what no rule has sent by itself, or what was given up.
	out.OwedByPerson = owed[wire.StandingOwed] + owed[wire.StandingGivenUp]
	out.Mode, out.Reload, out.Destinations = new(s.config.Modes.Mode()), s.config.LastReload(), s.config.Destinations()
	earliest(out.Mode.Since)
	if out.Gaps, err = s.openGaps(r.Context()); err != nil {
		return nil, err
	}
	for _, g := range out.Gaps {
		earliest(g.Until)
	}
	slices.SortStableFunc(out.Stopped, func(a, b wire.Stopped) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Mutation, b.Mutation))
	})
	return out, nil
}

// owed counts effects that are to be taken back and are not yet, by their standing.
func (s *Server) owed(ctx context.Context, atMost int) (map[string]int, error) {
	out := map[string]int{}
	open := ledger.Filter{Obligations: true, States: openObligations}
	return out, walk(ctx, s.config.Ledger.Mutations, open, atMost, func(m *ledger.Mutation) { out[standingOf(m)]++ })
}

// Counts are how much of each kind is open, for those who are called by numbers.
type Counts struct {
	// Unresolved counts unresolved mutations by their state.
	Unresolved map[ledger.State]int
	// Escalations counts the mutations that a person is asked about by the kind of question.
	Escalations map[string]int
	// Stopped counts the stopped scopes by kind: workflow, item or mutation.
	Stopped map[ledger.BlockScope]int
	// Waiting counts the items that wait for a person.
	Waiting int
	// Gaps counts the times of which the ledger knows nothing, until they are confirmed.
	Gaps int
	// Owed counts effects that are to be taken back and are not yet, by their standing.
	Owed map[string]int
}

// Count counts what GET /v1/status tells one by one, up to atMost records of each listing. It
// reads what is open alone, however many records there are.
func (s *Server) Count(ctx context.Context, atMost int) (Counts, error) {
	out := Counts{Unresolved: map[ledger.State]int{}, Escalations: map[string]int{}, Stopped: map[ledger.BlockScope]int{}}
	stopped := map[wire.Blocks]bool{}
	err := s.walkOpen(ctx, atMost, func(m *ledger.Mutation) {
		out.Unresolved[m.State]++
		if b := blocksOf(m); b != nil && !stopped[*b] {
			stopped[*b] = true
			out.Stopped[ledger.BlockScope(b.Scope)]++
		}
	}, func(m *ledger.Mutation) { out.Escalations[m.Escalation.Kind]++ }, func(*ledger.Item) { out.Waiting++ })
	if err != nil {
		return Counts{}, err
	}
	if out.Owed, err = s.owed(ctx, atMost); err != nil {
		return Counts{}, err
	}
	gaps, err := s.openGaps(ctx)
	out.Gaps = len(gaps)
	return out, err
}

// walkOpen visits what is open, up to atMost of each kind. These are unresolved mutations, those that
// a person is asked about, and items that wait for a person.
func (s *Server) walkOpen(ctx context.Context, atMost int, unresolved, asked func(*ledger.Mutation), waiting func(*ledger.Item)) error {
	if err := walk(ctx, s.config.Ledger.Mutations, ledger.Filter{Unresolved: true}, atMost, unresolved); err != nil {
		return err
	}
	err := walk(ctx, s.config.Ledger.Mutations, ledger.Filter{Escalated: true}, atMost, func(m *ledger.Mutation) {
		// A question may be answered between the index and the record.
		if m.Escalated() {
			asked(m)
		}
	})
	if err != nil {
		return err
	}
	return walk(ctx, s.config.Ledger.Items, ledger.Filter{ItemStates: []ledger.ItemState{ledger.ItemNeedsAttention}}, atMost, waiting)
}

// unknownSince is when the outcome became unknown, or, where that isn't
// recorded, when the record was changed last.
func unknownSince(m *ledger.Mutation) time.Time {
	if at := m.UnknownSince.Wall; !at.IsZero() {
		return at
	}
	return m.UpdatedAt
}
