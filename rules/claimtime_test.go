package rules

import (
	"net/http"
	"strings"
	"testing"
)

// markedListing is listingOperation with a marker.
var markedListing = strings.NewReplacer("{ref: json.ref}", "{ref: json.ref}\n    marker: {json: mark}",
	"found.ref == json.ref", "found.mark == mutation.marker", "tie: unique", "tie: marker", "          created: found.at\n", "").Replace(listingOperation)

// What rests on the time of the claim is retry where that time can't be held against the
// API's: presence only if it is judged by it, absence also if it is asked by it.
func TestWhatRestsOnTheTimeOfTheClaim(t *testing.T) {
	t.Parallel()
	const (
		since = "string(mutation.claimed_at - duration('10m'))"
		found = `[{"id":1,"mark":"` + CaseMarker + `"}]`
	)
	asked := strings.NewReplacer("json: {ref: {cel: json.ref}}", `json: {ref: {cel: json.ref}, since: {cel: "`+since+`"}}`, "PAGES", "")
	header := strings.NewReplacer("json: {ref: {cel: json.ref}}", `header: {X-Since: {cel: "`+since+`"}}`, "PAGES", "")
	paged := strings.NewReplacer("PAGES", `pages: {more: "false", set: {since: {cel: "`+since+`"}}, max: 2}`)
	judged := strings.NewReplacer("ours: found.mark == mutation.marker", "ours: found.mark == mutation.marker && mutation.claimed_at > timestamp('2000-01-01T00:00:00Z')", "PAGES", "")
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
			wantByClocks(t, tc.rule.Replace(markedListing), tc.answers, tc.want, name == "an answer that is none stays retry")
		})
	}
}

// wantByClocks wants an observation where the clocks aren't told, and another one than retry
// where they are, unless it is retry anyway.
func wantByClocks(t *testing.T, operations string, answers []string, want Seen, anyway bool) {
	t.Helper()
	_, op := operation(t, operations)
	for _, clocks := range []Clocks{{}, {Measured: true}, {SameBoot: true}, {Measured: true, SameBoot: true}} {
		asking := begin(t, op, listedRequest(t))
		for _, body := range answers {
			asking.Answer(ok(body))
		}
		told := asking.Observation(nobody, Clocks{Measured: true, SameBoot: true})
		want := want
		if clocks.Measured && clocks.SameBoot {
			want = told.Seen
		}
		if o := asking.Observation(nobody, clocks); o.Seen != want || o.Seen == SeenRetry && o.Result != nil {
			t.Errorf("%+v: %v (%s), want %v", clocks, o.Seen, o.Reason, want)
		}
		if told.Seen == SeenRetry && !anyway {
			t.Errorf("with both clocks it is retry: %s", told.Reason)
		}
	}
}

// Wherever a rule reads the time of the claim to say what an answer means, presence rests on it
// as much as absence, and so does a duplicate, of which all but one are taken back.
func TestWhateverIsJudgedByTheTimeOfTheClaimRestsOnIt(t *testing.T) {
	t.Parallel()
	const (
		none  = "[]"
		one   = `[{"id":1,"mark":"` + CaseMarker + `"}]`
		two   = `[{"id":1,"mark":"` + CaseMarker + `"},{"id":2,"mark":"` + CaseMarker + `"}]`
		later = "mutation.claimed_at > timestamp('2000-01-01T00:00:00Z')"
	)
	judging := "          candidates: response.json\n          ours: found.mark == mutation.marker\n          tie: marker\n          id: found.id\n"
	asking := "          post: /search\n          json: {ref: {cel: json.ref}}\n"
	for name, replaced := range map[string][2]string{
		"which of them are ours":  {"ours: found.mark == mutation.marker", `ours: "found.mark == mutation.marker && ` + later + `"`},
		"what answer is expected": {"PAGES", `expect: "response.status == 200 && ` + later + `"`},
		"what may be ours":        {"candidates: response.json", `candidates: "response.json.filter(f, ` + later + `)"`},
		"whether there is more":   {"PAGES", `pages: {more: "!(` + later + `)", set: {cursor: "2"}, max: 2}`},
		"what state it is in":     {judging, `          observe: [{when: "size(response.json) > 0 && ` + later + `", is: applied}, {when: "` + later + `", is: absent}]` + "\n"},
		"which step it goes on to": {asking + strings.ReplaceAll(judging, "PAGES", ""), `          steps:
          - {name: first, get: /first, observe: [{when: "` + later + `", step: second}, {when: "true", is: retry}]}
          - name: second
            get: /second
` + strings.ReplaceAll(judging, "          ", "            ")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rule := strings.Replace(markedListing, replaced[0], replaced[1], 1)
			if strings.Contains(rule, "steps:") {
				rule = strings.Replace(rule, "          absence", "            absence", 1)
			}
			rule = strings.Replace(rule, "PAGES", "", 1)
			for _, last := range []string{none, one, two} {
				answers := []string{last}
				if strings.Contains(rule, "steps:") {
					answers = []string{none, last}
				}
				wantByClocks(t, rule, answers, SeenRetry, false)
			}
		})
	}
}

// What is gone from what was made since the claim rests on its time as an absence does: of a DELETE, of an undo,
// and where a DELETE is followed to its end.
func TestWhatIsGoneSinceTheClaimRestsOnItsTime(t *testing.T) {
	t.Parallel()
	const since = `query: {since: {cel: "string(mutation.claimed_at - duration('10m'))"}}`
	_, probed := operation(t, probing("get: /a\n"+since+"\n"+`observe: [{when: "!response.json.exists(l, l == 'ours')", is: applied}]`))
	_, watched := operation(t, watching(`{get: /a, max: 1h, until: "!response.json.exists(l, l == 'ours')", `+since+`}`))
	for name, c := range map[string]struct {
		method, object string
		clocks         Clocks
		gone           bool
	}{
		"deleted":         {http.MethodDelete, "", Clocks{Measured: true, SameBoot: true}, true},
		"deleted, untold": {http.MethodDelete, "", Clocks{Measured: true}, false},
		"undone":          {http.MethodPost, "o1", Clocks{Measured: true, SameBoot: true}, true},
		"undone, untold":  {http.MethodPost, "o1", Clocks{SameBoot: true}, false},
		"set, untold":     {http.MethodPost, "", Clocks{}, true},
	} {
		mutation := sample()
		mutation.Object = c.object
		env := Env{Request: request(t, c.method+" https://api.test/things/x", `{}`), Mutation: mutation}
		a, err := probed.Strategies[0].Probe.Begin(env)
		if err != nil {
			t.Fatal(err)
		}
		a.Answer(ok(`["theirs"]`))
		if o := a.Observation(nobody, c.clocks); (o.Seen == SeenApplied) != c.gone {
			t.Errorf("%s: saw %v (%s)", name, o.Seen, o.Reason)
		}
		if seen, why := watched.Watch.Judge(env, answered(200, `["theirs"]`), c.clocks); (seen == WatchDone) != c.gone {
			t.Errorf("%s, followed: %v (%s)", name, seen, why)
		}
	}
}
