package admin

import (
	"cmp"
	"context"
	"errors"
	"math"
	"net/http"
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
func listImpact(s *Server, r *http.Request) (*wire.List[wire.Touched], error) {
	q := s.query(r)
	f := q.filter()
	f.Limit = cmp.Or(f.Limit, maxPage)
	q.touched(&f)
	out, err := listing(r, q, f, s.config.Ledger.Mutations, touchedOf)
	if err != nil {
		return nil, err
	}
	if f.Run != "" && f.Cursor == "" && len(out.Items) == 0 {
		// That nothing was touched would be believed of a run whose id is mistyped, too.
		if _, err := s.run(r, f.Run); err != nil {
			return nil, err
		}
	}
	return out, s.addItemStates(r.Context(), out.Items)
}

// touched adds to the filter what only impact selects by.
func (q *query) touched(f *ledger.Filter) {
	until := q.time("until")
	if !until.IsZero() && until.Before(f.Since) {
		q.add("query:until", "before since", "give the later time there")
	}
	// The listing's own since ends at what was made then; older records may be touched.
	f.Touched, f.Since = ledger.Touched{Since: f.Since, Until: until}, time.Time{}
	f.ConnectorVersion = q.number("version", math.MaxInt32, "give the number that the connector's file says")
	switch {
	case q.Get("version") != "" && f.Connector == "":
		q.add("query:version", "given without connector", "name the connector too")
	case f.Connector == "" && f.Run == "" && f.Touched.All() && f.Workflow == "":
		q.add("query:connector", "nothing is asked about", "give connector, run, workflow, since or until")
	}
}

func touchedOf(m *ledger.Mutation) wire.Touched {
	out := as[wire.Touched](m)
	out.Mutation, out.ItemID, out.Dispatches = m.ID, ledger.ItemID(m.Workflow, m.Item), len(m.Dispatches)
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
