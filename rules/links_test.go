package rules

import (
	"net/http"
	"strings"
	"testing"
)

// A next page that is overlooked turns a cut listing into a proof of absence.
func TestALinkToTheNextPageIsNotOverlooked(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name string
		line []string
		want string
		bad  bool
	}{
		{"plain", []string{`</a?page=2>; rel="next"`}, "/a?page=2", false},
		{"without quotes", []string{`</a>; rel=next`}, "/a", false},
		{"in single quotes", []string{`</a>; rel='next'`}, "/a", false},
		{"in capitals", []string{`</a>; REL="NEXT"`}, "/a", false},
		{"with spaces", []string{`  </a> ; rel = "next"`}, "/a", false},
		{"among relations", []string{`</a>; rel="last  next"`}, "/a", false},
		{"after another link", []string{`</b>; rel="prev", </a>; rel="next"`}, "/a", false},
		{"before another link", []string{`</a>; rel="next", </b>; rel="last"`}, "/a", false},
		{"on another line", []string{`</b>; rel="prev"`, `</a>; rel="next"`}, "/a", false},
		{"after a title with a comma", []string{`</b>; title="x, y"; rel=prev, </a>; rel=next`}, "/a", false},
		{"after a title with a semicolon and a relation", []string{`</a>; title="x; rel=prev"; rel="next"`}, "/a", false},
		{"after a title with an escaped quote", []string{`</b>; title="\", "; rel=prev, </a>; rel=next`}, "/a", false},
		{"with a comma in the target", []string{`</a?x=1,2>; rel=next`}, "/a?x=1,2", false},
		{"no relation", []string{`</a>`}, "", false},
		{"another relation", []string{`</a>; rel="nextpage prev"`}, "", false},
		{"the word in a title", []string{`</a>; title="rel=next"`}, "", false},
		{"none", nil, "", false},
		{"an empty line", []string{""}, "", false},
		{"a target that is not closed", []string{`</a; rel="next"`}, "", true},
		{"a target that is not opened", []string{`/a>; rel="next"`}, "", true},
		{"no target", []string{`rel="next"`}, "", true},
		{"a quote that is not closed", []string{`</b>; title="x, </a>; rel=next`}, "", true},
		{"something between target and parameters", []string{`</a> rel="next"`}, "", true},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got, _, err := nextLink(map[string][]string{"Link": tc.line})
			if got != tc.want || (err != nil) != tc.bad {
				t.Errorf("next is %q (%v), want %q, an error: %t", got, err, tc.want, tc.bad)
			}
		})
	}
}

func TestAListingWhoseLinkCannotBeReadIsRetry(t *testing.T) {
	t.Parallel()
	for _, pages := range []string{"", "pages: {next: link, max: 3}"} {
		_, op := operation(t, strings.ReplaceAll(listingOperation, "PAGES", pages))
		asking := begin(t, op, listedRequest(t))
		asking.Answer(&Response{Status: 200, Complete: true, Header: map[string][]string{"Link": {`</p?page=2; rel="next"`}}, Body: []byte(`[]`)})
		if o := asking.Observation(nobody, Clocks{}); o.Seen != SeenRetry || !strings.Contains(o.Reason, "next page") {
			t.Errorf("%q: %+v", pages, o)
		}
	}
}

// listingOperation lists objects that are ours by their reference.
const listingOperation = `
  - name: make
    match: {method: POST, path: /things}
    effect: mutation
    identity: {ref: json.ref}
    reconcile:
      - probe:
          post: /search
          json: {ref: {cel: json.ref}}
          candidates: response.json
          ours: found.ref == json.ref
          tie: unique
          id: found.id
          created: found.at
          absence_is_proof: true
          PAGES
`

// listedRequest is the mutation that listingOperation lists.
func listedRequest(tb testing.TB) *Request {
	tb.Helper()
	return request(tb, "POST https://api.test/things", `{"ref":"r"}`)
}

func TestAListingThatTurnsInACircleEndsAtOnce(t *testing.T) {
	t.Parallel()
	_, op := operation(t, strings.ReplaceAll(listingOperation, "PAGES", `pages: {more: "true", set: {page: "2"}, max: 1000}`))
	asking := begin(t, op, listedRequest(t))
	asked := 0
	for _, more := asking.Next(); more; _, more = asking.Next() {
		asked++
		asking.Answer(&Response{Status: 200, Complete: true, Body: []byte(`[]`)})
	}
	if o := asking.Observation(nobody, Clocks{}); asked != 2 || o.Seen != SeenRetry || !strings.Contains(o.Reason, "read already") {
		t.Errorf("%d requests, %+v", asked, o)
	}
}

func TestAnObservationThatRestsOnLeavingAnObjectOutIsRetry(t *testing.T) {
	t.Parallel()
	claims := func(ids ...string) func(string) bool {
		return func(id string) bool { return strings.Contains(" "+strings.Join(ids, " ")+" ", " "+id+" ") }
	}
	cases := []struct {
		name, tie, body string
		claimed         func(string) bool
		want            Seen
	}{
		{"nothing at all", "unique", `[]`, claims(), SeenAbsent},
		{"one that is ours", "unique", `[{"id":1,"ref":"r"}]`, claims(), SeenApplied},
		{"one that is another's", "unique", `[{"id":1,"ref":"r"}]`, claims("1"), SeenRetry},
		{"two of which one is another's", "unique", `[{"id":1,"ref":"r"},{"id":2,"ref":"r"}]`, claims("1"), SeenRetry},
		{"two that are another's", "unique", `[{"id":1,"ref":"r"},{"id":2,"ref":"r"}]`, claims("1", "2"), SeenRetry},
		{"two that are ours", "unique", `[{"id":1,"ref":"r"},{"id":2,"ref":"r"}]`, claims(), SeenDuplicate},
		{"nobody can say whose it is", "unique", `[{"id":1,"ref":"r"}]`, nil, SeenRetry},
		{"another's that does not match anyway", "unique", `[{"id":1,"ref":"x"},{"id":2,"ref":"r"}]`, claims("1"), SeenApplied},
		{"one object on two places", "unique", `[{"id":2,"ref":"r"},{"id":2,"ref":"r"}]`, claims(), SeenApplied},
		{"an id of the wrong kind", "unique", `[{"id":[2],"ref":"r"}]`, claims(), SeenRetry},
		{"an empty id", "unique", `[{"id":"","ref":"r"}]`, claims(), SeenRetry},
		{"an id that is missing", "unique", `[{"ref":"r"}]`, claims(), SeenRetry},
		{"a condition that can't be told", "unique", `[{"id":1},{"id":2,"ref":"r"}]`, claims(), SeenRetry},
		{"no list", "unique", `{"id":1,"ref":"r"}`, claims(), SeenRetry},
		{"no JSON", "unique", `id=1`, claims(), SeenRetry},
		{"nothing", "unique", ``, claims(), SeenRetry},
		{"an id of many digits", "unique", `[{"id":9007199254740993,"ref":"r"}]`, claims("9007199254740992"), SeenApplied},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			_, op := operation(t, strings.ReplaceAll(listingOperation, "PAGES", ""))
			asking := begin(t, op, listedRequest(t))
			asking.Answer(ok(strings.ReplaceAll(tc.body, `"ref"`, `"at":"2026-01-03T00:00:00Z","ref"`)))
			if o := asking.Observation(tc.claimed, Clocks{Measured: true, SameBoot: true}); o.Seen != tc.want {
				t.Errorf("%v (%s), want %v", o.Seen, o.Reason, tc.want)
			}
			if _, more := asking.Next(); more {
				t.Error("asks on")
			}
		})
	}
}

func TestAnswersThatCannotBeUsedAreRetry(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name string
		resp *Response
		part string
	}{
		{"no answer", nil, "no whole answer"},
		{"a cut answer", &Response{Status: 200, Body: []byte(`[]`)}, "no whole answer"},
		{"not found", &Response{Status: 404, Complete: true, Body: []byte(`[]`)}, "404"},
		{"a redirect", &Response{Status: 302, Complete: true}, "302"},
		{"partial content", &Response{Status: 206, Complete: true, Body: []byte(`[]`)}, "206"},
		{"an error of the server", &Response{Status: 500, Complete: true, Body: []byte(`[]`)}, "500"},
		{"repeated names", &Response{Status: 200, Complete: true, Body: []byte(`[{"ref":1,"ref":2}]`)}, "repeats"},
		{"an unknown coding", &Response{Status: 200, Complete: true, Header: map[string][]string{"Content-Encoding": {"br"}}, Body: []byte(`[]`)}, "Content-Encoding"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			_, op := operation(t, strings.ReplaceAll(listingOperation, "PAGES", ""))
			asking := begin(t, op, listedRequest(t))
			asking.Answer(tc.resp)
			o := asking.Observation(nobody, Clocks{})
			if o.Seen != SeenRetry || !strings.Contains(o.Reason, tc.part) || o.Result != nil || len(o.ObjectIDs) > 0 {
				t.Errorf("%+v, want retry (…%s…)", o, tc.part)
			}
			asking.Answer(&Response{Status: 200, Complete: true, Body: []byte(`[]`)})
			if o := asking.Observation(nobody, Clocks{}); o.Seen != SeenRetry {
				t.Errorf("an answer that nobody asked for counts: %+v", o)
			}
		})
	}
}

// Conditions read one page: what isn't on it may be on the next one that the API names. What is
// on it is there all the same.
func TestNoStateIsAbsentByOnePageOfSeveral(t *testing.T) {
	t.Parallel()
	const state = `observe: [{when: "response.json.exists(l, l == 'ours')", is: applied}, {when: 'true', is: absent}]` + "\nabsence_is_proof: true"
	const after = "{name: b, get: /b, observe: [{when: 'true', is: absent}], absence_is_proof: true}]"
	const list = "{name: b, get: /b, candidates: response.json, ours: found.id == 1, tie: unique, id: found.id, created: found.at, absence_is_proof: true}]"
	next := http.Header{"Link": {`</a?page=2>; rel="next"`}}
	for name, tc := range map[string]struct {
		probe string
		link  http.Header
		body  string
		want  Seen
	}{
		"a state of one page":                   {"get: /a\n" + state, nil, `["theirs"]`, SeenAbsent},
		"a state of several":                    {"get: /a\n" + state, next, `["theirs"]`, SeenRetry},
		"a Link that can't be read":             {"get: /a\n" + state, http.Header{"Link": {"</a"}}, `["theirs"]`, SeenRetry},
		"what is on the first page":             {"get: /a\n" + state, next, `["ours"]`, SeenApplied},
		"a step that is read later":             {"steps: [{name: a, get: /a}, " + after, next, `[]`, SeenRetry},
		"a step that is read later, of one":     {"steps: [{name: a, get: /a}, " + after, nil, `[]`, SeenAbsent},
		"a step before a listing":               {"steps: [{name: a, get: /a}, " + list, next, `[]`, SeenRetry},
		"a step before a listing, of one page":  {"steps: [{name: a, get: /a}, " + list, nil, `[]`, SeenAbsent},
		"a step before a listing that finds it": {"steps: [{name: a, get: /a}, " + list, next, `[{"id":1,"at":"2026-01-03T00:00:00Z"}]`, SeenApplied},
	} {
		_, op := operation(t, probing(tc.probe))
		a := begin(t, op, request(t, "POST https://api.test/things/x", `{}`))
		for link := tc.link; ; link = nil {
			if _, more := a.Next(); !more {
				break
			}
			answer := ok(tc.body)
			answer.Header = link
			a.Answer(answer)
		}
		if o := a.Observation(nobody, Clocks{Measured: true, SameBoot: true}); o.Seen != tc.want || o.Seen == SeenRetry && !strings.Contains(o.Reason, "one page was read") {
			t.Errorf("%s: saw %v (%s), want %v", name, o.Seen, o.Reason, tc.want)
		}
	}
}

// Of a DELETE, and of an undo, the effect is that something is gone, which one page of several doesn't show.
func TestNothingIsGoneByOnePageOfSeveral(t *testing.T) {
	t.Parallel()
	const state = `get: /a` + "\n" + `observe: [{when: "!response.json.exists(l, l == 'ours')", is: applied}, {when: 'true', is: absent}]`
	next := http.Header{"Link": {`</a?page=2>; rel="next"`}}
	for name, tc := range map[string]struct {
		method, object, more string
		link                 http.Header
		want                 Seen
	}{
		"deleted, by one page":             {"DELETE", "", "", nil, SeenApplied},
		"deleted, by one of several":       {"DELETE", "", "", next, SeenRetry},
		"undone, by one page":              {"POST", "o1", "", nil, SeenApplied},
		"undone, by one of several":        {"POST", "o1", "", next, SeenRetry},
		"set, by one of several":           {"POST", "", "", next, SeenApplied},
		"deleted, with what says so there": {"DELETE", "", "\nid: response.json[0]", next, SeenApplied},
	} {
		_, op := operation(t, probing(state+tc.more))
		mutation := sample()
		mutation.Object = tc.object
		a, err := op.Strategies[0].Probe.Begin(Env{Request: request(t, tc.method+" https://api.test/things/x", `{}`), Mutation: mutation})
		if err != nil {
			t.Fatal(err)
		}
		answer := ok(`["theirs"]`)
		answer.Header = tc.link
		a.Answer(answer)
		if o := a.Observation(nobody, Clocks{}); o.Seen != tc.want || o.Seen == SeenRetry && !strings.Contains(o.Reason, "applied, but by its Link field") {
			t.Errorf("%s: saw %v (%s), want %v", name, o.Seen, o.Reason, tc.want)
		}
	}
}

// A page of a proxy or a login, and nothing at all, come with 200 too. Read as an object without
// members they would be a listing without objects to a rule that lets its list be left out.
func TestAnAnswerWithoutJSONIsNoListing(t *testing.T) {
	t.Parallel()
	const listing = "get: /a\ncandidates: response.json.?items.orValue([])\nours: found.id == 1\n" +
		"tie: unique\nid: found.id\ncreated: found.at\nabsence_is_proof: true"
	const steps = "steps: [{name: a, get: /a}, {name: b, get: /b, absence_is_proof: true, " +
		`observe: [{when: "!steps.a.json.?x.hasValue()", is: absent}]}]`
	const state = `observe: [{when: response.status == 404, is: absent}, {when: response.json.?sent.orValue(false), is: applied}, ` +
		"{when: 'true', is: absent}]"
	const text = `observe: [{when: "!response.text.contains('ours')", is: absent}]`
	const expected = "get: /a\nexpect: response.status in [200, 204, 404]\nabsence_is_proof: true\n"
	for name, tc := range map[string]struct {
		probe, body, declared string
		status                int
		want                  Seen
	}{
		"a listing that leaves its list out":   {listing, `{}`, "application/json", 200, SeenAbsent},
		"a listing that is declared otherwise": {listing, `{}`, "text/plain", 200, SeenAbsent},
		"a page":                               {listing, `<html>Please log in</html>`, "text/html", 200, SeenRetry},
		"a page that isn't declared":           {listing, `<html>Please log in</html>`, "", 200, SeenRetry},
		"nothing":                              {listing, ``, "application/json", 200, SeenRetry},
		"a step's page":                        {steps, `<html>`, "text/html", 200, SeenRetry},
		"a page, where a state was looked for": {expected + state, `<html>`, "text/html", 200, SeenRetry},
		"a state that is told by its status":   {expected + state, `<html>`, "text/html", 404, SeenAbsent},
		"a status that comes without content":  {expected + state, ``, "", 204, SeenAbsent},
		"a page that is read as text":          {"get: /a\n" + text, `<html>`, "text/html", 200, SeenAbsent},
	} {
		_, op := operation(t, probing(tc.probe))
		a := begin(t, op, request(t, "POST https://api.test/things/x", `{}`))
		for _, more := a.Next(); more; _, more = a.Next() {
			answer := &Response{Status: tc.status, Header: http.Header{}, Body: []byte(tc.body), Complete: true}
			if tc.declared != "" {
				answer.Header.Set("Content-Type", tc.declared)
			}
			a.Answer(answer)
		}
		if o := a.Observation(nobody, Clocks{}); o.Seen != tc.want || o.Seen == SeenRetry && !strings.Contains(o.Reason, "no JSON") {
			t.Errorf("%s: saw %v (%s), want %v", name, o.Seen, o.Reason, tc.want)
		}
	}
}
