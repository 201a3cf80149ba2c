package reconcilers

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"keep-proxy/ledger"
)

// Who asks without a credential may be shown an empty list, which is no proof that there is
// nothing. What is shown is there all the same.
func TestAnAbsenceIsNotBelievedOfWhoAsksWithoutACredential(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		scripted http.Header
		creds    fixed
		made     bool
		want     ledger.State
	}{
		"the script's is not stored":          {http.Header{"Authorization": {"Bearer sk_test_1"}}, fixed{}, false, ledger.NeedsReconcile},
		"another field of the script's":       {http.Header{"X-Api-Key": {"k"}}, fixed{}, false, ledger.NeedsReconcile},
		"one is configured in its place":      {http.Header{"Authorization": {"Bearer sk_test_1"}}, fixed{header: "Authorization", value: "Bearer sk_test_2"}, false, ledger.Failed},
		"one is configured, in another field": {http.Header{"Authorization": {"Bearer sk_test_1"}}, fixed{header: "X-Api-Key", value: "k"}, false, ledger.Failed},
		"the API asks for none":               {nil, fixed{}, false, ledger.Failed},
		"it is there":                         {http.Header{"Authorization": {"Bearer sk_test_1"}}, fixed{}, true, ledger.Applied},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, viaProbe)
			w.scripted, w.creds = tc.scripted, tc.creds
			m := w.unknown("a")
			if tc.made {
				w.api.commit("a", m.Marker, "")
			}
			w.believeAbsent()
			w.after(time.Hour)
			now := w.read(m)
			if now.State != tc.want {
				t.Errorf("it is %s (%s), want %s", now.State, last(now).Reason, tc.want)
			}
			if why := last(now).Reason; tc.want == ledger.NeedsReconcile && !strings.Contains(why, "without a credential") {
				t.Errorf("because %q", why)
			}
		})
	}
}
