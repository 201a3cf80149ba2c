package proxy

import (
	"context"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"keep-proxy/internal/clock"
	"keep-proxy/internal/verdict"
	"keep-proxy/ledger"
	"keep-proxy/rules"
)

func TestARunThatIsOverSaysWhyInWholeSentences(t *testing.T) {
	t.Parallel()
	const want = "This run is over (aborted): the upstream refused. Nothing was sent; what it does from now on has no effect."
	for _, reason := range []string{"the upstream refused", "the upstream refused."} {
		f := overRefusal(ledger.Admission{
			Problem: string(problemRunAborted),
			Run:     ledger.Run{State: ledger.RunAborted, Class: verdict.Logic, Reason: reason},
		})
		if f.problem != problemRunAborted || f.class != verdict.Logic || f.detail != want {
			t.Errorf("reason %q: %s (%s): %q", reason, f.problem, f.class, f.detail)
		}
	}
}

// A scope may be stopped after the gate let a request in. Its claim finds that, and waits as
// the gate would have.
func TestAClaimWaitsForAStopThatTheGateDidNotSee(t *testing.T) {
	t.Parallel()
	var w *world
	var first *run
	// step is 1 when the next id is for the claim of b, 3 once its scope was stopped, and 4
	// once the gate was asked again.
	var step atomic.Int32
	w = newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		if content, _ := io.ReadAll(r.Body); strings.Contains(string(content), "lost") {
			lost(rw, r)
		}
		created(rw, r)
	}, func(c *Config) {
		c.Hold = waitLimit
		newID := c.NewID
		c.NewID = func() string {
			if step.CompareAndSwap(1, 2) {
				if g := first.post("/pay", `{"to":"lost"}`); g.problem() != "unknown-outcome" {
					t.Errorf("what was lost: %d %s, %v", g.status, g.body, g.err)
				}
				step.Store(3)
			}
			return newID()
		}
		c.Halted = func() Halt {
			// The gate is asked again only after the claim waited.
			if step.CompareAndSwap(3, 4) {
				m := w.mutation("a")
				if _, err := w.ledger.Resolve(t.Context(), ledger.Resolve{
					Key: m.Key, Version: m.Version, Action: ledger.OnSkip, Actor: "ann", Reason: "test",
				}); err != nil {
					t.Error(err)
				}
			}
			return Halt{}
		}
	})
	first = w.open("a")
	second := w.open("b")
	step.Store(1)
	wantAnswer(t, second.post("/pay", `{"to":"y"}`), http.StatusCreated, `{"id":1}`, false)
	if step.Load() != 4 {
		t.Error("the gate was not asked again")
	}
	if got := second.state().State; got != ledger.RunRunning {
		t.Errorf("the run is %s", got)
	}
	w.wantSends("/pay", 2)
}

// gateSays tells the answer about a run's standing before it is used.
type gateSays struct {
	ledger.Standings
	tell func([]ledger.Blocker)
}

func (s gateSays) StandingByToken(sha256 string) (ledger.Run, []ledger.Blocker, error) {
	r, blockers, err := s.Standings.StandingByToken(sha256)
	s.tell(blockers)
	return r, blockers, err
}

// endingTry is a world in which an inline try ends in the moment in which the gate has been asked.
type endingTry struct {
	*world
	// trying is closed when the try has begun, end when it may end; next are lines of a stream.
	trying, end chan struct{}
	next        chan string
	// asking counts down to the answer after which the try ends.
	asking atomic.Int32
}

func newEndingTry(t *testing.T) *endingTry {
	t.Helper()
	e := &endingTry{trying: make(chan struct{}), end: make(chan struct{}), next: make(chan string)}
	e.world = newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/ask":
			lost(rw, r)
		case "/stream":
			for line := range e.next {
				_, _ = io.WriteString(rw, line+"\n")
				rw.(http.Flusher).Flush()
			}
		default:
			created(rw, r)
		}
	}, func(c *Config) { c.Ledger.Standings = gateSays{c.Ledger.Standings, e.said} })
	e.inliner.try = func(ctx context.Context, m *ledger.Mutation) (*ledger.Mutation, error) {
		close(e.trying)
		<-e.end
		out, err := e.ledger.Observe(ctx, ledger.Observe{
			Key: m.Key, Version: m.Version, Inline: true, Result: &ledger.Result{Status: http.StatusOK},
			Observation: ledger.Observation{At: ledger.Stamp(clock.Take(e.clock)), Strategy: "probe", Seen: ledger.SeenApplied},
		})
		return out.Mutation, err
	}
	return e
}

// said lets the try end if this is the answer, and returns once it has.
func (e *endingTry) said(blockers []ledger.Blocker) {
	if len(blockers) == 0 || e.asking.Add(-1) != 0 {
		return
	}
	close(e.end)
	for deadline := time.Now().Add(waitLimit); e.proxy.inline.trying(blockers[0].Key); runtime.Gosched() {
		if time.Now().After(deadline) {
			e.t.Error("the try goes on")
			return
		}
	}
}

// An inline try may end after the gate was asked and before it is waited for. What it found
// out lifts the stop, and nobody is refused, or cut, because of what is over.
func TestAnInlineTryThatEndsAsTheGateIsAskedRefusesNobody(t *testing.T) {
	t.Parallel()
	for name, streams := range map[string]bool{"a request": false, "a stream": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newEndingTry(t)
			first, other := w.open("a"), w.open("b")
			// A request's credentials are asked about before the gate is.
			asked := int32(2)
			var stream *http.Response
			if streams {
				asked, stream = 1, other.start(t, "/stream", w.next)
			}
			answer := make(chan got, 1)
			go func() { answer <- first.post("/ask", `{"to":"x"}`) }()
			<-w.trying
			w.asking.Store(asked)
			if streams {
				w.proxy.cutStopped()
			} else if g := other.get("/read"); g.status != http.StatusCreated {
				t.Errorf("the read got %d %s, %v", g.status, g.body, g.err)
			}
			if w.asking.Load() > 0 {
				t.Error("the gate saw no stop")
			}
			if g := <-answer; g.status != http.StatusOK {
				t.Errorf("the mutation got %d %s", g.status, g.body)
			}
			if got := other.state(); got.State != ledger.RunRunning {
				t.Errorf("the run is %s", got.State)
			}
			if !streams {
				return
			}
			w.next <- "after"
			close(w.next)
			if text, err := io.ReadAll(stream.Body); err != nil || !strings.HasSuffix(string(text), "after\n") {
				t.Errorf("the stream was cut: %q, %v", text, err)
			}
		})
	}
}

// A stop that comes when a request has passed the gate, and before it is something that a stop
// cuts, lets nothing out.
func TestAStopBetweenTheGateAndTheSendingSendsNothing(t *testing.T) {
	t.Parallel()
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			var w *world
			var stops sync.Once
			w = newWorld(t, created, func(c *Config) {
				c.Unmatched = PolicyAllow
				inForce := c.Rules
				c.Rules = func() *rules.Set {
					stops.Do(func() {
						w.proxy.unrecorded.Add(&ledger.Mutation{
							Intent: ledger.Intent{Scope: ledger.Scope{Workflow: "wf", Item: "b"}},
						}, "", ledger.Over{})
					})
					return inForce()
				}
			})
			r := w.open("a")
			wantProblem(t, send(r.client, method, w.upstream.URL+"/telemetry", ""), "blocked", 423, "Nothing was sent")
			w.wantSends("/telemetry", 0)
			if got := r.state().State; got != ledger.RunAborted {
				t.Errorf("the run is %s", got)
			}
		})
	}
}
