package admin

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"keep-proxy/admin/wire"
	"keep-proxy/ledger"
)

// parameter is one query parameter of a route.
type parameter struct {
	name string
	// about says what it selects, for the OpenAPI document.
	about string
}

// Parameters of listings.
var (
	pageParameters = []parameter{
		{"cursor", "continues after the page whose next it was"},
		{"limit", "the longest page: 1 to 1000, default 100"},
	}
	scopeParameters = []parameter{
		{"workflow", "records of this workflow"},
		{"item", "records of this item"},
		{"since", "records since this RFC 3339 time, or since a duration ago such as 24h"},
	}
	runParameters = []parameter{
		{"running", "true: runs that have not ended"},
	}
	itemParameters = []parameter{
		{"state", "items in one of these states; repeatable, or with commas"},
	}
	obligationParameters = []parameter{
		{"all", "true: those that are done or waived too"},
		{"connector", "obligations of this connector"},
	}
	mutationParameters = []parameter{
		{"state", "records in one of these states; repeatable, or with commas"},
		{"connector", "records of this connector"},
		{"operation", "records of this operation"},
		{"run", "records of this run"},
		{"unresolved", "true: records whose outcome is unknown"},
		{"escalated", "true: records with an open question to a person"},
	}
)

// checkQuery refuses parameters that the route doesn't take, repeated ones but for
// state, and what can't be read: net/url leaves that out in silence, and a listing that
// lost its filter would tell of everything as if it were what was asked for.
func (rt route) checkQuery(raw string) error {
	q, err := url.ParseQuery(raw)
	if err != nil {
		return BadRequest("query", "it can't be read: "+err.Error(), "percent-encode the values (RFC 3986 §2.1)")
	}
	known := make([]string, 0, len(rt.query))
	for _, p := range rt.query {
		known = append(known, p.name)
	}
	var faults []wire.Fault
	for name, values := range q {
		switch {
		case !slices.Contains(known, name) && len(known) == 0:
			faults = append(faults, wire.Fault{Where: "query:" + name, What: "unknown parameter", How: "this address takes none"})
		case !slices.Contains(known, name):
			faults = append(faults, wire.Fault{Where: "query:" + name, What: "unknown parameter", How: suggest(name, known)})
		case len(values) > 1 && name != "state":
			faults = append(faults, wire.Fault{Where: "query:" + name, What: "given more than once", How: "give it once"})
		}
	}
	if len(faults) == 0 {
		return nil
	}
	slices.SortFunc(faults, func(a, b wire.Fault) int { return strings.Compare(a.Where, b.Where) })
	return badRequest(faults)
}

// filterOf reads a listing's parameters; all faults are reported together.
func filterOf(q url.Values, now time.Time) (ledger.Filter, error) {
	return filterWith(q, now, func(f *ledger.Filter, names []string, add fault) { f.States = statesOf(names, ledger.States(), add) })
}

// itemFilterOf is filterOf for items, which have states of their own.
func itemFilterOf(q url.Values, now time.Time) (ledger.Filter, error) {
	return filterWith(q, now, func(f *ledger.Filter, names []string, add fault) {
		f.ItemStates = statesOf(names, ledger.ItemStates(), add)
	})
}

// fault notes what is wrong with a parameter.
type fault func(name, what, how string)

// statesOf are the states of these names.
func statesOf[S ~string](names []string, known []S, add fault) (out []S) {
	for _, name := range names {
		if out = append(out, S(name)); !slices.Contains(known, S(name)) {
			add("state", fmt.Sprintf("unknown state %q", name), "known are "+joined(known))
		}
	}
	return out
}

func filterWith(q url.Values, now time.Time, states func(f *ledger.Filter, names []string, add fault)) (ledger.Filter, error) {
	f := ledger.Filter{
		Connector: q.Get("connector"),
		Operation: q.Get("operation"),
		Workflow:  q.Get("workflow"),
		Item:      q.Get("item"),
		Run:       q.Get("run"),
		Cursor:    q.Get("cursor"),
	}
	var faults []wire.Fault
	add := func(name, what, how string) {
		faults = append(faults, wire.Fault{Where: "query:" + name, What: what, How: how})
	}
	states(&f, strings.FieldsFunc(strings.Join(q["state"], ","), func(c rune) bool { return c == ',' }), add)
	var ok bool
	if f.Unresolved, ok = boolOf(q, "unresolved"); !ok {
		add("unresolved", "neither true nor false", "give true or leave it out")
	}
	if running, ok := boolOf(q, "running"); !ok {
		add("running", "neither true nor false", "give true or leave it out")
	} else if running {
		f.Unresolved = true
	}
	if f.Escalated, ok = boolOf(q, "escalated"); !ok {
		add("escalated", "neither true nor false", "give true or leave it out")
	}
	if f.Since, ok = sinceOf(q.Get("since"), now); !ok {
		add("since", "neither a time nor a duration", "write 2006-01-02T15:04:05Z or 24h")
	}
	if f.Limit, ok = limitOf(q.Get("limit")); !ok {
		add("limit", "no number from 1 to 1000", "leave it out for 100")
	}
	if len(faults) > 0 {
		return ledger.Filter{}, badRequest(faults)
	}
	return f, nil
}

// listingError says what a listing failed of: stores give an error of no special
// kind for a cursor that isn't theirs.
func listingError(f ledger.Filter, err error) error {
	if f.Cursor != "" && problemOf(err).Name() == "internal" {
		return BadRequest("query:cursor", "not one that this listing gave", "begin without it")
	}
	return err
}

// maxPage is the longest page of a listing.
const maxPage = 1000

// joined names every state.
func joined[S ~string](states []S) string {
	names := make([]string, 0, len(states))
	for _, s := range states {
		names = append(names, string(s))
	}
	return strings.Join(names, ", ")
}

// boolOf reads a flag; absent is false.
func boolOf(q url.Values, name string) (value, ok bool) {
	switch q.Get(name) {
	case "", "false":
		return false, true
	case "true":
		return true, true
	}
	return false, false
}

// sinceOf reads a time, or a duration before now; empty is no limit.
func sinceOf(text string, now time.Time) (time.Time, bool) {
	if text == "" {
		return time.Time{}, true
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, true
	}
	ago, err := time.ParseDuration(text)
	return now.Add(-ago), err == nil && ago >= 0
}

// limitOf reads a page's length; 0 takes the default.
func limitOf(text string) (int, bool) {
	if text == "" {
		return 0, true
	}
	n, err := strconv.Atoi(text)
	return n, err == nil && n >= 1 && n <= maxPage
}
