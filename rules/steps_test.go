package rules

import (
	"strings"
	"testing"
)

// stepped finds an order through the basket that it was made from.
const stepped = `
  - name: make
    match: {method: POST, path: /things}
    effect: mutation
    identity: {of: json.of}
    marker: {json: keep_id}
    reconcile:
      - probe:
          steps:
            - name: basket
              get: /baskets
              query: {of: {cel: json.of}}
            - name: state
              get: "/baskets/{steps.basket.json.id}"
              expect: response.status in [200, 404]
              observe:
                - {when: response.status == 404, is: absent}
                - {when: "response.json.state == 'open'", is: retry}
                - {when: response.json.state == 'sold', step: orders}
              absence_is_proof: true
            - name: orders
              get: "/baskets/{steps.basket.json.id}/orders"
              query: {since: {cel: steps.state.json.sold_at}}
              candidates: response.json
              ours: found.keep_id == mutation.marker
              tie: marker
              id: found.id
              result: {status: 201, json: {order: {cel: found.id}, basket: {cel: steps.basket.json.id}}}
`

func TestAProbeInStepsFeedsTheNextRead(t *testing.T) {
	t.Parallel()
	const basket, sold = `{"id":"b 1"}`, `{"state":"sold","sold_at":"9"}`
	for name, c := range map[string]struct {
		answers []*Response
		seen    Seen
		proof   bool
		reason  string
		result  string
	}{
		"found at the end": {
			[]*Response{answered(200, basket), answered(200, sold), answered(200, `[{"id":"o1","keep_id":"`+CaseMarker+`"}]`)},
			SeenApplied, false, "is ours", `{"basket":"b 1","order":"o1"}`,
		},
		"absent at the end, which is no proof": {
			[]*Response{answered(200, basket), answered(200, sold), answered(200, `[]`)}, SeenAbsent, false, "nothing of it", "",
		},
		"absent in the middle, which is proof": {[]*Response{answered(200, basket), answered(404, `{}`)}, SeenAbsent, true, "condition holds", ""},
		"open in the middle":                   {[]*Response{answered(200, basket), answered(200, `{"state":"open"}`)}, SeenRetry, true, "condition holds", ""},
		"a first answer of another kind":       {[]*Response{answered(404, basket)}, SeenRetry, false, "instead of 200", ""},
		"a first answer without what is read":  {[]*Response{answered(200, `{}`)}, SeenRetry, true, "can't be asked for", ""},
		"a first answer that leads elsewhere":  {[]*Response{answered(200, `{"id":".."}`)}, SeenRetry, true, "can't be asked for", ""},
		"an answer in the middle that is cut":  {[]*Response{answered(200, basket), nil}, SeenRetry, true, "no whole answer", ""},
		"no condition in the middle holds":     {[]*Response{answered(200, basket), answered(200, `{"state":"lost"}`)}, SeenRetry, true, "no condition", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, op := operation(t, stepped)
			req := request(t, "POST https://api.test/things", `{"of":"x"}`)
			asking, err := op.Strategies[0].Probe.Begin(Env{Request: req, Mutation: caseMutation()})
			if err != nil {
				t.Fatal(err)
			}
			want := []string{"/baskets?of=x", "/baskets/b%201", "/baskets/b%201/orders?since=9"}
			for i, a := range c.answers {
				ask, more := asking.Next()
				if !more || ask.Target != want[i] {
					t.Fatalf("read %d: %v, %v; want %s", i, ask, more, want[i])
				}
				asking.Answer(a)
			}
			if _, more := asking.Next(); more {
				t.Error("it goes on")
			}
			o := asking.Observation(func(string) bool { return false }, Clocks{})
			if o.Seen != c.seen || o.AbsenceIsProof != c.proof || !strings.Contains(o.Reason, c.reason) {
				t.Errorf("seen %s (%s), proof %v", o.Seen, o.Reason, o.AbsenceIsProof)
			}
			if o.Result != nil {
				if got := canonicalText(o.Result.Body); got != c.result {
					t.Errorf("result %s, want %s", got, c.result)
				}
			} else if c.result != "" {
				t.Error("there is no result")
			}
		})
	}
}

func answered(status int, body string) *Response {
	return &Response{Status: status, Header: map[string][]string{"Content-Type": {"application/json"}}, Body: []byte(body), Complete: true}
}

func TestStepsThatCanNotBeReadDoNotLoad(t *testing.T) {
	t.Parallel()
	const end = "{name: b, get: /b, observe: [{when: 'true', is: absent}]}"
	for name, c := range map[string]struct{ probe, problem string }{
		"no steps":                       {"steps: []", "steps is empty"},
		"another key beside them":        {"get: /a, steps: [" + end + "]", "belongs into a step"},
		"a step without a name":          {"steps: [{get: /a}, " + end + "]", "has no name"},
		"a name that is none":            {"steps: [{name: a-b, get: /a}, " + end + "]", "no name of a step"},
		"a name twice":                   {"steps: [{name: b, get: /a}, " + end + "]", "earlier step"},
		"a last step that says nothing":  {"steps: [{name: a, get: /a}]", "says nothing about what it sees"},
		"a way back":                     {"steps: [{name: a, get: /a}, {name: b, get: /b, observe: [{when: 'true', step: a}]}]", "no step after this one"},
		"a way to itself":                {"steps: [{name: b, get: /b, observe: [{when: 'true', step: b}]}]", "no step after this one"},
		"a way out of no steps":          {"get: /a, observe: [{when: 'true', step: b}]", "no step after this one"},
		"both is and step":               {"steps: [{name: a, get: /a, observe: [{when: 'true', is: absent, step: b}]}, " + end + "]", "is or step"},
		"an answer that isn't there yet": {"steps: [{name: a, get: '/a/{steps.b.json.id}'}, " + end + "]", "isn't there yet"},
		"an answer in no step":           {"get: '/a/{steps.b.json.id}', observe: [{when: 'true', is: absent}]", "isn't there yet"},
		"a key that a step has not":      {"steps: [{name: a, get: /a, max: 3}, " + end + "]", "unknown key"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := withOperation("reconcile: [{probe: {" + c.probe + "}}]")
			set, findings := Load([]File{{Name: "api.yaml", Data: []byte(file)}}, nil, Defaults{})
			if set != nil || !strings.Contains(findings.Error(), c.problem) {
				t.Errorf("loaded %v:\n%s\nwant %q", set != nil, findings.Error(), c.problem)
			}
		})
	}
}
