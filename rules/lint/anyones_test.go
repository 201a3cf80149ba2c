package lint

import (
	"slices"
	"strings"
	"testing"

	"keep-proxy/rules"
)

// A probe that finds the same for every mutation takes the first open object, or the newest job, for
// what each of them made.
func TestAProbeThatTellsNoMutationsApartIsWarnedOf(t *testing.T) {
	t.Parallel()
	const listed = "candidates: response.json.items, id: found.id, created: found.at"
	of := func(lines ...string) string {
		return withOperation("reconcile: [{probe: {" + strings.Join(lines, ", ") + "}}]")
	}
	warned := func(file string) bool {
		t.Helper()
		findings := check(t, file)
		if findings.Failed() {
			t.Errorf("%s\n%v", file, findings)
		}
		at := slices.IndexFunc(findings, func(f rules.Finding) bool { return f.Code == "anyones" })
		if at < 0 {
			return false
		}
		if f := findings[at]; f.Severity != rules.SeverityWarning || f.Line == 0 || f.Key != "operations[0].reconcile[0].probe" ||
			!strings.Contains(f.Problem, `all that differ in "json.name"`) || !strings.HasSuffix(f.Fix, "found.x == json.name") {
			t.Errorf("%s\n%+v", file, f)
		}
		return true
	}
	// What is asked is of the mutation's own host.
	hosted := func(lines ...string) string {
		return strings.Replace(withOperation(lines...), "api.test", `"{shop}.api.test"`, 1)
	}
	for _, file := range []string{
		hosted("identity: {shop: host.shop, name: json.name}", "reconcile: [{probe: {get: /a, observe: [{when: response.json.on, is: applied}]}}]"),
		of("get: /a", listed, "ours: found.state == 'open', tie: unique"), of("get: /a", listed, `ours: "true", tie: unique`),
		of("get: /a", listed, "ours: found.state == 'open', tie: content"),
		of("get: /a", listed, "ours: timestamp(found.at) > mutation.claimed_at, tie: unique"),
		of("get: /a", listed, "query: {limit: 1}, ours: found.state == 'open', tie: unique", "result: {json: {name: {cel: json.name}}}"),
		of("get: /a/newest", "observe: [{when: response.json.state == 'done', is: applied}]"),
		withOperation("reconcile: [{probe: {steps: [{name: one, get: /a}, {name: two, get: \"/b/{steps.one.json.id}\", " +
			"observe: [{when: response.json.state == 'done', is: applied}]}]}}]"),
	} {
		if !warned(file) {
			t.Errorf("nothing is said of\n%s", file)
		}
	}
	for _, file := range []string{
		of("get: /a", listed, "ours: found.name == json.name, tie: unique"), of("get: /a", listed, `query: {name: {cel: json.name}}, ours: "true", tie: unique`),
		of("get: \"/a/{json.name}\"", "observe: [{when: response.json.state == 'done', is: applied}]"),
		of("get: /a", "observe: [{when: response.json.name == json.name, is: applied}]"),
		of("get: /a", "header: {x-name: {cel: json.name}}, observe: [{when: response.json.state == 'done', is: applied}]"),
		of("get: /a", "observe: [{when: mutation.id in response.json.done, is: applied}]"),
		of("post: /a", "json: {name: {cel: json.name}}", listed, `ours: "true", tie: unique`),
		withOperation("reconcile: [{probe: {steps: [{name: one, get: /a, query: {name: {cel: json.name}}}, {name: two, get: \"/b/{steps.one.json.id}\", " +
			"observe: [{when: response.json.state == 'done', is: applied}]}]}}]"),
		hosted("identity: {shop: host.shop}", "reconcile: [{probe: {get: /a, observe: [{when: response.json.on, is: applied}]}}]"),
		withOperation("identity: none", "reconcile: [{probe: {get: /a, observe: [{when: response.json.on, is: applied}]}}]"),
	} {
		if warned(file) {
			t.Errorf("warned of\n%s", file)
		}
	}
}
