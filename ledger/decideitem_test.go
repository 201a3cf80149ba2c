package ledger_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"keep-proxy/internal/verdict"
	"keep-proxy/ledger"
)

func (w *world) decideItem(a ledger.ItemAction, change ...func(*ledger.DecideItem)) (*ledger.Item, error) {
	w.t.Helper()
	d := ledger.DecideItem{Workflow: "w", Item: "i", Action: a, Actor: "ada", Reason: "because of a test"}
	if a == ledger.ItemNewAttempt {
		d.Attempt = 1
	}
	for _, c := range change {
		c(&d)
	}
	return w.DecideItem(w.t.Context(), d)
}

func withMutations(d *ledger.DecideItem) { d.WithMutations = true }

func TestDecisionsOnAnItem(t *testing.T) {
	t.Parallel()
	const (
		done, skip, reopen, again = ledger.ItemClose, ledger.ItemSkip, ledger.ItemReopen, ledger.ItemNewAttempt
	)
	ended := func(w *world) {
		_, err := w.EndRun(w.t.Context(), w.open().ID, verdict.Transient, "over", "person:ada")
		w.ok(err)
	}
	failed := func(w *world) { w.finish("a", w.send(w.open(), "a"), ledger.VerdictFailed, class(verdict.Logic)) }
	finished := func(w *world) {
		_, err := w.FinishRun(w.t.Context(), w.open().ID, ledger.OutcomeDone, false)
		w.ok(err)
	}
	skipped := func(w *world) {
		ended(w)
		_, err := w.decideItem(skip)
		w.ok(err)
	}
	attention := func(w *world) { w.applied("a"); w.claim(w.open(), "a", payload("other")) }
	inFlight := func(w *world) {
		r := w.open()
		w.send(r, "a")
		_, err := w.EndRun(w.t.Context(), r.ID, verdict.Transient, "over", "person:ada")
		w.ok(err)
	}
	unknown := func(w *world) { w.unknown("a") }
	version := func(n int64) func(*ledger.DecideItem) { return func(d *ledger.DecideItem) { d.Version = n } }
	leaving := func(n int) func(*ledger.DecideItem) { return func(d *ledger.DecideItem) { d.Attempt = n } }
	for _, c := range []struct {
		name   string
		before func(*world)
		action ledger.ItemAction
		change []func(*ledger.DecideItem)
		want   error
		state  ledger.ItemState
		then   int
	}{
		{"an open item is closed", ended, done, nil, nil, ledger.ItemDone, 1},
		{"a failed item is closed", failed, done, nil, nil, ledger.ItemDone, 1},
		{"a done item is closed again", finished, done, nil, nil, ledger.ItemDone, 1},
		{"an item that waits for a person can't be closed over the question", attention, done, nil, ledger.ErrItemState, ledger.ItemNeedsAttention, 1},
		{"a skipped item isn't done", skipped, done, nil, ledger.ErrItemState, ledger.ItemSkipped, 1},
		{"an open item is skipped", ended, skip, nil, nil, ledger.ItemSkipped, 1},
		{"a failed item is skipped", failed, skip, nil, nil, ledger.ItemSkipped, 1},
		{"an item that waits is skipped", attention, skip, nil, nil, ledger.ItemSkipped, 1},
		{"a done item can't be skipped", finished, skip, nil, ledger.ErrItemState, ledger.ItemDone, 1},
		{"a done item is opened", finished, reopen, nil, nil, ledger.ItemOpen, 1},
		{"a skipped item is opened", skipped, reopen, nil, nil, ledger.ItemOpen, 1},
		{"an item that waits is opened", attention, reopen, nil, nil, ledger.ItemOpen, 1},
		{"an open item is opened again", ended, reopen, nil, nil, ledger.ItemOpen, 1},
		{"a done item begins anew", finished, again, nil, nil, ledger.ItemOpen, 2},
		{"an item that waits begins anew", attention, again, nil, nil, ledger.ItemOpen, 2},
		{"an item begins anew from another attempt", ended, again, []func(*ledger.DecideItem){leaving(2)}, ledger.ErrAttempt, ledger.ItemOpen, 1},
		{"a running run keeps its item", func(w *world) { w.open() }, done, nil, ledger.ErrItemBusy, ledger.ItemOpen, 1},
		{"an overdue run doesn't", func(w *world) { w.open(); w.pass(101 * time.Hour) }, done, nil, nil, ledger.ItemDone, 1},
		{"an unknown keeps the item from being closed", unknown, done, nil, ledger.ErrItemUnresolved, ledger.ItemOpen, 1},
		{"an unknown keeps the item from beginning anew", unknown, again, nil, ledger.ErrItemUnresolved, ledger.ItemOpen, 1},
		{"an unknown keeps the item from being skipped", unknown, skip, nil, ledger.ErrItemUnresolved, ledger.ItemOpen, 1},
		{"but not with its mutations", unknown, skip, []func(*ledger.DecideItem){withMutations}, nil, ledger.ItemSkipped, 1},
		{"a sending keeps the item", inFlight, skip, []func(*ledger.DecideItem){withMutations}, ledger.ErrItemUnresolved, ledger.ItemOpen, 1},
		{"the version that was seen counts", ended, done, []func(*ledger.DecideItem){version(1)}, ledger.ErrVersion, ledger.ItemOpen, 1},
		{"the version that was seen counts for mutations too", ended, skip,
			[]func(*ledger.DecideItem){withMutations, version(1)}, ledger.ErrVersion, ledger.ItemOpen, 1},
		{"no reason", ended, done, []func(*ledger.DecideItem){func(d *ledger.DecideItem) { d.Reason = "" }}, ledger.ErrInvalid, ledger.ItemOpen, 1},
		{"no attempt", ended, again, []func(*ledger.DecideItem){leaving(0)}, ledger.ErrInvalid, ledger.ItemOpen, 1},
		{"mutations without skipping", ended, done, []func(*ledger.DecideItem){withMutations}, ledger.ErrInvalid, ledger.ItemOpen, 1},
		{"no such decision", ended, "forget", nil, ledger.ErrInvalid, ledger.ItemOpen, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			c.before(w)
			if _, err := w.decideItem(c.action, c.change...); !errors.Is(err, c.want) {
				t.Fatalf("%v, want %v", err, c.want)
			}
			if i := w.item("i"); i.State != c.state || i.Attempt != c.then {
				t.Errorf("the item is %s at attempt %d, want %s at %d", i.State, i.Attempt, c.state, c.then)
			}
		})
	}
}

func TestADecisionOnAnItemIsRemembered(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.applied("a")
	w.claim(w.open(), "a", payload("other"))
	w.escalated("a", ledger.EscalationMismatch)
	i, err := w.decideItem(ledger.ItemReopen)
	w.ok(err)
	want := ledger.ItemChange{
		At: w.now.Wall, Actor: "person:ada", What: "reopen", Why: "because of a test", Attempt: 1,
		From: ledger.ItemNeedsAttention, To: ledger.ItemOpen,
	}
	if len(i.Changes) != 1 || i.Changes[0] != want || i.Reason != "" || i.Cause != "" {
		t.Errorf("the item keeps %+v", i)
	}
	w.escalated("a", "")
	events, err := w.Events(t.Context(), "", 0, 0)
	w.ok(err)
	if last := events[len(events)-1]; last.What != "item_reopen" || last.Actor != "person:ada" || last.Item != "i" {
		t.Errorf("the history ends with %+v", last)
	}
	for range 60 {
		w.skipAndOpen()
	}
	if n := len(w.item("i").Changes); n != 50 {
		t.Errorf("%d changes are kept", n)
	}
}

func (w *world) skipAndOpen() {
	w.t.Helper()
	_, err := w.decideItem(ledger.ItemSkip)
	w.ok(err)
	_, err = w.decideItem(ledger.ItemReopen)
	w.ok(err)
}

func TestANewAttemptIsNewWork(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.applied("a")
	_, err := w.decideItem(ledger.ItemNewAttempt)
	w.ok(err)
	if _, err := w.decideItem(ledger.ItemNewAttempt); !errors.Is(err, ledger.ErrAttempt) {
		t.Errorf("the same decision again: %v", err)
	}
	r := w.open()
	if r.Attempt != 2 {
		t.Errorf("the run is of attempt %d", r.Attempt)
	}
	if out := w.claim(r, "a2", func(q *ledger.Claim) { q.Attempt = 1 }); out.Problem != "attempt" {
		t.Errorf("a claim of the attempt before: %q", out.Problem)
	}
}

func TestSkippingGoesThroughAllMutations(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	scoped := func(q *ledger.Claim) { q.Record.Policy.BlockScope = ledger.BlockMutation }
	names := strings.Fields("a b c d e f g h j k l m n o p q r s t u")
	w.applied("done")
	for _, name := range names {
		w.finish(name, w.send(w.open(), name, scoped), ledger.VerdictUncertain)
	}
	i, err := w.decideItem(ledger.ItemSkip, withMutations)
	w.ok(err)
	if i.State != ledger.ItemSkipped || i.Reason != "because of a test" {
		t.Errorf("the item is %s: %s", i.State, i.Reason)
	}
	for _, name := range names {
		w.is(name, ledger.Skipped)
	}
	w.is("done", ledger.Applied)
}

func TestARunOfADoneItemReadsOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, err := w.FinishRun(t.Context(), w.open().ID, ledger.OutcomeDone, false)
	w.ok(err)
	before := w.item("i").Version
	reading := func(o *ledger.OpenRun) { o.IfDone = ledger.IfDoneRead }
	r := w.open(reading)
	if !r.ItemDone || r.Mutations != ledger.MutationsNone {
		t.Errorf("the run is %+v", r)
	}
	if a := w.Gate(r.ID); !a.Open {
		t.Errorf("reads are refused: %+v", a)
	}
	_, err = w.FinishRun(t.Context(), r.ID, ledger.OutcomeDone, false)
	w.ok(err)
	r = w.open(reading)
	if out := w.claim(r, "a"); out.Problem != "item-done" || !out.RunRefused {
		t.Errorf("a claim: %q", out.Problem)
	}
	if i := w.item("i"); i.State != ledger.ItemDone || i.Version != before {
		t.Errorf("the item is %+v", i)
	}
}

// Skipping takes several commands, between which the program may end.
func TestAnItemAdmitsNothingWhileItsMutationsAreSkipped(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.finish("a", w.send(w.open(), "a", func(q *ledger.Claim) { q.Record.Policy.BlockScope = ledger.BlockMutation }), ledger.VerdictUncertain)
	w.stopAfter = 3
	if _, err := w.decideItem(ledger.ItemSkip, withMutations); !errors.Is(err, errStopped) {
		t.Fatalf("the crash in the middle: %v", err)
	}
	w.stopAfter = 0
	w.restart()
	w.is("a", ledger.Skipped)
	if i := w.item("i"); i.State != ledger.ItemNeedsAttention || !strings.Contains(i.Reason, "skip it again") {
		t.Errorf("the item is %s: %s", i.State, i.Reason)
	}
	if out := w.claim(nil, "late"); out.Problem != "item-attention" {
		t.Errorf("a claim meanwhile: %q", out.Problem)
	}
	if _, err := w.OpenRun(t.Context(), ledger.OpenRun{Workflow: "w", Item: "i"}); !errors.Is(err, ledger.ErrItemAttention) {
		t.Errorf("a run meanwhile: %v", err)
	}
	if i, err := w.decideItem(ledger.ItemSkip, withMutations); err != nil || i.State != ledger.ItemSkipped {
		t.Errorf("skipped again: %+v, %v", i, err)
	}
}

// What was accepted may still be done: it is followed to its end, and not left out.
func TestWhatIsFollowedIsNotSkippedWithItsItem(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.open()
	w.finish("a", w.send(r, "a", watched), ledger.VerdictAccepted, status202)
	_, err := w.EndRun(t.Context(), r.ID, verdict.Logic, "over", "ada")
	w.ok(err)
	if _, err := w.decideItem(ledger.ItemSkip, withMutations); !errors.Is(err, ledger.ErrItemUnresolved) {
		t.Errorf("got %v", err)
	}
	if m := w.is("a", ledger.NeedsReconcile); !m.Watching {
		t.Error("it isn't followed any more")
	}
}

// An undo whose outcome is unknown isn't left out with its item, and so nothing of the item is.
func TestNothingIsSkippedWithAnItemThatCannotBe(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.finish("b", w.send(w.open(), "b"), ledger.VerdictFailed, class(verdict.Logic))
	_, newer := w.owes("a")
	_, d, err := w.undo(newer)
	w.ok(err)
	_, err = w.EndDispatch(t.Context(), ledger.EndDispatch{Key: newer.Key, Dispatch: *d})
	w.ok(err)
	before := w.item("i")
	if _, err := w.decideItem(ledger.ItemSkip, withMutations); !errors.Is(err, ledger.ErrItemUnresolved) || !strings.Contains(err.Error(), newer.ID) {
		t.Errorf("got %v", err)
	}
	w.is("b", ledger.Failed)
	if i := w.item("i"); i.Version != before.Version || i.State != before.State {
		t.Errorf("the item was %s and is %s: %s", before.State, i.State, i.Reason)
	}
}

// Whether or not there is anything to skip, the decision answers what the item waits for.
func TestSkippingAnItemAnswersWhatItWaitsFor(t *testing.T) {
	t.Parallel()
	for _, failed := range []bool{false, true} {
		w := newWorld(t)
		w.applied("a")
		if failed {
			w.finish("b", w.send(w.open(), "b"), ledger.VerdictFailed, class(verdict.Logic))
		}
		w.claim(w.open(), "a", payload("other"))
		w.escalated("a", ledger.EscalationMismatch)
		i, err := w.decideItem(ledger.ItemSkip, withMutations)
		w.ok(err)
		if i.State != ledger.ItemSkipped {
			t.Errorf("the item is %s: %s", i.State, i.Reason)
		}
		w.escalated("a", "")
		if m := w.mutation("a"); m.Disputed != "" {
			t.Errorf("the payload can be accepted still: %q", m.Disputed)
		}
	}
}

// To do an item anew, or to leave it out, leaves nothing that a drift or a world that disagrees is
// about: the question would be open for ever, and who closed it by its own answer would accept
// what nobody wanted. Where runs go on, it is a person's still.
func TestWhatIsDoneAnewIsAskedAboutNoMore(t *testing.T) {
	t.Parallel()
	drifted := func(w *world) {
		w.applied("a", drifting(ledger.DriftRefuse, "a"))
		w.claim(w.open(), "b", drifting(ledger.DriftRefuse, "b"))
	}
	disagreeing := func(w *world) {
		w.applied("a")
		_, _, err := w.Verified(w.t.Context(), ledger.Verified{
			Key: key("a"), Run: w.open().ID, Mode: ledger.VerifyHuman, Said: ledger.SaidDisagrees, Reason: "gone",
		})
		w.ok(err)
	}
	for kind, before := range map[string]func(*world){ledger.EscalationDrift: drifted, ledger.EscalationVerify: disagreeing} {
		for action, want := range map[ledger.ItemAction]string{
			ledger.ItemNewAttempt: "", ledger.ItemSkip: "", ledger.ItemReopen: kind,
		} {
			t.Run(kind+", "+string(action), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				before(w)
				w.escalated("a", kind)
				_, err := w.decideItem(action)
				w.ok(err)
				w.escalated("a", want)
				if m := w.mutation("a"); want == "" && m.Escalation.ClosedBy != "person:ada" || m.Verification != nil && m.Verification.Acknowledged {
					t.Errorf("closed by %q, verification %+v", m.Escalation.ClosedBy, m.Verification)
				}
				if i := w.item("i"); len(i.Drifts) != 0 {
					t.Errorf("the drifts of %q are accepted", i.Drifts)
				}
			})
		}
	}
}

// interrupted lets somebody else act after the first command.
type interrupted struct {
	ledger.Store
	act func()
}

func (s *interrupted) Update(ctx context.Context, fn func(ledger.Tx) error) error {
	err := s.Store.Update(ctx, fn)
	if act := s.act; act != nil {
		s.act = nil
		act()
	}
	return err
}

// Skipping an item with its mutations takes several commands. What another person decides in
// between was seen by nobody who skips it.
func TestSkippingWithMutationsHeedsTheVersionThatWasSeen(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]func(*world){
		"none to skip": func(w *world) { w.applied("a") },
		"one to skip": func(w *world) {
			w.finish("a", w.send(w.open(), "a"), ledger.VerdictFailed, class(verdict.Logic))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			before(w)
			l := ledger.New(&interrupted{w.store, func() {
				_, err := w.decideItem(ledger.ItemNewAttempt)
				w.ok(err)
			}}, ledger.Config{Now: func() ledger.Stamp { return w.now }, NewID: w.id})
			_, err := l.DecideItem(t.Context(), ledger.DecideItem{
				Workflow: "w", Item: "i", Action: ledger.ItemSkip, Actor: "bob", Reason: "left out", Version: w.item("i").Version, WithMutations: true,
			})
			if !errors.Is(err, ledger.ErrVersion) {
				t.Errorf("it is skipped: %v", err)
			}
			if i := w.item("i"); i.State != ledger.ItemOpen || i.Attempt != 2 {
				t.Errorf("the item is %s, at attempt %d", i.State, i.Attempt)
			}
		})
	}
}
