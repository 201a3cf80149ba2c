package reconcilers

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"keep-proxy/ledger"
	"keep-proxy/rules"
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

// viaState knows that a thing was made by what its draft shows.
const viaState = `    reconcile:
      - probe:
          get: "/drafts/{json.reference}"
          expect: response.status in [200, 404]
          observe:
            - {when: response.status == 404, is: applied}
            - {when: response.json.state == 'draft', is: absent}
%s          absence_is_proof: true
          result: {status: 204}
`

// To be gone is a state, and what is not shown to whoever comes without a credential looks gone.
// An object that is shown is there all the same.
func TestAStateIsNotBelievedOfWhoAsksWithoutACredential(t *testing.T) {
	t.Parallel()
	script := http.Header{"Authorization": {"Bearer sk_test_1"}}
	shown := "            - {when: response.json.state == 'sent', is: applied}\n          id: response.json.id\n"
	for name, tc := range map[string]struct {
		scripted http.Header
		creds    fixed
		more     string
		status   int
		body     string
		want     ledger.State
	}{
		"it is not shown":                {script, fixed{}, "", http.StatusNotFound, "", ledger.NeedsReconcile},
		"one is configured in its place": {script, fixed{header: "Authorization", value: "Bearer sk_test_2"}, "", http.StatusNotFound, "", ledger.Applied},
		"the API asks for none":          {nil, fixed{}, "", http.StatusNotFound, "", ledger.Applied},
		"its object is shown":            {script, fixed{}, shown, http.StatusOK, `{"id":"d1","state":"sent"}`, ledger.Applied},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, fmt.Sprintf(viaState, tc.more))
			w.scripted, w.creds = tc.scripted, tc.creds
			m := w.unknown("a")
			w.api.answering(tc.status, http.Header{"Content-Type": {"application/json"}}, tc.body)
			w.due(m)
			now := w.read(m)
			if now.State != tc.want {
				t.Errorf("it is %s (%s), want %s", now.State, last(now).Reason, tc.want)
			}
			if why := last(now).Reason; tc.want == ledger.NeedsReconcile && !strings.Contains(why, "applied, but it was asked for without a credential") {
				t.Errorf("because %q", why)
			}
		})
	}
}

// Nor is the end of what was accepted: after its failure the same is sent again.
func TestAnEndIsNotBelievedOfWhoLooksWithoutACredential(t *testing.T) {
	t.Parallel()
	rule := strings.NewReplacer("until:", "expect: response.status in [200, 404]\n      until:",
		"response.json.state == 'failed'", "response.status == 404").Replace(viaWatch)
	for name, tc := range map[string]struct {
		creds fixed
		want  ledger.State
	}{
		"none is configured":             {fixed{}, ledger.NeedsReconcile},
		"one is configured in its place": {fixed{header: "Authorization", value: "Bearer sk_test_2"}, ledger.Failed},
	} {
		w := newWorld(t, rule)
		w.scripted, w.creds = http.Header{"Authorization": {"Bearer sk_test_1"}}, tc.creds
		m := w.accepted(w.claim("a"))
		w.api.answering(http.StatusNotFound, http.Header{"Content-Type": {"application/json"}}, `{"state":"unknown"}`)
		w.after(time.Minute)
		if now := w.read(m); now.State != tc.want {
			t.Errorf("%s: it is %s (%s), want %s", name, now.State, last(now).Reason, tc.want)
		}
	}
}

// Some APIs take their credential in the query, where a rule calls it secret. It isn't stored either.
func TestAnAbsenceIsNotBelievedOfWhoAsksWithoutTheKeyOfTheQuery(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		query string
		creds fixed
		want  ledger.State
	}{
		"the script's is not stored":     {"?key=sk_test_1", fixed{}, ledger.NeedsReconcile},
		"one is configured in its place": {"?key=sk_test_1", fixed{header: "Authorization", value: "Bearer sk_test_2"}, ledger.Failed},
		"the API asks for none":          {"", fixed{}, ledger.Failed},
	} {
		w := newWorld(t, viaProbe+"    secret: [query.key]\n")
		w.creds = tc.creds
		w.make = func(reference string) *rules.Request {
			req := w.request(reference)
			with, refusal := rules.Rebuild(req.Method, req.URL()+tc.query, req.Header, req.Body())
			if refusal != nil {
				t.Fatal(refusal)
			}
			return with
		}
		m := w.unknown("a")
		w.believeAbsent()
		now := w.wants(m, tc.want, "")
		if why := last(now).Reason; tc.want == ledger.NeedsReconcile && !strings.Contains(why, "without a credential in place of query.key") {
			t.Errorf("%s: because %q", name, why)
		}
	}
}

// A session that the probe opens itself stands for the script's. A credential isn't told by an answer.
func TestAFieldThatAnAnswerToldIsNotLacking(t *testing.T) {
	t.Parallel()
	const stepped = `    reconcile:
      - probe:
          steps:
            - {name: open, get: /sessions}
            - name: draft
              get: "/drafts/{json.reference}"
              header: {x-api-key: public, mcp-session-id: {cel: "steps.open.header[?'mcp-session-id']"}}
              observe: [{when: response.json.state == 'gone', is: applied}]
`
	session, body := http.Header{"Mcp-Session-Id": {"s1"}}, `{"state":"gone"}`
	for name, tc := range map[string]struct {
		scripted, answered http.Header
		lacks              string
	}{
		"a constant of the rule's":          {http.Header{"X-Api-Key": {"k"}}, session, "in place of X-Api-Key:"},
		"a session of its own":              {session, http.Header{"Mcp-Session-Id": {"s2"}}, ""},
		"no session was opened":             {session, nil, "in place of Mcp-Session-Id:"},
		"the script had a credential, too":  {http.Header{"Mcp-Session-Id": {"s1"}, "Authorization": {"Bearer sk_test_1"}}, session, "in place of Authorization:"},
		"the rule writes it, but with none": {session, http.Header{"Mcp-Session-Id": {""}}, "in place of Mcp-Session-Id:"},
	} {
		w := newWorld(t, stepped)
		w.scripted, w.creds = tc.scripted, fixed{}
		m := w.unknown("a")
		w.api.answering(http.StatusOK, withField(tc.answered, "Content-Type", "application/json"), body)
		w.due(m)
		want := ledger.Applied
		if tc.lacks != "" {
			want = ledger.NeedsReconcile
		}
		now := w.read(m)
		if why := last(now).Reason; now.State != want || !strings.Contains(why, tc.lacks) {
			t.Errorf("%s: it is %s (%s), want %s because %q", name, now.State, why, want, tc.lacks)
		}
	}
}
