package data_test

import (
	"os"
	"strings"
	"testing"

	"keep-proxy/internal/fakes/apitest"
	"keep-proxy/internal/fakes/data"
)

func TestTheExampleOfTheDocsWorks(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/fakes.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```yaml\n")
	example, _, _ := strings.Cut(rest, "```")
	fake, err := data.Load([]byte(example))
	if err != nil {
		t.Fatal(err)
	}
	b := apitest.Start(t, fake)
	do := func(method, target, body string) apitest.Reply {
		return b.Do(method, target, body, "Authorization", "Bearer x", "Content-Type", "application/json")
	}
	do("POST", "/notes", `{"title":"a"}`).Is(201, `"id":"n_1"`)
	do("POST", "/notes", `{"title":"b","text":"x"}`).Is(201, `"id":"n_2"`)
	do("POST", "/notes", `{}`).Is(422, "title_missing")
	do("PATCH", "/notes/n_2", `{"text":"y"}`).Is(200, `"title":"b"`).Is(200, `"text":"y"`)
	do("PATCH", "/notes/n_3", `{"text":"y"}`).Is(404, "not_found")
	first := do("GET", "/notes?limit=1", "").Is(200, `"id":"n_2"`)
	_, after, _ := strings.Cut(first.Body, `"next":"`)
	next, _, _ := strings.Cut(after, `"`)
	do("GET", "/notes?limit=1&cursor="+next, "").Is(200, `"id":"n_1"`).Is(200, `"next":""`)
	tally := b.Counted()
	if made, changed := tally.Effects("note:a"), tally.Effects("note-update:n_2"); made != 1 || changed != 1 {
		t.Errorf("%d made, %d changed", made, changed)
	}
}
