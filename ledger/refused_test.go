package ledger_test

import (
	"errors"
	"fmt"
	"testing"

	"keep-proxy/internal/verdict"
	"keep-proxy/ledger"
)

// refuses has a run be refused a request.
func (w *world) refuses(r *ledger.Run, code string, class verdict.Class, change ...func(*ledger.Refused)) {
	w.t.Helper()
	f := ledger.Refused{Code: code, Class: class, Method: "POST", Host: "api.example:443", Path: "/pay", Exchange: ledger.Exchange{Digest: "d"}}
	for _, c := range change {
		c(&f)
	}
	w.ok(w.Refuses(w.t.Context(), r.ID, f))
}

func digest(d string) func(*ledger.Refused) { return func(f *ledger.Refused) { f.Digest = d } }

func ofItem(name string) func(*ledger.Refused) { return func(f *ledger.Refused) { f.Item = name } }

// unfinished finishes the run as done, which is refused because of so many requests.
func (w *world) unfinished(r *ledger.Run, want int) {
	w.t.Helper()
	_, err := w.FinishRun(w.t.Context(), r.ID, ledger.OutcomeDone, false)
	refused, ok := errors.AsType[*ledger.RefusedError](err)
	if !ok || !errors.Is(err, ledger.ErrRunUnfinished) || len(refused.Refused) != want {
		w.t.Errorf("finished as done: %v, want %d refused requests", err, want)
	}
}

// done finishes the run as done.
func (w *world) done(r *ledger.Run, item string, want ledger.ItemState) {
	w.t.Helper()
	_, err := w.FinishRun(w.t.Context(), r.ID, ledger.OutcomeDone, false)
	w.ok(err)
	if got := w.item(item).State; got != want {
		w.t.Errorf("item %s is %s, want %s", item, got, want)
	}
}

func TestARunThatWasRefusedIsNotDone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.open(returns)
	w.refuses(r, "draining", verdict.Transient)
	w.refuses(r, "draining", verdict.Transient)
	w.refuses(r, "unmatched", verdict.Logic, digest(""))
	w.unfinished(r, 2)
	_, err := w.FinishRun(t.Context(), r.ID, ledger.OutcomeFailed, false)
	w.ok(err)
	ended := w.stands(r, ledger.RunAborted, verdict.Logic)
	if want := "POST api.example:443/pay was refused (draining), and 1 more"; ended.Reason != want || w.item("i").State != ledger.ItemFailed {
		t.Errorf("reason %q, want %q; the item is %s", ended.Reason, want, w.item("i").State)
	}
	_, err = w.FinishRun(t.Context(), r.ID, ledger.OutcomeFailed, false)
	w.ok(err)
	w.refuses(r, "unmatched", verdict.Logic, digest("late"))
	if got := len(w.run(r.ID).Refused); got != 2 {
		t.Errorf("a run that is over notes %d refusals", got)
	}
	w.done(w.open(), "i", ledger.ItemDone)
}

func TestWhatGotThroughIsNotMissing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.open()
	w.refuses(r, "draining", verdict.Transient)
	w.refuses(r, "not-sent", verdict.Transient, digest("other"), func(f *ledger.Refused) { f.Key = "k" })
	w.refuses(r, "not-sent", verdict.Transient, digest("other"), func(f *ledger.Refused) { f.Key = "k of another subkey" })
	w.refuses(r, "unmatched", verdict.Logic, digest(""))
	w.Through(r.ID, ledger.Exchange{Digest: "elsewhere"})
	w.Through(r.ID, ledger.Exchange{})
	w.Through(r.ID, ledger.Exchange{Digest: "other", Key: "another"})
	w.unfinished(r, 4)
	w.Through(r.ID, ledger.Exchange{Digest: "d", Key: "new"})
	w.unfinished(r, 3)
	w.Through(r.ID, ledger.Exchange{Digest: "changed", Key: "k"})
	w.unfinished(r, 2)
}

func TestWhatIsMeantKeepsNoRunFromBeingDone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		code string
		want ledger.ItemState
	}{
		"an item that was done before":   {"item-done", ledger.ItemDone},
		"a part that a person skipped":   {"skipped", ledger.ItemSkipped},
		"a refusal that is tolerated":    {"unmatched", ledger.ItemDone},
		"one that is, with a port":       {"egress", ledger.ItemDone},
		"one of another host that isn't": {"denied", ledger.ItemFailed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			r := w.open(func(o *ledger.OpenRun) {
				o.Tolerate = []string{"unmatched:api.example", "egress:api.example:443", "denied:other.example"}
			})
			w.refuses(r, c.code, verdict.Logic)
			if c.want != ledger.ItemFailed {
				w.done(r, "i", c.want)
				return
			}
			w.unfinished(r, 1)
		})
	}
}

func TestARunThatWasRefusedTooOftenStaysSo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.open()
	const most = 1000
	for i := range most + 1 {
		w.refuses(r, "draining", verdict.Transient, digest(fmt.Sprint(i)))
	}
	w.unfinished(r, 100)
	for i := range most {
		w.Through(r.ID, ledger.Exchange{Digest: fmt.Sprint(i)})
	}
	w.unfinished(r, 0)
}

func TestOfManyItemsThoseThatWereRefusedFail(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.open(many)
	w.finish("a", w.send(r, "a", of("x")), ledger.VerdictApplied)
	w.finish("b", w.send(r, "b", of("y")), ledger.VerdictApplied)
	w.refuses(r, "unmatched", verdict.Logic, ofItem("y"))
	w.refuses(r, "unmatched", verdict.Logic, ofItem("z"))
	w.refuses(r, "item-done", verdict.Logic, ofItem("x"))
	w.unfinished(r, 2)
	w.stands(r, ledger.RunAborted, verdict.Logic)
	for name, want := range map[string]ledger.ItemState{"x": ledger.ItemDone, "y": ledger.ItemFailed, "z": ledger.ItemFailed} {
		if i := w.item(name); i.State != want || i.ActiveRun != "" {
			t.Errorf("item %s is %s with run %q, want %s", name, i.State, i.ActiveRun, want)
		}
	}
	_, err := w.FinishRun(t.Context(), r.ID, ledger.OutcomeFailed, false)
	w.ok(err)
}

func TestOfManyItemsNoneIsDoneWhereARefusalNamesNone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.open(many)
	w.finish("a", w.send(r, "a", of("x")), ledger.VerdictApplied)
	w.refuses(r, "identity", verdict.Logic)
	w.unfinished(r, 1)
	if i := w.item("x"); i.State != ledger.ItemOpen {
		t.Errorf("the item is %s", i.State)
	}
	w.Through(r.ID, ledger.Exchange{Digest: "d"})
	w.done(r, "x", ledger.ItemDone)
}
