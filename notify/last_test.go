package notify

import (
	"context"
	"testing"
	"testing/synctest"
)

// lateDestination takes nothing before the first process that asks it ends.
type lateDestination struct {
	fakeDestination

	cut bool
}

func (d *lateDestination) Deliver(ctx context.Context, m Message, body []byte) error {
	if !d.cut {
		<-ctx.Done()
		d.cut = true
		return ctx.Err()
	}
	return d.fakeDestination.Deliver(ctx, m, body)
}

func TestATryThatTheEndOfTheProcessCutIsMadeOnceMore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		down := &fakeDestination{name: "pager", fails: 1000}
		_, stop := w.notifying(down)
		a := w.ask('a')
		pass(2 * poll)
		b := w.ask('b') // With it the try for a is written down, which was in vain.
		pass(2 * poll)
		stop()
		up := &lateDestination{fakeDestination: fakeDestination{name: "pager"}}
		n, stop := w.notifying(up)
		synctest.Wait()
		if s := n.Status(); s[0].Tries == 0 {
			t.Fatalf("status %+v: want the tries of the process before", s)
		}
		stop()
		if err := n.Last(t.Context()); err != nil {
			t.Fatal(err)
		}
		want(t, &up.fakeDestination, a+"-1-opened", b+"-1-opened")
	})
}

func TestProcessesThatEndAtOnceTellPastWhatIsNotTaken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		picky := &fakeDestination{name: "pager"}
		_, stop := w.notifying(picky)
		synctest.Wait()
		stop()
		a, b := w.ask('a'), w.ask('b')
		picky.refuses = a
		for try := 1; try <= pastAfter; try++ {
			want(t, picky)
			n, stop := w.notifying(picky)
			synctest.Wait()
			stop()
			if err := n.Last(t.Context()); err != nil {
				t.Fatal(err)
			}
			if s := n.Status(); s[0].Tries != try {
				t.Fatalf("status %+v: want try %d, as none that was in vain is forgotten", s, try)
			}
		}
		want(t, picky, b+"-1-opened")
	})
}
