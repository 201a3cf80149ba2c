package rules

import (
	"strings"
	"testing"
)

// What rests on the time of the claim is retry where that time can't be held against the
// API's: presence only if it is judged by it, absence also if it is asked by it.
func TestWhatRestsOnTheTimeOfTheClaim(t *testing.T) {
	t.Parallel()
	const (
		since = "string(mutation.claimed_at - duration('10m'))"
		found = `[{"id":1,"ref":"r"}]`
	)
	asked := strings.NewReplacer("json: {ref: {cel: json.ref}}", `json: {ref: {cel: json.ref}, since: {cel: "`+since+`"}}`, "PAGES", "")
	header := strings.NewReplacer("json: {ref: {cel: json.ref}}", `header: {X-Since: {cel: "`+since+`"}}`, "PAGES", "")
	paged := strings.NewReplacer("PAGES", `pages: {more: "false", set: {since: {cel: "`+since+`"}}, max: 2}`)
	judged := strings.NewReplacer("ours: found.ref == json.ref", "ours: found.ref == json.ref && mutation.claimed_at > timestamp('2000-01-01T00:00:00Z')", "PAGES", "")
	resulting := strings.NewReplacer("PAGES", `result: {status: 201, json: {at: {cel: "`+since+`"}}}`)
	plain := strings.NewReplacer("PAGES", "")
	stepped := strings.NewReplacer("PAGES", "", `
      - probe:
          post: /search
          json: {ref: {cel: json.ref}}
`, `
      - probe:
          steps:
          - name: first
            get: /first
            query: {since: {cel: "`+since+`"}}
          - name: second
            get: /second
`, "          candidates", "            candidates", "          ours", "            ours", "          tie", "            tie", "          id:", "            id:",
		"          absence", "            absence")
	for name, tc := range map[string]struct {
		rule    *strings.Replacer
		answers []string
		want    Seen
	}{
		"asked by it, nothing there":         {asked, []string{"[]"}, SeenRetry},
		"asked by it, there":                 {asked, []string{found}, SeenApplied},
		"asked by it in a field":             {header, []string{"[]"}, SeenRetry},
		"asked by it for later pages":        {paged, []string{"[]"}, SeenRetry},
		"judged by it, nothing there":        {judged, []string{"[]"}, SeenRetry},
		"judged by it, there":                {judged, []string{found}, SeenRetry},
		"the result alone says it":           {resulting, []string{"[]"}, SeenAbsent},
		"nowhere":                            {plain, []string{"[]"}, SeenAbsent},
		"asked by it in an earlier step":     {stepped, []string{"{}", "[]"}, SeenRetry},
		"there, after a step asked by it":    {stepped, []string{"{}", found}, SeenApplied},
		"an answer that is none stays retry": {asked, []string{"{}"}, SeenRetry},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, op := operation(t, tc.rule.Replace(listingOperation))
			for _, clocks := range []Clocks{{}, {Measured: true}, {SameBoot: true}, {Measured: true, SameBoot: true}} {
				asking := begin(t, op, listedRequest(t))
				for _, body := range tc.answers {
					asking.Answer(ok(body))
				}
				told := asking.Observation(nobody, Clocks{Measured: true, SameBoot: true}).Seen
				want := tc.want
				if clocks.Measured && clocks.SameBoot {
					want = told
				}
				if o := asking.Observation(nobody, clocks); o.Seen != want || o.Seen == SeenRetry && o.Result != nil {
					t.Errorf("%+v: %v (%s), want %v", clocks, o.Seen, o.Reason, want)
				}
				if told == SeenRetry && name != "an answer that is none stays retry" {
					t.Errorf("with both clocks it is retry")
				}
			}
		})
	}
}
