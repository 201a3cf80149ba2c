package rules

import (
	"net/http"
	"strings"
	"testing"
)

// What an answer of the API said is in no request that is shown; what the rule and the
// record say is.
func TestAShownQuestionHoldsNothingOfAnAnswer(t *testing.T) {
	t.Parallel()
	const token = "5ECRET"
	_, op := operation(t, stepped)
	asking, err := op.Strategies[0].Probe.Begin(Env{Request: request(t, "POST https://api.test/things", `{"of":"x y"}`), Mutation: caseMutation()})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"/baskets?of=x%20y", "/baskets/…", "/baskets/…/orders?since=…"} {
		ask, more := asking.Next()
		if !more || ask.Shown != want || i > 0 && !strings.Contains(ask.Target, token) {
			t.Errorf("read %d is shown as %q, want %q (%+v)", i+1, ask.Shown, want, ask)
		}
		asking.Answer(answered(http.StatusOK, `{"id":"`+token+`","state":"sold","sold_at":"`+token+`"}`))
	}
}

func TestANextPageIsNotShown(t *testing.T) {
	t.Parallel()
	const paged = `
  - name: make
    match: {method: POST, path: /things}
    effect: mutation
    identity: {of: json.of}
    marker: {json: keep_id}
    reconcile:
      - probe:
          get: /things
          query: {of: {cel: json.of}, limit: "100"}
          pages: {more: response.json.more, set: {cursor: {cel: response.json.cursor}}, max: 3}
          candidates: response.json.items
          ours: found.keep_id == mutation.marker
          tie: marker
          id: found.id
`
	_, op := operation(t, paged)
	asking, err := op.Strategies[0].Probe.Begin(Env{Request: request(t, "POST https://api.test/things", `{"of":"x"}`), Mutation: caseMutation()})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []struct{ target, shown string }{{"/things?of=x&limit=100", "/things?of=x&limit=100"}, {"/things?of=x&limit=100&cursor=5ECRET", ""}} {
		ask, more := asking.Next()
		if !more || ask.Target != want.target || ask.Shown != want.shown {
			t.Errorf("%q is shown as %q, want %q as %q", ask.Target, ask.Shown, want.target, want.shown)
		}
		asking.Answer(answered(http.StatusOK, `{"items":[],"more":true,"cursor":"5ECRET"}`))
	}
}
