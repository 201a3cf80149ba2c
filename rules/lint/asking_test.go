package lint

import (
	"slices"
	"strings"
	"testing"

	"keep-proxy/rules"
)

// A probe that is warned of reads {"ok":false} with 200 as an absence, which would be believed and
// sent again.
func TestAbsenceInAnAnswerThatSaysNothingIsWarnedOf(t *testing.T) {
	t.Parallel()
	listed := func(lines string) string {
		return withOperation("reconcile: [{probe: {get: /a, absence_is_proof: true, ours: found.ok, tie: unique, id: found.id, created: found.at, " + lines + "}}]")
	}
	observed := func(lines string) string {
		return withOperation("reconcile: [{probe: {get: /a, absence_is_proof: true, " + lines + "}}]")
	}
	const probe = "operations[0].reconcile[0].probe."
	for _, tc := range []struct{ name, file, key string }{
		{"a list with a default", listed(`candidates: "response.json.?items.orValue([])", pages: {next: link, max: 3}`), probe + "candidates"},
		{"one that is filtered", listed(`candidates: "response.json.?items.orValue([]).filter(i, i.open)"`), probe + "candidates"},
		{"with pages that end by default", listed(`candidates: "response.json.?items.orValue([])", ` +
			`pages: {more: response.json.?next.hasValue(), set: {a: {cel: response.json.next}}, max: 3}`), probe + "candidates"},
		{"with an expectation that holds", listed(`expect: "response.status in [200, 404]", candidates: "response.json.?items.orValue([])"`), probe + "candidates"},
		{"a state that isn't there", observed(`observe: [{when: has(response.json.id), is: applied}, {when: "!has(response.json.id)", is: absent}]`), probe + "observe[1].when"},
		{"any other status", observed(`expect: "true", observe: [{when: response.status == 200, is: applied}, {when: response.status != 200, is: absent}]`),
			probe + "observe[1].when"},
		{"a status that may hide it", observed(`expect: "response.status in [200, 403, 404]", observe: [{when: "response.status in [403, 404]", is: absent}]`),
			probe + "observe[0].when"},
		{"a deletion that may be hidden", withOperation(`reconcile: [{probe: {get: /a, expect: "true", observe: [{when: response.status == 200, is: absent}, ` +
			"{when: response.status != 200, is: applied}]}}]"), probe + "observe[1].when"},
		{"in a step", withOperation("reconcile: [{probe: {steps: [{name: a, get: /a}, {name: b, get: /b, absence_is_proof: true, observe: [" +
			`{when: "response.json.?state.orValue('') != 'done'", is: absent}]}]}}]`), probe + "steps[1].observe[0].when"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			findings := check(t, tc.file)
			if !slices.ContainsFunc(findings, func(f rules.Finding) bool {
				return f.Key == tc.key && f.Code == "absence" && f.Severity == rules.SeverityWarning && f.Line > 0 && strings.Contains(f.Fix, "expect:")
			}) || findings.Failed() {
				t.Errorf("no warning at %s:\n%v", tc.key, findings)
			}
		})
	}
	for _, file := range []string{
		listed("candidates: response.json.items, pages: {next: link, max: 3}"),
		listed(`expect: response.json.kind == 'list', candidates: "response.json.?items.orValue([])"`),
		listed(`candidates: "response.json.?items.orValue([])", pages: {more: response.json.more, set: {a: b}, max: 3}`),
		observed("expect: 'response.status in [200, 404]', observe: [{when: response.status == 404, is: absent}, {when: response.json.id == 'a', is: applied}]"),
		observed("observe: [{when: response.json.state == 'open', is: absent}]"), observed("observe: [{when: response.status == 200, is: applied}]"),
		observed("expect: 'response.status in [200, 404]', observe: [{when: response.status == 200, is: absent}, {when: response.status == 404, is: applied}]"),
		observed("observe: [{when: \"response.json.?state.orValue('') != json.state\", is: absent}]"),
		strings.Replace(listed(`candidates: "response.json.?items.orValue([])"`), "absence_is_proof: true", "absence_is_proof: false", 1),
	} {
		findings := check(t, file)
		if slices.ContainsFunc(findings, func(f rules.Finding) bool { return f.Code == "absence" }) {
			t.Errorf("%s\n%v", file, findings)
		}
	}
}

// A gateway's 502 comes after the API committed, too: as a definite failure it would be sent again.
func TestAnOutcomeThatIsSureOfGatewaysIsWarnedOf(t *testing.T) {
	t.Parallel()
	warned := func(entries string) bool {
		t.Helper()
		findings := check(t, withOperation("outcome: ["+entries+"]"))
		if findings.Failed() {
			t.Errorf("%s\n%v", entries, findings)
		}
		return slices.ContainsFunc(findings, func(f rules.Finding) bool {
			return f.Code == "gateway" && f.Severity == rules.SeverityWarning && strings.HasPrefix(f.Key, "operations[0].outcome[") && f.Line > 0
		})
	}
	for _, entries := range []string{
		"{when: response.status >= 400, then: failed, class: logic}", "{when: response.status != 201, then: failed, class: logic}",
		"{when: response.status == 504, then: failed, class: transient}", "{when: response.status != 400, then: applied}",
		`{when: "!response.json.?ok.orValue(false)", then: failed, class: logic}`,
		"{when: response.status == 409, then: uncertain}, {when: response.status > 400, then: failed, class: logic}",
	} {
		if !warned(entries) {
			t.Errorf("nothing is said of %s", entries)
		}
	}
	for _, entries := range []string{
		"{when: response.status == 503, then: failed, class: transient}", "{when: response.status >= 400 && response.status < 500, then: failed, class: logic}",
		"{when: response.json.ok == false, then: failed, class: logic}", "{when: response.status >= 500, then: uncertain}, {when: response.status > 400, then: failed, class: logic}",
		"{when: \"response.status == 502 && header_of(response, 'x-not-sent') == '1'\", then: failed, class: transient}",
		"{when: response.status >= 400 && json.to != '', then: failed, class: logic}",
	} {
		if warned(entries) {
			t.Errorf("warned of %s", entries)
		}
	}
}

// A look that believes an expired token, or a gateway, ends what is still under way: as failed it
// would be sent again.
func TestAWatchThatBelievesAnAnswerThatSaysNothingIsWarnedOf(t *testing.T) {
	t.Parallel()
	warned := func(lines string) string {
		t.Helper()
		findings := check(t, withOperation("watch: {get: '/jobs/{response.json.id}', max: 1h, "+lines+"}"))
		if findings.Failed() {
			t.Errorf("%s\n%v", lines, findings)
		}
		for _, f := range findings {
			if f.Code == "absence" && f.Severity == rules.SeverityWarning && f.Line > 0 {
				return f.Key + ": " + f.Problem
			}
		}
		return ""
	}
	const done, every = `until: "response.json.?state.orValue('') == 'done'"`, `expect: "true"`
	for lines, want := range map[string]string{
		every + ", failed_when: response.status != 200, " + done:                                              "operations[0].watch.failed_when: finds a failure in an answer of 401",
		`expect: "response.status in [200, 404, 403]", failed_when: "response.status in [403, 404]", ` + done: "operations[0].watch.failed_when: finds a failure in an answer of 403",
		every + ", until: \"response.json.?state.orValue('') != 'running'\"":                                  "operations[0].watch.until: finds the effect in an answer of 200",
		"until: \"!response.json.?running.orValue(false)\"":                                                   "operations[0].watch.until: finds the effect in an answer of 200",
		"expect: response.status != 401, failed_when: response.status >= 429, until: response.status == 200":  "operations[0].watch.failed_when: finds a failure in an answer of 429",
	} {
		if got := warned(lines); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q", lines, got, want)
		}
	}
	for _, lines := range []string{
		done, done + ", failed_when: response.json.state == 'failed'", every + ", " + done + ", failed_when: response.json.state == 'failed'",
		every + ", until: response.json.state == 'done', failed_when: response.status != 200", // the answer has no state, and ends nothing
		done + ", failed_when: has(response.json.error)",                                      // which may be that of what was accepted
		"failed_when: response.status != 200, " + done, `expect: "response.status in [200, 404]", failed_when: response.status == 404, ` + done,
		every + ", until: response.status != 200, failed_when: response.status != 200",
	} {
		if got := warned(lines); got != "" {
			t.Errorf("warned of %s: %s", lines, got)
		}
	}
}
