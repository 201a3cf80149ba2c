package lint

import (
	"slices"
	"strings"
	"testing"

	"keep-proxy/rules"
)

// A document of GraphQL may begin with a query and change something all the same, or change two things.
func TestDocumentsOfGraphQLThatAreToldByWordsAreWarnedOf(t *testing.T) {
	t.Parallel()
	read := func(when string) string {
		return connectorHead + "  - name: query\n    match: {method: POST, path: /graphql, when: \"" + when + "\"}\n    effect: read\n"
	}
	warned := func(file string) bool {
		t.Helper()
		findings := check(t, file)
		if findings.Failed() {
			t.Errorf("%s\n%v", file, findings)
		}
		return slices.ContainsFunc(findings, func(f rules.Finding) bool {
			return f.Code == "graphql" && f.Severity == rules.SeverityWarning && f.Key == "operations[0].match.when" && f.Line > 0
		})
	}
	for _, file := range []string{
		read("json.query.startsWith('query')"), read("json.query.trim().startsWith('{')"), read("json.query.matches('^\\\\\\\\s*(query|[{])')"),
		read("!json.query.startsWith('mutation')"), read("!json.query.contains('mutation')"), read("json.?query.orValue('').contains('query')"),
		strings.Replace(read("json.query.startsWith('query')"), "effect: read", "effect: ignore", 1),
		strings.Replace(read("json.query.contains('issueCreate')"), "effect: read", "effect: mutation\n    identity: {a: json.a}\n    reconcile: [{none: why}]\n    manual_check: look", 1),
	} {
		if !warned(file) {
			t.Errorf("nothing is said of\n%s", file)
		}
	}
	for _, file := range []string{
		read("sha256(json.query) == 'a'"), read("json.query == 'query { me }'"), read("has(json.query)"), read("json.query != ''"), read("json.method == 'list'"),
		read("json.operationName.startsWith('Me')"), read("json.query.match.all == {}"), read("json.query.text.contains('a')"),
		strings.Replace(read("json.query.startsWith('query')"), "effect: read", "effect: deny", 1),
	} {
		if warned(file) {
			t.Errorf("warned of\n%s", file)
		}
	}
}
