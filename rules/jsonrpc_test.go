package rules

import (
	"net/http"
	"strings"
	"testing"

	"keep-proxy/internal/verdict"
)

// byCall takes calls of JSON-RPC.
const byCall = connectorHead + `
  - name: look
    match: {method: POST, path: /rpc, jsonrpc: {method: [list, get], answer: true}}
    effect: read
  - name: pay
    match: {method: POST, path: /rpc, jsonrpc: {method: pay}, when: "!jsonrpc.notification || jsonrpc.params.fast"}
    effect: mutation
    identity: {order: jsonrpc.params.order}
    payload: {ignore: [jsonrpc.params.at]}
    reconcile: [{none: why}]
    manual_check: "{jsonrpc.method} {jsonrpc.params.order} {jsonrpc.id}"
  - name: said
    match: {method: POST, path: /rpc, jsonrpc: {method: said}}
    effect: mutation
    identity: none
    outcome: [{when: "response.status == 200 && response.jsonrpc.?error.?code.orValue(0) == 7", then: failed, class: logic}, {when: "response.jsonrpc.?result.?done.orValue(false)", then: applied}]
    reconcile: [{none: why}]
    manual_check: look
  - name: other
    match: {method: POST, path: /rpc, when: "query.?kind.orValue('') == 'other'"}
    before: [look, pay, said]
    effect: ignore
`

func rpc(tb testing.TB, body string, header ...string) *Request {
	tb.Helper()
	return request(tb, "POST https://api.test/rpc", body, append(header, "Content-Type: application/json")...)
}

func TestACallIsToldByItsMethod(t *testing.T) {
	t.Parallel()
	set := load(t, byCall)
	for body, want := range map[string]string{
		`{"jsonrpc":"2.0","id":1,"method":"list"}`:                                              "look read",
		`{"jsonrpc":"2.0","id":"a","method":"pay","params":{"order":"o"}}`:                      "pay mutation",
		`{"jsonrpc":"2.0","method":"pay","params":{"order":"o","fast":true}}`:                   "pay mutation",
		`[{"jsonrpc":"2.0","id":1,"method":"list"},{"jsonrpc":"2.0","id":2,"method":"get"}]`:    "look read",
		`{"jsonrpc":"2.0","id":1,"result":null}`:                                                "look read",
		`[{"jsonrpc":"2.0","id":1,"error":{"code":1}},{"jsonrpc":"2.0","id":2,"method":"get"}]`: "look read",
		`{"jsonrpc":"2.0","id":1,"method":"pay","params":{"order":"o"},"result":{}}`:            "pay mutation",
	} {
		if m := set.Match(rpc(t, body)); m.Operation == nil || m.Operation.Name+" "+m.Effect.String() != want || m.Refusal != nil {
			t.Errorf("%s: %+v", body, m)
		}
	}
	raw := Raw{Method: "POST", Scheme: "https", Authority: "api.test", Target: "/rpc", HasBody: true}
	if req, _ := Normalise(raw); !set.Match(req).NeedsBody {
		t.Error("it is told without its body")
	}
}

func TestCallsThatAreRefused(t *testing.T) {
	t.Parallel()
	set := load(t, byCall)
	const list, pay = `{"jsonrpc":"2.0","id":1,"method":"list"}`, `{"jsonrpc":"2.0","id":2,"method":"pay","params":{"order":"o"}}`
	for name, c := range map[string]struct {
		body    string
		problem Problem
		part    string
	}{
		"a list with a change":        {"[" + list + "," + pay + "]", ProblemDenied, "list of JSON-RPC calls"},
		"a list of one change":        {"[" + pay + "]", ProblemDenied, "list of JSON-RPC calls"},
		"a list with an unknown call": {"[" + list + `,{"jsonrpc":"2.0","id":1,"method":"x"}]`, ProblemDenied, "list of JSON-RPC calls"},
		"a list of nothing":           {"[]", ProblemDenied, "list of JSON-RPC calls"},
		"a list in a list":            {"[[" + list + "]]", ProblemDenied, "list of JSON-RPC calls"},
		"a list of no calls":          {"[1]", ProblemDenied, "list of JSON-RPC calls"},
		"a list that is too long":     {"[" + strings.Repeat(list+",", maxBatch) + list + "]", ProblemDenied, "list of JSON-RPC calls"},
		"a method that nobody names":  {`{"jsonrpc":"2.0","id":1,"method":"drop"}`, ProblemUnmatched, ""},
		"another version":             {`{"jsonrpc":"1.0","id":1,"method":"list"}`, ProblemUnmatched, ""},
		"no version":                  {`{"id":1,"method":"list"}`, ProblemUnmatched, ""},
		"a name in another case":      {`{"jsonrpc":"2.0","id":1,"method":"list","Method":"pay"}`, ProblemAmbiguous, "only in case"},
		"a name that comes again":     {`{"jsonrpc":"2.0","id":1,"method":"list","method":"pay"}`, ProblemAmbiguous, "repeats"},
		"a method that is no text":    {`{"jsonrpc":"2.0","id":1,"method":1}`, ProblemAmbiguous, "no method"},
		"an id that is a list":        {`{"jsonrpc":"2.0","id":[1],"method":"list"}`, ProblemAmbiguous, "no method, or an id"},
		"neither call nor answer":     {`{"jsonrpc":"2.0","id":1}`, ProblemAmbiguous, "no method"},
		"a call without a name":       {`{"jsonrpc":"2.0","id":1,"method":"","result":1}`, ProblemUnmatched, ""},
		"an answer in another case":   {`{"jsonrpc":"2.0","id":1,"result":1,"METHOD":"pay"}`, ProblemAmbiguous, "only in case"},
		"no JSON":                     {`{"jsonrpc":`, ProblemAmbiguous, "can't be parsed"},
		"text":                        {`list`, ProblemAmbiguous, "can't be parsed"},
	} {
		m := set.Match(rpc(t, c.body))
		if m.Effect.passes() {
			t.Errorf("%s passes", name)
		}
		t.Run(name, func(t *testing.T) { t.Parallel(); wantRefusal(t, m.Refusal, c.problem, c.part) })
	}
}

func TestTheIDOfACallIsNoPayload(t *testing.T) {
	t.Parallel()
	set := load(t, byCall)
	first := rpc(t, `{"jsonrpc":"2.0","id":1,"method":"pay","params":{"order":"o","amount":1,"at":2}}`)
	a := derive(t, set, first)
	if identityOf(a) != `{"order":"o"}` {
		t.Error(identityOf(a))
	}
	op := set.Match(first).Operation
	if got := op.ManualCheckText(Env{Request: first}); got != "pay o 1" {
		t.Error(got)
	}
	if got := op.ManualCheckText(Env{Request: rpc(t, `{"jsonrpc":"2.0","notification":true,"method":"pay","params":{"order":"o"},"id":null}`)}); got != "pay o null" {
		t.Error(got)
	}
	for body, want := range map[string]Likeness{
		`{"method":"pay","jsonrpc":"2.0","id":"b","params":{"amount":1,"order":"o"}}`: Equivalent,
		`{"jsonrpc":"2.0","id":1,"method":"pay","params":{"order":"o","amount":2}}`:   Significant,
	} {
		other := rpc(t, body)
		b := derive(t, set, other)
		if got := op.Compare(first, other); got.Likeness != want || (a.PayloadDigest == b.PayloadDigest) != (want == Equivalent) {
			t.Errorf("%s: %+v", body, got)
		}
	}
}

func TestASuccessMustBeTheResultOfTheCall(t *testing.T) {
	t.Parallel()
	set := load(t, byCall)
	call := func(method string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{"order":"o"}}`
	}
	const notified = `{"jsonrpc":"2.0","method":"pay","params":{"order":"o","fast":true}}`
	for name, c := range map[string]struct {
		request string
		status  int
		answer  string
		want    verdict.OpinionKind
	}{
		"its result":                      {call("pay"), 200, `{"jsonrpc":"2.0","id":1,"result":null}`, verdict.OpinionNone},
		"its result beside no error":      {call("pay"), 200, `{"jsonrpc":"2.0","id":1,"result":{},"error":null}`, verdict.OpinionNone},
		"an error":                        {call("pay"), 200, `{"jsonrpc":"2.0","id":1,"error":{"code":-1}}`, verdict.OpinionUncertain},
		"a result and an error":           {call("pay"), 200, `{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":-1}}`, verdict.OpinionUncertain},
		"neither":                         {call("pay"), 200, `{"jsonrpc":"2.0","id":1}`, verdict.OpinionUncertain},
		"another call's":                  {call("pay"), 200, `{"jsonrpc":"2.0","id":"1","result":{}}`, verdict.OpinionUncertain},
		"nobody's":                        {call("pay"), 200, `{"jsonrpc":"2.0","result":{}}`, verdict.OpinionUncertain},
		"another version":                 {call("pay"), 200, `{"id":1,"result":{}}`, verdict.OpinionUncertain},
		"no JSON":                         {call("pay"), 200, `<html>`, verdict.OpinionUncertain},
		"nothing":                         {call("pay"), 202, ``, verdict.OpinionUncertain},
		"an error by its status":          {call("pay"), 400, `{}`, verdict.OpinionNone},
		"nothing to a notification":       {notified, 202, ``, verdict.OpinionNone},
		"what the rule says of an error":  {call("said"), 200, `{"jsonrpc":"2.0","id":1,"error":{"code":7}}`, verdict.OpinionFailed},
		"what the rule says of a result":  {call("said"), 200, `{"jsonrpc":"2.0","id":1,"result":{"done":true}}`, verdict.OpinionApplied},
		"what the rule doesn't speak of":  {call("said"), 200, `{"jsonrpc":"2.0","id":1,"error":{"code":8}}`, verdict.OpinionUncertain},
		"what the rule takes for nothing": {call("said"), 200, `{"id":1,"error":{"code":7}}`, verdict.OpinionUncertain},
	} {
		req := rpc(t, c.request)
		op := set.Match(req).Operation
		resp := &Response{Status: c.status, Header: http.Header{"Content-Type": {"application/json"}}, Body: []byte(c.answer), Complete: true}
		if got := op.Judge(req, "", Mutation{}, resp); got.Kind != c.want {
			t.Errorf("%s: %+v", name, got)
		}
		if !op.JudgesBody() || !op.BodyDecides(req, "", Mutation{}, resp) {
			t.Errorf("%s: the body isn't needed", name)
		}
	}
}

func TestAnAnswerIsReaddressed(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"jsonrpc":"2.0", "result":{"id":9,"n":1.50}, "id":1}`: `{"jsonrpc":"2.0", "result":{"id":9,"n":1.50}, "id":"new"}`,
		`{"id":1,"jsonrpc":"2.0","error":{}}`:                   `{"id":"new","jsonrpc":"2.0","error":{}}`,
		`{"id":"new","jsonrpc":"2.0","result":1}`:               "",
		`{"id":null,"jsonrpc":"2.0","error":{}}`:                "",
		`{"id":1,"result":1}`:                                   "",
		`{"jsonrpc":"2.0","result":1}`:                          "",
		`{"jsonrpc":"2.0","id":1,"id":2}`:                       "",
		`[]`:                                                    "",
		``:                                                      "",
	} {
		if got := string(Readdress([]byte(body), []byte(`"new"`))); got != want {
			t.Errorf("%s: %s, want %s", body, got, want)
		}
	}
	set := load(t, byCall)
	for body, want := range map[string]string{
		`{"jsonrpc":"2.0","id":1.0,"method":"pay","params":{"order":"o"}}`:    `1`,
		`{"jsonrpc":"2.0","id":"a","method":"pay","params":{"order":"o"}}`:    `"a"`,
		`{"jsonrpc":"2.0","method":"pay","params":{"order":"o","fast":true}}`: ``,
	} {
		req := rpc(t, body)
		if got := string(set.Match(req).Operation.CallID(req)); got != want {
			t.Errorf("%s: %s", body, got)
		}
	}
}

func TestAllMatchesTakeCallsOrNone(t *testing.T) {
	t.Parallel()
	for line, part := range map[string]string{
		"match: [{method: POST, path: /a, jsonrpc: {method: x}}, {method: POST, path: /b}]": "only some of the matches",
		"match: {method: POST, path: /a, jsonrpc: {}}":                                      "names no method",
		"match: {method: POST, path: /a, jsonrpc: {answer: true}}":                          "no mutation",
	} {
		_, findings := Load([]File{{Data: []byte(withOperation(line))}}, nil, Defaults{})
		if !strings.Contains(findings.Error(), part) {
			t.Errorf("%s: %v", line, findings)
		}
	}
}

// FuzzCall holds that a body which is taken for a call of a method says that method, and nothing else is.
func FuzzCall(f *testing.F) {
	f.Add(`{"jsonrpc":"2.0","id":1,"method":"pay","params":{"order":"o"}}`)
	f.Add(`[{"jsonrpc":"2.0","id":1,"method":"list"}]`)
	f.Add(`{"jsonrpc":"2.0","id":[],"method":"pay"}`)
	set := load(f, byCall)
	f.Fuzz(func(t *testing.T, body string) {
		req := rpc(t, body)
		m := set.Match(req)
		if m.Operation == nil || m.Refusal != nil || m.NeedsBody || m.Operation.Name == "other" {
			return
		}
		v, err := parseJSON([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		calls := []jsonValue{*v}
		if v.kind == jsonArray {
			calls = v.items
		}
		for _, call := range calls {
			method, called := call.member("method")
			if !called {
				method = &jsonValue{text: map[bool]string{true: "list"}[isAnswer(&call)]}
			}
			if m.Effect.passes() && method.text != "list" && method.text != "get" {
				t.Fatalf("%s passes", method.text)
			}
		}
	})
}
