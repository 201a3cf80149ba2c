package github

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"keep-proxy/internal/fakes/server"
)

// Bounds of a page.
const (
	defaultPage = 30
	maxPage     = 100
)

// query is what a listing is asked for.
type query struct {
	state, sort, direction, creator string
	since                           time.Time
	perPage, page                   int
}

func (g *GitHub) show(c *server.Call, p place) *server.Answer {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := g.index(p.repo, p.number)
	if i < 0 {
		return problem(http.StatusNotFound, "Not Found")
	}
	return server.JSON(http.StatusOK, g.objects[i].shown(base(c.Request), i))
}

func (g *GitHub) list(c *server.Call, p place) *server.Answer {
	q, bad := readQuery(c.Query)
	if bad != "" {
		return invalid("Issue", bad, "invalid")
	}
	all := g.selectIssues(c, p, q)
	from := min((q.page-1)*q.perPage, len(all))
	page := append([]Issue{}, all[from:min(from+q.perPage, len(all))]...)
	answer := server.JSON(http.StatusOK, page)
	last := (len(all) + q.perPage - 1) / q.perPage
	if link := links(c, q.page, max(last, 1)); link != "" {
		answer.Header.Set("Link", link)
	}
	return answer
}

// selectIssues returns everything that the query asks for, in its order.
func (g *GitHub) selectIssues(c *server.Call, p place, q query) []Issue {
	g.mu.Lock()
	defer g.mu.Unlock()
	type row struct {
		object
		index int
	}
	var rows []row
	for i, o := range g.objects {
		if o.Repo == p.repo && q.wants(o) && c.Now().Sub(o.Created) >= g.settings.ListLag.Std() {
			rows = append(rows, row{o, i})
		}
	}
	slices.SortStableFunc(rows, func(a, b row) int {
		if q.sort == "updated" {
			return a.Updated.Compare(b.Updated)
		}
		return a.index - b.index
	})
	if q.direction == "desc" {
		slices.Reverse(rows)
	}
	out := make([]Issue, 0, len(rows))
	for _, r := range rows {
		out = append(out, r.shown(base(c.Request), r.index))
	}
	return out
}

func (q query) wants(o object) bool {
	return (q.state == "all" || q.state == o.State) &&
		(q.creator == "" || strings.EqualFold(q.creator, o.Creator)) &&
		!o.Updated.Truncate(time.Second).Before(q.since)
}

// readQuery reads a listing's parameters; bad names the first that is wrong.
func readQuery(v url.Values) (q query, bad string) {
	q = query{creator: v.Get("creator"), perPage: defaultPage, page: 1}
	oneOf := func(into *string, name string, values ...string) {
		*into = values[0]
		if given := v.Get(name); given != "" {
			*into = given
		}
		if !slices.Contains(values, *into) {
			bad = name
		}
	}
	oneOf(&q.state, "state", "open", "closed", "all")
	oneOf(&q.sort, "sort", "created", "updated")
	oneOf(&q.direction, "direction", "desc", "asc")
	count := func(into *int, name string, most int) {
		if text := v.Get(name); text != "" {
			n, err := strconv.Atoi(text)
			if err != nil || n < 1 {
				bad = name
			}
			*into = min(n, most)
		}
	}
	count(&q.perPage, "per_page", maxPage)
	count(&q.page, "page", 1<<20)
	if text := v.Get("since"); text != "" {
		var err error
		if q.since, err = time.Parse(time.RFC3339, text); err != nil {
			bad = "since"
		}
	}
	return q, bad
}

// links is the Link field (RFC 8288) of a page, "" if there is only one.
func links(c *server.Call, page, last int) string {
	var out []string
	add := func(rel string, n int) {
		v := url.Values{}
		maps.Copy(v, c.Query)
		v.Set("page", strconv.Itoa(n))
		out = append(out, fmt.Sprintf("<%s%s?%s>; rel=%q", base(c.Request), c.Path, v.Encode(), rel))
	}
	if page > 1 {
		add("prev", min(page-1, last))
	}
	if page < last {
		add("next", page+1)
		add("last", last)
	}
	if page > 1 {
		add("first", 1)
	}
	return strings.Join(out, ", ")
}
