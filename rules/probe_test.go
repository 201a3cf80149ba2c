package rules

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"keep-proxy/internal/verdict"
)

// probing is an operation with one probe.
func probing(probe string) string {
	return `
  - name: make
    match: {method: POST, path: "/things/{kind}"}
    effect: mutation
    identity: {kind: path.kind}
    native_key: {header: k}
    marker: {json: mark}
    reconcile:
      - probe:
          ` + strings.ReplaceAll(strings.TrimSpace(probe), "\n", "\n          ") + "\n"
}

// listingProbe is a probe of a listing with pages.
const listingProbe = `
get: "/things/{path.kind}/list"
query: {ref: {cel: json.?ref}, n: 100, q: ["a b", "c"]}
header: {x-a: {cel: mutation.id}}
pages: {more: response.json.more, set: {cursor: {cel: response.json.next}}, max: 3}
candidates: response.json.items
ours: found.?mark.orValue('') == mutation.marker
tie: marker
id: found.id
absence_is_proof: true
result: {status: 201, header: {location: {cel: "'/things/' + found.id"}}, json: {thing: {cel: found}, none: {cel: found.?nothing}, of: "test"}}
`

// contentProbe ties objects by content and time.
const contentProbe = `
get: /list
candidates: response.json
ours: found.n == 1
tie: content
id: string(found.id)
created: found.at
`

// begin starts the operation's probe.
func begin(tb testing.TB, op *Operation, req *Request) *Asking {
	tb.Helper()
	a, err := op.Strategies[0].Probe.Begin(Env{Request: req, Mutation: sample(), Account: "acc"})
	if err != nil {
		tb.Fatal(err)
	}
	return a
}

// ok is a whole answer of 200.
func ok(body string) *Response { return &Response{Status: 200, Body: []byte(body), Complete: true} }

// nobody claims no object for another mutation.
func nobody(string) bool { return false }

func TestProbeAsksAsTheRuleSays(t *testing.T) {
	t.Parallel()
	_, op := operation(t, probing(listingProbe))
	a := begin(t, op, request(t, "POST https://api.test:8443/things/a%2Fb", `{"ref":"R&1"}`))
	ask, more := a.Next()
	if !more {
		t.Fatal("nothing is asked")
	}
	want := "GET https api.test:8443 /things/a%2Fb/list?ref=R%261&n=100&q=a%20b&q=c"
	if got := fmt.Sprintf("%s %s %s %s", ask.Method, ask.Scheme, ask.Authority, ask.Target); got != want {
		t.Errorf("asks %s\nwant %s", got, want)
	}
	if ask.Header.Get("X-A") != CaseID || ask.Header.Get("Accept") != "application/json" || ask.Body != nil {
		t.Errorf("header %v, body %q", ask.Header, ask.Body)
	}
	if again, _ := a.Next(); again != ask {
		t.Error("asking twice without an answer gives another request")
	}
	absent := begin(t, op, request(t, "POST https://api.test/things/x", `{}`))
	if ask, _ := absent.Next(); ask.Target != "/things/x/list?n=100&q=a%20b&q=c" {
		t.Errorf("an absent optional: %s", ask.Target)
	}
}

func TestProbeByPost(t *testing.T) {
	t.Parallel()
	_, op := operation(t, probing(`
post: /search
json: {query: "query($id: ID!) { a }", variables: {id: {cel: mutation.vendor_key}, gone: {cel: json.?gone}, n: 1.50, l: [{cel: json.?gone}, true, null]}}
observe: [{when: response.json.found, is: applied}]
`))
	a := begin(t, op, request(t, "POST https://api.test/things/x", `{}`))
	ask, _ := a.Next()
	want := `{"query":"query($id: ID!) { a }","variables":{"id":"` + CaseVendorKey + `","n":1.50,"l":[true,null]}}`
	if ask.Method != http.MethodPost || string(ask.Body) != want || ask.Header.Get("Content-Type") != "application/json" {
		t.Errorf("asks %s %v %s\nwant %s", ask.Method, ask.Header, ask.Body, want)
	}
}

func TestInsertionsThatWouldChangeThePathStopTheProbe(t *testing.T) {
	t.Parallel()
	cases := []struct{ path, body, want string }{
		{"/a/{json.x}/b", `{"x":"c d/e"}`, "/a/c%20d%2Fe/b"},
		{"/a/{json.x}/b", `{"x":7}`, "/a/7/b"},
		{"/a/{json.x...}", `{"x":"c/d e"}`, "/a/c/d%20e"},
		{"/a/{json.x}", `{"x":"é?#%"}`, "/a/%C3%A9%3F%23%25"},
		{"/a/{json.x}/b", `{"x":".."}`, ""},
		{"/a/{json.x}/b", `{"x":"."}`, ""},
		{"/a/{json.x}/b", `{"x":""}`, ""},
		{"/a/{json.x}/b", `{"x":null}`, ""},
		{"/a/{json.x}/b", `{"x":[1]}`, ""},
		{"/a/{json.x}/b", `{"x":{}}`, ""},
		{"/a/{json.x}/b", `{}`, ""},
		{"/a/{json.?x}/b", `{}`, ""},
		{"/a/{json.x}/b", `{"x":"c\\d"}`, ""},
		{"/a/{json.x}/b", `{"x":"c\u0000"}`, ""},
		{"/a/{json.x}/b", `{"x":"c/../d"}`, ""},
		{"/a/{json.x...}", `{"x":"c/../d"}`, ""},
		{"/a/{json.x...}", `{"x":"c//d"}`, ""},
		{"/a/{json.x...}", `{"x":"/c"}`, ""},
		{"/a/{json.x}{json.x}", `{"x":"."}`, ""},
	}
	for _, tc := range cases {
		_, op := operation(t, probing("get: \""+tc.path+"\"\nobserve: [{when: 'true', is: applied}]"))
		a, err := op.Strategies[0].Probe.Begin(Env{Request: request(t, "POST https://api.test/things/x", tc.body), Mutation: sample()})
		switch {
		case tc.want == "" && err == nil:
			t.Errorf("%s with %s asks %s", tc.path, tc.body, a.next.Target)
		case tc.want != "" && (err != nil || a.next.Target != tc.want):
			t.Errorf("%s with %s: %v, %v, want %s", tc.path, tc.body, a, err, tc.want)
		}
	}
	_, op := operation(t, probing("get: /a\nobserve: [{when: 'true', is: applied}]"))
	if _, err := op.Strategies[0].Probe.Begin(Env{}); err == nil {
		t.Error("a probe without a request begins")
	}
}

func TestListings(t *testing.T) {
	t.Parallel()
	const mine = `{"id":"i1","mark":"` + CaseMarker + `"}`
	const mine2 = `{"id":"i2","mark":"` + CaseMarker + `"}`
	others := func(ids ...string) func(string) bool {
		return func(id string) bool { return slices.Contains(ids, id) }
	}
	page := func(items, next string) *Response {
		return ok(`{"items":[` + items + `],"more":` + fmt.Sprint(next != "") + `,"next":"` + next + `"}`)
	}
	cases := []struct {
		name    string
		answers []*Response
		claimed func(string) bool
		seen    Seen
		ids     []string
		part    string
	}{
		{"found on the only page", []*Response{page(mine+`,{"id":"x"}`, "")}, nobody, SeenApplied, []string{"i1"}, "i1 is ours"},
		{"found on the last page", []*Response{page(`{"id":"x"}`, "2"), page(``, "3"), page(mine, "")}, nobody, SeenApplied, []string{"i1"}, "ours"},
		{"not there", []*Response{page(`{"id":"x"}`, "2"), page(``, "")}, nobody, SeenAbsent, nil, "nothing of it in 2 pages"},
		{"twice", []*Response{page(mine, "2"), page(mine2, "")}, nobody, SeenDuplicate, []string{"i1", "i2"}, "2 objects are ours"},
		{"one object on two pages", []*Response{page(mine, "2"), page(mine, "")}, nobody, SeenApplied, []string{"i1"}, "ours"},
		{"goes on beyond max", []*Response{page(mine, "2"), page(``, "3"), page(``, "4")}, nobody, SeenRetry, nil, "goes on after 3 pages"},
		{"goes in a circle", []*Response{page(``, "2"), page(``, "2")}, nobody, SeenRetry, nil, "read already"},
		{"another's", []*Response{page(mine, "")}, others("i1"), SeenRetry, nil, "belongs to another mutation"},
		{"ours and another's under one marker", []*Response{page(mine+","+mine2, "")}, others("i1"), SeenRetry, nil, "belongs to another mutation"},
		{"nobody knows whose", []*Response{page(mine, "")}, nil, SeenRetry, nil, "belongs to another mutation"},
		{"404", []*Response{{Status: 404, Body: []byte(`{"items":[]}`), Complete: true}}, nobody, SeenRetry, nil, "404 instead of 200"},
		{"401 on the second page", []*Response{page(``, "2"), {Status: 401, Complete: true}}, nobody, SeenRetry, nil, "401"},
		{"no whole answer", []*Response{nil}, nobody, SeenRetry, nil, "no whole answer"},
		{"a cut answer", []*Response{{Status: 200, Body: []byte(`{"items":[]`)}}, nobody, SeenRetry, nil, "no whole answer"},
		{"no JSON", []*Response{ok(`<html>`)}, nobody, SeenRetry, nil, "candidates"},
		{"JSON that repeats a name", []*Response{ok(`{"items":[],"items":[],"more":false}`)}, nobody, SeenRetry, nil, "repeats"},
		{"no list", []*Response{ok(`{"items":{},"more":false}`)}, nobody, SeenRetry, nil, "no list"},
		{"nothing about more", []*Response{ok(`{"items":[]}`)}, nobody, SeenRetry, nil, "more can't be evaluated"},
		{"an object without an id", []*Response{page(`{"mark":"`+CaseMarker+`"}`, "")}, nobody, SeenRetry, nil, "id"},
		{"an object with an empty id", []*Response{page(`{"id":"","mark":"`+CaseMarker+`"}`, "")}, nobody, SeenRetry, nil, "id"},
		{"an object that can't be judged", []*Response{page(`{"id":"x","mark":7}`, "")}, nobody, SeenAbsent, nil, "nothing"},
		{"an element that is no object", []*Response{page(`7`, "")}, nobody, SeenAbsent, nil, "nothing"},
		{"not asked to the end", []*Response{page(``, "2")}, nobody, SeenRetry, nil, "did not run to its end"},
		{"never asked", nil, nobody, SeenRetry, nil, "did not run to its end"},
		{"an answer too many", []*Response{page(mine, ""), page(``, "")}, nobody, SeenRetry, nil, "no question"},
	}
	_, op := operation(t, probing(listingProbe))
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			a := begin(t, op, request(t, "POST https://api.test/things/x", `{}`))
			for _, answer := range tc.answers {
				a.Answer(answer)
			}
			o := a.Observation(tc.claimed, Clocks{})
			if o.Seen != tc.seen || !slices.Equal(o.ObjectIDs, tc.ids) || !strings.Contains(o.Reason, tc.part) {
				t.Errorf("saw %v %v (%s), want %v %v (…%s…)", o.Seen, o.ObjectIDs, o.Reason, tc.seen, tc.ids, tc.part)
			}
			if o.Tie != TieMarker || !o.Tie.Strong() || !o.AbsenceIsProof {
				t.Errorf("tie %v, proof %v", o.Tie, o.AbsenceIsProof)
			}
			if present := o.Seen == SeenApplied || o.Seen == SeenDuplicate; present != (o.Result != nil) {
				t.Errorf("saw %v with result %v", o.Seen, o.Result)
			}
		})
	}
}

func TestPagesChangeTheQueryAndNothingElse(t *testing.T) {
	t.Parallel()
	_, op := operation(t, probing(listingProbe))
	a := begin(t, op, request(t, "POST https://api.test/things/x", `{"ref":"r"}`))
	a.Answer(ok(`{"items":[],"more":true,"next":"c 2"}`))
	ask, _ := a.Next()
	if want := "/things/x/list?ref=r&n=100&q=a%20b&q=c&cursor=c%202"; ask.Target != want {
		t.Errorf("asks %s, want %s", ask.Target, want)
	}
	a.Answer(ok(`{"items":[],"more":true,"next":"c3"}`))
	ask, _ = a.Next()
	if want := "/things/x/list?ref=r&n=100&q=a%20b&q=c&cursor=c3"; ask.Target != want || ask.Header.Get("X-A") != CaseID {
		t.Errorf("asks %s %v, want %s", ask.Target, ask.Header, want)
	}
}

func TestResultIsBuiltFromWhatWasFound(t *testing.T) {
	t.Parallel()
	_, op := operation(t, probing(listingProbe))
	a := begin(t, op, request(t, "POST https://api.test/things/x", `{}`))
	a.Answer(ok(`{"items":[{"z":12345678901234567890,"id":"i1","a":1.50,"mark":"` + CaseMarker + `"}],"more":false}`))
	r := a.Observation(nobody, Clocks{}).Result
	want := `{"thing":{"z":12345678901234567890,"id":"i1","a":1.50,"mark":"` + CaseMarker + `"},"of":"test"}`
	if r.Status != 201 || string(r.Body) != want || r.Header.Get("Location") != "/things/i1" || r.Header.Get("Content-Type") != "application/json" {
		t.Errorf("result %d %v %s\nwant %s", r.Status, r.Header, r.Body, want)
	}
}

// Of several objects the oldest is the one that is kept, and what a script gets.
func TestTheResultOfADuplicateIsTheOldestOnes(t *testing.T) {
	t.Parallel()
	_, op := operation(t, probing(strings.TrimSpace(contentProbe)+"\nresult: {json: {id: {cel: found.id}}}"))
	a := begin(t, op, request(t, "POST https://api.test/things/x", `{}`))
	at := func(d time.Duration) string { return sample().ClaimedAt.Add(d).Format(time.RFC3339) }
	a.Answer(ok(fmt.Sprintf(`[{"id":3,"n":1,"at":%q},{"id":1,"n":1,"at":%q},{"id":2,"n":1,"at":%q}]`,
		at(3*time.Second), at(time.Second), at(2*time.Second))))
	o := a.Observation(nobody, Clocks{Measured: true, SameBoot: true})
	if o.Seen != SeenDuplicate || !slices.Equal(o.ObjectIDs, []string{"1", "2", "3"}) || o.Result == nil || string(o.Result.Body) != `{"id":1}` {
		t.Errorf("saw %v of %v with %+v", o.Seen, o.ObjectIDs, o.Result)
	}
}

func TestContentCountsOnlyWhatIsYoungEnough(t *testing.T) {
	t.Parallel()
	_, op := operation(t, probing(contentProbe))
	claimed := sample().ClaimedAt
	at := func(id int, d time.Duration) string {
		return fmt.Sprintf(`{"id":%d,"n":1,"at":%q}`, id, claimed.Add(d).Format(time.RFC3339))
	}
	cases := []struct {
		name    string
		body    string
		diff    time.Duration
		ahead   time.Duration
		claimed string
		seen    Seen
		ids     []string
	}{
		{"created after the claim", at(1, time.Second), 0, 0, "", SeenApplied, []string{"1"}},
		{"created at the claim", at(1, 0), 0, 0, "", SeenApplied, []string{"1"}},
		{"created just before the claim", at(1, -time.Second), 0, 0, "", SeenRetry, nil},
		{"created at the margin", at(1, -2*time.Minute), 0, 0, "", SeenRetry, nil},
		{"created before the margin", at(1, -2*time.Minute-time.Second), 0, 0, "", SeenAbsent, nil},
		{"created within the clocks' difference", at(1, -4*time.Minute), 3 * time.Minute, 0, "", SeenRetry, nil},
		{"the difference in the other direction", at(1, -4*time.Minute), -3 * time.Minute, 0, "", SeenRetry, nil},
		{"one in the margin spoils the others", at(1, time.Second) + "," + at(2, -time.Second), 0, 0, "", SeenRetry, nil},
		{"an old one is left out", at(1, time.Second) + "," + at(2, -time.Hour), 0, 0, "", SeenApplied, []string{"1"}},
		{"two, newest last", at(1, time.Minute) + "," + at(2, time.Second), 0, 0, "", SeenDuplicate, []string{"2", "1"}},
		{"another's is left out", at(1, time.Minute) + "," + at(2, time.Second), 0, 0, "2", SeenApplied, []string{"1"}},
		{"only another's", at(2, time.Second), 0, 0, "2", SeenRetry, nil},
		{"an old one is nobody's, even if it is another's", at(2, -time.Hour), 0, 0, "2", SeenAbsent, nil},
		{"younger than the claim by a clock that is ahead", at(1, time.Minute), 4 * time.Minute, 3 * time.Minute, "", SeenRetry, nil},
		{"after the claim by a clock that is ahead", at(1, 3*time.Minute), 4 * time.Minute, 3 * time.Minute, "", SeenApplied, []string{"1"}},
		{"after the claim by a clock that is behind", at(1, time.Second), -4 * time.Minute, -5 * time.Minute, "", SeenApplied, []string{"1"}},
		{"no time", `{"id":1,"n":1,"at":"yesterday"}`, 0, 0, "", SeenRetry, nil},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			a := begin(t, op, request(t, "POST https://api.test/things/x", `{}`))
			a.Answer(ok("[" + tc.body + "]"))
			o := a.Observation(func(id string) bool { return id == tc.claimed }, Clocks{tc.diff, tc.ahead, true, true})
			if o.Seen != tc.seen || !slices.Equal(o.ObjectIDs, tc.ids) {
				t.Errorf("saw %v %v (%s), want %v %v", o.Seen, o.ObjectIDs, o.Reason, tc.seen, tc.ids)
			}
			if o.Tie.Strong() || o.AbsenceIsProof || o.Result != nil {
				t.Errorf("tie %v, proof %v, result %v", o.Tie, o.AbsenceIsProof, o.Result)
			}
		})
	}
}

func TestLinks(t *testing.T) {
	t.Parallel()
	_, op := operation(t, probing(strings.Replace(contentProbe, "tie: content", "tie: unique\npages: {next: link, max: 5}", 1)))
	cases := []struct {
		name string
		link []string
		want string // "": no next page; "!": retry
	}{
		{"none", nil, ""},
		{"another relation", []string{`</list?page=1>; rel="prev"`}, ""},
		{"absolute", []string{`<https://api.test/list?page=2>; rel="next"`}, "/list?page=2"},
		{"default port spelt out", []string{`<https://API.test:443/list?page=2>; rel=next`}, "/list?page=2"},
		{"among others", []string{`<https://api.test/list?page=9>; rel="last", </list?page=2>; title="a,b"; rel="foo Next"`}, "/list?page=2"},
		{"on a line of its own", []string{`<x>; rel=prev`, `</list?page=2>; rel=next`}, "/list?page=2"},
		{"fragment", []string{`</list?page=2#x>; rel=next`}, "/list?page=2"},
		{"another host", []string{`<https://evil.test/list?page=2>; rel="next"`}, "!"},
		{"another scheme", []string{`<http://api.test/list?page=2>; rel="next"`}, "!"},
		{"no scheme", []string{`<//evil.test/list>; rel="next"`}, "!"},
		{"user information", []string{`<https://api.test@evil.test/list>; rel="next"`}, "!"},
		{"relative", []string{`<list?page=2>; rel="next"`}, "!"},
		{"dot segments", []string{`</list/../x>; rel="next"`}, "!"},
		{"the same page", []string{`</list>; rel="next"`}, "!"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			a := begin(t, op, request(t, "POST https://api.test/things/x", `{}`))
			answer := ok(`[]`)
			answer.Header = map[string][]string{"Link": tc.link}
			a.Answer(answer)
			ask, more := a.Next()
			switch o := a.Observation(nobody, Clocks{}); {
			case tc.want == "!" && (more || o.Seen != SeenRetry || a.stopped == ""):
				t.Errorf("goes on to %v, saw %v", ask, o)
			case tc.want == "" && (more || o.Seen != SeenAbsent):
				t.Errorf("goes on to %v, saw %v", ask, o)
			case strings.HasPrefix(tc.want, "/") && (!more || ask.Target != tc.want):
				t.Errorf("goes on to %v (%s), want %s", ask, o.Reason, tc.want)
			}
		})
	}
}

func TestStates(t *testing.T) {
	t.Parallel()
	const states = `
get: "/things/{path.kind}"
expect: response.status in [200, 404, 423]
observe:
  - {when: "response.status == 200 && response.json.name == json.name", is: applied}
  - {when: response.status == 404, is: absent}
  - {when: response.status == 423, is: retry}
id: response.json.id
absence_is_proof: true
result: {json: {cel: response.json}}
`
	cases := []struct {
		name    string
		resp    *Response
		claimed string
		seen    Seen
		part    string
	}{
		{"as it was sent", ok(`{"id":"i","name":"n"}`), "", SeenApplied, "name == json.name"},
		{"gone", &Response{Status: 404, Complete: true}, "", SeenAbsent, "404"},
		{"said to be unclear", &Response{Status: 423, Complete: true}, "", SeenRetry, "423"},
		{"another's", ok(`{"id":"i","name":"n"}`), "i", SeenRetry, "another mutation's"},
		{"as something else", ok(`{"id":"i","name":"m"}`), "", SeenRetry, "no condition"},
		{"unreadable", ok(`<html>`), "", SeenRetry, "can't be evaluated"},
		{"without an id", ok(`{"name":"n"}`), "", SeenRetry, "id"},
		{"unexpected", &Response{Status: 500, Complete: true}, "", SeenRetry, "answered 500, which is not what the rule expects"},
	}
	_, op := operation(t, probing(states))
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			a := begin(t, op, request(t, "POST https://api.test/things/x", `{"name":"n"}`))
			a.Answer(tc.resp)
			if _, more := a.Next(); more {
				t.Error("asks more than once")
			}
			o := a.Observation(func(id string) bool { return id == tc.claimed }, Clocks{})
			if o.Seen != tc.seen || !strings.Contains(o.Reason, tc.part) || (o.Seen == SeenApplied) != (o.Result != nil) {
				t.Errorf("saw %+v, want %v (…%s…)", o, tc.seen, tc.part)
			}
		})
	}
}

// What an API answers to a credential that it doesn't know, or while it is down, says
// nothing about a state, whatever its body looks like.
func TestAStateIsJudgedBy200Alone(t *testing.T) {
	t.Parallel()
	const state = "observe: [{when: response.json.?sent.orValue(false), is: applied}, {when: 'true', is: absent}]\nabsence_is_proof: true"
	const more = "{name: b, get: /b, observe: [{when: 'true', is: absent}]}]"
	for name, probe := range map[string]string{
		"a state":               "get: /a\n" + state,
		"a step that ends":      "steps:\n  - {name: a, get: /a, observe: [{when: 'true', is: absent}], absence_is_proof: true}",
		"a step that goes on":   "steps: [{name: a, get: /a, observe: [{when: 'true', step: b}]}, " + more,
		"a step that only asks": "steps: [{name: a, get: /a}, " + more,
	} {
		_, op := operation(t, probing(probe))
		for _, status := range []int{201, 204, 401, 404, 429, 503} {
			a := begin(t, op, request(t, "POST https://api.test/things/x", `{}`))
			a.Answer(answered(status, `{"sent":true}`))
			if o := a.Observation(nobody, Clocks{}); o.Seen != SeenRetry || o.Reason != fmt.Sprintf("the probe was answered %d instead of 200", status) {
				t.Errorf("%s, %d: saw %v (%s)", name, status, o.Seen, o.Reason)
			}
			if _, more := a.Next(); more {
				t.Errorf("%s, %d: it goes on", name, status)
			}
		}
	}
}

func TestExpectDecidesBeforeAnythingIsRead(t *testing.T) {
	t.Parallel()
	_, op := operation(t, probing("expect: response.status == 206\n"+strings.TrimSpace(contentProbe)))
	for status, want := range map[int]Seen{206: SeenAbsent, 200: SeenRetry, 404: SeenRetry} {
		a := begin(t, op, request(t, "POST https://api.test/things/x", `{}`))
		a.Answer(&Response{Status: status, Body: []byte(`[]`), Complete: true})
		if o := a.Observation(nobody, Clocks{}); o.Seen != want {
			t.Errorf("%d: saw %v (%s), want %v", status, o.Seen, o.Reason, want)
		}
	}
}

func TestAResultThatCannotBeBuiltIsRetry(t *testing.T) {
	t.Parallel()
	for _, result := range []string{"{json: {a: {cel: found.gone}}}", "{header: {x: {cel: found.list}}}", "{json: {cel: found.?gone}}", `{header: {x: {cel: "'a\\nb'"}}}`} {
		_, op := operation(t, probing(strings.TrimSpace(contentProbe)+"\nresult: "+result))
		a := begin(t, op, request(t, "POST https://api.test/things/x", `{}`))
		a.Answer(ok(fmt.Sprintf(`[{"id":1,"n":1,"list":[[1]],"at":%q}]`, CaseClaimedAt)))
		if o := a.Observation(nobody, Clocks{}); o.Seen != SeenRetry || o.Result != nil {
			t.Errorf("%s: saw %v (%s)", result, o.Seen, o.Reason)
		}
	}
}

func TestAListingThatGoesOnWithoutPagesIsRetry(t *testing.T) {
	t.Parallel()
	_, op := operation(t, probing(contentProbe))
	a := begin(t, op, request(t, "POST https://api.test/things/x", `{}`))
	answer := ok(`[]`)
	answer.Header = http.Header{"Link": {`</list?page=2>; rel="next"`}}
	a.Answer(answer)
	if o := a.Observation(nobody, Clocks{}); o.Seen != SeenRetry || !strings.Contains(o.Reason, "has no pages") {
		t.Errorf("saw %v (%s)", o.Seen, o.Reason)
	}
}

func TestReasonsOfSecretOperationsQuoteNoValues(t *testing.T) {
	t.Parallel()
	const condition = "success: timestamp(response.json.at) < timestamp('2026-01-01T00:00:00Z')"
	answer := Response{Status: 200, Body: []byte(`{"at":"SECRET"}`), Complete: true}
	_, plain := operation(t, mutationWith(condition))
	_, secret := operation(t, mutationWith(condition+"\n    secret: [response.json.at]"))
	req := request(t, "POST https://api.test/things", "")
	if got := plain.Judge(req, "", Mutation{}, &answer); got.Kind != verdict.OpinionUncertain || !strings.Contains(got.Reason, "evaluated: ") {
		t.Errorf("without secrets: %+v", got)
	}
	if got := secret.Judge(req, "", Mutation{}, &answer); got.Kind != verdict.OpinionUncertain || strings.Contains(got.Reason, "SECRET") || strings.Contains(got.Reason, "evaluated:") {
		t.Errorf("with secrets: %+v", got)
	}
}

func TestVariablesComeFromTheMatchThatFits(t *testing.T) {
	t.Parallel()
	_, op := operation(t, `
  - name: make
    match:
      - {method: POST, path: "/things/{a}", when: json.v == 1}
      - {method: POST, path: "/things/{b}", when: json.v == 2}
    effect: mutation
    identity: {v: json.v}
    describe: "{path.a} {path.b}"
    reconcile: [{none: why}]
    manual_check: look
`)
	for body, want := range map[string]string{`{"v":1}`: "x ?", `{"v":2}`: "? x", `hidden`: "x ?"} {
		if got := op.Describe(Env{Request: request(t, "POST https://api.test/things/x", body)}); got != want {
			t.Errorf("%s: %q, want %q", body, got, want)
		}
	}
}
