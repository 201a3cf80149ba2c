package lint

import (
	"slices"
	"strings"
	"testing"

	"keep-proxy/rules"
)

// Which of several actions a header field names is no part of key and payload by itself: what one
// did would be the answer to the other.
func TestActionsThatAHeaderFieldNamesAreWarnedOf(t *testing.T) {
	t.Parallel()
	when := func(condition string, more ...string) string {
		return withOperation(append([]string{`match: {method: POST, path: /things, when: "` + condition + `"}`}, more...)...)
	}
	warned := func(file string) bool {
		t.Helper()
		findings := check(t, file)
		if findings.Failed() {
			t.Errorf("%s\n%v", file, findings)
		}
		return slices.ContainsFunc(findings, func(f rules.Finding) bool {
			return f.Code == "spelling" && f.Severity == rules.SeverityWarning && strings.HasPrefix(f.Key, "operations[0].match") && f.Line > 0 &&
				strings.Contains(f.Problem, "x-target")
		})
	}
	for _, file := range []string{
		when("header['x-target'] in ['a', 'b']"), when("header['x-target'] == 'a' || header['x-target'] == 'b'"),
		when("header[?'x-target'].orValue('') in ['a', 'b']"), when("'a' == header['x-target'] || 'b' == header['x-target'].lowerAscii()"),
		when("header['x-target'] != 'a'"), when("header['x-target'].startsWith('Queue.')"), when("header['x-target'].matches('^a')"),
		when("header['x-target'] == query.target"),
		withOperation(`match: [{method: POST, path: /things, when: "header['x-target'] == 'a'"}, {method: POST, path: /things, when: "header['x-target'] == 'b'"}]`),
	} {
		if !warned(file) {
			t.Errorf("nothing is said of\n%s", file)
		}
	}
	const both = "header['x-target'] in ['a', 'b']"
	for _, file := range []string{
		when("header['x-target'] == 'a'"), when("header['x-target'] in ['a']"), when("header[?'x-target'].orValue('') != ''"),
		when(both, `identity: {to: json.to, what: "header['x-target']"}`), when(both, "subkey: header['x-target']"),
		when(both, "payload: {headers: [X-Target]}"), when("header['content-type'] in ['a', 'b']"), when("header['x-target'] == 'a' && json.to != ''"),
		withOperation(`match: [{method: POST, path: /things, when: "header['x-target'] == 'a'"}, {method: POST, path: /more, when: "header['x-target'] == 'a'"}]`),
		strings.Replace(when(both, "identity: -", "reconcile: -", "manual_check: -", "on_no_result: -"), "effect: mutation", "effect: read", 1),
	} {
		if warned(file) {
			t.Errorf("warned of\n%s", file)
		}
	}
}

// "Everything but" is recorded, or denied, and never passes: the API has more calls than the author
// thought of.
func TestWhatPassesByExclusionIsWarnedOf(t *testing.T) {
	t.Parallel()
	warned := func(effect, methods, when string) bool {
		t.Helper()
		file := connectorHead + "  - name: other\n    match: {method: " + methods + ", path: /rpc, when: \"" + when + "\"}\n    effect: " + effect + "\n"
		if effect == "mutation" {
			file += "    identity: {a: json.a}\n    reconcile: [{none: why}]\n    manual_check: look\n"
		}
		findings := check(t, file)
		if findings.Failed() {
			t.Errorf("%s\n%v", file, findings)
		}
		return slices.ContainsFunc(findings, func(f rules.Finding) bool {
			return f.Code == "all-but" && f.Severity == rules.SeverityWarning && f.Key == "operations[0].match.when"
		})
	}
	for _, when := range []string{
		"json.method != 'pay'", "'pay' != json.method", "json.?method.orValue('') != 'pay'", "!(json.method in ['pay', 'send'])",
		"!(json.method == 'pay')", "!(string(json.method) == 'pay')", "header['x-target'] != 'Pay' && json.a == 1",
	} {
		if !warned("read", "POST", when) || !warned("ignore", "[GET, POST]", when) {
			t.Errorf("nothing is said of %s", when)
		}
		if warned("read", "GET", when) || warned("deny", "POST", when) || warned("mutation", "POST", when) {
			t.Errorf("warned of %s, which passes nothing", when)
		}
	}
	for _, when := range []string{
		"json.method == 'get'", "json.method in ['get', 'list']", "json.method != ''", "!json.query.contains('mutation')", "!has(json.pay)",
	} {
		if warned("read", "POST", when) {
			t.Errorf("warned of %s", when)
		}
	}
}
