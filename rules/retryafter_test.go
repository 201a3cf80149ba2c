package rules

import (
	"strings"
	"testing"
	"time"

	"keep-proxy/internal/verdict"
)

func TestWhenToAskAgain(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, c := range map[string]struct {
		says  string
		wait  time.Duration
		until time.Time
	}{
		"a duration":               {"duration('90s')", 90 * time.Second, time.Time{}},
		"seconds to wait":          {"duration(header_of(response, 'X-Wait') + 's')", 7 * time.Second, time.Time{}},
		"seconds since 1970":       {"timestamp(int(header_of(response, 'X-Reset')))", 0, at},
		"a time in the body":       {"timestamp(response.json.retry_at)", 0, at},
		"a number in the body":     {"duration(string(response.json.wait) + 's')", 1500 * time.Millisecond, time.Time{}},
		"a field that is missing":  {"timestamp(int(header_of(response, 'X-None')))", 0, time.Time{}},
		"a member that is missing": {"timestamp(response.json.none)", 0, time.Time{}},
		"no time after all":        {"response.json.wait", 0, time.Time{}},
	} {
		_, op := operation(t, mutationWith(`outcome: [{when: response.status == 403, then: failed, class: transient, retry_after: "`+c.says+`"}]`))
		got := op.Judge(request(t, "POST https://api.test/things", `{}`), "", Mutation{}, &Response{
			Status: 403, Complete: true, Body: []byte(`{"retry_at":"2026-01-02T03:04:05Z","wait":1.5}`),
			Header: map[string][]string{"X-Wait": {"7"}, "X-Reset": {"1767323045"}},
		})
		if got.Kind != verdict.OpinionFailed || got.Wait != c.wait || !got.Until.Equal(c.until) {
			t.Errorf("%s: %v, wait %v, until %v", name, got.Kind, got.Wait, got.Until)
		}
		if op.JudgesBody() != strings.Contains(c.says, "json") {
			t.Errorf("%s: judges the body: %v", name, op.JudgesBody())
		}
	}
}

func TestWhatIsNoTimeToAskAgain(t *testing.T) {
	t.Parallel()
	for name, entry := range map[string]string{
		"a text":              "{when: response.status == 403, then: failed, class: transient, retry_after: \"'60'\"}",
		"a number":            "{when: response.status == 403, then: failed, class: transient, retry_after: \"60\"}",
		"of what took effect": "{when: response.status == 200, then: applied, retry_after: duration('1m')}",
	} {
		if set, findings := Load([]File{{Name: "f.yaml", Data: []byte(withOperation("outcome: [" + entry + "]"))}}, nil, Defaults{}); set != nil || len(findings) != 1 || findings[0].Code != "value" {
			t.Errorf("%s is taken: %v", name, findings)
		}
	}
}
