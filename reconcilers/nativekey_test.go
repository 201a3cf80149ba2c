package reconcilers

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"keep-proxy/ledger"
	"keep-proxy/rules"
)

// An API that doesn't repeat its first answer is sent to once more, and asked for the result by the probe.
func TestAResendGivesNoResultThatIsNotRepeated(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		replays string
		// arrived says that the first sending took effect; status is what a resend is answered with then.
		arrived bool
		status  int
	}{
		"200 without the first answer":      {"none", true, http.StatusOK},
		"409, as it arrived":                {"conflict", true, http.StatusConflict},
		"a success that was none":           {"conflict", true, http.StatusOK},
		"it takes effect now, unrepeated":   {"none", false, 0},
		"it takes effect now, no conflict":  {"conflict", false, 0},
		"202, as if it were on its way now": {"none", true, http.StatusAccepted},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, viaBoth)
			w.rule = strings.Replace(w.rule, "window: 24h", "window: 24h, replays: "+tc.replays, 1)
			m := w.unknown("a")
			if tc.arrived {
				w.api.commit("a", m.Marker, m.VendorKey)
				w.api.script(func(rw http.ResponseWriter, r *http.Request) bool {
					if r.Method == http.MethodPost {
						rw.WriteHeader(tc.status)
					}
					return r.Method == http.MethodPost
				})
			}
			w.due(m)
			if now := w.wants(m, ledger.NeedsReconcile, ""); now.ResendTries != 1 || now.Result != nil || now.Committed {
				t.Fatalf("after %d resends the result is %+v", now.ResendTries, now.Result)
			}
			w.due(m)
			now := w.wants(m, ledger.Applied, "")
			if posts, gets, things := w.api.counts(); posts != 1 || gets != 1 || things != 1 {
				t.Errorf("%d sends and %d reads made %d things", posts, gets, things)
			}
			if now.Result == nil || now.Result.Source != "observation" || !strings.Contains(w.resultOf(now), m.Marker) {
				t.Errorf("result %+v", now.Result)
			}
		})
	}
}

// With nothing else to ask a person decides; what may have arrived isn't sent on and on.
func TestAResendWithoutResultThenAPerson(t *testing.T) {
	t.Parallel()
	w := newWorld(t, viaResend)
	w.rule = strings.Replace(w.rule, "window: 24h", "window: 24h, replays: none", 1)
	m := w.unknown("a")
	w.due(m)
	w.due(m)
	if now := w.wants(m, ledger.Indeterminate, "can't be read back"); !now.Escalated() {
		t.Error("nobody was asked")
	}
	if posts, _, things := w.api.counts(); posts != 1 || things != 1 {
		t.Errorf("%d sends made %d things", posts, things)
	}
}

// What rules hold against charset and length is what the ledger makes.
func TestKeysAreAsTheRulesTakeThem(t *testing.T) {
	t.Parallel()
	for _, format := range []string{ledger.KeyUUID, ledger.KeyUUID4, ledger.KeyHex, ledger.KeyToken} {
		used, length := map[string]bool{}, 0
		for i := range 200 {
			key, err := ledger.VendorKey(ledger.Key{byte(i)}, 1, format, 0)
			if err != nil {
				t.Fatal(err)
			}
			length = len(key)
			for _, c := range key {
				used[string(c)] = true
			}
		}
		all := slices.Sorted(maps.Keys(used))
		if all[0] == "-" {
			all = append(all[1:], "-")
		}
		loads := func(charset string, least int) bool {
			key := "native_key: {header: K, format: " + format + ", charset: '" + charset + "', min_length: " + strconv.Itoa(least) + "}"
			file := "apiVersion: keep/v1\nconnector: t\nversion: 1\nhosts: [a.test]\nreads: safe-methods\noperations:\n  - name: o\n    match: {method: POST, path: /o}\n" +
				"    effect: mutation\n    identity: {a: json.a}\n    manual_check: look\n    reconcile: [{none: why}]\n    " + key + "\n"
			_, findings := rules.Load([]rules.File{{Name: "t.yaml", Data: []byte(file)}}, nil, rules.Defaults{})
			return !findings.Failed()
		}
		if !loads(strings.Join(all, ""), length) || loads(strings.Join(all, ""), length+1) || loads(strings.Join(all[1:], ""), length) {
			t.Errorf("%s: %d of %q", format, length, all)
		}
	}
}
