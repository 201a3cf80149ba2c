package admin

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"

	"keep-proxy/admin/wire"
	"keep-proxy/ledger"
)

// listItems answers GET /v1/items.
func listItems(s *Server, r *http.Request) (any, error) {
	f, err := itemFilterOf(r.URL.Query(), s.config.Now().Wall)
	if err != nil {
		return nil, err
	}
	page, err := s.config.Ledger.Items(r.Context(), f)
	if err != nil {
		return nil, listingError(f, err)
	}
	if err := s.leaveEnded(r.Context(), page.Items...); err != nil {
		return nil, err
	}
	return wire.List[wire.Item]{Items: each(page.Items, itemOf), Next: page.Next}, nil
}

// leaveEnded takes runs that have ended out of items: one of many items leaves its name
// behind when it was stopped, since thousands can't be changed at once.
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
func showItem(s *Server, r *http.Request) (any, error) {
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
	out := itemOf(item)
	out.Actions = each(ledger.ItemActions(item), func(a ledger.ItemAction) string { return string(a) })
	runs, err := s.runsOf(ctx, item)
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
		a.Runs = append(a.Runs, itemRun(r))
	}
	err = s.eachOfItem(ctx, item, func(m *ledger.Mutation, gaps []ledger.Gap) {
		out.Mutations = append(out.Mutations, mutationRef(m))
		a := of(m.Attempt)
		a.Mutations = append(a.Mutations, itemMutation(m, item, gaps))
	})
	if err != nil {
		return nil, err
	}
	for _, n := range slices.Sorted(maps.Keys(attempts)) {
		out.Attempts = append(out.Attempts, *attempts[n])
	}
	return &out, nil
}

// runsOf lists all runs of an item, newest first: one that is tried each minute has more than a
// page of them within hours.
func (s *Server) runsOf(ctx context.Context, item *ledger.Item) ([]*ledger.Run, error) {
	var runs []*ledger.Run
	f := ledger.Filter{Workflow: item.Workflow, Item: item.Item, Limit: maxPage}
	for {
		page, err := s.config.Ledger.Runs(ctx, f)
		if err != nil {
			return nil, err
		}
		runs = append(runs, page.Items...)
		if f.Cursor = page.Next; f.Cursor == "" {
			return runs, nil
		}
	}
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

func itemRun(r *ledger.Run) wire.ItemRun {
	return wire.ItemRun{
		ID: r.ID, State: string(r.State), Class: string(r.Class), Reason: r.Reason, Cause: r.Cause,
		OpenedAt: r.OpenedAt, EndedAt: r.EndedAt,
	}
}

func itemMutation(m *ledger.Mutation, item *ledger.Item, gaps []ledger.Gap) wire.ItemMutation {
	return wire.ItemMutation{
		MutationRef: mutationRef(m), Run: m.Run, Class: string(m.Class), Reason: m.Reason,
		CreatedAt: m.CreatedAt, Next: nextOf(m, item, gaps),
	}
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

// decideItem makes the handler of a decision on an item from what makes its body the ledger's command.
func decideItem[T any](action ledger.ItemAction, read func(*T) ledger.DecideItem) func(*Server, *http.Request, *T) (any, error) {
	return func(s *Server, r *http.Request, q *T) (any, error) {
		item, err := s.item(r.Context(), r.PathValue("id"))
		if err != nil {
			return nil, err
		}
		d := read(q)
		d.Action, d.Workflow, d.Item, d.Actor = action, item.Workflow, item.Item, actorOf(r.Context(), d.Actor)
		if item, err = s.config.Ledger.DecideItem(r.Context(), d); err != nil {
			return nil, anotherAttempt(err)
		}
		shown, err := s.itemWhole(r.Context(), item)
		if err != nil {
			// The decision is durable: an error would look like one that wasn't taken.
			s.config.Log.Error().Err(err).Str("item", item.ID).Msg("admin: decided, but not shown whole")
			bare := itemOf(item)
			return &bare, nil
		}
		return shown, nil
	}
}

// anotherAttempt says of an attempt that can't be ended what a run that names one isn't told:
// somebody else has ended it, and what is right now has to be looked at.
func anotherAttempt(err error) error {
	if !errors.Is(err, ledger.ErrAttempt) {
		return err
	}
	return refuse("attempt", "Nothing was begun: %s. Another decision was before this one; look at the item, and decide on what it says now.",
		strings.TrimPrefix(err.Error(), ledger.ErrAttempt.Error()+": "))
}

func plainDecision(q *wire.DecideItem) ledger.DecideItem {
	return ledger.DecideItem{Reason: q.Reason, Actor: q.Actor, Version: q.Version}
}

func skipDecision(q *wire.SkipItem) ledger.DecideItem {
	return ledger.DecideItem{Reason: q.Reason, Actor: q.Actor, Version: q.Version, WithMutations: q.WithMutations}
}

func attemptDecision(q *wire.NewAttempt) ledger.DecideItem {
	return ledger.DecideItem{Reason: q.Reason, Actor: q.Actor, Version: q.Version, Attempt: q.Attempt}
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
