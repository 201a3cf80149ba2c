package reconcilers

import (
	"testing"
	"time"

	"keep-proxy/ledger"
)

func TestUntilSettled(t *testing.T) {
	t.Parallel()
	at := func(mono time.Duration, boot string) ledger.Stamp {
		return ledger.Stamp{Wall: time.Unix(0, 0).Add(mono), Mono: mono, Boot: mono, BootID: boot}
	}
	process := ledger.Process{ID: "p2", Started: at(time.Hour, "b")}
	ended := func(mono time.Duration) ledger.Dispatch { return ledger.Dispatch{Owner: "p2", Ended: at(mono, "b")} }
	for name, tc := range map[string]struct {
		dispatches []ledger.Dispatch
		want       time.Duration
		begun      bool
	}{
		"counts from the recorded end":                 {[]ledger.Dispatch{ended(time.Hour + time.Minute)}, 3*time.Minute + 30*time.Second, true},
		"the latest end counts":                        {[]ledger.Dispatch{ended(time.Hour + time.Minute), ended(time.Hour)}, 3*time.Minute + 30*time.Second, true},
		"an end before this process started counts":    {[]ledger.Dispatch{{Owner: "p1", Ended: at(50*time.Minute, "b")}}, 0, true},
		"another boot counts from the process's start": {[]ledger.Dispatch{{Owner: "p1", Ended: at(time.Minute, "a")}}, 2*time.Minute + 30*time.Second, true},
		"a lost owner counts from the process's start": {[]ledger.Dispatch{{Owner: "p1"}}, 2*time.Minute + 30*time.Second, true},
		"a dispatch still running has not begun":       {[]ledger.Dispatch{ended(time.Hour), {Owner: "p2"}}, 0, false},
		"an end in the future counts from the start":   {[]ledger.Dispatch{ended(2 * time.Hour)}, 2*time.Minute + 30*time.Second, true},
		"no dispatch is settled":                       {nil, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := &ledger.Mutation{Policy: ledger.Policy{Settle: 5 * time.Minute}, Dispatches: tc.dispatches}
			got, begun := untilSettled(m, at(time.Hour+2*time.Minute+30*time.Second, "b"), process)
			if begun != tc.begun || begun && got != tc.want {
				t.Errorf("got %v, %v; want %v, %v", got, begun, tc.want, tc.begun)
			}
		})
	}
}
