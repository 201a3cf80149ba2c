package rules

import (
	"strings"
	"testing"
)

// An API that gives times in whole seconds gives an object of our own a time before its
// claim, if it is made in the same second. It can't be told from one that somebody else
// made just before, and a case shows it.
func TestACaseShowsWhatWholeSecondsLeadTo(t *testing.T) {
	t.Parallel()
	for at, want := range map[string]string{
		"2026-01-02T03:04:05Z":     `observation is "retry", expected "applied" (the object 7 was created within 2m0s of the claim, so it can't be told whose it is; a created in fractions of a second, or a marker, tells)`,
		"2026-01-02T03:04:05.6Z":   "",
		"2026-01-02T03:04:06Z":     "",
		"2026-01-02T03:04:05.499Z": `observation is "retry"`,
	} {
		file := connectorHead + probing(contentProbe) + `cases:
  - name: found by its content
    request: {method: POST, url: "https://api.test/things/x", body: {}}
    probe: [{body: [{id: 7, n: 1, at: "` + at + `"}]}]
    expect: {observation: applied}
`
		findings := load(t, file).RunCases()
		if (want == "") != (len(findings) == 0) || want != "" && !strings.Contains(findings[0].Problem, want) {
			t.Errorf("created %s: %v, want %q", at, findings, want)
		}
	}
}
