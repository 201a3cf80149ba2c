package rules

import (
	"strings"
	"testing"
)

func TestOnlyWhatSurelyIsAQueryOfGraphQLIsARead(t *testing.T) {
	t.Parallel()
	c := load(t, connectorHead+"  - {name: query, match: {method: POST, path: /graphql, graphql: {operation: query}}, effect: read}\n")
	const head = "POST https://api.test/graphql\nContent-Type: application/json\n\n"
	form := strings.Replace(head, "json", "x-www-form-urlencoded", 1)
	for _, tc := range []struct {
		name, request string
		reads         bool
		refusal       Problem // where it is not that nothing matches
	}{
		{"a query", head + `{"query":"query { a }"}`, true, ""},
		{"the short form, with variables", head + `{"query":"{ a }","variables":{"text":"mutation"},"operationName":"A","extensions":{"client":{}}}`, true, ""},
		{"another type of JSON", strings.Replace(head, "application/json", "application/graphql+json; charset=utf-8", 1) + `{"query":"{ a }"}`, true, ""},
		{"names that hold the words", head + `{"query":"{ mutationType subscriptions _mutation }","extensions":null}`, true, ""},
		{"a mutation", head + `{"query":"mutation { a }"}`, false, ""},
		{"a mutation behind a query", head + `{"query":"query A { a }mutation B { b }","operationName":"A"}`, false, ""},
		{"a mutation between ignored characters", head + `{"query":",\ufeffmutation\ufeff{ a }"}`, false, ""},
		{"a mutation in escapes of JSON", head + `{"query":"\u006dutation { a }"}`, false, ""},
		{"a subscription", head + `{"query":"subscription { a }"}`, false, ""},
		{"the word in a comment", head + `{"query":"{ a } # mutation"}`, false, ""},
		{"several requests", head + `[{"query":"{ a }"}]`, false, ""},
		{"no document", head + `{"operationName":"A"}`, false, ""},
		{"an empty document", head + `{"query":""}`, false, ""},
		{"a document that is no text", head + `{"query":{"a":1}}`, false, ""},
		{"a stored document by hash", head + `{"query":"{ a }","extensions":{"persistedQuery":{"sha256Hash":"x"}}}`, false, ""},
		{"extensions that are no object", head + `{"query":"{ a }","extensions":"{\"persistedQuery\":{}}"}`, false, ""},
		{"a stored document by id", head + `{"query":"{ a }","documentId":"x"}`, false, ""},
		{"a name in another case", head + `{"query":"{ a }","Query":"mutation { b }"}`, false, ""},
		{"a document in the URL", strings.Replace(head, "/graphql", "/graphql?query=mutation%7Ba%7D", 1) + `{"query":"{ a }"}`, false, ""},
		{"an empty query in the URL", strings.Replace(head, "/graphql", "/graphql?", 1) + `{"query":"{ a }"}`, false, ""},
		{"JSON that isn't declared as such", "POST https://api.test/graphql\n\n" + `{"query":"{ a }"}`, true, ""},
		{"JSON declared as a form, as curl does", form + ` {"query":"{ a }"}`, true, ""},
		{"a mutation declared so", form + `{"query":"mutation { a }"}`, false, ""},
		{"JSON that is a query as a form, too", form + `{"query":"{ a }","variables":"&query=%6dutation{a}"}`, false, ""},
		{"the same with the older mark", form + `{"query":"{ a }","variables":";query=%6dutation{a}"}`, false, ""},
		{"JSON declared as text", strings.Replace(head, "application/json", "text/plain", 1) + `{"query":"{ a }"}`, false, ""},
		{"a name twice", head + `{"query":"mutation { a }","query":"{ a }"}`, false, ProblemAmbiguous},
		{"no JSON", head + `{"query":`, false, ProblemAmbiguous},
	} {
		head, body, _ := strings.Cut(tc.request, "\n\n")
		line, field, typed := strings.Cut(head, "\n")
		req := request(t, line, body)
		if typed {
			req = request(t, line, body, field)
		}
		m := c.Match(req)
		switch {
		case tc.reads && (m.Refusal != nil || m.Effect != EffectRead || m.Operation == nil):
			t.Errorf("%s: %v, refused with %v", tc.name, m.Effect, m.Refusal)
		case !tc.reads && (m.Refusal == nil || tc.refusal == "" && m.Refusal.Problem != ProblemUnmatched || tc.refusal != "" && m.Refusal.Problem != tc.refusal):
			t.Errorf("%s: %v, refused with %v", tc.name, m.Effect, m.Refusal)
		}
	}
}

func TestWhatGraphQLDoesNotFitGoesOnToTheNextOperation(t *testing.T) {
	t.Parallel()
	c := load(t, connectorHead+"  - {name: query, before: [rest], match: {method: POST, path: /graphql, graphql: {operation: query}}, effect: read}\n"+
		"  - {name: rest, match: {method: POST, path: /graphql}, effect: mutation, identity: none, reconcile: [{none: why}], manual_check: look}\n")
	for body, want := range map[string]string{`{"query":"{ a }"}`: "query", `{"query":"mutation { a }"}`: "rest"} {
		m := c.Match(request(t, "POST https://api.test/graphql", body, "Content-Type: application/json"))
		if m.Refusal != nil || m.Operation == nil || m.Operation.Name != want {
			t.Errorf("%s: %+v", body, m)
		}
	}
}

func TestProblemsOfGraphQLAreNamed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ file, code string }{
		"of a mutation":        {withOperation("match: {method: POST, path: /x, graphql: {operation: query}}"), "value"},
		"of what is ignored":   {withRead("effect: ignore", "match: {method: POST, path: /x, graphql: {operation: query}}"), "value"},
		"of any method":        {withRead("match: {path: /x, graphql: {operation: query}}"), "value"},
		"of another operation": {withRead("match: {method: POST, path: /x, graphql: {operation: mutation}}"), "value"},
		"of no operation":      {withRead("match: {method: POST, path: /x, graphql: {}}"), "value"},
		"before the operation": {connectorHead + "  - {name: a, before: [b], match: {method: POST, path: /g}, effect: read}\n" +
			"  - {name: b, match: {method: POST, path: /g, graphql: {operation: query}}, effect: read}\n", ""},
	} {
		_, findings := Load([]File{{Name: "t.yaml", Data: []byte(c.file)}}, nil, Defaults{})
		if c.code == "" && len(findings) > 0 || c.code != "" && (len(findings) == 0 || findings[0].Code != c.code) {
			t.Errorf("%s: %v", name, findings)
		}
	}
}
