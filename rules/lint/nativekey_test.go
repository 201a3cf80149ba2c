package lint

import (
	"slices"
	"strings"
	"testing"

	"keep-proxy/rules"
)

func TestAStrategyThatDoesNotFitTheKeyIsWarnedOf(t *testing.T) {
	t.Parallel()
	const resend, probed = "reconcile: [{resend: {}}, {none: why}]", "reconcile: [{resend: {}}, {probe: {get: /a, observe: [{when: response.json.x == json.name, is: applied}]}}]"
	const ignore = "payload: {ignore: [json.client_time]}"
	key := func(more string) string { return "native_key: {header: K, window: 24h" + more + "}" }
	for _, tc := range []struct {
		keys []string
		part string
	}{
		{[]string{resend, key("")}, ""},
		{[]string{resend, key(", replays: all")}, ""},
		{[]string{resend, key(", replays: success, mismatch: executed")}, ""},
		{[]string{resend, key(", replays: none")}, "gives no result"},
		{[]string{resend, key(", replays: conflict")}, "gives no result"},
		{[]string{probed, key(", replays: conflict")}, ""},
		{[]string{key(", replays: conflict")}, ""},
		{[]string{resend, key(", mismatch: cached"), ignore}, ""},
		{[]string{resend, key(", mismatch: executed"), ignore}, "takes effect as well"},
		{[]string{key(", mismatch: separate"), ignore}, "takes effect as well"},
		{[]string{key(", mismatch: separate"), "payload: {minor: [json.client_time]}"}, ""},
	} {
		findings := check(t, withOperation(tc.keys...))
		i := slices.IndexFunc(findings, func(f rules.Finding) bool { return f.Code == "native-key" })
		if (i >= 0) != (tc.part != "") || i >= 0 && !strings.Contains(findings[i].Problem, tc.part) {
			t.Errorf("%s\n%v, want …%s…", tc.keys, findings, tc.part)
		}
	}
}
