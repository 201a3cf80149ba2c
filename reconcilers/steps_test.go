package reconcilers

import (
	"testing"
	"time"

	"keep-proxy/ledger"
)

// viaSteps asks twice: for what there is, and then for what it is.
const viaSteps = `    reconcile:
      - probe:
          steps:
            - name: first
              get: /things
              query: {reference: {cel: json.reference}}
              observe:
                - {when: size(response.json.items) == 0, is: absent}
                - {when: "true", step: second}
              absence_is_proof: true
            - name: second
              get: /things
              query: {reference: {cel: "steps.first.json.items[0].reference"}}
              candidates: response.json.items
              ours: found.keep_id == mutation.marker
              tie: marker
              id: found.id
              result: {status: 201, json: {cel: found}}
`

func TestAProbeInStepsAsksWhatTheAnswerBeforeSays(t *testing.T) {
	t.Parallel()
	w := newWorld(t, viaSteps)
	found, lost := w.unknown("a"), w.unknown("b")
	w.api.commit("a", found.Marker, "")
	w.after(10 * time.Second)
	w.wants(found, ledger.Applied, "is ours")
	if _, gets, _ := w.api.counts(); gets != 3 {
		t.Errorf("%d reads, want two for what is there and one for what isn't", gets)
	}
	w.believeAbsent()
	w.after(time.Minute)
	w.wants(lost, ledger.Failed, "")
}
