package rules

import (
	"slices"
	"strings"
	"testing"
)

// noted is a file with keys added to the probe of a listing.
func noted(line string) string {
	return withOperation("reconcile: [{probe: {get: /a, candidates: response.json, ours: found.ok, tie: unique, id: found.id, created: found.at, " + line + "}}]")
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
		{"behind a default", withOperation("success: response.?boody.orValue(true)"), "operations[0].success", "no boody", "complete, graphql, header, json, jsonrpc, status, text"},
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
		withOperation("success: response.json.status == '409'"),
	} {
		if _, findings := Load([]File{{Name: "good.yaml", Data: []byte(file)}}, nil, Defaults{}); findings.Failed() {
			t.Errorf("%s\n%v", file, findings)
		}
	}
}

// A body often has the names of its answer: {"state":"closed"} asked for, and told. Whether the
// answer is meant can't be guessed, so what judges one must read it.
func TestWhatJudgesAnAnswerReadsIt(t *testing.T) {
	t.Parallel()
	observed := func(entry string) string {
		return withOperation("reconcile: [{probe: {get: /a, observe: [" + entry + "]}}]")
	}
	listed := func(listing string) string {
		return withOperation("reconcile: [{probe: {get: /a, id: found.id, tie: unique, " + listing + "}}]")
	}
	watched := func(lines string) string { return withOperation("watch: {get: /a, max: 1h, " + lines + "}") }
	const probe = "operations[0].reconcile[0].probe."
	for _, tc := range []struct{ name, file, key, fix string }{
		{"success", withOperation("success: json.?ok.orValue(true)"), "operations[0].success", "response.json.ok"},
		{"an outcome that applied", withOperation("outcome: [{when: json.state == 'closed', then: applied}]"), "operations[0].outcome[0].when", "response.json.state"},
		{"a name that is a word of CEL", withOperation("success: json['in'] == 'x'"), "operations[0].success", "such as response.json['in']"},
		{"an outcome that failed", withOperation("outcome: [{when: form.?state == optional.of('x'), then: failed, class: logic}]"), "operations[0].outcome[0].when", "response"},
		{"a state that is applied", observed("{when: json.state == 'closed', is: applied}"), probe + "observe[0].when", "response.json.state"},
		{"a state that is absent", observed("{when: \"header[?'x-a'].orValue('') == ''\", is: absent}"), probe + "observe[0].when", "response.header['x-a']"},
		{"of the path alone", observed("{when: query.id == mutation.id, is: applied}"), probe + "observe[0].when", "response"},
		{"what is judged", noted("expect: \"json.?ok.orValue(true)\""), probe + "expect", "response.json"},
		{"the list", listed("candidates: json.items, ours: found.ok"), probe + "candidates", "such as response.json.items"},
		{"which is ours", listed("candidates: response.json, ours: json.ref == 'a'"), probe + "ours", "such as found.ref"},
		{"when it was made", listed("candidates: response.json, ours: found.ok, created: timestamp(json.at)"), probe + "created", "such as found.at"},
		{"another page", listed("candidates: response.json, ours: found.ok, pages: {more: \"json.?next.hasValue()\", set: {a: b}, max: 3}"), probe + "pages.more", "response.json.next"},
		{"until when", watched("until: json.state == 'closed'"), "operations[0].watch.until", "response.json.state"},
		{"that it failed", watched("until: response.json.done, failed_when: json.bad == true"), "operations[0].watch.failed_when", "response.json.bad"},
		{"what of it is judged", watched("until: response.json.done, expect: json.state == 'x'"), "operations[0].watch.expect", "response.json.state"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			_, findings := Load([]File{{Name: "bad.yaml", Data: []byte(tc.file)}}, nil, Defaults{})
			if !slices.ContainsFunc(findings, func(f Finding) bool {
				return f.Key == tc.key && f.Severity == SeverityError && strings.Contains(f.Problem, "doesn't read the answer") && strings.Contains(f.Fix, tc.fix)
			}) {
				t.Errorf("no finding at %s with …%s…\n%v", tc.key, tc.fix, findings)
			}
			if c, findings := LoadPinned([]byte(tc.file), nil, Defaults{}); c == nil {
				t.Errorf("a stored version is refused: %v", findings)
			}
		})
	}
	for _, file := range []string{
		observed("{when: 'true', is: applied}"), observed("{when: json.draft == true, is: retry}, {when: response.json.state == json.state, is: applied}"),
		withOperation("outcome: [{when: mutation.generation > 1, then: uncertain}]"),
		listed("candidates: response.json, ours: 'true', created: found.at"), listed("candidates: response.json, ours: found.ref == json.ref, created: found.at"),
		withOperation("reconcile: [{probe: {steps: [{name: a, get: /a}, {name: b, get: /b, observe: [{when: steps.a.json.ok == true, is: applied}]}]}}]"),
		withOperation("reconcile: [{probe: {steps: [{name: a, get: /a, observe: [{when: has(json.parent), step: b}]}, " +
			"{name: b, get: /b, observe: [{when: response.json.ok, is: applied}]}]}}]"),
	} {
		if _, findings := Load([]File{{Name: "good.yaml", Data: []byte(file)}}, nil, Defaults{}); findings.Failed() {
			t.Errorf("%s\n%v", file, findings)
		}
	}
}
