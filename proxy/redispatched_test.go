package proxy

import (
	"context"
	"errors"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"keep-proxy/ledger"
)

// change writes the record of an item as if somebody else had moved it.
func (w *world) change(item string, fn func(*ledger.Mutation)) {
	w.t.Helper()
	key := w.mutation(item).Key
	if err := w.store.Update(w.t.Context(), func(tx ledger.Tx) error {
		m, err := tx.Mutation(key)
		if err != nil {
			return err
		}
		fn(m)
		m.Version++
		return tx.PutMutation(m)
	}); err != nil {
		w.t.Fatal(err)
	}
}

// viewed is a store that counts the looks at it, and may fail them.
type viewed struct {
	ledger.Store
	looks atomic.Int32
	fails atomic.Bool
}

var errNoLook = errors.New("the ledger can't be looked at")

// View implements ledger.Store.
func (s *viewed) View(ctx context.Context, fn func(ledger.View) error) error {
	s.looks.Add(1)
	if s.fails.Load() {
		return errNoLook
	}
	return s.Store.View(ctx, fn)
}

// waitLooks returns once the store was looked at so often again, before there is an answer.
func (s *viewed) waitLooks(t *testing.T, n int32, answer <-chan got) {
	t.Helper()
	from := s.looks.Load()
	for deadline := time.Now().Add(waitLimit); s.looks.Load() < from+n; runtime.Gosched() {
		select {
		case g := <-answer:
			t.Fatalf("it didn't wait: %d %s, %v", g.status, g.body, g.err)
		default:
		}
		if time.Now().After(deadline) {
			t.Fatal("nobody waits for what is being sent again")
		}
	}
}

// newRedispatched is a world in which the mutation of item a is being sent again by itself.
func newRedispatched(t *testing.T) (*world, *viewed) {
	t.Helper()
	s := &viewed{}
	w := newWorld(t, lost, func(c *Config) { s.Store, c.Ledger.Store = c.Ledger.Store, s })
	wantProblem(t, w.open("a").post("/ask", payX), "unknown-outcome", 424, "")
	w.change("a", func(m *ledger.Mutation) {
		again := m.Dispatches[0]
		m.Dispatches[0].Resolved = true
		again.ID, again.Redispatch, again.Ended, again.Verdict = "again", true, ledger.Stamp{}, ""
		m.State, m.Dispatches = ledger.InFlight, append(m.Dispatches, again)
	})
	return w, s
}

// A request for what keep-proxy is sending again by itself waits for that sending, and is no
// second one. What becomes of it then is judged anew.
func TestARequestWaitsForWhatIsSentAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		then  func(*testing.T, *world, *viewed)
		check func(*testing.T, got)
		run   ledger.RunState
	}{
		"it took effect": {
			func(_ *testing.T, w *world, _ *viewed) {
				w.change("a", func(m *ledger.Mutation) {
					m.State, m.Result, m.ResultState = ledger.Applied, &ledger.Result{Status: http.StatusCreated}, ledger.ResultKnown
				})
			},
			func(t *testing.T, g got) { t.Helper(); wantAnswer(t, g, http.StatusCreated, "", true) }, ledger.RunRunning,
		},
		"it is unknown": {
			func(_ *testing.T, w *world, _ *viewed) {
				w.change("a", func(m *ledger.Mutation) { m.State = ledger.NeedsReconcile })
			},
			func(t *testing.T, g got) { t.Helper(); wantProblem(t, g, "blocked", 423, "asking the API") }, ledger.RunAborted,
		},
		"it is followed by one that a script asked for": {
			func(_ *testing.T, w *world, _ *viewed) {
				w.change("a", func(m *ledger.Mutation) { m.Dispatches[1].Redispatch = false })
			},
			func(t *testing.T, g got) { t.Helper(); wantProblem(t, g, "blocked", 423, "whose outcome is unknown") }, ledger.RunAborted,
		},
		"the ledger can't tell": {
			func(_ *testing.T, _ *world, s *viewed) { s.fails.Store(true) },
			func(t *testing.T, g got) { t.Helper(); wantProblem(t, g, "blocked", 423, "whose outcome is unknown") }, ledger.RunAborted,
		},
		"the proxy shuts down": {
			func(t *testing.T, w *world, _ *viewed) {
				t.Helper()
				ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
				defer cancel()
				if err := w.proxy.Shutdown(ctx); err != nil {
					t.Errorf("shutdown: %v", err)
				}
			}, wantDraining, ledger.RunRunning,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, s := newRedispatched(t)
			r := w.open("a", takesOver)
			answer := r.posting("/ask", payX)
			s.waitLooks(t, 3, answer)
			c.then(t, w, s)
			select {
			case g := <-answer:
				c.check(t, g)
			case <-time.After(waitLimit):
				t.Fatal("it waits on")
			}
			s.fails.Store(false)
			if got := r.state(); got.State != c.run {
				t.Errorf("the run is %s: %s", got.State, got.Reason)
			}
			w.wantSends("/ask", 1)
		})
	}
}

// Nobody waits for it on behalf of a caller that has gone. Nothing was stopped, so that its run
// goes on: a client that didn't want to wait so long may ask again.
func TestACallerThatLeavesWaitsForNothingThatIsSentAgain(t *testing.T) {
	t.Parallel()
	w, s := newRedispatched(t)
	r := w.open("a", takesOver)
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.upstream.URL+"/ask", strings.NewReader(payX))
		if err == nil {
			_, err = r.client.Do(req)
		}
		left <- err
	}()
	s.waitLooks(t, 3, nil)
	leave()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("the caller got %v", err)
	}
	w.waitForNobody()
	if got := r.state(); got.State != ledger.RunRunning {
		t.Errorf("the run is %s: %s", got.State, got.Reason)
	}
	w.wantSends("/ask", 1)
}

// What a script asked for, and whose outcome is still to be recorded, is waited for by nobody
// who comes later: it counts as unknown.
func TestNobodyWaitsForASendingThatHasLostItsCaller(t *testing.T) {
	t.Parallel()
	w, _ := newRedispatched(t)
	w.change("a", func(m *ledger.Mutation) { m.Dispatches[1].Redispatch = false })
	r := w.open("a", takesOver)
	wantProblem(t, r.post("/ask", payX), "blocked", 423, w.mutation("a").ID)
	if got := r.state(); got.State != ledger.RunAborted {
		t.Errorf("the run is %s", got.State)
	}
	w.wantSends("/ask", 1)
}
