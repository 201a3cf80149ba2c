package ledger_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"keep-proxy/internal/verdict"
	"keep-proxy/ledger"
)

func redispatches(q *ledger.Claim) { q.Record.Policy.OnAbsent = ledger.AbsentRedispatch }

// absent lets an unknown mutation be believed absent.
func (w *world) absent(name string) *ledger.Mutation {
	w.t.Helper()
	w.pass(301 * time.Second)
	w.see(name, ledger.SeenAbsent)
	w.pass(10 * time.Second)
	w.see(name, ledger.SeenAbsent)
	return w.is(name, ledger.Failed)
}

// again asks for the queued sending of a mutation as it was read.
func (w *world) again(m *ledger.Mutation) (*ledger.Mutation, *ledger.Dispatch) {
	w.t.Helper()
	now, d, err := w.Redispatch(w.t.Context(), ledger.Redispatch{
		Key: m.Key, Version: m.Version, DispatchID: w.id(), NextTryAt: w.now.Wall.Add(time.Minute),
	})
	w.ok(err)
	return now, d
}

func (w *world) dueNow() int {
	w.t.Helper()
	keys, _, err := w.Due(w.t.Context(), w.now.Wall)
	w.ok(err)
	return len(keys)
}

func TestABelievedAbsenceQueuesARedispatchUnderTheSameVendorKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.unknown("a", redispatches, nativeKey)
	before := w.mutation("a")
	m := w.absent("a")
	if m.RedispatchSince.IsZero() || w.dueNow() != 1 || m.Escalated() || m.Unresolved() {
		t.Fatalf("queued since %v, %d due, escalated %v", m.RedispatchSince, w.dueNow(), m.Escalated())
	}
	now, d := w.again(m)
	if d == nil || now.State != ledger.InFlight || !d.Redispatch || d.Run != "" || d.Generation != 1 {
		t.Fatalf("state %s, dispatch %+v", now.State, d)
	}
	if now.VendorKey != before.VendorKey || now.VendorKey == "" {
		t.Errorf("vendor key %q, before %q", now.VendorKey, before.VendorKey)
	}
	for _, o := range now.Observations {
		if !o.Voided {
			t.Errorf("an observation from before the sending still counts: %+v", o)
		}
	}
	if !now.RedispatchSince.IsZero() {
		t.Error("it is still queued")
	}
}

// What is asked about, and sent again, is what was sent last.
func TestTheStoredRequestIsThatOfTheLastSending(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.open(returns)
	to := func(url string) func(*ledger.Claim) {
		return func(q *ledger.Claim) { q.Record.Request = ledger.Request{Method: "POST", URL: url} }
	}
	w.finish("a", w.send(r, "a", payload("one"), to("https://bank.test/1")), ledger.VerdictFailed)
	w.finish("a", w.send(r, "a", payload("two"), to("https://bank.test/2")), ledger.VerdictUncertain)
	if m := w.is("a", ledger.NeedsReconcile); m.Request.URL != "https://bank.test/2" || m.PayloadDigest != "two" {
		t.Errorf("stored is %s of payload %s", m.Request.URL, m.PayloadDigest)
	}
}

func TestARedispatchIsBoundedAndThenAPersonIsTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.unknown("a", redispatches)
	now, d := w.again(w.absent("a"))
	end := *d
	end.Verdict, end.Ended = ledger.VerdictUncertain, w.now
	_, err := w.EndDispatch(t.Context(), ledger.EndDispatch{Key: now.Key, Dispatch: end, NextTryAt: w.now.Wall})
	w.ok(err)
	w.is("a", ledger.NeedsReconcile)
	m := w.absent("a")
	if !m.RedispatchSince.IsZero() || w.dueNow() != 0 {
		t.Error("it is queued a second time")
	}
	w.escalated("a", ledger.EscalationAbsent)
}

func TestARedispatchIsNotPutOffForEver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.unknown("a", redispatches)
	m := w.absent("a")
	putOff := func() {
		t.Helper()
		var err error
		m, err = w.CallOffRedispatch(t.Context(), m.Key, m.Version, w.now.Wall.Add(time.Minute), "no credentials now")
		w.ok(err)
	}
	w.pass(24*time.Hour - time.Second)
	putOff()
	if !m.Queued() || m.Escalated() {
		t.Fatalf("before its time is over: queued %v, escalated %v", m.Queued(), m.Escalated())
	}
	w.pass(time.Second)
	putOff()
	if m.Queued() {
		t.Error("after its time is over it is queued still")
	}
	w.escalated("a", ledger.EscalationAbsent)
}

func TestARedispatchThatFailsIsTold(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		limit int
		class verdict.Class
		want  string
	}{
		{"the last one", 2, verdict.Transient, ledger.EscalationAbsent},
		{"one before the last, which isn't queued again either", 3, verdict.Logic, ledger.EscalationAbsent},
		{"one that lacks a permission", 2, verdict.Permission, ledger.EscalationPermission},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.unknown("a", redispatches, func(q *ledger.Claim) { q.Record.Policy.MaxDispatches = c.limit })
			_, d := w.again(w.absent("a"))
			w.finish("a", d, ledger.VerdictFailed, class(c.class))
			if m := w.is("a", ledger.Failed); m.Queued() {
				t.Error("it is queued again")
			}
			w.escalated("a", c.want)
		})
	}
}

// Neither another generation nor a gap lets it be sent more often.
func TestEverySendingButAResendUsesUpARedispatch(t *testing.T) {
	t.Parallel()
	t.Run("one of an earlier generation", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		r := w.open(returns)
		w.finish("a", w.send(r, "a", redispatches, nativeKey), ledger.VerdictFailed)
		w.finish("a", w.send(r, "a", redispatches, nativeKey), ledger.VerdictUncertain)
		if m := w.absent("a"); m.Generation != 2 || m.Queued() {
			t.Errorf("generation %d, queued %v", m.Generation, m.Queued())
		}
		w.escalated("a", ledger.EscalationAbsent)
	})
	t.Run("one that may have been made in a gap", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.unknown("a", redispatches)
		w.pass(time.Hour)
		w.restored()
		if m := w.absent("a"); len(m.Dispatches) != 2 || m.Queued() {
			t.Errorf("%d sendings, queued %v", len(m.Dispatches), m.Queued())
		}
		w.escalated("a", ledger.EscalationAbsent)
	})
}

func TestResendsAreNoRedispatches(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.unknown("a", nativeKey, redispatches)
	w.finish("a", w.resend("a"), ledger.VerdictUncertain)
	if m := w.absent("a"); m.RedispatchSince.IsZero() {
		t.Error("a resend used up a redispatch")
	}
}

func TestAQueuedRedispatchGivesWay(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		do func(w *world)
		// sent is whether it goes out, queued whether it still waits.
		sent, queued bool
	}{
		"to nothing": {func(*world) {}, true, false},
		"to another unknown of the workflow": {func(w *world) {
			w.finish("b", w.send(w.open(item("j")), "b"), ledger.VerdictUncertain)
		}, false, true},
		"to a new attempt of its item": {func(w *world) {
			_, err := w.decideItem(ledger.ItemNewAttempt)
			w.ok(err)
		}, false, false},
		"to a person who closed its item": {func(w *world) {
			_, err := w.decideItem(ledger.ItemClose)
			w.ok(err)
		}, false, false},
		"to a person who left out its item": {func(w *world) {
			_, err := w.decideItem(ledger.ItemSkip)
			w.ok(err)
		}, false, false},
		"to an item that waits for a person": {func(w *world) {
			w.finish("b", w.send(w.open(), "b"), ledger.VerdictApplied)
			w.claim(w.open(func(o *ledger.OpenRun) { o.Takeover = true }), "b", payload("other"))
			if state := w.item("i").State; state != ledger.ItemNeedsAttention {
				w.t.Fatalf("the item is %s", state)
			}
		}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.unknown("a", redispatches)
			m := w.absent("a")
			c.do(w)
			now, d := w.again(m)
			if (d != nil) != c.sent || !now.RedispatchSince.IsZero() != c.queued {
				t.Errorf("sent %v, queued since %v", d != nil, now.RedispatchSince)
			}
		})
	}
}

func TestAnyMoveTakesARecordOutOfTheQueue(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.unknown("a", redispatches)
	m := w.absent("a")
	w.send(w.open(), "a")
	now := w.is("a", ledger.InFlight)
	if !now.RedispatchSince.IsZero() {
		t.Error("a claimed record is still queued")
	}
	_, _, err := w.Redispatch(t.Context(), ledger.Redispatch{Key: m.Key, Version: m.Version, DispatchID: w.id()})
	if !errors.Is(err, ledger.ErrVersion) {
		t.Errorf("a redispatch of an older version: %v", err)
	}
	_, _, err = w.Redispatch(t.Context(), ledger.Redispatch{Key: m.Key, Version: now.Version, DispatchID: w.id()})
	if !errors.Is(err, ledger.ErrNotAllowed) {
		t.Errorf("a redispatch of what isn't queued: %v", err)
	}
}

func TestACalledOffRedispatchStaysFailedAndIsTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.unknown("a", redispatches)
	m := w.absent("a")
	later := w.now.Wall.Add(time.Hour)
	m, err := w.CallOffRedispatch(t.Context(), m.Key, m.Version, later, "no credentials now")
	w.ok(err)
	if m.RedispatchSince.IsZero() || !m.NextTryAt.Equal(later) || m.Escalated() {
		t.Errorf("put off: queued since %v, next try %v", m.RedispatchSince, m.NextTryAt)
	}
	m, err = w.CallOffRedispatch(t.Context(), m.Key, m.Version, time.Time{}, "the rule file does not load")
	w.ok(err)
	if !m.RedispatchSince.IsZero() || m.State != ledger.Failed || !strings.Contains(m.Escalation.Why, "does not load") {
		t.Errorf("called off: %s, %+v", m.State, m.Escalation)
	}
	_, d, err := w.Redispatch(t.Context(), ledger.Redispatch{Key: m.Key, Version: m.Version, DispatchID: w.id()})
	if d != nil || !errors.Is(err, ledger.ErrNotAllowed) {
		t.Errorf("sent all the same: %+v, %v", d, err)
	}
}

// A sending is told from others by its id alone.
func TestARedispatchHasAnIDOfItsOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.unknown("a", redispatches)
	m := w.absent("a")
	for _, id := range []string{"", m.Dispatches[0].ID} {
		_, d, err := w.Redispatch(t.Context(), ledger.Redispatch{Key: m.Key, Version: m.Version, DispatchID: id})
		if d != nil || !errors.Is(err, ledger.ErrInvalid) {
			t.Errorf("as %q: %+v, %v", id, d, err)
		}
	}
}

func TestALostRedispatchIsUnknownAndNotSentByThat(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.unknown("a", redispatches)
	if _, d := w.again(w.absent("a")); d == nil {
		t.Fatal("it was not sent")
	}
	w.restart()
	if m := w.is("a", ledger.NeedsReconcile); len(m.Dispatches) != 2 || !m.Dispatches[1].Lost {
		t.Errorf("dispatches %+v", m.Dispatches)
	}
}
