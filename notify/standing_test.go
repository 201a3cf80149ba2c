package notify

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"keep-proxy/ledger"
)

// unknown makes mutations of workflow w whose outcome the API is asked about. They were under way at the same time.
func (w *world) unknown(items ...byte) (keys []ledger.Key) {
	w.t.Helper()
	var sent []ledger.Dispatch
	for _, item := range items {
		key, scope := ledger.Key{item}, ledger.Scope{Workflow: "w", Item: string(item), Attempt: 1}
		record := ledger.Mutation{
			Intent:  ledger.Intent{Connector: "c", Operation: "o", Scope: scope},
			Payload: ledger.Payload{PayloadDigest: "p", Policy: ledger.Policy{Reconciler: true, Settle: time.Hour}},
		}
		out, err := w.Claim(w.t.Context(), ledger.Claim{Scope: scope, Key: key, DispatchID: "d" + string(item), Record: record})
		if err != nil || out.Dispatch == nil {
			w.t.Fatalf("claim %+v, %v", out, err)
		}
		keys, sent = append(keys, key), append(sent, *out.Dispatch)
	}
	for i, d := range sent {
		d.Verdict, d.Reason = ledger.VerdictUncertain, "no answer"
		if _, err := w.EndDispatch(w.t.Context(), ledger.EndDispatch{Key: keys[i], Dispatch: d}); err != nil {
			w.t.Fatal(err)
		}
		moved, err := w.Park(w.t.Context(), keys[i], d.ID, time.Now(), "no answer")
		if err != nil || moved.Mutation.State != ledger.NeedsReconcile {
			w.t.Fatalf("parked %+v, %v", moved.Mutation, err)
		}
	}
	return keys
}

// sees records what a try saw.
func (w *world) sees(key ledger.Key, seen ledger.Seen, why string) {
	w.t.Helper()
	m, err := w.MutationByID(w.t.Context(), key.ID())
	if err != nil {
		w.t.Fatal(err)
	}
	o := ledger.Observe{Key: key, Version: m.Version, Observation: ledger.Observation{Seen: seen, Reason: why, At: ledger.Stamp{Wall: time.Now(), BootID: "b"}}}
	if seen == ledger.SeenApplied {
		o.Observation.Objects, o.Result = []string{string(key[0])}, &ledger.Result{Status: 201}
	}
	if _, err := w.Observe(w.t.Context(), o); err != nil {
		w.t.Fatal(err)
	}
}

// standing runs a notifier that tells of what stands still for two minutes.
func (w *world) standing(destinations ...Destination) (stop func()) {
	w.t.Helper()
	w.after = 2 * time.Minute
	_, stop = w.notifying(destinations...)
	return stop
}

// What stands still is told once, whatever stands still beside it and however often the program starts. It goes on when
// nothing stops it any more, which is told once.
func TestAStandstillAndItsEndAreToldOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, d := newWorld(t), &fakeDestination{name: "d"}
		keys := w.unknown('a', 'b')
		for _, key := range keys {
			w.sees(key, ledger.SeenRetry, "nobody answers")
		}
		stop := w.standing(d)
		pass(time.Minute)
		want(t, d)
		pass(4 * time.Minute)
		if len(d.got()) != 1 || d.told[0].Type != TypeStandsStill {
			t.Fatalf("told %v", d.told)
		}
		m := d.told[0].Data
		if m.Why != "nobody answers" || !m.CanVerify || m.ManualCheck != "look at "+m.Mutation || m.Blocks == nil || *m.Blocks != (ledger.Blocks{Scope: "workflow", Name: "w"}) || m.Resolve == "" {
			t.Errorf("told %+v", m)
		}
		stop()
		late := &fakeDestination{name: "late"}
		stop = w.standing(d, late)
		pass(5 * time.Minute)
		if len(d.got()) != 1 || len(late.got()) != 1 || late.got()[0] != d.got()[0] {
			t.Errorf("after a restart told %v, a new one %v", d.got(), late.got())
		}
		w.sees(keys[0], ledger.SeenApplied, "there")
		pass(5 * time.Minute)
		if len(d.got()) != 1 {
			t.Errorf("it goes on although the other is unknown: %v", d.got())
		}
		stop()
		w.sees(keys[1], ledger.SeenApplied, "there")
		stop = w.standing(d, late)
		pass(5 * time.Minute)
		stop()
		stop = w.standing(d, late)
		pass(5 * time.Minute)
		stop()
		if len(d.got()) != 2 || d.told[1].Type != TypeGoesOn || d.told[1].Data.Standing != m.Standing || len(late.got()) != 2 {
			t.Errorf("told %v, a new one %v", d.got(), late.got())
		}
	})
}

// An absence that waits for settle is on its way: nobody is called. One that is seen long after that isn't believed.
func TestAWaitForSettleIsNoStandstill(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, d := newWorld(t), &fakeDestination{name: "d"}
		w.sees(w.unknown('a')[0], ledger.SeenAbsent, "not there")
		defer w.standing(d)()
		pass(time.Hour)
		want(t, d)
		pass(3 * time.Minute)
		if len(d.got()) != 1 {
			t.Errorf("told %v", d.got())
		}
	})
}

// A program that ends tells before its end, and one that is told never to tells nothing.
func TestAStandstillIsToldBeforeTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, d := newWorld(t), &fakeDestination{name: "d"}
		w.unknown('a')
		pass(time.Hour)
		for _, after := range []time.Duration{0, time.Minute} {
			w.after = after
			n, stop := w.notifying(d)
			stop()
			if err := n.Last(t.Context()); err != nil {
				t.Fatal(err)
			}
			if told := len(d.got()) == 1; told != (after > 0) {
				t.Errorf("after %v: told %v", after, d.got())
			}
		}
	})
}

// looks is the check of these tests.
func looks(_ context.Context, m *ledger.Mutation) (text, cannotVerify string) {
	return "look at " + m.ID, ""
}
