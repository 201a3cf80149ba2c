package proxy

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"keep-proxy/ledger"
	"keep-proxy/ledger/ledgertest"
)

// unwatched tell nobody of changes of the gate.
type unwatched struct{ ledger.Standings }

// Watch implements ledger.Standings.
func (unwatched) Watch(chan<- struct{}) (stop func()) { return func() {} }

// streaming is how many streams of the run are open.
func (r *run) streaming() (n int) {
	for _, s := range r.proxy.open.all() {
		if s.caller.run == r.id && s.Err() == nil {
			n++
		}
	}
	return n
}

// A script that reads that its run is over must not read on elsewhere: what it has open is cut
// before it is told, and not when the proxy comes to look.
func TestWhatIsOpenIsCutBeforeTheScriptIsTold(t *testing.T) {
	t.Parallel()
	alone := func(o *ledger.OpenRun) { o.BlockScope = ledger.BlockMutation }
	for name, c := range map[string]struct {
		before       func(*world)
		change       func(*Config)
		rules        string
		path, body   string
		open         func(*ledger.OpenRun)
		problem      string
		status, fate int
	}{
		"that an outcome is unknown": {path: "/pay", fate: fateLost, problem: "unknown-outcome", status: 424},
		"that asking didn't help":    {path: "/ask", fate: fateLost, problem: "unknown-outcome", status: 424},
		"that it failed":             {path: "/pay", fate: 400, status: 400},
		"that a payload has changed": {before: func(w *world) { w.end(w.applied("/pay")) }, path: "/pay", body: `{"to":"x","amount":2}`, problem: "payload-mismatch", status: 422},
		"that a mutation is unknown": {before: func(w *world) { w.open("a", alone).post("/ask", payX) }, open: alone, path: "/ask", fate: fateLost, problem: "blocked", status: 423},
		"that the world has changed": {before: func(w *world) { w.end(w.applied("/ask")) }, rules: verifyingStrictly, change: func(c *Config) { c.Inliner = &goneInliner{} }, path: "/ask", problem: "verify-failed", status: 424},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			done := make(chan struct{})
			t.Cleanup(sync.OnceFunc(func() { close(done) }))
			w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
				switch {
				case r.URL.Path == "/stream":
					_, _ = rw.Write([]byte("head\n"))
					rw.(http.Flusher).Flush()
					select {
					case <-done:
					case <-r.Context().Done():
					}
				case c.fate == fateLost:
					lost(rw, r)
				case c.fate != 0:
					rw.WriteHeader(c.fate)
				default:
					created(rw, r)
				}
			}, func(conf *Config) {
				conf.Ledger.Standings = unwatched{conf.Ledger.Standings}
				if c.change != nil {
					c.change(conf)
				}
			})
			if c.rules != "" {
				w.use(c.rules)
			}
			if c.before != nil {
				c.before(w)
			}
			open := []func(*ledger.OpenRun){takesOver}
			if c.open != nil {
				open = append(open, c.open)
			}
			r := w.open("a", open...)
			unread := make(chan string, 1)
			r.start(t, "/stream", unread)
			if n := r.streaming(); n != 1 {
				t.Fatalf("%d streams are open", n)
			}
			g := r.post(c.path, or(c.body, payX))
			if n := r.streaming(); n != 0 {
				t.Errorf("%d streams are open", n)
			}
			if g.status != c.status || g.problem() != c.problem {
				t.Errorf("%d %s: %s", g.status, g.problem(), g.body)
			}
			if got := r.state(); got.State == ledger.RunRunning {
				t.Errorf("the run is %s", got.State)
			}
		})
	}
}

// fateLost is a mutation whose answer is lost.
const fateLost = -1

var verifyingStrictly = changed("    identity: {to: json.to}\n    reconcile:\n      - probe:",
	"    identity: {to: json.to}\n    verify_on_replay: strict\n    reconcile:\n      - probe:")

// applied is a run that has made the mutation.
func (w *world) applied(path string) *run {
	w.t.Helper()
	r := w.open("a")
	if g := r.post(path, payX); g.status != http.StatusCreated {
		w.t.Fatalf("%d %s, %v", g.status, g.body, g.err)
	}
	return r
}

// slowUpdates is a store whose commands wait, and may fail, while it is told so.
type slowUpdates struct {
	ledger.Store
	waits atomic.Pointer[chan error]
}

func (s *slowUpdates) Update(ctx context.Context, fn func(ledger.Tx) error) error {
	if wait := s.waits.Load(); wait != nil {
		if err := <-*wait; err != nil {
			return err
		}
	}
	return s.Store.Update(ctx, fn)
}

// runState is the state of the lookout's run.
func (w *lookout) runState() (state ledger.RunState) {
	w.t.Helper()
	if err := w.store.View(w.t.Context(), func(v ledger.View) error {
		r, err := v.Run(w.run)
		if err == nil {
			state = r.State
		}
		return err
	}); err != nil {
		w.t.Fatal(err)
	}
	return state
}

// Where a run's requests would be held, a stop cuts what is open and leaves the run alone: it
// may be lifted in time.
func TestAStopThatHoldsEndsNoRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newLookout(t, func(c *Config) { c.Hold = time.Hour })
		s := w.stream(t.Context())
		w.put(func(tx ledger.Tx) error {
			return tx.PutMutation(ledgertest.SampleMutation("x", ledger.NeedsReconcile, 0))
		})
		synctest.Wait()
		if s.Err() == nil {
			t.Error("it is open")
		}
		if got := w.runState(); got != ledger.RunRunning {
			t.Errorf("the run is %s", got)
		}
		w.Close()
	})
}

// Where the end of a run can't be recorded it is over all the same, and stays so when what stopped it
// has passed.
func TestARunWhoseEndCouldNotBeRecordedIsOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &slowUpdates{}
		w := newLookout(t, func(c *Config) { s.Store, c.Ledger.Store = c.Ledger.Store, s })
		failing := make(chan error, 1)
		failing <- errTrouble
		s.waits.Store(&failing)
		w.stream(t.Context())
		w.put(func(tx ledger.Tx) error {
			return tx.PutMutation(ledgertest.SampleMutation("x", ledger.NeedsReconcile, 0))
		})
		synctest.Wait()
		if got := w.runState(); got != ledger.RunRunning {
			t.Fatalf("the run is %s", got)
		}
		if over, is := w.unrecorded.Over(w.run); !is || over.Why != "its open streams were cut because of a stop" {
			t.Errorf("%v: %+v", is, over)
		}
		w.put(func(tx ledger.Tx) error {
			m, err := tx.Mutation(ledgertest.SampleMutation("x", ledger.NeedsReconcile, 0).Key)
			if err == nil {
				m.Version, m.State = m.Version+1, ledger.Applied
				err = tx.PutMutation(m)
			}
			return err
		})
		failing <- nil // It has been tried on since.
		synctest.Wait()
		if got := w.runState(); got != ledger.RunAborted {
			t.Errorf("the run is %s", got)
		}
		if over, is := w.unrecorded.Over(w.run); is {
			t.Errorf("the ledger knows, and still: %+v", over)
		}
		w.Close()
	})
}

// Who has all cut that is open waits for what opened while the end of its run was being
// recorded, too.
func TestWhatOpensWhileItsRunIsBeingEndedIsCutWithTheRest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &slowUpdates{}
		w := newLookout(t, func(c *Config) {
			s.Store = c.Ledger.Store
			c.Ledger.Store, c.Ledger.Standings = s, unwatched{c.Ledger.Standings}
		})
		waiting := make(chan error)
		s.waits.Store(&waiting)
		first := w.stream(t.Context())
		w.put(func(tx ledger.Tx) error {
			return tx.PutMutation(ledgertest.SampleMutation("x", ledger.NeedsReconcile, 0))
		})
		w.look()
		w.stops.mu.Lock() // Nobody looks by himself.
		second := w.open.add(t.Context(), first.caller, false)
		w.stops.mu.Unlock()
		found := w.look()
		if len(found) != 1 || first.Err() != nil || second.Err() != nil {
			t.Fatalf("%d runs end; %v, %v", len(found), first.Err(), second.Err())
		}
		waiting <- nil
		<-found[0].cut
		if first.Err() == nil || second.Err() == nil {
			t.Errorf("%v, %v", first.Err(), second.Err())
		}
		w.Close()
	})
}
