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
			m := &ledger.Mutation{
				Payload: ledger.Payload{Policy: ledger.Policy{Settle: 5 * time.Minute}},
				Outcome: ledger.Outcome{Dispatches: tc.dispatches},
			}
			got, begun := untilSettled(m, at(time.Hour+2*time.Minute+30*time.Second, "b"), process)
			if begun != tc.begun || begun && got != tc.want {
				t.Errorf("got %v, %v; want %v, %v", got, begun, tc.want, tc.begun)
			}
		})
	}
}

func TestUntilConfirmed(t *testing.T) {
	t.Parallel()
	at := func(s int) ledger.Stamp {
		return ledger.Stamp{Mono: time.Duration(s) * time.Second, BootID: "b"}
	}
	for name, tc := range map[string]struct {
		seen []ledger.Observation
		want time.Duration
	}{
		"the first confirmation counts from its start":   {nil, 8 * time.Second},
		"one that was spaced counts itself":              {[]ledger.Observation{{At: at(80), Counted: true}}, 8 * time.Second},
		"one too early leaves the one before":            {[]ledger.Observation{{At: at(95), Counted: true}}, 3 * time.Second},
		"what was voided does not matter":                {[]ledger.Observation{{At: at(95), Counted: true, Voided: true}}, 8 * time.Second},
		"what did not count does not matter":             {[]ledger.Observation{{At: at(95)}}, 8 * time.Second},
		"a confirmation of another boot does not matter": {[]ledger.Observation{{At: ledger.Stamp{Mono: 95 * time.Second, BootID: "a"}, Counted: true}}, 8 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := &ledger.Mutation{
				Payload: ledger.Payload{Policy: ledger.Policy{Spacing: 10 * time.Second}},
				Asking:  ledger.Asking{Observations: tc.seen},
			}
			if got := untilConfirmed(m, at(100), at(102)); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestElapsedIsRunningTime(t *testing.T) {
	t.Parallel()
	at := func(d time.Duration, boot string) ledger.Stamp { return ledger.Stamp{Mono: d, BootID: boot} }
	process := ledger.Process{ID: "p", Started: at(time.Hour, "b")}
	now := at(2*time.Hour, "b")
	for name, tc := range map[string]struct {
		m    ledger.Mutation
		want time.Duration
	}{
		"since it became unknown": {ledger.Mutation{
			Outcome: ledger.Outcome{State: ledger.NeedsReconcile, UnknownSince: at(90*time.Minute, "b")},
		}, 30 * time.Minute},
		"what it ran before is added": {ledger.Mutation{
			Outcome: ledger.Outcome{State: ledger.NeedsReconcile, UnknownSince: at(90*time.Minute, "b")},
			Asking: ledger.Asking{
				RunningAge:   time.Hour,
				Observations: []ledger.Observation{{At: at(110*time.Minute, "b")}},
			},
		}, 70 * time.Minute},
		"time between two processes is none": {ledger.Mutation{
			Outcome: ledger.Outcome{State: ledger.NeedsReconcile, UnknownSince: at(10*time.Minute, "b")},
			Asking:  ledger.Asking{RunningAge: 5 * time.Minute},
		}, 65 * time.Minute},
		"nor is another boot": {ledger.Mutation{
			Outcome: ledger.Outcome{State: ledger.NeedsReconcile, UnknownSince: at(119*time.Minute, "a")},
		}, time.Hour},
		"in flight it has not begun": {ledger.Mutation{Outcome: ledger.Outcome{State: ledger.InFlight}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := elapsed(&tc.m, now, process); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}
