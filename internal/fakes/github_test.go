package fakes_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"keep-proxy/internal/fakes/apitest"
	"keep-proxy/internal/fakes/oracle"
)

const issues = "/repos/Octo/Fresh/issues"

// issue is an issue or a pull request as the API shows it.
type issue struct {
	ID          int64                   `json:"id"`
	Number      int                     `json:"number"`
	URL         string                  `json:"url"`
	Title       string                  `json:"title"`
	Body        *string                 `json:"body"`
	State       string                  `json:"state"`
	User        struct{ Login string }  `json:"user"`
	Labels      []struct{ Name string } `json:"labels"`
	Assignees   []struct{ Login string }
	CreatedAt   string                `json:"created_at"`
	UpdatedAt   string                `json:"updated_at"`
	PullRequest *struct{ URL string } `json:"pull_request"`
	// What only pull requests have.
	Head, Base         struct{ Ref, SHA string }
	Merged             bool
	MergeCommitSHA     *string                  `json:"merge_commit_sha"`
	RequestedReviewers []struct{ Login string } `json:"requested_reviewers"`
	RequestedTeams     []struct{ Slug string }  `json:"requested_teams"`
}

type bench struct{ *apitest.Bench }

func start(t *testing.T) bench {
	t.Helper()
	return bench{apitest.Start(t, api(t, "github"))}
}

func (b bench) send(method, target, body string) apitest.Reply {
	return b.Do(method, target, body, "Authorization", "Bearer ghp_x")
}

func numbers(list []issue) string {
	var out []string
	for _, i := range list {
		out = append(out, fmt.Sprint(i.Number))
	}
	return strings.Join(out, " ")
}

func (b bench) list(query string) string {
	var page []issue
	b.Do("GET", issues+"?"+query, "").Is(200, "").JSON(&page)
	return numbers(page)
}

func TestIssueIsMadeAndKeptVerbatim(t *testing.T) {
	t.Parallel()
	b := start(t)
	reply := b.send("POST", issues, `{"title":" It breaks ","body":"a\r\nb\t<b>\n\n<!-- keep:m1 -->","labels":["bug"],"assignees":["ann"]}`)
	var got issue
	reply.Is(201, "").JSON(&got)
	if *got.Body != "a\r\nb\t<b>\n\n<!-- keep:m1 -->" || got.Number != 1 || got.State != "open" || got.PullRequest != nil ||
		got.Labels[0].Name != "bug" || got.Assignees[0].Login != "ann" || got.User.Login != "keep-bot" {
		t.Errorf("issue %+v", got)
	}
	if location := reply.Header.Get("Location"); location != got.URL || b.Do("GET", location, "").Body != reply.Body {
		t.Errorf("Location %q does not show the issue at %s", location, got.URL)
	}
	if n := b.Counted().Effects("issue:octo/fresh:It breaks"); n != 1 {
		t.Errorf("%d effects of %v", n, b.Counted().Identities())
	}
}

func TestIssueIsRefused(t *testing.T) {
	t.Parallel()
	b := start(t)
	b.Do("POST", issues, `{"title":"x"}`).Is(401, "Requires authentication")
	b.send("POST", issues, `{"title":" "}`).Is(422, "missing_field")
	b.send("POST", issues, `{`).Is(400, "Problems parsing JSON")
	b.send("POST", "/repos/octo/issues", `{"title":"x"}`).Is(404, "has no POST")
	b.send("PATCH", issues+"/7", `{"state":"closed"}`).Is(404, "Not Found")
	b.send("PUT", issues, `{"title":"x"}`).Is(404, "has no PUT")
	b.send("GET", issues+"/0", "").Is(404, "Not Found")
	if n := len(b.Counted().Of(oracle.KindEffect)); n != 0 {
		t.Errorf("%d effects of refused requests", n)
	}
}

func TestNothingDedupesIssues(t *testing.T) {
	t.Parallel()
	b := start(t)
	for range 2 {
		b.Do("POST", issues, `{"title":"x"}`, "Authorization", "Bearer x", "Idempotency-Key", "k").Is(201, "")
	}
	if n := b.Counted().Effects("issue:octo/fresh:x"); n != 2 {
		t.Errorf("%d effects, want 2", n)
	}
}

func TestListMixesPullRequests(t *testing.T) {
	t.Parallel()
	b := start(t)
	b.send("POST", issues, `{"title":"one"}`).Is(201, "")
	pull := `{"title":"two","head":"octo:fix","base":"main"}`
	b.send("POST", "/repos/octo/fresh/pulls", pull).Is(201, "pull_request")
	b.send("POST", "/repos/octo/fresh/pulls", pull).Is(422, "Validation Failed")
	b.send("POST", "/repos/octo/fresh/pulls", `{"title":"two"}`).Is(422, "missing_field")
	b.send("POST", "/repos/octo/other/issues", `{"title":"elsewhere"}`).Is(201, `"number":1`)
	var page []issue
	b.Do("GET", issues, "").JSON(&page)
	if numbers(page) != "2 1" || page[0].PullRequest == nil || page[1].PullRequest != nil {
		t.Errorf("listed %+v, want the pull request 2, then the issue 1", page)
	}
}

func TestListFilters(t *testing.T) {
	t.Parallel()
	b := start(t)
	for i := 1; i <= 4; i++ {
		b.send("POST", issues, fmt.Sprintf(`{"title":"t%d"}`, i)).Is(201, "")
		b.Advance(time.Hour)
	}
	b.send("PATCH", issues+"/2", `{"state":"closed"}`).Is(200, `"state":"closed"`)
	at := func(d time.Duration) string { return apitest.Epoch.Add(d).Format(time.RFC3339) }
	tests := []struct{ name, query, want string }{
		{"open ones, newest first", "", "4 3 1"},
		{"closed ones", "state=closed", "2"},
		{"all", "state=all", "4 3 2 1"},
		{"oldest first", "state=all&direction=asc", "1 2 3 4"},
		{"by their last change", "state=all&sort=updated", "2 4 3 1"},
		{"changed since a time, to the second", "state=all&since=" + at(2*time.Hour), "4 3 2"},
		{"changed since a second later", "state=all&since=" + at(2*time.Hour+time.Second), "4 2"},
		{"of their creator", "creator=KEEP-BOT", "4 3 1"},
		{"of nobody", "creator=ann", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := b.list(tt.query); got != tt.want {
				t.Errorf("listed %q, want %q", got, tt.want)
			}
		})
	}
	for _, query := range []string{"state=none", "sort=x", "direction=up", "per_page=0", "page=x", "since=yesterday"} {
		b.Do("GET", issues+"?"+query, "").Is(422, "invalid")
	}
}

var next = regexp.MustCompile(`<([^>]+)>; rel="next"`)

func TestLinkPages(t *testing.T) {
	t.Parallel()
	b := start(t)
	for i := range 5 {
		b.send("POST", issues, fmt.Sprintf(`{"title":"t%d"}`, i)).Is(201, "")
	}
	var pages []string
	target := b.URL() + issues + "?state=all&per_page=2"
	for target != "" {
		var page []issue
		reply := b.Do("GET", target, "")
		reply.JSON(&page)
		pages = append(pages, numbers(page))
		target = ""
		link := reply.Header.Get("Link")
		if m := next.FindStringSubmatch(link); m != nil {
			target = m[1]
		}
	}
	if got := strings.Join(pages, ", "); got != "5 4, 3 2, 1" {
		t.Errorf("pages %s", got)
	}
	if link := b.Do("GET", issues, "").Header.Get("Link"); link != "" {
		t.Errorf("a single page has Link %q", link)
	}
	if got := b.list("page=9"); got != "" {
		t.Errorf("beyond the end: %s", got)
	}
}

func TestRestartKeepsIssues(t *testing.T) {
	t.Parallel()
	b := start(t)
	b.send("POST", issues, `{"title":"one","body":"text"}`).Is(201, "")
	b.send("PATCH", issues+"/1", `{"title":"uno","state":"closed"}`).Is(200, `"title":"uno"`)
	b.End()
	github := api(t, "github")
	b2 := bench{apitest.Continue(t, github, b.LogPath())}
	b2.Do("GET", issues+"/1", "").Is(200, `"title":"uno"`).Is(200, `"body":"text"`).Is(200, `"state":"closed"`)
	b2.send("POST", issues, `{"title":"two"}`).Is(201, `"number":2`)
	if err := github.Adjust([]byte(`{"lag":"1m"}`)); err != nil {
		t.Fatal(err)
	}
	if got := b2.list("state=all"); got != "" {
		t.Errorf("the listing shows %s although it lags", got)
	}
}
