package rules

import (
	"net/http"
	"strings"
	"testing"

	"keep-proxy/internal/verdict"
)

// oddBodies hold {"ok": true} besides something that no rule reads.
var oddBodies = []struct{ name, contentType, body string }{
	{"a byte order mark", "application/json", "\xef\xbb\xbf" + `{"ok":true}`},
	{"UTF-16, little end first", "application/json", "\xff\xfe{\x00\"\x00o\x00k\x00\"\x00:\x00t\x00r\x00u\x00e\x00}\x00"},
	{"UTF-16, big end first", "", "\xfe\xff\x00{\x00\"\x00o\x00k\x00\"\x00:\x00t\x00r\x00u\x00e\x00}"},
	{"a charset that is declared and not used", "application/json; charset=ISO-8859-1", `{"ok":true}`},
	{"Latin-1", "application/json;charset=iso-8859-1", "{\"ok\":true,\"name\":\"M\xfcller\"}"},
	{"Shift JIS with a backslash in a character", "application/json; charset=Shift_JIS", "{\"ok\":true,\"name\":\"\x83\x5c\"}"},
	{"a charset that nobody knows, and ASCII", "application/json; charset=x-own", `{"ok":true}`},
	{"US-ASCII with other characters", "application/json; charset=us-ascii", "{\"ok\":true,\"name\":\"ü\"}"},
	{"bytes that are no UTF-8", "application/json", "{\"ok\":true,\"name\":\"M\xfcller\"}"},
	{"a Content-Type that can't be parsed", "application/json; charset=", `{"ok":true}`},
	{"NaN", "application/json", `{"ok":true,"a":NaN,"b":[Infinity,-Infinity],"c":"NaN \" NaN"}`},
	{"half an emoji", "application/json", `{"ok":true,"text":"cut \ud83d"}`},
	{"half an emoji in a name", "application/json", `{"ok":true,"cut \ud83d":1}`},
	{"a number out of range", "application/json", `{"ok":true,"n":1e999}`},
	{"a repeated name", "application/json", `{"ok":true,"note":"a","note":"b","deep":[{"x":1,"x":2}]}`},
}

func declaredAnswer(contentType, body string) *Response {
	header := http.Header{}
	if contentType != "" {
		header.Set("Content-Type", contentType)
	}
	return &Response{Status: 200, Complete: true, Header: header, Body: []byte(body)}
}

func TestWhatNoRuleReadsOfAnAnswerSaysNothing(t *testing.T) {
	t.Parallel()
	_, op := operation(t, simpleMutation+"    success: response.json.ok == true && response.json.exists(k, k == 'ok')\n")
	req := request(t, "POST https://api.test/things/k", `{"name":"n"}`)
	for _, tc := range oddBodies {
		if o := op.Judge(req, "", caseMutation(), declaredAnswer(tc.contentType, tc.body)); o.Kind != verdict.OpinionNone {
			t.Errorf("%s: %v", tc.name, o)
		}
	}
}

func TestTheSameIsRefusedInARequest(t *testing.T) {
	t.Parallel()
	_, op := operation(t, strings.ReplaceAll(simpleMutation, "json.name", "json.ok"))
	for _, tc := range oddBodies {
		if strings.Contains(tc.name, "charset") || strings.Contains(tc.name, "Content-Type") {
			continue
		}
		req, refusal := rawRequest("POST https://api.test/things/k", tc.body, "Content-Type: "+tc.contentType)
		if refusal == nil {
			_, refusal = op.Derive(req, Match{Operation: op, Connector: op.Connector})
		}
		if refusal == nil {
			t.Errorf("%s: taken", tc.name)
		}
	}
}

// Each expression reads what can't be told. None of them may come to anything.
func TestWhatIsReadAndCanNotBeToldIsUncertain(t *testing.T) {
	t.Parallel()
	bodies := []string{
		`{"a":NaN,"list":["x",NaN],"o":{"b":NaN}}`, `{"a":"x\ud83d","list":["x","\udc00"],"o":{"b":"\ud83d"}}`,
		`{"a":true,"a":false,"list":["x",NaN],"o":{"b":1,"b":1}}`, `{"a":1e999,"list":["x",-1e999],"o":{"b":1e999}}`,
		"{\"a\":\"\xff\",\"list\":[\"x\",\"\xff\"],\"o\":{\"b\":\"\xff\"}}",
	}
	for _, expression := range []string{
		"response.json.a", "response.json.a == true", "response.json.a != 7", "response.json.a || true",
		"response.json.?a.orValue(true)", "response.json.?a.hasValue() || true", "!has(response.json.a) || true", "response.json['a'] == null || true",
		"response.json[?'a'] == optional.none() || true", "type(response.json.a) == string || true", "[response.json.a] != []",
		"{'b': 1} != response.json.o", "response.json.o.b == 1 ? true : true",
		"response.json.list == ['x']", "['x', 'y'] != response.json.list", "'y' in response.json.list || true", "response.json.list[1] == 'y' || true",
		"!response.json.list.exists(x, x == 'y')", "response.json.list.all(x, x == 'x' || true)", "response.json.list.map(x, x).size() == 2",
		"response.json.list.filter(x, x == 'x').size() == 1", "last(response.json.list) != 'x'", "(response.json.list + [])[1] != 'q'",
		"(['x'] + response.json.list).exists(x, x == 'z') || true", "response.json.exists(k, response.json[k] == 7) || true",
		"response.json.list.exists_one(x, x == 'x') || true",
	} {
		_, op := operation(t, simpleMutation+"    success: \""+expression+"\"\n")
		req := request(t, "POST https://api.test/things/k", `{"name":"n"}`)
		for _, body := range bodies {
			if o := op.Judge(req, "", caseMutation(), declaredAnswer("application/json", body)); o.Kind != verdict.OpinionUncertain {
				t.Errorf("%s of %s: %v", expression, body, o)
			}
		}
	}
}

func TestTextOfAnAnswerIsReadInItsCharset(t *testing.T) {
	t.Parallel()
	_, op := operation(t, simpleMutation+"    success: response.text == 'Müller'\n")
	req := request(t, "POST https://api.test/things/k", `{"name":"n"}`)
	for body, want := range map[*Response]verdict.OpinionKind{
		declaredAnswer("text/plain; charset=ISO-8859-1", "M\xfcller"):        verdict.OpinionNone,
		declaredAnswer("text/plain; charset=latin1", "M\xfcller"):            verdict.OpinionNone,
		declaredAnswer("text/plain", "\xef\xbb\xbfMüller"):                   verdict.OpinionNone,
		declaredAnswer("text/plain; charset=utf-8", "M\xfcller"):             verdict.OpinionUncertain,
		declaredAnswer("text/plain; charset=x-own", "M\xfcller"):             verdict.OpinionUncertain,
		declaredAnswer("text/plain; charset=shift_jis", "M\xc3\xbcller\xff"): verdict.OpinionUncertain,
	} {
		if o := op.Judge(req, "", caseMutation(), body); o.Kind != want {
			t.Errorf("%s: %v", body.Header, o)
		}
	}
}

const oddListing = `
  - name: make
    match: {method: POST, path: /things}
    effect: mutation
    identity: {ref: json.ref}
    reconcile:
      - probe:
          get: /things
          candidates: response.json.items.filter(i, !has(i.gone))
          ours: found.?ref.orValue('') == json.ref
          tie: unique
          id: found.id
          created: found.at
          absence_is_proof: true
          result: {json: {cel: found}}
`

func TestAListingIsReadAsFarAsTheRuleReadsIt(t *testing.T) {
	t.Parallel()
	ours := `{"id":"1","ref":"r","at":"2026-01-02T03:04:06Z"`
	for _, tc := range []struct {
		name, items string
		want        Seen
		result      string
	}{
		{"other members", ours + `,"score":NaN,"low":-Infinity,"text":"cut \ud83d","n":1,"n":2}`, SeenApplied,
			ours + `,"score":null,"low":null,"text":"cut \ud83d","n":1,"n":2}`},
		{"of another object", `{"id":"2","ref":"other","score":NaN},` + ours + `}`, SeenApplied, ours + `}`},
		{"what tells whose it is", `{"id":"2","ref":"r\ud83d"}`, SeenRetry, ""},
		{"a repeated ref", `{"id":"2","ref":"x","ref":"y"}`, SeenRetry, ""},
		{"whether it is gone", `{"id":"2","ref":"x","gone":NaN}`, SeenRetry, ""},
		{"a repeated id", ours + `,"id":"2"}`, SeenRetry, ""},
		{"an element that is no value", `NaN`, SeenRetry, ""},
		{"none of ours", `{"id":"2","ref":"x","score":NaN}`, SeenAbsent, ""},
	} {
		_, op := operation(t, oddListing)
		req := request(t, "POST https://api.test/things", `{"ref":"r"}`, "Content-Type: application/json")
		asking, err := op.Strategies[0].Probe.Begin(Env{Request: req, Mutation: caseMutation()})
		if err != nil {
			t.Fatal(err)
		}
		asking.Answer(declaredAnswer("application/json", `{"items":[`+tc.items+`],"took":NaN}`))
		o := asking.Observation(func(string) bool { return false }, Clocks{Measured: true, SameBoot: true})
		if o.Seen != tc.want || o.Seen == SeenApplied && len(o.Result.Body) != len(tc.result) {
			t.Errorf("%s: %+v", tc.name, o)
			if o.Result != nil {
				t.Errorf("result %s", o.Result.Body)
			}
		}
	}
}

// Of a weak tie another value in a field of the request may be somebody else's. One that can't be told is another.
func TestAFieldThatCanNotBeToldIsNotTheRequests(t *testing.T) {
	t.Parallel()
	_, op := operation(t, oddListing)
	req := request(t, "POST https://api.test/things", `{"ref":"r","note":"n","deep":{"x":1}}`, "Content-Type: application/json")
	for _, member := range []string{`"note":"n","note":"n"`, `"note":"n\ud83d"`, `"deep":{"x":1,"x":1}`, `"deep":{"x":1},"deep":{"x":1}`} {
		asking, err := op.Strategies[0].Probe.Begin(Env{Request: req, Mutation: caseMutation()})
		if err != nil {
			t.Fatal(err)
		}
		asking.Answer(declaredAnswer("application/json", `{"items":[{"id":"1","ref":"r","at":"2026-01-02T03:04:06Z",`+member+`}]}`))
		if o := asking.Observation(func(string) bool { return false }, Clocks{Measured: true, SameBoot: true}); o.Seen != SeenRetry {
			t.Errorf("%s: %+v", member, o)
		}
	}
}

func TestAnAccountThatCanNotBeToldIsAnError(t *testing.T) {
	t.Parallel()
	set := load(t, strings.ReplaceAll(connectorHead, "operations:", "account: {get: /me, value: response.json.id, cache: 1m}\noperations:")+simpleMutation)
	read := set.Connectors()[0].AccountRead
	req := request(t, "POST https://api.test/things/k", `{"name":"n"}`)
	if got, err := read.Account(req, declaredAnswer("application/json", "\xef\xbb\xbf"+`{"id":"a","x":NaN}`)); got != "a" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	for _, body := range []string{`{"id":"a","id":"a"}`, `{"id":"a\ud83d"}`, `{"id":NaN}`, `NaN`} {
		if got, err := read.Account(req, declaredAnswer("application/json", body)); err == nil {
			t.Errorf("%s: %q", body, got)
		}
	}
}

func TestASecretThatCanNotBeToldIsMasked(t *testing.T) {
	t.Parallel()
	_, op := operation(t, simpleMutation+"    secret: [response.json.token]\n")
	for body, want := range map[*Response]string{
		declaredAnswer("application/json", `{"token":"SECRET\ud83d","n":NaN}`):                               `{"token":"<secret>","n":null}`,
		declaredAnswer("application/json; charset=iso-8859-1", "{\"token\":\"SECRET\",\"n\":\"M\xfcller\"}"): `{"token":"<secret>","n":"Müller"}`,
	} {
		got := op.RedactResponse(body)
		if string(got.Body) != want || got.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s %v", got.Body, got.Header)
		}
	}
}

// However odd an answer is, what can be read strictly is read in the same way, and evaluating never panics.
func FuzzAnswer(f *testing.F) {
	for _, tc := range oddBodies {
		f.Add(tc.contentType, []byte(tc.body))
	}
	e, err := compileExpr("response.json == response.json && response.json.a.exists(x, x == 1) && response.text != ''", inAnswer)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, contentType string, body []byte) {
		a := newAnswer(declaredAnswer(contentType, string(body)))
		v, problem := a.json()
		if strict, err := parseJSON(body); err == nil && problem == nil && contentType == "application/json" && string(canonicalValue(v)) != string(canonicalValue(strict)) {
			t.Errorf("%s, strictly %s", canonicalValue(v), canonicalValue(strict))
		}
		_, _, _ = e.eval(&scope{req: (&Request{}).WithBody(nil), resp: a})
	})
}
