package proxy

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"keep-proxy/internal/clock"
	"keep-proxy/internal/verdict"
	"keep-proxy/ledger"
	"keep-proxy/ledger/ledgertest"
	"keep-proxy/rules"
	"keep-proxy/upstream"
)

// lookout is a proxy that watches what is open, in fake time and without a network.
type lookout struct {
	*Proxy
	t     *testing.T
	store *ledgertest.Memory
	run   string
	// asked counts how often the gate was asked about a run.
	asked atomic.Int64
}

// asking counts what the gate is asked.
type asking struct {
	ledger.Standings
	asked *atomic.Int64
}

func (a asking) StandingByToken(token string) (ledger.Run, []ledger.Blocker, error) {
	a.asked.Add(1)
	return a.Standings.StandingByToken(token)
}

// bubble is a clock that goes with the fake time: a look takes none of it, however slow
// the machine is.
type bubble struct{ clock.Clock }

func (bubble) Mono() time.Duration { return time.Duration(time.Now().UnixNano()) }

// newLookout opens the run "run-1" of the workflow "refunds" and the item "order-1".
func newLookout(t *testing.T, change ...func(*Config)) *lookout {
	t.Helper()
	w := &lookout{t: t, store: ledgertest.NewMemory(ledger.Process{ID: "process1"}), run: "run-1"}
	stamp := func() ledger.Stamp { return ledger.Stamp(clock.Take(clock.System())) }
	ca, err := LoadCA(t.TempDir()+"/ca.pem", t.TempDir()+"/ca.key", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	c := Config{
		Ledger: ledger.New(w.store, ledger.Config{Now: stamp, NewID: func() string { return "id" }}),
		Rules:  func() *rules.Set { return nil },
		Pinned: func(context.Context, string) (*rules.Connector, error) { return nil, errors.New("none") },
		Sender: upstream.New(upstream.Config{}), Reads: upstream.NewPassthrough(upstream.Config{}), Dial: (&net.Dialer{}).DialContext,
		Inliner: &fakeInliner{}, Turns: noTurns{}, Credentials: noCredentials{}, CA: ca, Clock: bubble{clock.System()},
		NewID: func() string { return "id" }, Log: zerolog.Nop(), lookEvery: time.Hour,
	}
	c.Ledger.Standings = asking{c.Ledger.Standings, &w.asked}
	for _, f := range change {
		f(&c)
	}
	if w.Proxy, err = New(c); err != nil {
		t.Fatal(err)
	}
	r := ledgertest.SampleRun(w.run, 0)
	r.ExpiresAt = time.Now().Add(time.Hour)
	item := ledgertest.SampleItem(r.Item, 0)
	item.ActiveRun = r.ID
	w.put(func(tx ledger.Tx) error { return errors.Join(tx.PutRun(r), tx.PutItem(item)) })
	go w.watch(w.ledger.Watch(w.stops.changed))
	t.Cleanup(w.Close)
	return w
}

func (w *lookout) put(fn func(ledger.Tx) error) {
	w.t.Helper()
	if err := w.store.Update(w.t.Context(), fn); err != nil {
		w.t.Fatal(err)
	}
}

// stream is one of the run.
func (w *lookout) stream(client context.Context) *stream {
	r := ledgertest.SampleRun(w.run, 0)
	s, _ := w.register(client, caller{token: r.TokenSHA256, run: r.ID, workflow: r.Workflow, item: r.Item}, false)
	return s
}

// unmanaged is a stream without a run, in the same scope.
func (w *lookout) unmanaged() *stream {
	s, _ := w.register(w.t.Context(), caller{unmanaged: true, workflow: "refunds", item: "order-1"}, false)
	return s
}

// passes lets fake time pass.
func passes(d time.Duration) { <-time.After(d) }

// uncertain is a mutation of the scope whose sending was judged uncertain.
func uncertain() *ledger.Mutation {
	m := ledgertest.SampleMutation("x", ledger.InFlight, 0)
	m.Dispatches[0].Ended, m.Dispatches[0].Verdict = ledger.Stamp{Wall: ledgertest.Epoch}, ledger.VerdictUncertain
	return m
}

// Whatever stops a scope tells of itself: nothing else looks here for an hour.
func TestEachCauseOfAStopTellsOfItself(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		stop func(w *lookout) error
		// others says that it stops those without a run, too.
		others bool
	}{
		"a person ends the run": {stop: func(w *lookout) error {
			_, err := w.ledger.EndRun(w.t.Context(), w.run, verdict.Transient, "test", "test")
			return err
		}},
		"the run is finished": {stop: func(w *lookout) error {
			_, err := w.ledger.FinishRun(w.t.Context(), w.run, ledger.OutcomeDone, false)
			return err
		}},
		"a mutation is found to be unknown": {others: true, stop: func(w *lookout) error {
			m := ledgertest.SampleMutation("x", ledger.NeedsReconcile, 0)
			return w.store.Update(w.t.Context(), func(tx ledger.Tx) error { return tx.PutMutation(m) })
		}},
		"an outcome can't be recorded": {others: true, stop: func(w *lookout) error {
			w.unrecorded.Add(uncertain(), "another", ledger.Over{})
			return nil
		}},
		"the run was told of an outcome that can't be recorded": {stop: func(w *lookout) error {
			m := uncertain()
			m.Workflow = "another"
			w.unrecorded.Add(m, w.run, ledger.Over{})
			return nil
		}},
		"an inline try comes to nothing": {others: true, stop: func(w *lookout) error {
			end := w.inline.begin(uncertain().Key)
			err := w.store.Update(w.t.Context(), func(tx ledger.Tx) error { return tx.PutMutation(uncertain()) })
			synctest.Wait()
			for _, s := range w.open.all() {
				if s.Err() != nil {
					w.t.Error("a stream was cut while the try went on")
				}
			}
			end()
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newLookout(t)
				managed, unmanaged := w.stream(t.Context()), w.unmanaged()
				synctest.Wait()
				if managed.Err() != nil || unmanaged.Err() != nil {
					t.Fatal("a stream was cut before anything was stopped")
				}
				if err := c.stop(w); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				if managed.Err() == nil {
					t.Error("the run's stream is open")
				}
				if cut := unmanaged.Err() != nil; cut != c.others {
					t.Errorf("the stream without a run was cut: %t, want %t", cut, c.others)
				}
				w.Close()
			})
		})
	}
}

// Between the gate and the first byte there is time for a stop.
func TestAStreamThatComesAfterAStopWasLookedAtIsCut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newLookout(t)
		if _, err := w.ledger.EndRun(t.Context(), w.run, verdict.Transient, "test", "test"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		s := w.stream(t.Context())
		synctest.Wait()
		if s.Err() == nil {
			t.Error("it is open")
		}
		w.Close()
	})
}

func TestAClientIsFollowedFromItsStreamsFirstMoments(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]time.Duration{"gone at once": 0, "gone later": 5 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newLookout(t)
				client, gone := context.WithCancel(t.Context())
				defer gone()
				other := w.stream(t.Context())
				passes(followAfter + 1) // The other one is followed by now.
				s := w.stream(client)
				passes(after)
				if s.Err() != nil {
					t.Fatal("cut while its client waits")
				}
				gone()
				passes(followAfter)
				synctest.Wait()
				if s.Err() == nil || s.wasStopped() {
					t.Errorf("it ended with %v, by a stop: %t", s.Err(), s.wasStopped())
				}
				if other.Err() != nil {
					t.Error("another client's stream was cut")
				}
				w.Close()
			})
		})
	}
}

// Should a cause ever fail to tell, the stop comes late, and not never; also where other
// streams come and go all the time.
func TestAStopThatNothingTellsOfIsFound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newLookout(t, func(c *Config) { c.lookEvery = 0 })
		w.stream(t.Context()).end()
		long := w.unmanaged()
		m := uncertain()
		for begun := time.Now(); time.Since(begun) < 10*lookEvery; passes(followAfter / 3) {
			w.stream(t.Context()).end()
		}
		if long.Err() != nil {
			t.Fatal("cut before anything was stopped")
		}
		w.unrecorded.Watch(nil) // So that nobody tells of it.
		w.unrecorded.Add(m, "", ledger.Over{})
		for begun := time.Now(); time.Since(begun) < lookEvery+2*followAfter; passes(followAfter / 3) {
			s, _ := w.register(t.Context(), caller{unmanaged: true, workflow: "another"}, false)
			s.end()
		}
		synctest.Wait()
		if long.Err() == nil {
			t.Error("it is open")
		}
		w.Close()
	})
}

// ticking is a clock on which each look takes this long.
type ticking struct {
	clock.Clock
	by  time.Duration
	now atomic.Int64
}

func (c *ticking) Mono() time.Duration { return time.Duration(c.now.Add(int64(c.by))) }

func TestLookingLeavesTimeForWork(t *testing.T) {
	t.Parallel()
	for took, want := range map[time.Duration]int64{
		time.Millisecond: 1000 / lookPause, 10 * time.Millisecond: 1000 / (10 * lookPause), time.Second: 1000 / 50,
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newLookout(t, func(c *Config) { c.Clock = &ticking{Clock: c.Clock, by: took} })
			s := w.stream(t.Context())
			synctest.Wait()
			passes(maxPause)
			w.asked.Store(0)
			for range 1000 {
				w.stops.tell()
				passes(time.Millisecond)
			}
			if n := w.asked.Load(); n > want+1 || n < want-1 {
				t.Errorf("in a second with a thousand changes were %d looks of %v, want %d", n, took, want)
			}
			if s.Err() != nil {
				t.Error("the stream was cut")
			}
			w.Close()
		})
	}
}
