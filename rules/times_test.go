package rules

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"cel.dev/cel-go/common/types"
)

func TestTimesAsMailHasThem(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"Fri, 02 Jan 2026 03:04:05 +0000":       "2026-01-02T03:04:05Z",
		"2 Jan 2026 03:04:05 GMT":               "2026-01-02T03:04:05Z",
		"Fri, 2 Jan 2026 03:04:05 UTC":          "2026-01-02T03:04:05Z",
		"Fri, 02 Jan 2026 04:34:05 +0130":       "2026-01-02T03:04:05Z",
		"Thu, 01 Jan 2026 22:04:05 -0500 (EST)": "2026-01-02T03:04:05Z",
		"Thu, 01 Jan 2026 22:04:05 EST":         "",
		"Fri, 02 Jan 2026 04:04:05 CET":         "",
		"Fri, 02 Jan 2026 04:04:05 XUTC":        "",
		"Fri, 02 Jan 2026 04:04:05":             "",
		"2026-01-02T03:04:05Z":                  "",
		"":                                      "",
	} {
		got := rfc2822(types.String(text))
		at, ok := got.(types.Timestamp)
		if ok != (want != "") || ok && at.Format(time.RFC3339Nano) != want {
			t.Errorf("%q is %v, want %q", text, got, want)
		}
	}
}

// An object in the claim's own unit is neither presence nor absence.
func TestTimesOfCreationCountByTheirResolution(t *testing.T) {
	t.Parallel()
	claimed := caseMutation().ClaimedAt // Half a second after a second.
	whole := claimed.Truncate(time.Second)
	const mail, date = time.RFC1123Z, time.RFC3339
	for _, tc := range []struct {
		name, resolution, format string
		at                       time.Time
		want                     Seen
	}{
		{"the claim's own second", "1s", mail, whole, SeenRetry},
		{"the next second", "1s", mail, whole.Add(time.Second), SeenApplied},
		{"the claim's own second, said in fractions", "1s", time.RFC3339Nano, claimed.Add(100 * time.Millisecond), SeenRetry},
		{"fractions that count", "", time.RFC3339Nano, claimed.Add(100 * time.Millisecond), SeenApplied},
		{"within the clock's margin", "1s", mail, whole.Add(-time.Minute), SeenRetry},
		{"older", "1s", mail, whole.Add(-3 * time.Minute), SeenAbsent},
		{"the claim's own day", "24h", date, claimed.Truncate(24 * time.Hour), SeenRetry},
		{"a day that is told as a second", "", date, claimed.Truncate(24 * time.Hour), SeenAbsent},
		{"the day before", "24h", date, claimed.Truncate(24 * time.Hour).Add(-24 * time.Hour), SeenAbsent},
		{"the next day", "24h", date, claimed.Truncate(24 * time.Hour).Add(24 * time.Hour), SeenApplied},
	} {
		created := "timestamp(found.at)"
		if tc.format == mail {
			created = "rfc2822(found.at)"
		}
		if tc.resolution != "" {
			created += "\nresolution: " + tc.resolution
		}
		_, op := operation(t, probing(strings.Replace(contentProbe, "created: found.at", "created: "+created, 1)))
		asking, err := op.Strategies[0].Probe.Begin(Env{Request: request(t, "POST https://api.test/things/x", `{}`), Mutation: caseMutation()})
		if err != nil {
			t.Fatal(err)
		}
		asking.Answer(ok(fmt.Sprintf(`[{"id":1,"n":1,"at":%q}]`, tc.at.Format(tc.format))))
		if o := asking.Observation(nobody, Clocks{Measured: true, SameBoot: true}); o.Seen != tc.want {
			t.Errorf("%s: saw %v (%s), want %v", tc.name, o.Seen, o.Reason, tc.want)
		}
	}
}

func TestWhatAResolutionMayBe(t *testing.T) {
	t.Parallel()
	probe := "get: /a, candidates: response.json, ours: found.a == json.name, id: found.id, "
	for keys, part := range map[string]string{
		probe + "tie: unique, created: found.at, resolution: 24h":                                 "",
		probe + "tie: unique, created: found.at, resolution: 25h":                                 "longer than a day",
		probe + "tie: unique, created: found.at, resolution: 0s":                                  "above zero",
		probe + "tie: unique, created: found.at, resolution: 1":                                   "above zero",
		strings.Replace(probe, "json.name", "mutation.marker", 1) + "tie: marker, resolution: 1s": "which isn't there",
		"get: /a, observe: [{when: response.json.x == json.name, is: applied}], resolution: 1s":   "says nothing with observe",
	} {
		_, findings := Load([]File{{Name: "f.yaml", Data: []byte(withOperation("marker: {json: m}", "reconcile: [{probe: {"+keys+"}}]"))}}, nil, Defaults{})
		if part == "" && findings.Failed() || part != "" && !slices.ContainsFunc(findings, func(f Finding) bool { return strings.Contains(f.Problem, part) && f.Line > 0 }) {
			t.Errorf("%s\n%v, want …%s…", keys, findings, part)
		}
	}
}
