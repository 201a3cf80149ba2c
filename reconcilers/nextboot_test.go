package reconcilers

import (
	"testing"
	"time"

	"keep-proxy/ledger"
	"keep-proxy/rules"
)

// A machine without a clock of its own goes on from the time at which it was switched off, and
// its API may have forgotten the key meanwhile: the probe is asked.
func TestNothingIsSentAgainAfterAnotherBoot(t *testing.T) {
	t.Parallel()
	w := newWorld(t, viaBoth)
	m := w.unknown("a")
	w.reboot()
	w.due(m)
	if posts, gets, _ := w.api.counts(); posts != 0 || gets != 1 {
		t.Errorf("%d sends and %d reads, want only a read", posts, gets)
	}
	if got := w.read(m).ResendTries; got != 0 {
		t.Errorf("%d resends recorded", got)
	}
}

// Who makes settle longer means the questions that are open, too.
func TestSettingsOfNowAreHeeded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, viaProbe)
	m := w.unknown("a")
	longer := time.Hour
	w.user = []rules.Settings{{Connector: "things", Overrides: map[string]rules.Override{m.Operation: {Settle: &longer}}}}
	w.start()
	w.believeAbsent()
	w.wants(m, ledger.NeedsReconcile, "")
	w.after(longer)
	w.after(10 * time.Second)
	w.wants(m, ledger.Failed, "")
}
