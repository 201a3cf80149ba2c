package admin

import (
	"context"
	"errors"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"

	"keep-proxy/admin/wire"
	"keep-proxy/ledger"
)

// listItems answers GET /v1/items.
func listItems(s *Server, r *http.Request) (*wire.List[wire.Item], error) {
	q := s.query(r)
	f := q.filter()
	f.ItemStates = states(q, ledger.ItemStates())
	list := func(ctx context.Context, f ledger.Filter) (ledger.Page[*ledger.Item], error) {
		page, err := s.config.Ledger.Items(ctx, f)
		if err != nil {
			return page, err
		}
		return page, s.leaveEnded(ctx, page.Items...)
	}
	return listing(r, q, f, list, as[wire.Item, *ledger.Item])
}

// leaveEnded takes runs that have ended out of items. A run of many items that is stopped stays named
// in them, since thousands can't be changed at once.
func (s *Server) leaveEnded(ctx context.Context, items ...*ledger.Item) error {
	return s.config.Ledger.View(ctx, func(v ledger.View) error {
		for _, i := range items {
			if !i.Shared || i.ActiveRun == "" {
				continue
			}
			r, err := v.Run(i.ActiveRun)
			if err != nil {
				return err
			}
			if r.State.Ended() {
				i.ActiveRun = ""
			}
		}
		return nil
	})
}

// showItem answers GET /v1/items/{id} with the item's runs and mutations.
func showItem(s *Server, r *http.Request) (*wire.Item, error) {
	item, err := s.item(r.Context(), r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	return s.itemWhole(r.Context(), item)
}

// itemWhole shows an item with its history.
func (s *Server) itemWhole(ctx context.Context, item *ledger.Item) (*wire.Item, error) {
	if err := s.leaveEnded(ctx, item); err != nil {
		return nil, err
	}
	out := as[wire.Item](item)
	out.Actions = each(ledger.ItemActions(item), func(a ledger.ItemAction) string { return string(a) })
	// One that is tried each minute has more than a page of runs within hours.
	var runs []*ledger.Run
	f := ledger.Filter{Workflow: item.Workflow, Item: item.Item}
	err := walk(ctx, s.config.Ledger.Runs, f, math.MaxInt, func(r *ledger.Run) { runs = append(runs, r) })
	if err != nil {
		return nil, err
	}
	out.Runs = each(runs, func(r *ledger.Run) string { return r.ID })
	out.Mutations = []wire.MutationRef{}
	attempts := map[int]*wire.ItemAttempt{}
	of := func(n int) *wire.ItemAttempt {
		if attempts[n] == nil {
			attempts[n] = &wire.ItemAttempt{Attempt: n, Runs: []wire.ItemRun{}, Mutations: []wire.ItemMutation{}}
		}
		return attempts[n]
	}
	of(item.Attempt)
	for _, r := range slices.Backward(runs) {
		a := of(r.Attempt)
		a.Runs = append(a.Runs, as[wire.ItemRun](r))
	}
	err = s.eachOfItem(ctx, item, func(m *ledger.Mutation, gaps []ledger.Gap) {
		out.Mutations = append(out.Mutations, as[wire.MutationRef](m))
		shown := as[wire.ItemMutation](m)
		shown.Next = nextOf(m, item, gaps)
		a := of(m.Attempt)
		a.Mutations = append(a.Mutations, shown)
	})
	if err != nil {
		return nil, err
	}
	for _, n := range slices.Sorted(maps.Keys(attempts)) {
		out.Attempts = append(out.Attempts, *attempts[n])
	}
	return &out, nil
}

// eachOfItem visits an item's mutations, oldest first, with the gaps of the ledger at that moment.
func (s *Server) eachOfItem(ctx context.Context, item *ledger.Item, visit func(*ledger.Mutation, []ledger.Gap)) error {
	return s.config.Ledger.View(ctx, func(v ledger.View) error {
		gaps, err := v.Gaps()
		if err != nil {
			return err
		}
		keys, err := v.ItemMutations(item.Workflow, item.Item)
		if err != nil {
			return err
		}
		for _, key := range keys {
			m, err := v.Mutation(key)
			if err != nil {
				return err
			}
			visit(m, gaps)
		}
		return nil
	})
}

// nextOf says what a re-run of the item that asks for m with the same payload meets. What may have been
// sent in a gap isn't sent before that is known.
func nextOf(m *ledger.Mutation, item *ledger.Item, gaps []ledger.Gap) string {
	switch {
	case m.Attempt != item.Attempt, m.Undo != nil:
		return "none"
	case m.State == ledger.Applied && !m.Forgotten.IsZero():
		return "refused"
	case m.State == ledger.Applied && m.ResultState == ledger.ResultKnown, m.Watching:
		return "replay"
	case m.State == ledger.Failed:
		if slices.ContainsFunc(gaps, func(g ledger.Gap) bool { return g.Covers(m, item) }) {
			return "blocked"
		}
		return "send"
	case m.State == ledger.InFlight && !m.Unresolved():
		return "wait"
	case m.Unresolved():
		return "blocked"
	}
	return "refused"
}

// decideItem makes the handler of a decision on an item.
func decideItem[Q any](action ledger.ItemAction) func(*Server, *http.Request, *Q) (*wire.Item, error) {
	return func(s *Server, r *http.Request, q *Q) (*wire.Item, error) {
		item, err := s.item(r.Context(), r.PathValue("id"))
		if err != nil {
			return nil, err
		}
		d := as[ledger.DecideItem](q)
		d.Action, d.Workflow, d.Item, d.Actor = action, item.Workflow, item.Item, actorOf(r.Context(), d.Actor)
		item, err = s.config.Ledger.DecideItem(r.Context(), d)
		switch {
		case errors.Is(err, ledger.ErrAttempt):
			return nil, refuse("attempt", "Nothing was begun: %s. Another decision was before this one; look at the item, and decide on what it says now.",
				strings.TrimPrefix(err.Error(), ledger.ErrAttempt.Error()+": "))
		case err != nil:
			return nil, err
		}
		shown, err := s.itemWhole(r.Context(), item)
		if err != nil {
			// The decision is durable: an error would look like one that wasn't taken.
			s.config.Log.Error().Err(err).Str("item", item.ID).Msg("admin: decided, but not shown whole")
			return new(as[wire.Item](item)), nil
		}
		return shown, nil
	}
}

// item finds an item by its id.
func (s *Server) item(ctx context.Context, id string) (*ledger.Item, error) {
	page, err := s.config.Ledger.Items(ctx, ledger.Filter{ID: id, Limit: 1})
	if err != nil {
		return nil, err
	}
	if id == "" || len(page.Items) == 0 {
		return nil, refuse("not-found", "There is no item %q in this ledger; see GET /v1/items.", id)
	}
	return page.Items[0], nil
}
