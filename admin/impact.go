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

// impactScan is how many records one request looks at: an answer may hold few, or none,
// and still have a next.
const impactScan = 10 * maxPage

// listImpact answers GET /v1/impact. Since and until select by when a record was made,
// sent, looked up or changed, whichever of these lies between.
func listImpact(s *Server, r *http.Request) (any, error) {
	q := r.URL.Query()
	f, err := filterOf(q, s.config.Now().Wall)
	if err != nil {
		return nil, err
	}
	want, err := impactOf(q, f, s.config.Now().Wall)
	if err != nil {
		return nil, err
	}
	limit := f.Limit
	if limit == 0 {
		limit = defaultImpact
	}
	// The listing's own since ends at what was made then; older records may be touched.
	f.Since, f.Limit = time.Time{}, limit
	out := wire.List[wire.Touched]{Items: []wire.Touched{}}
	for scanned := 0; scanned < impactScan && len(out.Items) == 0; scanned += limit {
		page, err := s.config.Ledger.Mutations(r.Context(), f)
		if err != nil {
			return nil, listingError(f, err)
		}
		for _, m := range page.Items {
			if want.touches(m) {
				out.Items = append(out.Items, touchedOf(m))
			}
		}
		out.Next, f.Cursor = page.Next, page.Next
		if page.Next == "" {
			break
		}
	}
	return out, s.addItemStates(r.Context(), out.Items)
}

// defaultImpact is the page of impact.
const defaultImpact = 1000

// impact is what is asked about.
type impact struct {
	version      int
	since, until time.Time
}

func impactOf(q url.Values, f ledger.Filter, now time.Time) (impact, error) {
	out := impact{since: f.Since}
	var ok bool
	if out.until, ok = sinceOf(q.Get("until"), now); !ok {
		return out, BadRequest("query:until", "neither a time nor a duration", "write 2006-01-02T15:04:05Z or 24h")
	}
	if text := q.Get("version"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return out, BadRequest("query:version", "no version", "give the number that the connector's file says")
		}
		if out.version = n; f.Connector == "" {
			return out, BadRequest("query:version", "given without connector", "name the connector too")
		}
	}
	if out.version == 0 && f.Connector == "" && f.Run == "" && out.since.IsZero() && out.until.IsZero() && f.Workflow == "" {
		return out, BadRequest("query:connector", "nothing is asked about", "give connector, run, workflow, since or until")
	}
	return out, nil
}

// touches reports whether m is one of them.
func (i impact) touches(m *ledger.Mutation) bool {
	if i.version != 0 && i.version != m.ConnectorVersion {
		return false
	}
	if i.since.IsZero() && i.until.IsZero() {
		return true
	}
	if i.within(m.CreatedAt) || i.within(m.UpdatedAt) {
		return true
	}
	for _, d := range m.Dispatches {
		if i.within(d.Started.Wall) || i.within(d.Ended.Wall) {
			return true
		}
	}
	for _, o := range m.Observations {
		if i.within(o.At.Wall) {
			return true
		}
	}
	return false
}

func (i impact) within(at time.Time) bool {
	return !at.IsZero() && !at.Before(i.since) && (i.until.IsZero() || !at.After(i.until))
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
