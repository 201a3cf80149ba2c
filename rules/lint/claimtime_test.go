package lint

import (
	"slices"
	"strings"
	"testing"

	"keep-proxy/rules"
)

// A listing that is asked for since the claim leaves out what an API made whose clock is a second
// behind ours: its absence would be believed, and the mutation sent again.
func TestAbsenceSinceTheClaimWithoutRoomForTheClocksIsWarnedOf(t *testing.T) {
	t.Parallel()
	const (
		probe  = "operations[0].reconcile[0].probe."
		listed = "candidates: response.json.items, tie: unique, id: found.id, created: found.at, pages: {next: link, max: 3}, absence_is_proof: true"
		ours   = "ours: found.ref == json.ref"
	)
	of := func(lines ...string) string {
		return withOperation("reconcile: [{probe: {" + strings.Join(lines, ", ") + "}}]")
	}
	since := func(value string) string { return of("get: /a", listed, ours, `query: {since: {cel: "`+value+`"}}`) }
	held := func(by string) string { return of("get: /a", listed, `ours: "found.ref == json.ref && `+by+`"`) }
	for _, tc := range []struct{ name, file, key string }{
		{"as it is", since("mutation.claimed_at"), probe + "query"},
		{"as a text", since("string(mutation.claimed_at)"), probe + "query"},
		{"as a day, which may have begun with the claim", since("string(mutation.claimed_at).substring(0, 10)"), probe + "query"},
		{"in a search", since("'created>' + string(mutation.claimed_at)"), probe + "query"},
		{"with less off than clocks may differ", since("string(mutation.claimed_at - duration('1m'))"), probe + "query"},
		{"as seconds", since("string(int(mutation.claimed_at) - 60)"), probe + "query"},
		{"under another spelling", since("mutation['claimed_at']"), probe + "query"},
		{"in content", of("post: /a", listed, ours, "json: {range: [{cel: mutation.claimed_at}]}"), probe + "json"},
		{"in the path", of(`get: "/since/{string(mutation.claimed_at)}"`, listed, ours), probe + "get"},
		{"by what is ours", held("timestamp(found.at) >= mutation.claimed_at"), probe + "ours"},
		{"by what is ours, with less off", held("timestamp(found.at) >= mutation.claimed_at - duration('1m')"), probe + "ours"},
		{"by what is ours, the other way round", held("int(mutation.claimed_at) - 60 <= int(found.at)"), probe + "ours"},
		{"by what is listed", of("get: /a", ours, strings.Replace(listed, "response.json.items",
			`"response.json.items.filter(i, timestamp(i.at) > mutation.claimed_at)"`, 1)), probe + "candidates"},
		{"in a step before the one that sees", withOperation("reconcile: [{probe: {steps: [{name: one, get: /a, query: {since: {cel: mutation.claimed_at}}}, " +
			"{name: two, get: /b, " + listed + ", " + ours + "}]}}]"), probe + "steps[0].query"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			findings := check(t, tc.file)
			if !slices.ContainsFunc(findings, func(f rules.Finding) bool {
				return strings.HasPrefix(f.Key, tc.key) && f.Code == "claim-time" && f.Severity == rules.SeverityWarning && f.Line > 0 &&
					strings.Contains(f.Problem, "less than 5m0s off the time of the claim") && strings.Contains(f.Fix, "mutation.claimed_at - duration('10m')")
			}) || findings.Failed() {
				t.Errorf("no warning at %s:\n%v", tc.key, findings)
			}
		})
	}
	for _, file := range []string{
		since("string(mutation.claimed_at - duration('10m'))"), since("string(mutation.claimed_at - duration('5m'))"),
		since("string(int(mutation.claimed_at) - 300)"), since("string((int(mutation.claimed_at) - 600) * 1000)"),
		since("string(timestamp(mutation.claimed_at) - duration('24h')).substring(0, 10)"),
		since("string(mutation.claimed_at - duration(json.room))"), since("string(mutation.claimed_at + duration('1h'))"), since("mutation.marker"),
		held("timestamp(found.at) + duration('10m') >= mutation.claimed_at"), held("mutation.claimed_at - timestamp(found.at) < duration('10m')"),
		held("timestamp(found.at) >= mutation.claimed_at - duration('10m')"), held("int(mutation.claimed_at) - 600 <= int(found.at)"),
		held("timestamp(found.at) - mutation.claimed_at > duration('-10m')"),
		strings.Replace(since("mutation.claimed_at"), "absence_is_proof: true", "absence_is_proof: false", 1),
		of("get: /a", listed, ours, "result: {json: {at: {cel: mutation.claimed_at}}}"),
	} {
		findings := check(t, file)
		if slices.ContainsFunc(findings, func(f rules.Finding) bool { return f.Code == "claim-time" }) || findings.Failed() {
			t.Errorf("%s\n%v", file, findings)
		}
	}
}
