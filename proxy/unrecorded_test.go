package proxy

import (
	"context"
	"errors"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"keep-proxy/ledger"
)

// troubled is a store with passing trouble.
type troubled struct {
	ledger.Store
	updates, bodies atomic.Bool
}

var errTrouble = errors.New("passing trouble")

func (s *troubled) Update(ctx context.Context, fn func(ledger.Tx) error) error {
	if s.updates.Load() {
		return errTrouble
	}
	return s.Store.Update(ctx, fn)
}

func (s *troubled) WriteBody(ctx context.Context, content io.Reader) (ledger.Body, error) {
	if s.bodies.Load() {
		return ledger.Body{}, errTrouble
	}
	return s.Store.WriteBody(ctx, content)
}

func (s *troubled) Spool() (ledger.Spool, error) {
	f, err := s.Store.Spool()
	return troubledSpool{f, s}, err
}

type troubledSpool struct {
	ledger.Spool
	store *troubled
}

func (f troubledSpool) Keep(ctx context.Context) (ledger.Body, error) {
	if f.store.bodies.Load() {
		return ledger.Body{}, errTrouble
	}
	return f.Spool.Keep(ctx)
}

// newTroubledWorld is newWorld with a store whose trouble begins when the upstream
// was sent a mutation.
func newTroubledWorld(t *testing.T, handler func(*troubled) http.HandlerFunc) (*world, *troubled) {
	t.Helper()
	s := &troubled{}
	w := newWorld(t, handler(s), func(c *Config) {
		s.Store, c.Ledger.Store = c.Ledger.Store, s
		c.Unmanaged = Unmanaged{Workflow: "wf", Item: "unmanaged"}
	})
	return w, s
}

func (w *world) waitState(item string, want ledger.State) *ledger.Mutation {
	w.t.Helper()
	for deadline := time.Now().Add(waitLimit); ; runtime.Gosched() {
		m := w.mutation(item)
		if m.State == want {
			return m
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("record is %s, want %s", m.State, want)
		}
	}
}

// A long content is kept ahead of its record. One that the disk doesn't take is not sent.
func TestARequestWhoseContentCantBeKeptIsNotSent(t *testing.T) {
	t.Parallel()
	w, s := newTroubledWorld(t, func(*troubled) http.HandlerFunc { return digests })
	r := w.open("a")
	s.bodies.Store(true)
	wantProblem(t, r.post("/again", longJSON("x")), "ledger-unavailable", 503, "nothing was sent")
	w.wantSends("/again", 0)
	s.bodies.Store(false)
	wantAnswer(t, r.post("/again", longJSON("x")), 201, echoed(longJSON("x")), false)
	w.wantSends("/again", 1)
}

func TestASuccessWhoseAnswerCantBeKeptHappened(t *testing.T) {
	t.Parallel()
	long := func(s *troubled) http.HandlerFunc {
		return func(rw http.ResponseWriter, _ *http.Request) {
			s.bodies.Store(true)
			rw.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(rw, strings.Repeat("x", ledger.InlineBody+1))
		}
	}
	t.Run("an API that can't be asked", func(t *testing.T) {
		t.Parallel()
		w, _ := newTroubledWorld(t, long)
		r := w.open("a")
		wantProblem(t, r.post("/again", `{"to":"x"}`), "no-result", 424, "happened")
		m := w.mutation("a")
		if m.State != ledger.Applied || !m.Committed || m.ResultState != ledger.ResultUnknown {
			t.Errorf("record is %s, committed %t, result %s", m.State, m.Committed, m.ResultState)
		}
		wantAnswer(t, r.get("/read"), 201, strings.Repeat("x", ledger.InlineBody+1), false)
	})
	t.Run("an API that can be asked", func(t *testing.T) {
		t.Parallel()
		w, _ := newTroubledWorld(t, long)
		r := w.open("a")
		wantProblem(t, r.post("/ask", `{"to":"x"}`), "unknown-outcome", 424, `"committed":true`)
		if m := w.mutation("a"); m.State != ledger.NeedsReconcile || !m.Committed {
			t.Errorf("record is %s, committed %t", m.State, m.Committed)
		}
	})
}

// While the ledger can't be told of an outcome, what depends on it is stopped all
// the same, and the run that was told that it is unknown is over for good.
func TestAnUnrecordedOutcomeStopsItsScope(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		path   string
		answer http.HandlerFunc
		state  ledger.State
		run    ledger.RunState
		lifted bool
	}{
		"a success":                            {"/pay", created, ledger.Applied, ledger.RunAborted, true},
		"an unknown one before its inline try": {"/ask", lost, ledger.NeedsReconcile, ledger.RunPausedReconciliation, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, store := newTroubledWorld(t, func(s *troubled) http.HandlerFunc {
				return func(rw http.ResponseWriter, r *http.Request) {
					if r.Method == http.MethodPost {
						s.updates.Store(true)
						c.answer(rw, r)
					}
				}
			})
			r, beside := w.open("a"), w.open("b")
			unmanaged := w.newClient(nil, false)
			wantProblem(t, r.post(c.path, `{"to":"x"}`), "unknown-outcome", 424, "could not be recorded")
			wantProblem(t, r.get("/read"), "run-aborted", 424, "could not be recorded")
			wantProblem(t, beside.get("/read"), "ledger-unavailable", 503, "nothing was sent")
			wantProblem(t, send(unmanaged, http.MethodGet, w.upstream.URL+"/read", ""), "blocked", 423, w.mutation("a").ID)
			w.wantSends("/read", 0)

			store.updates.Store(false)
			w.waitState("a", c.state)
			r.waitEnded()
			if got := r.state(); got.State != c.run {
				t.Errorf("the run that was told is %s (%s), want %s", got.State, got.Reason, c.run)
			}
			wantProblem(t, r.get("/read"), "run-aborted", 424, "over")
			if g := beside.get("/read"); (g.status == 200) != c.lifted {
				t.Errorf("another run of the workflow: %d %s", g.status, g.body)
			}
			w.wantSends(c.path, 1)
		})
	}
}

// waitEnded returns once the ledger knows that a run is over which was told of an unknown outcome.
func (r *run) waitEnded() {
	r.t.Helper()
	for deadline := time.Now().Add(waitLimit); ; runtime.Gosched() {
		if _, over := r.proxy.unrecorded.Over(r.id); !over {
			return
		}
		if time.Now().After(deadline) {
			r.t.Fatal("the run was not ended in the ledger")
		}
	}
}

// Who waited for another run's work is told of its unknown outcome as well, and is over as that
// one is, also where the ledger can't say so yet.
func TestARunThatJoinedAnUnrecordedOutcomeIsOver(t *testing.T) {
	t.Parallel()
	arrived, release := make(chan struct{}), make(chan struct{})
	w, store := newTroubledWorld(t, func(s *troubled) http.HandlerFunc {
		return func(rw http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost {
				close(arrived)
				<-release
				s.updates.Store(true)
			}
			created(rw, r)
		}
	})
	leads := w.open("a").posting("/pay", payX)
	<-arrived
	r := w.open("a", takesOver)
	joins := r.posting("/pay", payX)
	w.waitForCallers(2)
	close(release)
	wantProblem(t, <-leads, "unknown-outcome", 424, "could not be recorded")
	wantProblem(t, <-joins, "unknown-outcome", 424, "could not be recorded")
	wantProblem(t, r.get("/read"), "run-aborted", 424, "could not be recorded")
	store.updates.Store(false)
	w.waitState("a", ledger.Applied)
	r.waitEnded()
	if got := r.state(); got.State != ledger.RunAborted {
		t.Errorf("the run that was told is %s", got.State)
	}
	wantProblem(t, r.get("/read"), "run-aborted", 424, "over")
	w.wantSends("/read", 0)
	w.wantSends("/pay", 1)
}
