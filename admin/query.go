package admin

import (
	"context"
	"fmt"
	"maps"
	"net/http"
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

// checkQuery refuses parameters that the route doesn't take, repeated ones but for state, and what can't be read. The
// package net/url leaves that out in silence. A listing without its filter would tell of everything as if it were
// asked for.
func (rt route) checkQuery(raw string) error {
	q, err := url.ParseQuery(raw)
	if err != nil {
		return BadRequest("query", "it can't be read: "+err.Error(), "percent-encode the values (RFC 3986 §2.1)")
	}
	known := each(rt.query, func(p parameter) string { return p.name })
	var faults faults
	for _, name := range slices.Sorted(maps.Keys(q)) {
		switch where := "query:" + name; {
		case !slices.Contains(known, name):
			faults.add(where, "unknown parameter", suggest(name, known))
		case len(q[name]) > 1 && name != "state":
			faults.add(where, "given more than once", "give it once")
		}
	}
	return faults.err()
}

// query reads the parameters of a listing, and collects what is wrong with them.
type query struct {
	url.Values
	now time.Time
	faults
}

func (s *Server) query(r *http.Request) *query {
	return &query{Values: r.URL.Query(), now: s.config.Now().Wall}
}

// filter is what listings select by.
func (q *query) filter() ledger.Filter {
	return ledger.Filter{
		Connector: q.Get("connector"), Operation: q.Get("operation"), Workflow: q.Get("workflow"), Item: q.Get("item"), Run: q.Get("run"),
		Unresolved: q.flag("unresolved") || q.flag("running"), Escalated: q.flag("escalated"),
		Since: q.time("since"), Cursor: q.Get("cursor"), Limit: q.number("limit", maxPage, "leave it out for 100"),
	}
}

// states are the states that are asked for, each of which must be known.
func states[S ~string](q *query, known []S) (out []S) {
	for name := range strings.FieldsFuncSeq(strings.Join(q.Values["state"], ","), func(c rune) bool { return c == ',' }) {
		if out = append(out, S(name)); !slices.Contains(known, S(name)) {
			q.add("query:state", fmt.Sprintf("unknown state %q", name), "known are "+joined(known, ", "))
		}
	}
	return out
}

// flag reads a flag; absent is false.
func (q *query) flag(name string) bool {
	text := q.Get(name)
	if text != "" && text != "true" && text != "false" {
		q.add("query:"+name, "neither true nor false", "give true or leave it out")
	}
	return text == "true"
}

// time reads a time, or a duration before now; absent is no limit.
func (q *query) time(name string) time.Time {
	text := q.Get(name)
	if text == "" {
		return time.Time{}
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at
	}
	ago, err := time.ParseDuration(text)
	if err != nil || ago < 0 {
		q.add("query:"+name, "neither a time nor a duration", "write 2006-01-02T15:04:05Z or 24h")
	}
	return q.now.Add(-ago)
}

// number reads a number from 1 up to the highest; absent is 0.
func (q *query) number(name string, highest int, how string) int {
	text := q.Get(name)
	n, err := strconv.Atoi(text)
	if text != "" && (err != nil || n < 1 || n > highest) {
		q.add("query:"+name, fmt.Sprintf("no number from 1 to %d", highest), how)
	}
	return n
}

// maxPage is the longest page of a listing.
const maxPage = 1000

// lister is a listing of the ledger.
type lister[R any] = func(context.Context, ledger.Filter) (ledger.Page[R], error)

// listing answers a page of what f selects, unless the query is wrong.
func listing[R, T any](r *http.Request, q *query, f ledger.Filter, list lister[R], show func(R) T) (*wire.List[T], error) {
	if err := q.err(); err != nil {
		return nil, err
	}
	page, err := list(r.Context(), f)
	switch {
	case err == nil:
		return &wire.List[T]{Items: each(page.Items, show), Next: page.Next}, nil
	case f.Cursor != "" && problemOf(err).Name() == "internal":
		// Stores give an error of no special kind for a cursor that isn't theirs.
		return nil, BadRequest("query:cursor", "not one that this listing gave", "begin without it")
	}
	return nil, err
}

// walk visits up to atMost records that f selects, the newest first.
func walk[R any](ctx context.Context, list lister[R], f ledger.Filter, atMost int, visit func(R)) error {
	for {
		f.Limit = min(maxPage, atMost)
		page, err := list(ctx, f)
		if err != nil {
			return err
		}
		for _, r := range page.Items {
			visit(r)
		}
		atMost -= len(page.Items)
		if f.Cursor = page.Next; f.Cursor == "" || atMost <= 0 {
			return nil
		}
	}
}

// joined is a list of words as one text.
func joined[S ~string](words []S, by string) string {
	return strings.Join(each(words, func(w S) string { return string(w) }), by)
}
