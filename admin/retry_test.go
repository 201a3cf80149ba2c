package admin

import (
	"testing"

	"keep-proxy/internal/verdict"
	"keep-proxy/ledger"
)

func TestWhetherARunMakesSenseAgain(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		run  ledger.Run
		want string
	}{
		{"one that goes on", ledger.Run{State: ledger.RunRunning}, ""},
		{"one in its grace", ledger.Run{State: ledger.RunFailing, Class: verdict.Transient}, ""},
		{"one that finished", ledger.Run{State: ledger.RunFinished}, "no"},
		{"one that caused an unknown", ledger.Run{State: ledger.RunPausedReconciliation, Class: verdict.Indeterminate}, "yes"},
		{"one that waits for a person", ledger.Run{State: ledger.RunPausedAttention, Class: verdict.Logic}, "no"},
		{"one refused because of a stop", ledger.Run{State: ledger.RunAborted, Class: verdict.Transient}, "yes"},
		{"one aborted on what has to be repaired", ledger.Run{State: ledger.RunAborted, Class: verdict.Precondition}, "no"},
		{"one whose script failed by itself", ledger.Run{State: ledger.RunAborted, Class: verdict.Logic, Reason: ledger.FinishedAsFailed}, ""},
		{"a state of a later version", ledger.Run{State: "waiting"}, "no"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := retryOf(&c.run); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
