package rules

import (
	"slices"
	"strings"
	"testing"
)

// noted is a file with keys added to the probe of a listing.
func noted(line string) string {
	return withOperation("reconcile: [{probe: {get: /a, candidates: response.json, ours: found.ok, tie: unique, id: found.id, " + line + "}}]")
}

func TestWhatIsNeverThereIsRefused(t *testing.T) {
	t.Parallel()
	const lower = "header names are lower-case here"
	outcome := func(when string) string { return withOperation("outcome: [{when: \"" + when + "\", then: uncertain}]") }
	for _, tc := range []struct{ name, file, key, part, fix string }{
		{"the body of an answer", outcome("response.body.ok == false"), "operations[0].outcome[0].when", "response has no body", "did you mean response.json?"},
		{"its code", outcome("response.code == 409"), "operations[0].outcome[0].when", "response has no code", "did you mean response.status?"},
		{"its status code", outcome("response.status_code == 409"), "operations[0].outcome[0].when", "no status_code", "did you mean response.status?"},
		{"its headers", outcome("response.headers['x'] == '1'"), "operations[0].outcome[0].when", "no headers", "did you mean response.header?"},
		{"behind a default", withOperation("success: response.?boody.orValue(true)"), "operations[0].success", "no boody", "complete, header, json, status, text"},
		{"asked for by has", withOperation("success: has(response.cod)"), "operations[0].success", "no cod", "response"},
		{"of the record, in a text", withOperation(`describe: "{mutation.markr}"`), "operations[0].describe", "mutation has no markr", "did you mean mutation.marker?"},
		{"of the record, in a value", noted("query: {a: {cel: mutation.vendorkey}}"), "operations[0].reconcile[0].probe.query.a.cel", "no vendorkey", "mutation.vendor_key?"},
		{"of an answer, in a result", noted("result: {json: {cel: response.jsn}}"), "operations[0].reconcile[0].probe.result.json.cel", "no jsn", "response.json?"},
		{"of an answer, for the next page", noted("pages: {more: response.jsn.more, set: {a: b}, max: 3}"), "operations[0].reconcile[0].probe.pages.more", "no jsn", "response.json?"},
		{"of the stored request", withOperation(`payload: {compare: "stored.jsn.a == json.a ? 'minor' : 'significant'"}`), "operations[0].payload.compare", "stored has no jsn", "stored.json?"},
		{"of an earlier step", withOperation("reconcile: [{probe: {steps: [{name: a, get: /a}, {name: b, get: '/{steps.a.body.id}', observe: [{when: response.json.ok, is: applied}]}]}}]"),
			"operations[0].reconcile[0].probe.steps[1].get", "steps.a has no body", "steps.a.json?"},
		{"of what is watched", withOperation("watch: {get: '/{response.jsn.id}', until: response.json.done, max: 1h}"), "operations[0].watch.get", "no jsn", "response.json?"},
		{"a request field with capitals", withOperation("subkey: header['X-Key']"), "operations[0].subkey", lower, "write 'x-key'"},
		{"an optional one", withOperation("subkey: header[?'X-Key'].orValue('')"), "operations[0].subkey", lower, "write 'x-key'"},
		{"one that is looked for", withOperation("subkey: \"'X-Key' in header ? 'a' : 'b'\""), "operations[0].subkey", lower, "write 'x-key'"},
		{"a field of an answer with capitals", withOperation("success: response.header['X-Ok'] == '1'"), "operations[0].success", lower, "write 'x-ok'"},
		{"a place with capitals", withOperation("secret: [\"header['X-Key']\"]"), "operations[0].secret[0]", lower, "write 'x-key'"},
		{"a place of an answer with capitals", withOperation("secret: [response.header.Token]"), "operations[0].secret[0]", lower, "write 'token'"},
		{"a status as a text", outcome("response.status == '409'"), "operations[0].outcome[0].when", `never the text "409"`, "without quotes"},
		{"a status among texts", outcome("response.status in ['409']"), "operations[0].outcome[0].when", `never the text "409"`, "without quotes"},
		{"a status that isn't judged", withOperation("reconcile: [{probe: {get: /a, observe: [{when: response.status == 404, is: absent}]}}]"),
			"operations[0].reconcile[0].probe.expect", "without expect only 200 is judged", "add expect: response.status in [200, 404]"},
		{"a marker for identity", withOperation("marker: {json: name}"), "operations[0].marker", "json.name, which identity.name reads", "where the script writes nothing"},
		{"a name in braces", noted("result: {json: '{found}'}"), "operations[0].reconcile[0].probe.result.json", "literally", "{cel: found}"},
		{"a name as a whole answer", noted("result: {json: found}"), "operations[0].reconcile[0].probe.result.json", "literally", "{cel: found}"},
		{"a header field in a value", noted("query: {a: header.x-ref}"), "operations[0].reconcile[0].probe.query.a", "literally", "header['x-ref']"},
		{"a status as a condition", outcome("response.status"), "operations[0].outcome[0].when", "never true or false", "response.status == 200"},
		{"a text as a condition", outcome("'x'"), "operations[0].outcome[0].when", "never true or false", "compare it"},
		{"a text of the request as a condition", withOperation("match: {method: POST, path: /a, when: query.a}"), "operations[0].match.when", "never true or false", "compare it"},
		{"a number as a condition", noted("pages: {more: size(response.json), set: {a: b}, max: 3}"), "operations[0].reconcile[0].probe.pages.more", "never true or false", "compare it"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			_, findings := Load([]File{{Name: "bad.yaml", Data: []byte(tc.file)}}, nil, Defaults{})
			if !slices.ContainsFunc(findings, func(f Finding) bool {
				return f.Key == tc.key && f.Severity == SeverityError && f.Line > 11 && strings.Contains(f.Problem, tc.part) && strings.Contains(f.Fix, tc.fix)
			}) {
				t.Errorf("no finding %s: …%s…; …%s…\n%v", tc.key, tc.part, tc.fix, findings)
			}
			if c, findings := LoadPinned([]byte(tc.file), nil, Defaults{}); c == nil {
				t.Errorf("a stored version is refused: %v", findings)
			}
		})
	}
}

func TestWhatTheAPIOrTheScriptNamesIsFree(t *testing.T) {
	t.Parallel()
	for _, file := range []string{
		withOperation("success: response.json.body.code == 'X' && response.json.Headers.size() > 0"),
		withOperation("success: response.json.?ok"), withOperation("success: response.json[?'Ok'].orValue(true)"),
		withOperation("success: response.json.items.all(response, response.code == 1)"),
		withOperation("subkey: json.Header + query['X-Key'] + form.Body"),
		withOperation("success: header_of(response, 'X-Ok') == '1'"), withOperation("success: response.complete"),
		withOperation("success: json.status == '409'"),
	} {
		if _, findings := Load([]File{{Name: "good.yaml", Data: []byte(file)}}, nil, Defaults{}); findings.Failed() {
			t.Errorf("%s\n%v", file, findings)
		}
	}
}
