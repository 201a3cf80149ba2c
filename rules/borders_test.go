package rules

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"keep-proxy/internal/verdict"
)

func TestSuccessIsAskedOfEvery2xxAndOfNothingElse(t *testing.T) {
	t.Parallel()
	_, op := operation(t, simpleMutation+"    success: response.json.ok\n")
	req := request(t, "POST https://api.test/things/k", `{"name":"n"}`)
	for status, want := range map[int]verdict.OpinionKind{
		199: verdict.OpinionNone, 200: verdict.OpinionUncertain, 201: verdict.OpinionUncertain, 202: verdict.OpinionUncertain, 204: verdict.OpinionUncertain,
		207: verdict.OpinionUncertain, 299: verdict.OpinionUncertain, 300: verdict.OpinionNone, 404: verdict.OpinionNone, 500: verdict.OpinionNone,
	} {
		o := op.Judge(req, "", caseMutation(), &Response{Status: status, Complete: true, Body: []byte(`{"ok":false}`)})
		if o.Kind != want {
			t.Errorf("%d: %v (%s), want %v", status, o.Kind, o.Reason, want)
		}
	}
	for body, want := range map[string]verdict.OpinionKind{
		`{"ok":true}`: verdict.OpinionNone, `{"ok":"true"}`: verdict.OpinionUncertain, `{"ok":1}`: verdict.OpinionUncertain, `{}`: verdict.OpinionUncertain,
		`{"ok":null}`: verdict.OpinionUncertain, `x`: verdict.OpinionUncertain, ``: verdict.OpinionUncertain, `{"ok":true,"ok":true}`: verdict.OpinionUncertain,
	} {
		if o := op.Judge(req, "", caseMutation(), &Response{Status: 200, Complete: true, Body: []byte(body)}); o.Kind != want {
			t.Errorf("%s: %v (%s), want %v", body, o.Kind, o.Reason, want)
		}
	}
}

func TestInsertionsStayOneSegmentOrStopTheProbe(t *testing.T) {
	t.Parallel()
	const file = `
  - name: make
    match: {method: POST, path: /things}
    effect: mutation
    identity: {name: json.name}
    reconcile:
      - probe:
          get: "/things/PREFIX{json.name}"
          query: {q: {cel: json.name}}
          observe: [{when: response.status == 200, is: applied}]
`
	cases := []struct{ name, prefix, value, want string }{
		{"plain", "", `"a"`, "/things/a?q=a"},
		{"a query in it", "", `"a?b&c=d#e"`, "/things/a%3Fb%26c%3Dd%23e?q=a%3Fb%26c%3Dd%23e"},
		{"an escape in it", "", `"%2e%2e"`, "/things/%252e%252e?q=%252e%252e"},
		{"line breaks", "", `"a\r\nHost: evil"`, ""},
		{"a number", "", `9007199254740993`, "/things/9007199254740993?q=9007199254740993"},
		{"a boolean", "", `true`, "/things/true?q=true"},
		{"a slash", "", `"a/b"`, "/things/a%2Fb?q=a%2Fb"},
		{"a dot", "", `"."`, ""},
		{"two dots", "", `".."`, ""},
		{"two dots behind a literal", "x", `".."`, ""},
		{"a dot behind a slash", "", `"a/.."`, ""},
		{"nothing", "", `""`, ""},
		{"nothing behind a literal", "x", `""`, ""},
		{"null", "", `null`, ""},
		{"a list", "", `["a"]`, ""},
		{"a map", "", `{"a":"b"}`, ""},
		{"a backslash", "", `"a\\b"`, ""},
		{"NUL", "", `"a\u0000"`, ""},
		{"a letter beyond ASCII", "", `"é"`, "/things/%C3%A9?q=%C3%A9"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			_, op := operation(t, strings.Replace(file, "PREFIX", tc.prefix, 1))
			req := request(t, "POST https://api.test/things", `{"name":`+tc.value+`}`)
			asking, err := op.Strategies[0].Probe.Begin(Env{Request: req, Mutation: caseMutation()})
			if tc.want == "" {
				if err == nil {
					ask, _ := asking.Next()
					t.Errorf("asks %s", ask.Target)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if ask, _ := asking.Next(); ask.Target != tc.want || ask.Method != http.MethodGet || ask.Authority != "api.test" {
				t.Errorf("asks %+v, want %s", ask, tc.want)
			}
		})
	}
}

// With a weak tie, time decides what may be counted: the border is the claim
// minus the clocks' difference and two minutes.
func TestTheBordersOfACreationTime(t *testing.T) {
	t.Parallel()
	for _, tie := range []string{"unique", "content"} {
		_, op := operation(t, strings.NewReplacer("unique", tie, "PAGES", "").Replace(listingOperation))
		theBorders(t, op, tie)
	}
}

func theBorders(t *testing.T, op *Operation, tie string) {
	t.Helper()
	claimed := caseMutation().ClaimedAt.Truncate(time.Second)
	for _, tc := range []struct {
		at   string
		want Seen
	}{
		{"2026-01-02T03:02:04Z", SeenAbsent}, {"2026-01-02T03:02:05Z", SeenRetry}, {"2026-01-02T03:04:04Z", SeenRetry},
		{"2026-01-02T03:04:04.999Z", SeenRetry}, {"2026-01-02T03:04:05Z", SeenApplied}, {"2026-01-02T04:04:06+01:00", SeenApplied},
		{"yesterday", SeenRetry}, {"1767322990", SeenRetry},
	} {
		asking := begin(t, op, listedRequest(t))
		asking.env.Mutation.ClaimedAt = claimed
		asking.Answer(ok(fmt.Sprintf(`[{"id":1,"ref":"r","at":%q}]`, tc.at)))
		if o := asking.Observation(nobody, Clocks{Measured: true, SameBoot: true}); o.Seen != tc.want {
			t.Errorf("%s, created %s: %v (%s), want %v", tie, tc.at, o.Seen, o.Reason, tc.want)
		}
	}
}

// A stored version from before times of creation were asked for still loads. Whose an object is can't be told by it.
func TestAUniqueTieWithoutATimeIsRetryUnderAStoredVersion(t *testing.T) {
	t.Parallel()
	rule := strings.NewReplacer("          created: found.at\n", "", "PAGES", "").Replace(listingOperation)
	c, findings := LoadPinned([]byte(connectorHead+rule), nil, Defaults{})
	if c == nil {
		t.Fatal(findings)
	}
	asking := begin(t, c.Operation("make"), listedRequest(t))
	asking.Answer(ok(`[{"id":1,"ref":"r","at":"2026-01-03T00:00:00Z"}]`))
	if o := asking.Observation(nobody, Clocks{Measured: true, SameBoot: true}); o.Seen != SeenRetry {
		t.Errorf("%v (%s)", o.Seen, o.Reason)
	}
}
