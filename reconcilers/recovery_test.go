package reconcilers

import (
	"errors"
	"strings"
	"testing"
	"time"

	"keep-proxy/ledger"
)

func TestRecoveryAsksAtOnceWhatALostProcessLeft(t *testing.T) {
	t.Parallel()
	w := newWorld(t, viaProbe)
	m := w.claim("a")
	w.api.commit("a", m.Marker, "")
	w.restart()
	w.wants(m, ledger.NeedsReconcile, "was lost")
	if c := w.after(0); c.Applied != 1 {
		t.Errorf("counts %+v, want one applied", c)
	}
	if logged := w.log.String(); !strings.Contains(logged, `"needs_reconcile":1`) {
		t.Errorf("log %s; want what was recovered", logged)
	}
}

func TestRecoveryWithoutAReconcilerAsksAPerson(t *testing.T) {
	t.Parallel()
	w := newWorld(t, viaNone)
	m := w.claim("a")
	w.restart()
	w.wants(m, ledger.Indeterminate, "")
	if c := w.after(time.Hour); c.Tried != 0 {
		t.Errorf("tried %d times", c.Tried)
	}
}

func TestRecoveryThatFailsSaysSo(t *testing.T) {
	t.Parallel()
	w := newWorld(t, viaProbe)
	w.claim("a")
	w.store = w.store.Reopen(ledger.Process{ID: w.newID(), Started: w.now()})
	w.start()
	w.store.FailBefore()
	if _, err := w.r.Recover(t.Context()); !errors.Is(err, ledger.ErrUnavailable) {
		t.Errorf("got %v, want ErrUnavailable", err)
	}
}
