package reconcilers

import (
	"net/http"
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

// What is sent by itself heeds them too: what it takes back, or sets again, may still come.
func TestWhatIsSentByItselfHeedsTheSettingsOfNow(t *testing.T) {
	t.Parallel()
	longer := time.Hour
	careful := func(m *ledger.Mutation) []rules.Settings {
		return []rules.Settings{{Connector: "things", Overrides: map[string]rules.Override{m.Operation: {Settle: &longer}}}}
	}
	t.Run("an undo", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, viaNone+"    compensate: {delete: \"/things/{object}\"}\n")
		m := w.unknown("a")
		undo := w.owed(m, "t1")
		w.user = careful(m)
		w.start()
		w.api.answering(http.StatusNoContent, nil, "")
		w.after(30 * time.Minute)
		w.wants(undo, ledger.Failed, "")
		w.after(longer)
		w.wants(undo, ledger.Applied, "")
	})
	t.Run("a state that is set again", func(t *testing.T) {
		t.Parallel()
		w := newStateWorld(t, "")
		m := w.unknown("a")
		w.user = careful(m)
		w.start()
		w.after(30 * time.Minute)
		w.wants(m, ledger.NeedsReconcile, "once nothing that was sent before can take effect")
		for n := 0; n < 20 && w.read(m).State == ledger.NeedsReconcile; n++ {
			w.due(m)
		}
		if now := w.wants(m, ledger.Applied, ""); now.Current().Started.Mono-m.Current().Ended.Mono < longer {
			t.Errorf("it was set again %v after the first sending", now.Current().Started.Mono-m.Current().Ended.Mono)
		}
	})
	t.Run("a request under the API's own key", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, viaBoth)
		m := w.unknown("a")
		longer := 12 * time.Hour
		w.user = []rules.Settings{{Connector: "things", Overrides: map[string]rules.Override{m.Operation: {Settle: &longer}}}}
		w.start()
		// What is sent now might take effect when the API has forgotten the key.
		w.after(11 * time.Hour)
		if posts, gets, _ := w.api.counts(); posts != 0 || gets == 0 {
			t.Errorf("%d sendings and %d reads, want it to be asked about and not sent again", posts, gets)
		}
	})
}
