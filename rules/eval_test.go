package rules

import (
	"strings"
	"testing"
)

func TestEvaluate(t *testing.T) {
	t.Parallel()
	set := load(t, connectorHead+`
  - name: make
    match: {method: POST, path: "/things/{kind}"}
    effect: mutation
    identity: {name: json.name}
    reconcile: [{none: why}]
    manual_check: look
`)
	answered := &Response{Status: 201, Complete: true, Body: []byte(`{"ok":true}`)}
	for _, tc := range []struct {
		name, source string
		answer       *Response
		want, err    string
	}{
		{name: "a value as it is written", source: "json.price", want: "7.10"},
		{name: "a variable of the operation's path", source: "path.kind + json.name", want: `"booksn"`},
		{name: "an optional that is absent", source: "json.?other", want: "absent"},
		{name: "an answer", source: "response.json.ok && response.status == 201", answer: answered, want: "true"},
		{name: "a time to wait", source: "duration(string(response.status - 111) + 's')", answer: answered, want: `"1m30s"`},
		{name: "the record", source: "mutation.marker", answer: answered, want: `"` + CaseMarker + `"`},
		{name: "what is not there", source: "json.a.b + json.name", err: "no such key: a (not there: json.a)"},
		{name: "what is not there beside what may be absent", source: "json.?other.orValue('') + json.a.b", err: "no such key: a (not there: json.a)"},
		{name: "a wrong name", source: "jsn.a", err: "undeclared reference to 'jsn' (did you mean 'json'?) (at character 1)"},
		{name: "an answer that was not given", source: "response.status", err: "undeclared reference to 'response' (at character 1)"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			req, refusal := Rebuild("POST", "https://api.test/things/books", nil, []byte(`{"name":"n","price":7.10}`))
			if refusal != nil {
				t.Fatal(refusal)
			}
			got, err := set.Evaluate(tc.source, req, tc.answer)
			if got != tc.want || (err != nil) != (tc.err != "") || err != nil && !strings.HasPrefix(err.Error(), tc.err) {
				t.Errorf("%q, %v; want %q, %q", got, err, tc.want, tc.err)
			}
		})
	}
}
