package reconcilers

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"keep-proxy/ledger"
	"keep-proxy/rules"
)

// noRoom leaves the marker out of what the world's script sends.
func noRoom(w *world) {
	w.rule = strings.Replace(w.rule, "marker: {json: keep_id}", `marker: {append: json.note, text: "{mutation.marker}", max_length: 30}`, 1)
	w.make = func(reference string) *rules.Request {
		body := fmt.Appendf(nil, `{"reference":%q,"amount":12,"note":"as long as it may be"}`, reference)
		req, refusal := rules.Rebuild(http.MethodPost, "http://"+w.api.host()+"/things", http.Header{"Content-Type": {"application/json"}, "X-Account": {"acct_1"}}, body)
		if refusal != nil {
			w.Fatal(refusal)
		}
		return req
	}
}

func TestALeftOutMarkerIsAPersonsQuestion(t *testing.T) {
	t.Parallel()
	ran := filepath.Join(t.TempDir(), "ran")
	for name, strategies := range map[string]string{
		"by a probe":   viaProbe,
		"by a program": viaProgram(t, "touch "+ran+"; echo '{\"seen\":\"absent\"}'", ""),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, strategies)
			noRoom(w)
			m := w.unknown("a")
			w.after(10 * time.Second)
			w.wants(m, ledger.Indeterminate, "it looks for the marker")
			if posts, gets, _ := w.api.counts(); posts+gets != 0 {
				t.Errorf("%d mutations and %d reads were sent", posts, gets)
			}
			if _, err := os.Stat(ran); err == nil {
				t.Error("the program was run")
			}
		})
	}
}

func TestALeftOutMarkerLeavesOtherEvidence(t *testing.T) {
	t.Parallel()
	const unique = `      - probe:
          get: /things
          query: {reference: {cel: json.reference}}
          candidates: response.json.items
          ours: found.reference == json.reference
          tie: unique
          id: found.id
          created: found.created
          result: {status: 201, json: {cel: found}}
`
	w := newWorld(t, viaProbe+unique)
	noRoom(w)
	m := w.unknown("a")
	w.api.answering(http.StatusOK, http.Header{"Date": {w.clock.Now().UTC().Format(http.TimeFormat)}},
		`{"items":[{"id":"t1","reference":"a","created":"`+w.clock.Now().Add(time.Second).UTC().Format(time.RFC3339)+`"}],"next":""}`)
	w.after(10 * time.Second)
	w.wants(m, ledger.Applied, "the object t1 is ours")
}

// Nothing is sent that differs from what its record says of it.
func TestALeftOutMarkerStaysOutOfAResend(t *testing.T) {
	t.Parallel()
	w := newWorld(t, viaResend)
	noRoom(w)
	m := w.unknown("a")
	w.after(10 * time.Second)
	w.wants(m, ledger.Applied, "")
	if _, _, things := w.api.counts(); things != 1 || w.api.things[0].Note != "as long as it may be" {
		t.Errorf("sent %+v", w.api.things)
	}
}

func TestVerifyingSaysNothingOfALeftOutMarker(t *testing.T) {
	t.Parallel()
	w := newWorld(t, viaProbe)
	noRoom(w)
	m := w.unknown("a")
	w.clock.Advance(time.Hour)
	if v := w.r.Verify(w.Context(), m); v.Said != ledger.SaidNothing {
		t.Errorf("%+v", v)
	}
	if _, gets, _ := w.api.counts(); gets != 0 {
		t.Errorf("%d reads were sent", gets)
	}
}
