package lint

import (
	"slices"
	"testing"

	"keep-proxy/rules"
)

// A weak tie that looks at less than the payload takes somebody else's object for ours.
func TestAWeakTieThatLooksAtLessThanThePayloadIsWarnedOf(t *testing.T) {
	t.Parallel()
	of := func(probe string, lines ...string) string {
		return withOperation(append(lines, `describe: "{json.amount} for {json.name}, {json.to.zip}"`,
			"reconcile: [{probe: {get: /a, candidates: response.json.items, id: found.id, created: found.at, "+probe+"}}]")...)
	}
	const some, all = "found.name == json.name && found.zip == json.to.zip", "found.name == json.name && found.zip == json.to.zip && found.sum == json.amount"
	for _, tc := range []struct {
		name, file string
		warned     bool
	}{
		{"less, unique", of("tie: unique, ours: " + some), true},
		{"less, content", of("tie: content, ours: " + some), true},
		{"the identity alone", of("tie: unique, ours: found.name == json.name"), true},
		{"all", of("tie: unique, ours: " + all), false},
		{"all, the rest asked by", of("tie: unique, query: {sum: {cel: json.amount}}, ours: " + some), false},
		{"all that counts", of("tie: unique, ours: "+some, "payload: {ignore: [json.amount]}"), false},
		{"all but what is minor", of("tie: unique, ours: found.name == json.name && found.sum == json.amount", "payload: {minor: [json.to]}"), false},
		{"the whole object", of("tie: unique, ours: found.to == json.to && found.name == json.name && found.sum == json.amount"), false},
		{"the whole body", of("tie: unique, ours: found.digest == body_sha256"), false},
		{"what preparing steps kept", withOperation(`describe: "{json.amount}"`, "send: [{prepare: a, post: /d, json: {cel: json}, keep: {d: response.json.id}}, {commit: , post: /s, json: {id: {cel: mutation.kept.d}}}]",
			"reconcile: [{probe: {get: /a, candidates: response.json.items, id: found.id, created: found.at, tie: unique, ours: found.d == mutation.kept.d}}]"), false},
		{"a marker", of("tie: marker, ours: found.mark == mutation.marker", "marker: {json: mark}"), false},
	} {
		findings := check(t, tc.file)
		got := slices.ContainsFunc(findings, func(f rules.Finding) bool {
			return f.Code == "payload" && f.Severity == rules.SeverityWarning && f.Key == "operations[0].reconcile[0].probe.ours" && f.Line > 0
		})
		if got != tc.warned || findings.Failed() {
			t.Errorf("%s: warned %t, want %t\n%v", tc.name, got, tc.warned, findings)
		}
	}
}
