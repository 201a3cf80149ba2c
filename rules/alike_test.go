package rules

import (
	"strings"
	"testing"
)

// contentOf is contentProbe, whose object is told by what the request says.
func contentOf(ours string) string { return strings.Replace(contentProbe, "found.n == 1", ours, 1) }

func steppedBy(ours string) string { return strings.Replace(steppedContent, "OURS", ours, 1) }

// steppedContent is the same, asked in two steps.
const steppedContent = `
steps:
  - name: who
    get: /me
  - name: list
    get: /list
    candidates: response.json
    ours: OURS
    tie: content
    id: string(found.id)
    created: found.at
`

func TestAnObjectMayBeOfAnotherUnlessTheRuleSaysOtherwise(t *testing.T) {
	t.Parallel()
	const list = `[{"id":"o1","n":1,"at":"2026-01-02T04:00:00Z"}]`
	for name, tc := range map[string]struct {
		probe, other, object string
		answers              []string
		want                 bool
	}{
		"the same content":           {contentOf("found.n == json.n"), `{"n":1}`, "o1", []string{list}, true},
		"another content":            {contentOf("found.n == json.n"), `{"n":2}`, "o1", []string{list}, false},
		"a rule that can't tell":     {contentOf("found.n == json.n"), `{"m":2}`, "o1", []string{list}, true},
		"an object that isn't there": {contentOf("found.n == json.n"), `{"n":2}`, "o2", []string{list}, true},
		"after a step, the same":     {steppedBy("found.n == json.n"), `{"n":1}`, "o1", []string{`{}`, list}, true},
		"after a step, another":      {steppedBy("found.n == json.n"), `{"n":2}`, "o1", []string{`{}`, list}, false},
		"what a step asked about":    {steppedBy("steps.who.json.?me.orValue(1) == found.n && found.n == json.n"), `{"n":2}`, "o1", []string{`{}`, list}, true},
	} {
		_, op := operation(t, probing(tc.probe))
		a := begin(t, op, request(t, "POST https://api.test:8443/things/x", `{"n":1}`))
		for _, answer := range tc.answers {
			a.Answer(ok(answer))
		}
		other := Env{Request: request(t, "POST https://api.test:8443/things/x", tc.other), Mutation: sample(), Account: "acc"}
		if got := a.MayBeOf(op, other, tc.object); got != tc.want || len(a.found) != 1 {
			t.Errorf("%s: %v, want %v; found %d (%s)", name, got, tc.want, len(a.found), a.stopped)
		}
		if other.Request = nil; !a.MayBeOf(op, other, tc.object) {
			t.Errorf("%s: without a request it is nobody else's", name)
		}
	}
}
