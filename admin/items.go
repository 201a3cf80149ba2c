package admin

import (
	"context"
	"net/http"

	"keep-proxy/admin/wire"
	"keep-proxy/ledger"
)

// listItems answers GET /v1/items.
func listItems(s *Server, r *http.Request) (any, error) {
	f, err := filterOf(r.URL.Query(), s.config.Now().Wall)
	if err != nil {
		return nil, err
	}
	page, err := s.config.Ledger.Items(r.Context(), f)
	if err != nil {
		return nil, listingError(f, err)
	}
	return wire.List[wire.Item]{Items: each(page.Items, itemOf), Next: page.Next}, nil
}

// showItem answers GET /v1/items/{id} with the item's runs and mutations.
func showItem(s *Server, r *http.Request) (any, error) {
	item, err := s.item(r.Context(), r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	out := itemOf(item)
	runs, err := s.config.Ledger.Runs(r.Context(), ledger.Filter{Workflow: item.Workflow, Item: item.Item})
	if err != nil {
		return nil, err
	}
	out.Runs = each(runs.Items, func(r *ledger.Run) string { return r.ID })
	out.Mutations = []wire.MutationRef{}
	err = s.config.Ledger.View(r.Context(), func(v ledger.View) error {
		keys, err := v.ItemMutations(item.Workflow, item.Item)
		if err != nil {
			return err
		}
		for _, key := range keys {
			m, err := v.Mutation(key)
			if err != nil {
				return err
			}
			out.Mutations = append(out.Mutations, mutationRef(m))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// item finds an item by its id. The ledger has no index of ids, so the listing
// is walked; an item of thousands is better asked for by workflow and item.
func (s *Server) item(ctx context.Context, id string) (*ledger.Item, error) {
	f := ledger.Filter{Limit: maxPage}
	for {
		page, err := s.config.Ledger.Items(ctx, f)
		if err != nil {
			return nil, err
		}
		for _, i := range page.Items {
			if i.ID == id {
				return i, nil
			}
		}
		if f.Cursor = page.Next; f.Cursor == "" {
			return nil, refuse("not-found", "There is no item %q in this ledger; see GET /v1/items.", id)
		}
	}
}
