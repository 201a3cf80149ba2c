package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"keep-proxy/internal/verdict"
	"keep-proxy/ledger"
)

// between is a store before one of whose updates something else happens.
type between struct {
	ledger.Store
	// before counts the updates until then, 0 for none.
	before int
	do     func()
}

func (s *between) Update(ctx context.Context, fn func(ledger.Tx) error) error {
	if s.before > 0 {
		if s.before--; s.before == 0 {
			s.do()
		}
	}
	return s.Store.Update(ctx, fn)
}

// A run of many items that is being finished takes several commands: what happens to it
// between two of them is seen by the next.
func TestWhatHappensToARunWhileItsItemsAreClosed(t *testing.T) {
	t.Parallel()
	const n = 150
	for name, c := range map[string]struct {
		// meanwhile happens after the first hundred items were closed.
		meanwhile func(*world, *ledger.Run)
		want      error
		state     ledger.RunState
		closed    int
	}{
		"somebody ends it": {
			func(w *world, r *ledger.Run) {
				_, err := w.EndRun(w.t.Context(), r.ID, verdict.Transient, "stopped", "person:ada")
				w.ok(err)
			}, ledger.ErrRunUnfinished, ledger.RunAborted, 100,
		},
		"somebody lets it go on": {
			func(w *world, r *ledger.Run) {
				w.ok(w.store.Update(w.t.Context(), func(tx ledger.Tx) error {
					now, err := tx.Run(r.ID)
					if err != nil {
						return err
					}
					now.Closing = ""
					now.Version++
					return tx.PutRun(now)
				}))
			}, ledger.ErrRunUnfinished, ledger.RunRunning, 100,
		},
		"somebody finishes it": {
			func(w *world, r *ledger.Run) {
				done, err := w.FinishRun(w.t.Context(), r.ID, ledger.OutcomeDone, false)
				w.ok(err)
				if done.State != ledger.RunFinished {
					w.t.Errorf("the other one made it %s", done.State)
				}
			}, nil, ledger.RunFinished, n,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			s := &between{Store: w.store}
			w.Ledger = ledger.New(s, ledger.Config{Now: func() ledger.Stamp { return w.now }, NewID: w.id})
			r := w.open(many)
			for i := range n {
				id := fmt.Sprint("m", i)
				w.finish(id, w.send(r, id, of(fmt.Sprint("i", i))), ledger.VerdictApplied)
			}
			// Finishing looks at the run, closes it to claims, and then closes a hundred items at a time.
			s.before, s.do = 4, func() { c.meanwhile(w, r) }
			got, err := w.FinishRun(t.Context(), r.ID, ledger.OutcomeDone, false)
			if !errors.Is(err, c.want) || c.want == nil && (err != nil || got.State != c.state) {
				t.Errorf("finishing: %v, want %v", err, c.want)
			}
			w.stands(r, c.state, classOf(c.state))
			closed := 0
			var open string
			for i := range n {
				id := fmt.Sprint(i)
				if it := w.item("i" + id); it.State == ledger.ItemDone && it.ActiveRun == "" {
					closed++
				} else {
					open = id
				}
			}
			if closed != c.closed {
				t.Errorf("%d items are closed, want %d", closed, c.closed)
			}
			switch c.state {
			case ledger.RunRunning:
				if it := w.item("i" + open); it.ActiveRun != r.ID {
					t.Errorf("the run that goes on has lost item %+v", it)
				}
				done, err := w.FinishRun(t.Context(), r.ID, ledger.OutcomeDone, false)
				if err != nil || done.State != ledger.RunFinished || w.item("i"+open).State != ledger.ItemDone {
					t.Errorf("finishing again: %v", err)
				}
			case ledger.RunAborted:
				if out := w.claim(w.open(many), "m"+open, of("i"+open)); out.Decision != ledger.DecideReplay {
					t.Errorf("the next run gets %q of an item that was left", out.Decision)
				}
			}
		})
	}
}

func classOf(s ledger.RunState) verdict.Class {
	if s == ledger.RunAborted {
		return verdict.Transient
	}
	return ""
}
