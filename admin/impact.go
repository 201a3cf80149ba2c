package admin

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"keep-proxy/admin/wire"
	"keep-proxy/ledger"
)

// impactParameters select what impact lists.
var impactParameters = []parameter{
	{"connector", "mutations of this connector"},
	{"version", "mutations made under this version of the connector's file"},
	{"run", "mutations that this run made or sent"},
	{"until", "mutations that were changed or sent before this RFC 3339 time, or before a duration ago"},
}

// listImpact answers GET /v1/impact. Since and until select by when a record was made,
// sent, looked up or changed, whichever of these lies between.
func listImpact(s *Server, r *http.Request) (any, error) {
	q := r.URL.Query()
	f, err := filterOf(q, s.config.Now().Wall)
	if err != nil {
		return nil, err
	}
	if f, err = impactOf(q, f, s.config.Now().Wall); err != nil {
		return nil, err
	}
	if f.Limit == 0 {
		f.Limit = defaultImpact
	}
	page, err := s.config.Ledger.Mutations(r.Context(), f)
	if err != nil {
		return nil, listingError(f, err)
	}
	if f.Run != "" && f.Cursor == "" && len(page.Items) == 0 {
		// That nothing was touched would be believed of a run whose id is mistyped, too.
		if _, err := s.run(r, f.Run); err != nil {
			return nil, err
		}
	}
	out := wire.List[wire.Touched]{Items: each(page.Items, touchedOf), Next: page.Next}
	return out, s.addItemStates(r.Context(), out.Items)
}

// defaultImpact is the page of impact.
const defaultImpact = 1000

// impactOf adds to the filter what only impact selects by.
func impactOf(q url.Values, f ledger.Filter, now time.Time) (ledger.Filter, error) {
	until, ok := sinceOf(q.Get("until"), now)
	if !ok {
		return f, BadRequest("query:until", "neither a time nor a duration", "write 2006-01-02T15:04:05Z or 24h")
	}
	if !until.IsZero() && until.Before(f.Since) {
		return f, BadRequest("query:until", "before since", "give the later time there")
	}
	// The listing's own since ends at what was made then; older records may be touched.
	f.Touched, f.Since = ledger.Touched{Since: f.Since, Until: until}, time.Time{}
	if text := q.Get("version"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return f, BadRequest("query:version", "no version", "give the number that the connector's file says")
		}
		if f.ConnectorVersion = n; f.Connector == "" {
			return f, BadRequest("query:version", "given without connector", "name the connector too")
		}
	}
	if f.ConnectorVersion == 0 && f.Connector == "" && f.Run == "" && f.Touched.All() && f.Workflow == "" {
		return f, BadRequest("query:connector", "nothing is asked about", "give connector, run, workflow, since or until")
	}
	return f, nil
}

func touchedOf(m *ledger.Mutation) wire.Touched {
	out := wire.Touched{
		ItemID: ledger.ItemID(m.Workflow, m.Item), Workflow: m.Workflow, Item: m.Item, Attempt: m.Attempt,
		Mutation: m.ID, State: string(m.State), Connector: m.Connector, ConnectorVersion: m.ConnectorVersion,
		ConnectorHash: m.ConnectorHash, Operation: m.Operation, Account: m.Account, Target: m.Target, Run: m.Run,
		Dispatches: len(m.Dispatches), ResultState: string(m.ResultState), CreatedAt: m.CreatedAt, UpdatedAt: m.UpdatedAt,
	}
	if m.Result != nil {
		out.Status = m.Result.Status
	}
	return out
}

// addItemStates tells how the items stand now; one that isn't stored has no state.
func (s *Server) addItemStates(ctx context.Context, list []wire.Touched) error {
	return s.config.Ledger.View(ctx, func(v ledger.View) error {
		states := map[string]string{}
		for i := range list {
			t := &list[i]
			state, known := states[t.ItemID]
			if !known {
				item, err := v.Item(t.Workflow, t.Item)
				if err != nil && !errors.Is(err, ledger.ErrNotFound) {
					return err
				}
				if item != nil {
					state = string(item.State)
				}
				states[t.ItemID] = state
			}
			t.ItemState = state
		}
		return nil
	})
}
