package proxy

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"keep-proxy/ledger"
)

// waiting is a stopped request, in fake time.
type waiting struct {
	*Proxy
	client context.Context
	leave  context.CancelFunc
	on     []ledger.Blocker
}

// newWaiting holds requests for so long, behind a mutation of this state.
func newWaiting(t *testing.T, hold time.Duration, state ledger.State) *waiting {
	t.Helper()
	w := newLookout(t, func(c *Config) { c.Hold, c.Inline = hold, 10*time.Second })
	p := &waiting{Proxy: w.Proxy, on: []ledger.Blocker{{Key: ledger.Key{1}, ID: "m-1", State: state}}}
	p.client, p.leave = context.WithCancel(t.Context())
	t.Cleanup(p.leave)
	return p
}

// waits asks again as long as it may, and returns how often it did and how long that took.
func (w *waiting) waits() (times int, took time.Duration) {
	begun := time.Now()
	for until := (patience{}); w.await(w.client, w.on, &until); times++ {
		if times > 1e5 {
			break
		}
	}
	return times, time.Since(begun)
}

// What is held asks the gate again until the hold is over, and the time of an inline try
// before it; whatever ends it ends it at once.
func TestHowLongAStoppedRequestIsHeld(t *testing.T) {
	t.Parallel()
	// What happens between two ticks doesn't wait for the next one.
	const hold, between = 5 * time.Second, time.Second + holdTick/2
	for name, c := range map[string]struct {
		hold  time.Duration
		state ledger.State
		begin func(*waiting)
		// atLeast and atMost bound how long it waits; asked says that it asks again at all.
		atLeast, atMost time.Duration
		asked           bool
	}{
		"not at all without a hold":                  {state: ledger.NeedsReconcile},
		"once more if what stopped it was in flight": {state: ledger.InFlight, asked: true},
		"for the hold and an inline try's time":      {hold: hold, state: ledger.NeedsReconcile, atLeast: hold + 10*time.Second, atMost: hold + 10*time.Second + holdTick, asked: true},
		"not if its client has gone":                 {hold: hold, state: ledger.NeedsReconcile, begin: func(w *waiting) { w.leave() }},
		"until its client goes": {
			hold: hold, state: ledger.NeedsReconcile, atLeast: between, atMost: between, asked: true,
			begin: func(w *waiting) { time.AfterFunc(between, w.leave) },
		},
		"until the proxy shuts down": {
			hold: hold, state: ledger.NeedsReconcile, atLeast: between, atMost: between, asked: true,
			begin: func(w *waiting) { time.AfterFunc(between, w.drain) },
		},
		"until the proxy ends": {
			hold: hold, state: ledger.NeedsReconcile, atLeast: between, atMost: between, asked: true,
			begin: func(w *waiting) { time.AfterFunc(between, w.cancel) },
		},
		"for an inline try, hold or not": {
			state: ledger.NeedsReconcile, atLeast: 3 * time.Second, atMost: 3 * time.Second, asked: true,
			begin: func(w *waiting) { time.AfterFunc(3*time.Second, w.inline.begin(w.on[0].Key)) },
		},
		"for an inline try until its client goes": {
			state: ledger.NeedsReconcile, atLeast: time.Second, atMost: time.Second,
			begin: func(w *waiting) {
				time.AfterFunc(3*time.Second, w.inline.begin(w.on[0].Key))
				time.AfterFunc(time.Second, w.leave)
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWaiting(t, c.hold, c.state)
				if c.begin != nil {
					c.begin(w)
				}
				times, took := w.waits()
				if took < c.atLeast || took > c.atMost || times > 0 != c.asked {
					t.Errorf("it asked %d times more, for %s", times, took)
				}
				if c.hold == 0 && times > 1 {
					t.Errorf("it asked %d times more without a hold", times)
				}
			})
		})
	}
}

// proxy.hold is for requests, not for what is being streamed: that is cut at once, and content
// that is awaited once the hold is over.
func TestWhatIsStreamedIsNotHeld(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const hold = 5 * time.Second
		w := newLookout(t, func(c *Config) { c.Hold = hold })
		streamed := w.unmanaged()
		awaited, _ := w.register(t.Context(), caller{unmanaged: true, workflow: "refunds", item: "order-1"}, true)
		w.unrecorded.Add(uncertain(), "another", ledger.Over{})
		synctest.Wait()
		if streamed.Err() == nil || awaited.Err() != nil {
			t.Errorf("at the stop: %v is streamed, %v is awaited", streamed.Err(), awaited.Err())
		}
		passes(hold - 1)
		synctest.Wait()
		if awaited.Err() != nil {
			t.Error("what is awaited was cut before the hold was over")
		}
		passes(1)
		synctest.Wait()
		if awaited.Err() == nil {
			t.Error("what is awaited is so after the hold")
		}
		w.Close()
	})
}

// A stop that was lifted counts for nothing in the time of the next one.
func TestEachStopHoldsAnew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const hold = 5 * time.Second
		w := newLookout(t, func(c *Config) { c.Hold = hold })
		awaited, _ := w.register(t.Context(), caller{unmanaged: true, workflow: "refunds", item: "order-1"}, true)
		m := uncertain()
		w.unrecorded.Add(m, "another", ledger.Over{})
		passes(hold - 1)
		w.unrecorded.Recorded(m.Key)
		w.stops.tell()
		synctest.Wait()
		w.unrecorded.Add(m, "another", ledger.Over{})
		passes(hold - 1)
		synctest.Wait()
		if awaited.Err() != nil {
			t.Error("cut before the hold of the second stop was over")
		}
		passes(1)
		synctest.Wait()
		if awaited.Err() == nil {
			t.Error("awaited after the hold")
		}
		w.Close()
	})
}
