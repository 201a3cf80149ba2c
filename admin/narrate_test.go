package admin

import (
	"strings"
	"testing"
	"time"

	"keep-proxy/ledger"
)

func TestWhyUnknown(t *testing.T) {
	t.Parallel()
	at := func(s int) ledger.Stamp { return ledger.Stamp{Wall: time.Date(2026, 3, 1, 12, 0, s, 0, time.UTC)} }
	for _, c := range []struct {
		name      string
		committed bool
		sendings  []ledger.Dispatch
		want      string
	}{
		{"never sent", false, nil, "No sending is recorded."},
		{"the sender was killed", false, []ledger.Dispatch{{Started: at(0), Lost: true}},
			"Sending 1 at 2026-03-01 12:00:00.000Z: an unknown number of bytes written, keep-proxy stopped before it recorded an end. " +
				"It isn't judged: it may have taken effect or not."},
		{"a server's error", false, []ledger.Dispatch{{
			Started: at(0), Ended: at(2),
			Verdict: ledger.VerdictUncertain, Reason: "status 500 says nothing",
			Wire: ledger.Wire{BytesWritten: 1, Head: true, Status: 500, BodyComplete: true},
		}}, "Sending 1 at 2026-03-01 12:00:00.000Z: 1 byte written, status 500 with its whole body, ended after 2s. " +
			"It may have taken effect or not (status 500 says nothing)."},
		{"a cut body, then a resend that was refused", true, []ledger.Dispatch{
			{Started: at(0), Ended: at(1), Verdict: ledger.VerdictCommitted, Wire: ledger.Wire{BytesWritten: 90, Head: true, Status: 200}},
			{Started: at(30), Ended: at(31), Resend: true, Verdict: ledger.VerdictFailed, Wire: ledger.Wire{BytesWritten: 90, Head: true, Status: 400, BodyComplete: true}},
		}, "Sending 1 at 2026-03-01 12:00:00.000Z: 90 bytes written, status 200 with a body that was cut, ended after 1s. It took effect, but its answer was lost. " +
			"Resending 2 at 2026-03-01 12:00:30.000Z: 90 bytes written, status 400 with its whole body, ended after 1s. It took no effect. " +
			"Success is known; what is missing is the answer."},
		{"nothing went out, then under way", false, []ledger.Dispatch{
			{Started: at(0), Ended: at(1), Verdict: ledger.VerdictNotSent, Wire: ledger.Wire{Error: "no such host", ErrorClass: "dns"}},
			{Started: at(2)},
		}, "Sending 1 at 2026-03-01 12:00:00.000Z: 0 bytes written, no answer (dns: no such host), ended after 1s. Nothing was sent. " +
			"Sending 2 at 2026-03-01 12:00:02.000Z: an unknown number of bytes written, under way. It isn't judged: it may have taken effect or not."},
		{"a success whose record was damaged by a later one", false, []ledger.Dispatch{
			{Started: at(0), Ended: at(1), Verdict: ledger.VerdictApplied, Wire: ledger.Wire{Head: true, Status: 201, BodyComplete: true, Error: "late"}},
		}, "Sending 1 at 2026-03-01 12:00:00.000Z: 0 bytes written, status 201 with its whole body (error: late), ended after 1s. It took effect."},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := whyUnknown(&ledger.Mutation{Outcome: ledger.Outcome{Committed: c.committed, Dispatches: c.sendings}}); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestProbed(t *testing.T) {
	t.Parallel()
	at := ledger.Stamp{Wall: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	for _, c := range []struct {
		name string
		m    ledger.Mutation
		want string
	}{
		{"nobody to ask", ledger.Mutation{}, "Nothing was asked: the rule knows no way to ask this API."},
		{"not asked yet", ledger.Mutation{
			Payload: ledger.Payload{Policy: ledger.Policy{Reconciler: true}},
		}, "Nothing was seen since the last sending."},
		{"only before the last sending", ledger.Mutation{
			Payload: ledger.Payload{Policy: ledger.Policy{Reconciler: true}},
			Asking:  ledger.Asking{Observations: []ledger.Observation{{At: at, Seen: ledger.SeenAbsent, Voided: true}}},
		}, "Nothing was seen since the last sending."},
		{"before a replay", ledger.Mutation{
			Payload: ledger.Payload{Policy: ledger.Policy{Reconciler: true}},
			Asking:  ledger.Asking{Observations: []ledger.Observation{{At: at, Strategy: "probe", Seen: ledger.SeenApplied}}},
			Outcome: ledger.Outcome{Verification: &ledger.Verification{At: at.Wall, Said: ledger.SaidDisagrees, Reason: "nothing of it in 1 page"}},
		}, "2026-03-01 12:00:00.000Z probe: it is there; 2026-03-01 12:00:00.000Z before a replay: it is not there as it was (nothing of it in 1 page)."},
		{"nothing before a replay", ledger.Mutation{
			Outcome: ledger.Outcome{Verification: &ledger.Verification{At: at.Wall, Said: ledger.SaidNothing}},
		},
			"2026-03-01 12:00:00.000Z before a replay: no answer to go by."},
		{"several objects", ledger.Mutation{Asking: ledger.Asking{Observations: []ledger.Observation{
			{At: at, Strategy: "probe", Seen: ledger.SeenDuplicate, Reason: "2 objects are ours", Objects: []string{"tr_1", "tr_2"}},
		}}}, "2026-03-01 12:00:00.000Z probe: it is there more than once (2 objects are ours): tr_1, tr_2."},
		{"several objects, of which one is kept", ledger.Mutation{Outcome: ledger.Outcome{State: ledger.Applied}, Asking: ledger.Asking{Observations: []ledger.Observation{
			{At: at, Strategy: "probe", Seen: ledger.SeenDuplicate, Strong: true, Objects: []string{"tr_1", "tr_2"}},
		}}}, "2026-03-01 12:00:00.000Z probe: it is there more than once: tr_1, tr_2, of which the first is kept."},
		{"more objects than anybody reads", ledger.Mutation{Asking: ledger.Asking{Observations: []ledger.Observation{
			{At: at, Strategy: "probe", Seen: ledger.SeenDuplicate, Objects: strings.Split("abcdefghijkl", "")},
		}}}, "2026-03-01 12:00:00.000Z probe: it is there more than once: a, b, c, d, e, f, g, h, i, j and 2 more."},
		{"every kind", ledger.Mutation{Asking: ledger.Asking{Observations: []ledger.Observation{
			{At: at, Strategy: "probe", Seen: ledger.SeenRetry, Reason: "status 503"},
			{At: at, Strategy: "probe", Seen: ledger.SeenAbsent},
			{At: at, Strategy: "probe", Seen: ledger.SeenDuplicate},
			{At: at, Strategy: "resend", Seen: ledger.SeenApplied},
			{At: at, Strategy: "probe", Seen: "new"},
		}}}, "2026-03-01 12:00:00.000Z probe: no answer to go by (status 503); 2026-03-01 12:00:00.000Z probe: it isn't there; " +
			"2026-03-01 12:00:00.000Z probe: it is there more than once; 2026-03-01 12:00:00.000Z resend: it is there; " +
			"2026-03-01 12:00:00.000Z probe: no answer to go by."},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := probed(&c.m); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestWhatDidNotLeaveThisMachineIsNotCountedAsSent(t *testing.T) {
	t.Parallel()
	notSent, lost, gap := ledger.Dispatch{Verdict: ledger.VerdictNotSent}, ledger.Dispatch{Verdict: ledger.VerdictUncertain}, ledger.Dispatch{Gap: 1}
	for want, sendings := range map[string][]ledger.Dispatch{
		"not yet":                            {notSent, notSent},
		"once":                               {notSent, lost, notSent},
		"once as far as the ledger knows":    {lost, notSent, gap},
		"not yet as far as the ledger knows": {notSent, gap},
		"twice":                              {lost, lost},
	} {
		m := &ledger.Mutation{
			Intent:  ledger.Intent{Target: "Pay bob"},
			Outcome: ledger.Outcome{Dispatches: sendings},
			Payload: ledger.Payload{Request: ledger.Request{Method: "PUT", URL: "https://b/1"}},
		}
		if got := attempted(m); got != "Pay bob: PUT https://b/1, sent "+want+"." {
			t.Errorf("%q, want sent %s", got, want)
		}
	}
}

func TestAttempted(t *testing.T) {
	t.Parallel()
	for sent, want := range map[int]string{0: "not yet", 1: "once", 2: "twice", 3: "3 times"} {
		m := &ledger.Mutation{
			Intent:  ledger.Intent{Connector: "bank", Operation: "pay"},
			Payload: ledger.Payload{Request: ledger.Request{Method: "PUT", URL: "https://b/1"}},
			Outcome: ledger.Outcome{Dispatches: make([]ledger.Dispatch, sent)},
		}
		if got := attempted(m); got != "bank pay: PUT https://b/1, sent "+want+"." {
			t.Errorf("%d sendings: %s", sent, got)
		}
	}
}

func TestBlocksOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name        string
		state       ledger.State
		scope       ledger.BlockScope
		wantScope   string
		wantBlocked string
	}{
		{"the widest scope is the default", ledger.Indeterminate, "", "workflow", "billing"},
		{"an unknown scope is the widest", ledger.Indeterminate, "galaxy", "workflow", "billing"},
		{"an item", ledger.NeedsReconcile, ledger.BlockItem, "item", "billing/order-1"},
		{"only itself", ledger.Indeterminate, ledger.BlockMutation, "mutation", "m-1"},
		{"nothing once it is settled", ledger.Applied, ledger.BlockWorkflow, "", ""},
		{"an unknown state stops", "new", ledger.BlockWorkflow, "workflow", "billing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m := &ledger.Mutation{
				Intent:  ledger.Intent{ID: "m-1", Scope: ledger.Scope{Workflow: "billing", Item: "order-1"}},
				Outcome: ledger.Outcome{State: c.state},
				Payload: ledger.Payload{Policy: ledger.Policy{BlockScope: c.scope}},
			}
			got := blocksOf(m)
			if c.wantScope == "" {
				if got != nil {
					t.Errorf("got %+v, want nothing", got)
				}
				return
			}
			if got == nil || got.Scope != c.wantScope || got.Name != c.wantBlocked {
				t.Errorf("got %+v, want %s %s", got, c.wantScope, c.wantBlocked)
			}
		})
	}
}
