package ledger_test

import (
	"testing"
	"time"

	"keep-proxy/ledger"
)

func TestGenerations(t *testing.T) {
	t.Parallel()
	uncertain := func(w *world, r *ledger.Run) {
		w.finish("a", w.send(r, "a", nativeKey), ledger.VerdictUncertain)
	}
	for _, c := range []struct {
		name   string
		before func(w *world, r *ledger.Run)
		want   int
	}{
		{"every dispatch met a definite failure", func(w *world, r *ledger.Run) {
			w.finish("a", w.send(r, "a", nativeKey), ledger.VerdictFailed)
		}, 2},
		{"proven not sent", func(w *world, r *ledger.Run) {
			w.finish("a", w.send(r, "a", nativeKey), ledger.VerdictNotSent)
		}, 2},
		{"observed absent", func(w *world, r *ledger.Run) {
			uncertain(w, r)
			w.pass(time.Hour)
			w.see("a", ledger.SeenAbsent)
			w.pass(time.Minute)
			w.see("a", ledger.SeenAbsent)
		}, 1},
		{"a person says that it did not happen", func(w *world, r *ledger.Run) {
			uncertain(w, r)
			w.decide("a", ledger.OnDidNotHappen, force)
		}, 1},
		{"a person says so and asks for a new key", func(w *world, r *ledger.Run) {
			uncertain(w, r)
			w.decide("a", ledger.OnDidNotHappen, force, newKey)
		}, 2},
		{"a person asks for a new key", func(w *world, r *ledger.Run) {
			uncertain(w, r)
			w.decide("a", ledger.OnDidNotHappen, force)
			w.decide("a", ledger.OnNewKey)
		}, 2},
		{"one of two dispatches is open", func(w *world, r *ledger.Run) {
			uncertain(w, r)
			w.finish("a", w.resend("a"), ledger.VerdictFailed)
			w.decide("a", ledger.OnDidNotHappen, force)
		}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			r := w.open(returns)
			c.before(w, r)
			first, _ := ledger.VendorKey(key("a"), 1, ledger.KeyUUID, 0)
			d := w.send(w.open(func(o *ledger.OpenRun) { o.Takeover = true }), "a", nativeKey)
			m := w.mutation("a")
			if d.Generation != c.want || (m.VendorKey == first) != (c.want == 1) {
				t.Errorf("generation %d with key %s, want generation %d", d.Generation, m.VendorKey, c.want)
			}
		})
	}
}

func TestAScriptsOwnVendorKeyIsKept(t *testing.T) {
	t.Parallel()
	own := func(k string) func(*ledger.Claim) { return func(q *ledger.Claim) { q.Record.VendorKey = k } }
	w := newWorld(t)
	w.unknown("a", nativeKey, own("first"))
	w.decide("a", ledger.OnDidNotHappen, force)
	d := w.send(w.open(returns), "a", nativeKey, own("second"))
	if m := w.mutation("a"); m.VendorKey != "first" || m.Generation != 1 {
		t.Errorf("within a generation: key %q, generation %d", m.VendorKey, m.Generation)
	}
	w.finish("a", d, ledger.VerdictUncertain)
	w.decide("a", ledger.OnDidNotHappen, force)
	w.decide("a", ledger.OnNewKey)
	derived, _ := ledger.VendorKey(key("a"), 2, ledger.KeyUUID, 0)
	r := w.open(returns)
	d = w.send(r, "a", nativeKey, own("third"))
	if m := w.mutation("a"); m.VendorKey != derived || m.Generation != 2 {
		t.Errorf("after a person's new key: %q, generation %d", m.VendorKey, m.Generation)
	}
	w.finish("a", d, ledger.VerdictFailed)
	w.send(r, "a", nativeKey, own("fourth"))
	if m := w.mutation("a"); m.VendorKey != "fourth" || m.Generation != 3 {
		t.Errorf("in the generation that a claim begins: %q, generation %d", m.VendorKey, m.Generation)
	}
}

// A rule that learns of its API's key goes on with what was sent without one: no request goes out
// under such a rule without a key.
func TestWhatWasSentWithoutAKeyGetsOneByTheRuleOfNow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.unknown("a", version("v1"))
	if m := w.absent("a"); m.VendorKey != "" {
		t.Fatalf("without a native key it has %q", m.VendorKey)
	}
	w.send(w.open(), "a", version("v2", under("v1", "a")), nativeKey)
	derived, _ := ledger.VendorKey(key("a"), 1, ledger.KeyUUID, 0)
	if m := w.mutation("a"); m.VendorKey != derived || m.Generation != 1 {
		t.Errorf("sent again as generation %d under %q, want %q", m.Generation, m.VendorKey, derived)
	}
}

// However many sendings of a generation follow, the one of unknown end stays listed, since
// it alone says that the generation is open and what it carried.
func TestAnOpenGenerationKeepsItsFirstSending(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.unknown("a", nativeKey)
	w.decide("a", ledger.OnDidNotHappen, force)
	r := w.open(returns)
	for range 40 {
		w.finish("a", w.send(r, "a", nativeKey), ledger.VerdictFailed)
	}
	first, _ := ledger.VendorKey(key("a"), 1, ledger.KeyUUID, 0)
	if m := w.mutation("a"); m.Dispatches[0].Verdict != ledger.VerdictUncertain || m.Generation != 1 || m.VendorKey != first {
		t.Errorf("generation %d with key %s, the first sending listed is %+v", m.Generation, m.VendorKey, m.Dispatches[0])
	}
	if out := w.claim(r, "a", nativeKey, payload("other")); out.Decision != ledger.DecideMismatch {
		t.Errorf("a second payload under the key of an open generation: %q", out.Decision)
	}
}

func TestDispatchesAreBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.open(returns)
	for range 100 {
		w.finish("a", w.send(r, "a"), ledger.VerdictFailed)
	}
	m := w.is("a", ledger.Failed)
	if len(m.Dispatches) > 33 || m.Generation != 100 {
		t.Errorf("%d dispatches at generation %d", len(m.Dispatches), m.Generation)
	}
}
