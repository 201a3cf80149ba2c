package ledger_test

import (
	"testing"
	"time"

	"keep-proxy/internal/verdict"
	"keep-proxy/ledger"
)

func watched(q *ledger.Claim) { q.Record.Policy.WatchMax = time.Hour }

func status202(f *ledger.EndDispatch) { f.Result = &ledger.Result{Status: 202} }

// It promised only what then didn't come: it must not become the answer of a later sending whose
// own is lost.
func TestThe202OfWhatFailedIsNobodysAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.finish("a", w.send(w.open(), "a", watched), ledger.VerdictAccepted, status202)
	w.see("a", ledger.SeenFailed)
	if m := w.is("a", ledger.Failed); m.Result != nil || m.ResultState != ledger.ResultNone {
		t.Errorf("left is a result %q: %+v", m.ResultState, m.Result)
	}
	again := w.send(w.open(func(o *ledger.OpenRun) { o.Takeover = true }), "a", watched)
	head(w, "a")
	w.finish("a", again, ledger.VerdictCommitted)
	if m := w.is("a", ledger.NeedsReconcile); m.Result != nil || m.Watching || !m.Unresolved() {
		t.Errorf("watching %v, unresolved %v, result %+v", m.Watching, m.Unresolved(), m.Result)
	}
}

// Of two sendings that were accepted one alone is followed, and its failure says nothing of the other.
func TestTheFailureOfOneOfTwoAcceptedSendingsIsNoFailure(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.finish("a", w.send(w.open(), "a", nativeKey, watched), ledger.VerdictAccepted, status202)
	w.pass(2 * time.Hour)
	w.see("a", ledger.SeenRetry)
	w.is("a", ledger.Indeterminate)
	w.decide("a", ledger.OnCheckAgain)
	w.finish("a", w.resend("a"), ledger.VerdictAccepted, status202)
	if m := w.is("a", ledger.NeedsReconcile); !m.Watching {
		t.Fatal("the second is not followed")
	}
	w.see("a", ledger.SeenFailed)
	w.is("a", ledger.Indeterminate)
}

// What is known to have happened is asked for its answer, which is not the 202's; until that is
// found nothing goes on.
func TestAnEarlierSendingsSuccessEndsTheFollowing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.send(w.open(), "a", nativeKey, watched)
	w.finish("a", first, ledger.VerdictUncertain)
	w.finish("a", w.resend("a"), ledger.VerdictAccepted, status202)
	if m := w.is("a", ledger.NeedsReconcile); !m.Watching || m.Unresolved() {
		t.Fatalf("watching %v, unresolved %v", m.Watching, m.Unresolved())
	}
	w.finish("a", first, ledger.VerdictCommitted)
	if m := w.is("a", ledger.NeedsReconcile); m.Watching || !m.Unresolved() || !m.Committed || m.Result != nil {
		t.Errorf("watching %v, unresolved %v, committed %v, result %+v", m.Watching, m.Unresolved(), m.Committed, m.Result)
	}
}

// What was accepted and failed has failed as surely as what is refused at once: under its vendor
// key an API that dedupes would answer the next sending with the 202 of the job that failed.
func TestWhatWasAcceptedAndFailedIsSentUnderAnotherKey(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		before     func(w *world, run *ledger.Run)
		generation int
	}{
		"alone": {func(*world, *ledger.Run) {}, 2},
		"after a sending that is believed absent": {func(w *world, run *ledger.Run) {
			w.finish("a", w.send(run, "a", nativeKey, watched), ledger.VerdictUncertain)
			w.decide("a", ledger.OnDidNotHappen, func(r *ledger.Resolve) { r.Force = true })
		}, 1},
	} {
		w := newWorld(t)
		again := func() *ledger.Run { return w.open(func(o *ledger.OpenRun) { o.Takeover = true }) }
		tc.before(w, again())
		m := w.finish("a", w.send(again(), "a", nativeKey, watched), ledger.VerdictAccepted, status202).Mutation
		key := m.VendorKey
		w.see("a", ledger.SeenFailed)
		w.is("a", ledger.Failed)
		w.send(again(), "a", nativeKey, watched)
		if m := w.is("a", ledger.InFlight); m.Generation != tc.generation || (m.VendorKey != key) != (tc.generation == 2) {
			t.Errorf("%s: sent again as generation %d, under another key %v", name, m.Generation, m.VendorKey != key)
		}
	}
}

// How long is looked counts from the 202, and not from when the outcome became unknown.
func TestWhatIsAcceptedLateIsFollowedForAllOfItsTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.finish("a", w.send(w.open(), "a", nativeKey, watched), ledger.VerdictUncertain)
	w.pass(2 * time.Hour)
	w.finish("a", w.resend("a"), ledger.VerdictAccepted, status202)
	w.pass(59 * time.Minute)
	w.see("a", ledger.SeenRetry)
	if m := w.is("a", ledger.NeedsReconcile); !m.Watching {
		t.Error("it is followed no more")
	}
	w.pass(time.Minute)
	w.see("a", ledger.SeenRetry)
	w.is("a", ledger.Indeterminate)
}

// Nobody waits for what was sent again by itself: where it comes to nothing a person is told,
// however its failure came.
func TestWhatWasSentAgainAcceptedAndFailedIsTold(t *testing.T) {
	t.Parallel()
	for c, kind := range map[verdict.Class]string{
		verdict.Transient: ledger.EscalationAbsent, verdict.Logic: ledger.EscalationAbsent,
		verdict.Permission: ledger.EscalationPermission, "": ledger.EscalationPrecondition,
	} {
		t.Run(string(c), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.unknown("a", redispatches, watched, func(q *ledger.Claim) { q.Record.Policy.WatchClass = c })
			_, d := w.again(w.absent("a"))
			w.finish("a", d, ledger.VerdictAccepted, status202)
			w.see("a", ledger.SeenFailed)
			w.is("a", ledger.Failed)
			w.escalated("a", kind)
		})
	}
}
