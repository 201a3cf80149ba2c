package rules

import (
	"strconv"
	"strings"
	"testing"

	"keep-proxy/internal/verdict"
)

// roomFor are 24 characters of marker and 4 around it.
const roomFor = `marker: {append: json.body, text: "\n<{mutation.marker}>;", max_length: MAX}`

func TestAMarkerThatHasNoRoomIsLeftOut(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, keys, body string
		left             bool
	}{
		{"as long as it may be", strings.Replace(roomFor, "MAX", "38", 1), `{"name":"n","body":"0123456789"}`, false},
		{"one more", strings.Replace(roomFor, "MAX", "37", 1), `{"name":"n","body":"0123456789"}`, true},
		{"the script's own is too long already", strings.Replace(roomFor, "MAX", "24", 1), `{"name":"n","body":"` + strings.Repeat("x", 100) + `"}`, true},
		{"characters beyond the basic plane", strings.Replace(roomFor, "MAX", "38", 1), `{"name":"n","body":"` + strings.Repeat("🌈", 10) + `"}`, false},
		{"the same as bytes", strings.Replace(roomFor, "MAX", "38B", 1), `{"name":"n","body":"` + strings.Repeat("🌈", 10) + `"}`, true},
		{"bytes that have room", strings.Replace(roomFor, "MAX", "1KiB", 1), `{"name":"n","body":"` + strings.Repeat("🌈", 10) + `"}`, false},
		{"escapes count as what they say", strings.Replace(roomFor, "MAX", "38", 1), `{"name":"n","body":"` + strings.Repeat(`\u00e9`, 10) + `"}`, false},
		{"nothing yet", strings.Replace(roomFor, "MAX", "28", 1), `{"name":"n"}`, false},
		{"null", strings.Replace(roomFor, "MAX", "27", 1), `{"name":"n","body":null}`, true},
		{"a place of its own", "marker: {json: keep, max_length: 24}", `{"name":"n"}`, false},
		{"a place of its own with a long text", `marker: {json: keep, text: "{json.name} {mutation.marker}", max_length: 30}`, `{"name":"` + strings.Repeat("n", 6) + `","keep":"mine"}`, true},
		{"no limit", `marker: {append: json.body, text: "{mutation.marker}"}`, `{"name":"n","body":"` + strings.Repeat("x", 1<<17) + `"}`, false},
	} {
		_, op := operation(t, mutationWith(tc.keys))
		req := request(t, "POST https://api.test/things", tc.body)
		if left := op.Unmarked(req); left != tc.left {
			t.Errorf("%s: left out %t", tc.name, left)
			continue
		}
		mu := sample()
		for _, mu.Unmarked = range []bool{true, false} {
			out, refusal := op.Outgoing(req, mu)
			if mu.Unmarked != tc.left {
				// What is asked about it would rest on what the record says.
				wantRefusal(t, refusal, ProblemIdentity, "the record says otherwise")
				continue
			}
			if refusal != nil {
				t.Fatalf("%s: %v", tc.name, refusal)
			}
			if got := string(out.Body()); strings.Contains(got, CaseMarker) == tc.left || tc.left && got != tc.body {
				t.Errorf("%s: %s", tc.name, got)
			}
		}
	}
}

func TestTheMarkerIsNoPartOfThePayload(t *testing.T) {
	t.Parallel()
	digests := map[string]bool{}
	for _, most := range []string{"24", "65536"} {
		_, op := operation(t, mutationWith(strings.Replace(roomFor, "MAX", most, 1)))
		req := request(t, "POST https://api.test/things", `{"name":"n","body":"0123456789"}`)
		d, refusal := op.Derive(req, Match{Operation: op, Connector: op.Connector})
		if refusal != nil {
			t.Fatal(refusal)
		}
		digests[d.PayloadDigest] = true
	}
	if len(digests) != 1 {
		t.Error("what is left out changes the payload")
	}
}

const unmarkedListing = `
  - name: make
    match: {method: POST, path: /things}
    effect: mutation
    identity: {ref: json.ref}
    marker: {append: json.body, text: "{mutation.marker}", max_length: 30}
    outcome: [{when: "response.status == 409 && !response.text.contains(mutation.marker)", then: failed, class: logic}]
    reconcile:
      - probe: PROBE
    manual_check: "Look for {mutation.marker}, {'x' + mutation.marker}"
`

func TestALeftOutMarkerShowsNothing(t *testing.T) {
	t.Parallel()
	const listing = "{get: /things, candidates: response.json, ours: OURS, tie: TIE, id: found.id, created: found.at, absence_is_proof: true}"
	const state = "{get: /things, observe: [{when: OURS, is: applied}, {when: response.status == 200, is: absent}], absence_is_proof: true}"
	for _, tc := range []struct {
		name, probe, answer string
		want                Seen
	}{
		{"by marker, nothing there", strings.NewReplacer("OURS", "found.body.contains(mutation.marker)", "TIE", "marker").Replace(listing), `[]`, SeenRetry},
		{"by marker, there", strings.NewReplacer("OURS", "found.body.contains(mutation.marker)", "TIE", "marker").Replace(listing),
			`[{"id":"1","body":"` + CaseMarker + `","at":"2026-01-02T03:04:06Z"}]`, SeenRetry},
		{"a default behind the marker", strings.NewReplacer("OURS", `found.ref == json.ref || mutation.?marker.orValue('') == found.body`, "TIE", "unique").Replace(listing), `[]`, SeenRetry},
		{"a state", strings.Replace(state, "OURS", "response.text.contains(mutation.marker)", 1), `x`, SeenRetry},
		{"by something unique, there", strings.NewReplacer("OURS", "found.ref == json.ref", "TIE", "unique").Replace(listing), `[{"id":"1","ref":"r","at":"2026-01-02T03:04:06Z"}]`, SeenApplied},
		{"by something unique, nothing there", strings.NewReplacer("OURS", "found.ref == json.ref", "TIE", "unique").Replace(listing), `[]`, SeenAbsent},
		{"by content", strings.NewReplacer("OURS", "found.ref == json.ref", "TIE", "content").Replace(listing), `[{"id":"1","ref":"r","at":"2026-01-02T03:04:06Z"}]`, SeenApplied},
	} {
		_, op := operation(t, strings.Replace(unmarkedListing, "PROBE", tc.probe, 1))
		req := request(t, "POST https://api.test/things", `{"ref":"r","body":"0123456789"}`)
		mu := caseMutation()
		mu.Unmarked = op.Unmarked(req)
		asking, err := op.Strategies[0].Probe.Begin(Env{Request: req, Mutation: mu})
		if err != nil {
			t.Fatal(err)
		}
		asking.Answer(declaredAnswer("", tc.answer))
		if o := asking.Observation(func(string) bool { return false }, Clocks{Measured: true, SameBoot: true}); o.Seen != tc.want {
			t.Errorf("%s: %+v", tc.name, o)
		}
		if blind := op.Strategies[0].Blind(mu); blind != (tc.want == SeenRetry) {
			t.Errorf("%s: blind %t", tc.name, blind)
		}
		if mu.Unmarked = false; op.Strategies[0].Blind(mu) {
			t.Errorf("%s: blind for a marker that was sent", tc.name)
		}
	}
}

func TestWhatReadsALeftOutMarkerIsUncertainOrUntold(t *testing.T) {
	t.Parallel()
	_, op := operation(t, strings.Replace(unmarkedListing, "PROBE", "{get: /a, observe: [{when: response.status == 200, is: applied}]}", 1)+
		"    watch: {get: /w, until: response.json.done, failed_when: \"!response.text.contains(mutation.marker)\", max: 1h}\n")
	req := request(t, "POST https://api.test/things", `{"ref":"r","body":"0123456789"}`)
	mu := caseMutation()
	for _, mu.Unmarked = range []bool{true, false} {
		env := Env{Request: req, Mutation: mu}
		if o := op.Judge(req, "", mu, &Response{Status: 409, Complete: true}); (o.Kind == verdict.OpinionUncertain) != mu.Unmarked {
			t.Errorf("unmarked %t: %v", mu.Unmarked, o)
		}
		if seen, why := op.Watch.Judge(env, declaredAnswer("", `{"done":false}`), Clocks{Measured: true, SameBoot: true}); (seen == WatchFailed) == mu.Unmarked {
			t.Errorf("unmarked %t: %v %s", mu.Unmarked, seen, why)
		}
		if text := op.ManualCheckText(env); strings.Contains(text, CaseMarker) == mu.Unmarked {
			t.Errorf("unmarked %t: %s", mu.Unmarked, text)
		}
	}
	if exec := (Strategy{Exec: &Exec{Tie: TieUnique}}); !exec.Blind(Mutation{Unmarked: true}) || exec.Blind(Mutation{}) {
		t.Error("what a program looks for isn't known")
	}
}

// Another mutation without a marker may have made what the rule's ours tells by the marker.
func TestAnObjectMayBeOfAnUnmarkedOne(t *testing.T) {
	t.Parallel()
	_, op := operation(t, strings.Replace(unmarkedListing, "PROBE",
		"{get: /things, candidates: response.json, ours: found.ref == json.ref || found.body == mutation.marker, tie: content, id: found.id, created: found.at}", 1))
	mine := Env{Request: request(t, "POST https://api.test/things", `{"ref":"r"}`), Mutation: caseMutation()}
	asking, err := op.Strategies[0].Probe.Begin(mine)
	if err != nil {
		t.Fatal(err)
	}
	asking.Answer(declaredAnswer("", `[{"id":"1","ref":"r","body":"x","at":"2026-01-02T03:04:06Z"}]`))
	other := Env{Request: request(t, "POST https://api.test/things", `{"ref":"q"}`), Mutation: caseMutation()}
	for _, other.Mutation.Unmarked = range []bool{true, false} {
		if may := asking.MayBeOf(op, other, "1"); may != other.Mutation.Unmarked {
			t.Errorf("unmarked %t: may be %t", other.Mutation.Unmarked, may)
		}
	}
}

func TestWhatMaxLengthMayBe(t *testing.T) {
	t.Parallel()
	for text, ok := range map[string]bool{"24": true, "65536": true, "64KiB": true, "30B": true, "23": false, "-1": false, "24.5": false, "'30'": false, "x": false, "0B": false, "~": false} {
		_, findings := Load([]File{{Name: "f.yaml", Data: []byte(withOperation("marker: {json: m, max_length: " + text + "}"))}}, nil, Defaults{})
		if findings.Failed() == ok {
			t.Errorf("%s: %v", text, findings)
		}
	}
}

func TestACaseKnowsWhetherTheMarkerHasRoom(t *testing.T) {
	t.Parallel()
	file := strings.Replace(unmarkedListing, "PROBE", "{get: /things, candidates: response.json, ours: found.body.contains(mutation.marker), tie: marker, id: found.id, created: found.at}", 1)
	body := `{"ref":"r","body":` + strconv.Quote(strings.Repeat("x", 10)) + `}`
	file += `cases:
  - name: no room
    request: {method: POST, url: "https://api.test/things", body: '` + body + `'}
    probe: [{body: []}]
    expect: {operation: make, observation: retry, sent: [{method: POST, url: "https://api.test/things", body: '` + body + `'}]}
`
	if findings := load(t, connectorHead+file).RunCases(); len(findings) > 0 {
		t.Error(findings)
	}
}
