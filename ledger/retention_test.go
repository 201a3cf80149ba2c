package ledger_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"keep-proxy/internal/verdict"
	"keep-proxy/ledger"
)

const month = 30 * 24 * time.Hour

// forget lets go of the named mutations.
func (w *world) forget(r ledger.Retention, names ...string) ledger.ForgetCounts {
	w.t.Helper()
	var keys []ledger.Key
	for _, n := range names {
		keys = append(keys, key(n))
	}
	counts, err := w.Forget(w.t.Context(), keys, r)
	w.ok(err)
	return counts
}

// paid is a world in which an item was worked on and closed long ago: a was applied.
func paid(t *testing.T, change ...func(*ledger.Claim)) *world {
	t.Helper()
	w := newWorld(t)
	r := w.open()
	content := []byte(`{"amount":1}`)
	body := func(q *ledger.Claim) { q.Body, q.Record.Request.Body = content, bodyOf(content) }
	d := w.send(r, "a", append(change, body)...)
	w.finish("a", d, ledger.VerdictApplied, func(f *ledger.EndDispatch) {
		f.Result.Header = ledger.Header{"X-Payee": {"ada"}}
	})
	_, err := w.FinishRun(t.Context(), r.ID, "done", true)
	w.ok(err)
	w.pass(month)
	return w
}

func TestForgottenIsRefusedAndNeverSentAgain(t *testing.T) {
	t.Parallel()
	keep := ledger.Retention{Keep: month - time.Hour}
	for _, c := range []struct {
		name     string
		change   []func(*ledger.Claim)
		decision ledger.Decision
		problem  string
	}{
		{"the same request", nil, ledger.DecideRefused, "forgotten"},
		{"another payload", []func(*ledger.Claim){payload("other")}, ledger.DecideRefused, "forgotten"},
		{"another payload, and a rule that answers without a result", []func(*ledger.Claim){payload("other"), func(q *ledger.Claim) { q.OnNoResult = true }},
			ledger.DecideRefused, "forgotten"},
		{"a rule that answers without a result", []func(*ledger.Claim){func(q *ledger.Claim) { q.OnNoResult = true }}, ledger.DecideStandIn, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := paid(t)
			if counts := w.forget(keep, "a", "b"); counts != (ledger.ForgetCounts{Dropped: 1}) {
				t.Fatalf("%+v", counts)
			}
			m := w.is("a", ledger.Applied)
			if !m.Request.Body.Dropped || m.Request.Body.SHA256 == "" || m.Result.Header != nil || m.PayloadDigest != "payload" {
				t.Errorf("left: %+v, %+v", m.Request, m.Result)
			}
			out := w.claim(w.open(), "a", c.change...)
			if out.Decision != c.decision || out.Problem != c.problem {
				t.Errorf("%q %q (%s)", out.Decision, out.Problem, out.Detail)
			}
			w.pass(2 * month)
			if counts := w.forget(keep, "a"); counts != (ledger.ForgetCounts{}) {
				t.Errorf("forgotten twice: %+v", counts)
			}
			w.is("a", ledger.Applied)
		})
	}
}

func TestTrailersAreForgottenWithTheirAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.open()
	w.finish("a", w.send(r, "a"), ledger.VerdictApplied, func(f *ledger.EndDispatch) {
		f.Result.Trailer = ledger.Header{"Receipt": {"of Ada Lovelace"}}
	})
	_, err := w.FinishRun(t.Context(), r.ID, "done", true)
	w.ok(err)
	w.pass(month)
	if m := w.is("a", ledger.Applied); len(m.Result.Trailer) == 0 {
		t.Fatalf("not kept: %+v", m.Result)
	}
	if counts := w.forget(ledger.Retention{Keep: month - time.Hour}, "a"); counts != (ledger.ForgetCounts{Dropped: 1}) {
		t.Fatalf("%+v", counts)
	}
	if m := w.is("a", ledger.Applied); m.Result.Trailer != nil {
		t.Errorf("left: %+v", m.Result)
	}
}

func TestWhatPreparingStepsGaveIsForgotten(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.open()
	d := w.send(r, "a", inSteps)
	_, err := w.Prepared(t.Context(), key("a"), d.ID, map[string]string{"upload": `"https://upload.example/ada"`})
	w.ok(err)
	w.finish("a", d, ledger.VerdictApplied)
	_, err = w.FinishRun(t.Context(), r.ID, "done", true)
	w.ok(err)
	w.pass(month)
	if counts := w.forget(ledger.Retention{Keep: month - time.Hour}, "a"); counts != (ledger.ForgetCounts{Dropped: 1}) {
		t.Fatalf("%+v", counts)
	}
	if m := w.is("a", ledger.Applied); m.Kept != nil {
		t.Errorf("left: %v", m.Kept)
	}
}

func TestWhatIsNotForgotten(t *testing.T) {
	t.Parallel()
	day := ledger.Retention{Keep: 24 * time.Hour}
	for name, prepare := range map[string]func(w *world) ledger.Retention{
		"what changed lately":   func(*world) ledger.Retention { return ledger.Retention{Keep: 2 * month} },
		"anything without keep": func(*world) ledger.Retention { return ledger.Retention{} },
		"what a run works on": func(w *world) ledger.Retention {
			w.open()
			return day
		},
	} {
		w := paid(t)
		if counts := w.forget(prepare(w), "a"); counts != (ledger.ForgetCounts{}) || !w.mutation("a").Forgotten.IsZero() {
			t.Errorf("%s: %+v", name, counts)
		}
	}
	for name, change := range map[string]func(*ledger.Mutation){

		"in flight":             func(m *ledger.Mutation) { m.State = ledger.InFlight },
		"unknown":               func(m *ledger.Mutation) { m.State = ledger.NeedsReconcile },
		"waiting for a person":  func(m *ledger.Mutation) { m.State = ledger.Indeterminate },
		"queued":                func(m *ledger.Mutation) { m.State, m.RedispatchSince = ledger.Failed, m.CreatedAt },
		"escalated":             func(m *ledger.Mutation) { m.Escalation = &ledger.Escalation{OpenedAt: m.CreatedAt} },
		"slower than retention": func(m *ledger.Mutation) { m.Policy.Settle = 2 * month },
		"owed still":            func(m *ledger.Mutation) { m.State, m.Undo = ledger.Failed, &ledger.Undo{} },
		"watched still":         func(m *ledger.Mutation) { m.Watching = true },
		"of no state":           func(m *ledger.Mutation) { m.State = "" },
	} {
		w := paid(t)
		m := w.mutation("a")
		change(m)
		if day.Forgettable(m, w.now) {
			t.Errorf("%s: let go of", name)
		}
	}
}

// The contents of a request are what its undoing is made and asked about with.
func TestWhatOwesAnUndoIsNotForgotten(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.unknown("a")
	w.see("a", ledger.SeenDuplicate, strong, objects("o1", "o2"), owing("o2"))
	w.decide("a", ledger.OnAcknowledge)
	w.pass(month)
	if counts := w.forget(ledger.Retention{Keep: 24 * time.Hour}, "a"); counts != (ledger.ForgetCounts{}) {
		t.Fatalf("%+v", counts)
	}
	undo := w.mutation("a").Obligations[0]
	_, err := w.Resolve(t.Context(), ledger.Resolve{Key: undo, Action: ledger.OnSkip, Actor: "ada", Reason: "let it be", Version: 1})
	w.ok(err)
	w.pass(month)
	if counts := w.forget(ledger.Retention{Keep: 24 * time.Hour}, "a"); counts.Dropped != 1 {
		t.Errorf("after it was waived: %+v", counts)
	}
}

func TestFailedMayBeTriedAgainHoweverOld(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.open(returns)
	w.finish("a", w.send(r, "a", nativeKey), ledger.VerdictFailed)
	_, err := w.EndRun(t.Context(), r.ID, verdict.Logic, "over", "ada")
	w.ok(err)
	w.pass(month)
	if counts := w.forget(ledger.Retention{Keep: 24 * time.Hour}, "a"); counts.Dropped != 1 {
		t.Fatalf("%+v", counts)
	}
	w.send(w.open(), "a", nativeKey)
	if m := w.is("a", ledger.InFlight); !m.Forgotten.IsZero() || m.Generation != 2 {
		t.Errorf("claimed again: %v, generation %d", m.Forgotten, m.Generation)
	}
}

func TestForgettingAllTakesTwiceAsLong(t *testing.T) {
	t.Parallel()
	w := paid(t)
	r := ledger.Retention{Keep: month - time.Hour, Forget: true}
	item := w.item("i")
	_, err := w.DecideItem(t.Context(), ledger.DecideItem{
		Workflow: "w", Item: "i", Action: ledger.ItemClose, Actor: "ada", Reason: "over", Version: item.Version,
	})
	w.ok(err)
	if counts := w.forget(r, "a"); counts != (ledger.ForgetCounts{Dropped: 1}) {
		t.Fatalf("%+v", counts)
	}
	if counts := w.forget(r, "a"); counts != (ledger.ForgetCounts{}) {
		t.Fatalf("at once: %+v", counts)
	}
	w.pass(month)
	if counts := w.forget(r, "a"); counts != (ledger.ForgetCounts{Removed: 1}) {
		t.Fatalf("%+v", counts)
	}
	// The item is forgotten with its last mutation, so that all is new.
	w.send(w.open(), "a")
}

// Its attempt is a person's decision, which no retention takes back.
// That an item is done is not forgotten before the last of its mutations is.
func TestADoneItemOutlivesAllButItsLastMutation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.open()
	w.finish("a", w.send(r, "a"), ledger.VerdictApplied)
	w.finish("b", w.send(r, "b"), ledger.VerdictApplied)
	_, err := w.FinishRun(t.Context(), r.ID, ledger.OutcomeDone, false)
	w.ok(err)
	all := ledger.Retention{Keep: month - time.Hour, Forget: true}
	w.pass(month)
	w.forget(all, "a")
	w.pass(month)
	if counts := w.forget(all, "a"); counts != (ledger.ForgetCounts{Removed: 1}) {
		t.Fatalf("%+v", counts)
	}
	if _, err := w.OpenRun(t.Context(), ledger.OpenRun{Workflow: "w", Item: "i"}); !errors.Is(err, ledger.ErrItemDone) {
		t.Errorf("a run of the item: %v", err)
	}
}

func TestAnOpenItemOutlivesItsMutations(t *testing.T) {
	t.Parallel()
	w := paid(t)
	_, err := w.decideItem(ledger.ItemNewAttempt)
	w.ok(err)
	r := ledger.Retention{Keep: month - time.Hour, Forget: true}
	w.forget(r, "a")
	w.pass(month)
	if counts := w.forget(r, "a"); counts != (ledger.ForgetCounts{Removed: 1}) {
		t.Fatalf("%+v", counts)
	}
	if i := w.item("i"); i.Attempt != 2 {
		t.Errorf("the item is at attempt %d", i.Attempt)
	}
	w.open(func(o *ledger.OpenRun) { o.Attempt = 2 })
}

// A rule whose API remembers keys for less time says nothing of those that were sent by the
// rule before it.
func TestARecordIsRemovedOnlyOnceTheAPIForgotTheKeysOfEarlierRules(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.open(returns)
	by := func(hash string, window time.Duration) func(*ledger.Claim) {
		return func(q *ledger.Claim) { q.Record.ConnectorHash, q.Record.Policy.KeyWindow = hash, window }
	}
	w.finish("a", w.send(r, "a", nativeKey, by("first", 3*month)), ledger.VerdictFailed)
	w.finish("a", w.send(r, "a", nativeKey, by("second", 2*month)), ledger.VerdictFailed)
	w.finish("a", w.send(r, "a", nativeKey, by("third", month)), ledger.VerdictApplied)
	_, err := w.FinishRun(t.Context(), r.ID, "done", true)
	w.ok(err)
	w.pass(month)
	keep := ledger.Retention{Keep: month - time.Hour, Forget: true}
	w.forget(keep, "a")
	w.pass(3 * month)
	if counts := w.forget(keep, "a"); counts != (ledger.ForgetCounts{}) {
		t.Fatalf("while its first key is known: %+v", counts)
	}
	w.pass(time.Second)
	if counts := w.forget(keep, "a"); counts != (ledger.ForgetCounts{Removed: 1}) {
		t.Fatalf("%+v", counts)
	}
}

func TestARecordIsRemovedOnlyOnceItsAPIForgotItsKey(t *testing.T) {
	t.Parallel()
	w := paid(t, nativeKey, func(q *ledger.Claim) { q.Record.Policy.KeyWindow = 3 * month })
	r := ledger.Retention{Keep: month - time.Hour, Forget: true}
	if counts := w.forget(r, "a"); counts != (ledger.ForgetCounts{Dropped: 1}) {
		t.Fatalf("%+v", counts)
	}
	w.pass(3 * month)
	if counts := w.forget(r, "a"); counts != (ledger.ForgetCounts{}) {
		t.Fatalf("while its key is known: %+v", counts)
	}
	w.pass(time.Second)
	if counts := w.forget(r, "a"); counts != (ledger.ForgetCounts{Removed: 1}) {
		t.Fatalf("%+v", counts)
	}
}

// What the removed record made is still there, with its mark on it: it is neither the outcome of
// the one that is made anew, nor one of two of which the newer is undone.
func TestWhatIsMadeAfterItWasForgottenHasOtherMarks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	keep := ledger.Retention{Keep: month - time.Hour, Forget: true}
	markers, keys := map[string]bool{}, map[string]bool{}
	for n := range 3 {
		r := w.open(returns)
		for generation := range 2 {
			w.finish("a", w.send(r, "a", nativeKey), ledger.VerdictFailed)
			m := w.mutation("a")
			if m.VendorKey == "" || keys[m.VendorKey] {
				t.Errorf("made %d times: generation %d has the vendor key %q again", n+1, generation+1, m.VendorKey)
			}
			keys[m.VendorKey] = true
		}
		m := w.mutation("a")
		if markers[m.Marker] || m.Remade != n || (m.Marker == ledger.Marker(m.Key)) != (n == 0) {
			t.Errorf("made %d times: the marker is %q, that of the key %q, remade %d", n+1, m.Marker, ledger.Marker(m.Key), m.Remade)
		}
		markers[m.Marker] = true
		_, err := w.EndRun(t.Context(), r.ID, verdict.Logic, "over", "ada")
		w.ok(err)
		for _, want := range []ledger.ForgetCounts{{Dropped: 1}, {Removed: 1}} {
			w.pass(month)
			if counts := w.forget(keep, "a"); counts != want {
				t.Fatalf("%+v", counts)
			}
		}
	}
	// What was never forgotten is marked as before.
	w.send(w.open(), "b", nativeKey)
	if m := w.mutation("b"); m.Marker != ledger.Marker(m.Key) || m.Remade != 0 {
		t.Errorf("another one: the marker is %q, remade %d", m.Marker, m.Remade)
	}
}

// An object that was found to be of the removed record is no evidence for the one that is made
// anew: neither that it took effect, nor, by leaving the object out, that it didn't.
func TestWhatWasFoundOfAForgottenOneIsNotTheNextOnes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	keep := ledger.Retention{Keep: month - time.Hour, Forget: true}
	for n := range 3 {
		own := objects("t-" + strconv.Itoa(n))
		w.unknown("a")
		w.pass(10 * time.Minute)
		for earlier := range n {
			for _, seen := range []ledger.Seen{ledger.SeenApplied, ledger.SeenAbsent} {
				w.see("a", seen, objects("t-"+strconv.Itoa(earlier)))
				m := w.is("a", ledger.NeedsReconcile)
				o := m.Observations[len(m.Observations)-1]
				if o.Seen != ledger.SeenRetry || !strings.Contains(o.Reason, "before retention removed it") || m.Owns(m.Key, "t-"+strconv.Itoa(earlier)) {
					t.Errorf("made %d times: what was seen of the one before: %+v", n+1, o)
				}
			}
			r := w.decision("a", ledger.OnHappened, none, func(r *ledger.Resolve) { r.Compensate = &ledger.Owed{Object: "t-" + strconv.Itoa(earlier)} })
			if _, err := w.Resolve(t.Context(), r); !errors.Is(err, ledger.ErrInvalid) {
				t.Errorf("made %d times: what the one before made is taken back for it: %v", n+1, err)
			}
		}
		w.see("a", ledger.SeenApplied, own)
		if m := w.is("a", ledger.Applied); !m.Owns(m.Key, "t-"+strconv.Itoa(n)) || m.Owns(key("b"), "t-"+strconv.Itoa(n)) {
			t.Errorf("made %d times: its own object isn't its own, or another's is", n+1)
		}
		for _, want := range []ledger.ForgetCounts{{Dropped: 1}, {Removed: 1}} {
			w.pass(month)
			if counts := w.forget(keep, "a"); counts != want {
				t.Fatalf("%+v", counts)
			}
		}
	}
}

// What is being sent still needs its record, whatever is known of the mutation by then.
func TestWhatIsBeingSentIsNotForgotten(t *testing.T) {
	t.Parallel()
	day := ledger.Retention{Keep: 24 * time.Hour}
	w := newWorld(t)
	w.unknown("a", nativeKey)
	again := w.resend("a")
	w.decide("a", ledger.OnHappened, given)
	w.pass(month)
	if counts := w.forget(day, "a"); counts != (ledger.ForgetCounts{}) {
		t.Fatalf("while it is sent: %+v", counts)
	}
	w.finish("a", again, ledger.VerdictApplied)
	w.pass(month)
	if counts := w.forget(day, "a"); counts.Dropped != 1 {
		t.Errorf("once that has ended: %+v", counts)
	}
}

// It leaves its items its own, of which it may have thousands.
func TestWhatAnEndedRunOfManyItemsTookIsForgotten(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.open(many)
	w.finish("a", w.send(r, "a", of("x")), ledger.VerdictApplied)
	w.pass(50 * time.Hour)
	if got := w.forget(ledger.Retention{Keep: 24 * time.Hour}, "a"); got != (ledger.ForgetCounts{}) {
		t.Errorf("while its run goes on: %+v", got)
	}
	_, err := w.EndRun(t.Context(), r.ID, verdict.Transient, "enough", "ada")
	w.ok(err)
	if got := w.forget(ledger.Retention{Keep: 24 * time.Hour}, "a"); got != (ledger.ForgetCounts{Dropped: 1}) {
		t.Errorf("after its end: %+v", got)
	}
}
