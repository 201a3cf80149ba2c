package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"keep-proxy/internal/verdict"
	"keep-proxy/ledger"
	"keep-proxy/upstream"
)

// A failure that the API itself declared is told in its own terms, also where the rest of what it
// said is lost; the record knows how long the API wants to be left alone.
func TestAFailureWhoseAnswerIsCutSaysWhoCanHelp(t *testing.T) {
	t.Parallel()
	for code, class := range map[int]verdict.Class{400: verdict.Logic, 401: verdict.Permission, 402: verdict.Precondition, 429: verdict.Transient} {
		w := newWorld(t, func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Content-Length", "100")
			rw.Header().Set("Retry-After", "30")
			rw.WriteHeader(code)
			_, _ = io.WriteString(rw, "cut")
		})
		asked := time.Now()
		g := w.open("a").post("/pay", payX)
		wantProblem(t, g, "not-sent", 502, fmt.Sprintf(`"class":%q`, class))
		if got := g.header.Get("Retry-After"); got != "30" {
			t.Errorf("after %d Retry-After is %q", code, got)
		}
		if at := w.mutation("a").RetryAfter; at.Before(asked.Add(29*time.Second)) || at.After(time.Now().Add(30*time.Second)) {
			t.Errorf("after %d it may be asked again at %v", code, at)
		}
	}
}

// Of a success whose answer can't be kept it is known that it happened, and the API is asked for
// what it said.
func TestASuccessWhoseAnswerCantBeKeptIsAskedFor(t *testing.T) {
	t.Parallel()
	w, _ := newTroubledWorld(t, func(s *troubled) http.HandlerFunc {
		return func(rw http.ResponseWriter, r *http.Request) {
			s.bodies.Store(true)
			digests(rw, r)
		}
	})
	tried := false
	w.inliner.try = func(_ context.Context, m *ledger.Mutation) (*ledger.Mutation, error) {
		tried = true
		return m, nil
	}
	wantProblem(t, w.open("a").post("/ask", payX), "unknown-outcome", 424, `"committed":true`)
	if !tried {
		t.Error("nobody asked at once")
	}
	if m := w.mutation("a"); m.State != ledger.NeedsReconcile || !m.Committed || m.Current().Verdict != ledger.VerdictCommitted {
		t.Errorf("it is %s, committed %t, by %+v", m.State, m.Committed, m.Current())
	}
	w.wantSends("/ask", 1)
}

// Where nobody can be asked for an answer that was cut, the rule's own is given.
func TestTheRuleAnswersForAnAnswerThatWasCut(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Length", "100")
		rw.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(rw, "cut")
	})
	w.use(changed("    max_body: 4KiB\n", "    max_body: 4KiB\n    on_no_result: {status: 202, json: {known: false}}\n"))
	g := w.open("a").post("/pay", payX)
	wantAnswer(t, g, http.StatusAccepted, `{"known":false}`, false)
	if s := g.header.Get("Proxy-Status"); s != `keep-proxy; details="on_no_result"` {
		t.Errorf("Proxy-Status: %s", s)
	}
	w.wantSends("/pay", 1)
}

// A destination that may not be reached is the operator's to allow, not for the script to try again.
func TestAMutationThatEgressRefuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t, created, func(c *Config) {
		c.Sender = upstream.New(upstream.Config{Egress: func(netip.AddrPort) error { return errors.New("it is not listed") }})
	})
	wantProblem(t, w.open("a").post("/pay", payX), "egress", 403, "which may not be reached: it is not listed")
	if m := w.mutation("a"); m.State != ledger.Failed || m.Current().Verdict != ledger.VerdictNotSent {
		t.Errorf("it is %s by %+v", m.State, m.Current())
	}
	w.wantSends("/pay", 0)
}

// What was accepted is followed from then on, as often as its rule says.
func TestWhatWasAcceptedIsFollowedInTime(t *testing.T) {
	t.Parallel()
	k := &kicked{}
	w := newWorld(t, func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "application/json")
		rw.WriteHeader(http.StatusAccepted)
		_, _ = io.WriteString(rw, `{"id":"j1"}`)
	}, func(c *Config) { c.Inliner = k })
	w.use(watchedRules)
	asked := time.Now()
	wantAnswer(t, w.open("a").post("/jobs", `{"to":"bob"}`), http.StatusAccepted, `{"id":"j1"}`, false)
	if at := w.mutation("a").NextTryAt; at.Before(asked.Add(time.Minute-time.Second)) || at.After(time.Now().Add(time.Minute)) {
		t.Errorf("it was accepted at %v, and is looked at at %v", asked, at)
	}
	if k.times.Load() == 0 {
		t.Error("nobody told the runner")
	}
}

// The rest of an answer over the limit can be read once: who joined is judged by the ledger.
func TestAnAnswerOverTheLimitIsForOneCallerAlone(t *testing.T) {
	t.Parallel()
	const size = 64 << 10
	arrived, release := make(chan struct{}), make(chan struct{})
	w := newWorld(t, func(rw http.ResponseWriter, _ *http.Request) {
		close(arrived)
		<-release
		_, _ = io.WriteString(rw, strings.Repeat("x", size))
	}, func(c *Config) { c.Unmanaged = Unmanaged{"wf", "a"} })
	leads := w.open("a").posting("/pay", payX)
	<-arrived
	joiner := &run{world: w, client: w.newClient(nil, false)}
	joins := joiner.posting("/pay", payX)
	w.waitForCallers(2)
	close(release)
	if g := <-leads; g.err != nil || len(g.body) != size {
		t.Errorf("the first caller got %d bytes, %v", len(g.body), g.err)
	}
	wantProblem(t, <-joins, "no-result", 424, "happened")
	w.wantSends("/pay", 1)
}

// What an inline try comes to, and doesn't.
func TestWhatAnInlineTryLeaves(t *testing.T) {
	t.Parallel()
	unknown := func(t *testing.T, g got) {
		t.Helper()
		wantProblem(t, g, "unknown-outcome", 424, "keep-proxy goes on asking the API")
	}
	for name, c := range map[string]struct {
		try   func(context.Context, *world, *ledger.Mutation) (*ledger.Mutation, error)
		check func(*testing.T, got)
	}{
		"nothing but an error": {func(context.Context, *world, *ledger.Mutation) (*ledger.Mutation, error) { return nil, errTrouble }, unknown},
		"a resend that is unknown, too": {func(_ context.Context, w *world, _ *ledger.Mutation) (*ledger.Mutation, error) {
			w.change("a", func(m *ledger.Mutation) {
				again := m.Dispatches[0]
				again.ID = "again"
				m.Dispatches = append(m.Dispatches, again)
			})
			return w.mutation("a"), nil
		}, unknown},
		"what was accepted": {func(_ context.Context, w *world, _ *ledger.Mutation) (*ledger.Mutation, error) {
			w.change("a", func(m *ledger.Mutation) {
				m.State, m.Watching = ledger.NeedsReconcile, true
				m.Result, m.ResultState = &ledger.Result{Status: http.StatusAccepted}, ledger.ResultKnown
			})
			return w.mutation("a"), nil
		}, func(t *testing.T, g got) { t.Helper(); wantAnswer(t, g, http.StatusAccepted, "", false) }},
		"an absence that is believed": {func(_ context.Context, w *world, _ *ledger.Mutation) (*ledger.Mutation, error) {
			w.change("a", func(m *ledger.Mutation) {
				m.State, m.Class, m.Reason, m.Dispatches[0].Resolved = ledger.Failed, verdict.Transient, "probe; none", true
			})
			return w.mutation("a"), nil
		}, func(t *testing.T, g got) {
			t.Helper()
			wantProblem(t, g, "not-sent", 502, "safe to try again")
			if strings.Contains(g.body, "resolve") || strings.Contains(g.body, "unknown") {
				t.Errorf("it says %s", g.body)
			}
		}},
		"an absence after which it is sent again by itself": {func(_ context.Context, w *world, _ *ledger.Mutation) (*ledger.Mutation, error) {
			w.change("a", func(m *ledger.Mutation) {
				m.State, m.Class, m.Reason, m.Dispatches[0].Resolved = ledger.Failed, verdict.Transient, "probe; none", true
				m.RedispatchSince, m.NextTryAt = m.CreatedAt, m.CreatedAt
			})
			return w.mutation("a"), nil
		}, func(t *testing.T, g got) {
			t.Helper()
			wantProblem(t, g, "not-sent", 502, "keep-proxy sends it again by itself")
		}},
		"nothing in its time": {func(ctx context.Context, _ *world, m *ledger.Mutation) (*ledger.Mutation, error) {
			if by, bounded := ctx.Deadline(); !bounded || time.Until(by) > 10*time.Second {
				return nil, fmt.Errorf("it may take until %v", by)
			}
			return m, errTrouble
		}, unknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, lost)
			w.inliner.try = func(ctx context.Context, m *ledger.Mutation) (*ledger.Mutation, error) {
				out, err := c.try(ctx, w, m)
				if err != nil && !errors.Is(err, errTrouble) {
					t.Error(err)
				}
				return out, err
			}
			c.check(t, w.open("a").post("/ask", payX))
			w.wantSends("/ask", 1)
		})
	}
}

// toRecord counts the outcomes that are still to be recorded.
type toRecord struct {
	noMetrics
	now, most atomic.Int32
}

// Unrecorded implements Metrics.
func (m *toRecord) Unrecorded(delta int) {
	if n := m.now.Add(int32(delta)); n > m.most.Load() {
		m.most.Store(n)
	}
}

// One outcome has one owner, which counts it as long as it owns it, and has the runner look then.
func TestAnUnrecordedOutcomeHasOneOwner(t *testing.T) {
	t.Parallel()
	m, k, s := &toRecord{}, &kicked{}, &troubled{}
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		s.updates.Store(true)
		created(rw, r)
	}, func(c *Config) {
		c.Metrics, c.Inliner = m, k
		s.Store, c.Ledger.Store = c.Ledger.Store, s
	})
	wantProblem(t, w.open("a").post("/pay", payX), "unknown-outcome", 424, "could not be recorded")
	if n := m.now.Load(); n != 1 {
		t.Errorf("%d outcomes are to be recorded", n)
	}
	if n := k.times.Load(); n != 0 {
		t.Errorf("the runner was woken %d times before there was anything to see", n)
	}
	s.updates.Store(false)
	w.waitState("a", ledger.Applied)
	for deadline := time.Now().Add(waitLimit); m.now.Load() != 0 || k.times.Load() != 1; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("%d outcomes are to be recorded, and the runner was woken %d times", m.now.Load(), k.times.Load())
		}
	}
	if n := m.most.Load(); n != 1 {
		t.Errorf("%d had the outcome of one mutation", n)
	}
}

// A run that was refused because of a stop is over, whoever has heard of it.
func TestARefusalThatNobodyWaitsForEndsItsRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lost)
	wantProblem(t, w.open("a").post("/pay", payX), "unknown-outcome", 424, "")
	other := w.open("b", func(o *ledger.OpenRun) { o.Workflow = "another" })
	w.change("a", func(m *ledger.Mutation) { m.Workflow = "another" })
	gone, leave := context.WithCancel(t.Context())
	leave()
	c, err := w.proxy.callerOf(TokenDigest(other.token), runUser)
	if err != nil {
		t.Fatal(err)
	}
	if f := w.proxy.gate(&exchange{caller: c, client: gone}); f == nil || f.problem != problemBlocked {
		t.Fatalf("%+v", f)
	}
	if got := other.state(); got.State != ledger.RunAborted {
		t.Errorf("the run is %s", got.State)
	}
}

// The limit itself is within it, however the answer comes.
func TestAnAnswerAsLongAsTheLimitIsKept(t *testing.T) {
	t.Parallel()
	const limit = 4 << 10 // That of the rule for /pay.
	for _, length := range []int{limit, limit + 1} {
		for _, known := range []bool{true, false} {
			w := newWorld(t, func(rw http.ResponseWriter, _ *http.Request) {
				if known {
					rw.Header().Set("Content-Length", strconv.Itoa(length))
				}
				rw.WriteHeader(http.StatusCreated)
				_ = http.NewResponseController(rw).Flush()
				_, _ = io.WriteString(rw, strings.Repeat("x", length))
			})
			r := w.open("a")
			wantAnswer(t, r.post("/pay", payX), http.StatusCreated, strings.Repeat("x", length), false)
			want := ledger.ResultKnown
			if length > limit {
				want = ledger.ResultTooLarge
			}
			if m := w.mutation("a"); m.ResultState != want {
				t.Errorf("%d bytes, of a length that is known: %t; the result is %s", length, known, m.ResultState)
			}
		}
	}
}

// An answer over the limit that nobody gets is not waited for: the upstream is told.
func TestTheRestOfAnAnswerThatNobodyGetsIsGivenUp(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{})
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		defer close(ended)
		rw.WriteHeader(http.StatusInternalServerError)
		_, _ = io.WriteString(rw, strings.Repeat("x", 64<<10))
		_ = http.NewResponseController(rw).Flush()
		<-r.Context().Done()
	})
	wantProblem(t, w.open("a").post("/pay", payX), "unknown-outcome", 424, "")
	select {
	case <-ended:
	case <-time.After(waitLimit):
		t.Error("its connection is open")
	}
}

// A sending whose answer is over the limit ends when it is given up, which comes before its
// end is recorded, and before anybody asks what happened: settle counts from that end.
func TestWhatNobodyGetsHasEndedBeforeAnybodyAsks(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{})
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		defer close(ended)
		rw.WriteHeader(http.StatusInternalServerError)
		_, _ = io.WriteString(rw, strings.Repeat("x", 64<<10))
		_ = http.NewResponseController(rw).Flush()
		<-r.Context().Done()
	})
	w.use(changed("path: /ask}\n", "path: /ask}\n    max_body: 4KiB\n"))
	w.inliner.try = func(_ context.Context, m *ledger.Mutation) (*ledger.Mutation, error) {
		select {
		case <-ended:
		case <-time.After(waitLimit):
			t.Errorf("the sending that ended at %v goes on", m.Current().Ended.Wall)
		}
		return m, nil
	}
	wantProblem(t, w.open("a").post("/ask", payX), "unknown-outcome", 424, "")
	w.wantSends("/ask", 1)
}

// What the ledger refuses one caller is no answer for another who waited beside it.
func TestARefusalOfOneRunIsNotAnothers(t *testing.T) {
	t.Parallel()
	claims, release := make(chan struct{}), make(chan struct{})
	var armed atomic.Bool
	w := newWorld(t, created, func(c *Config) {
		c.Unmanaged = Unmanaged{"wf", "a"}
		newID := c.NewID
		c.NewID = func() string {
			if armed.CompareAndSwap(true, false) {
				close(claims)
				<-release
			}
			return newID()
		}
	})
	reads := w.open("a", func(o *ledger.OpenRun) { o.Mutations = ledger.MutationsNone })
	armed.Store(true)
	leads := reads.posting("/pay", payX)
	<-claims
	joiner := &run{world: w, client: w.newClient(nil, false)}
	joins := joiner.posting("/pay", payX)
	w.waitForCallers(2)
	close(release)
	wantProblem(t, <-leads, "read-only-run", 403, "read only")
	wantAnswer(t, <-joins, http.StatusCreated, `{"id":1}`, false)
	w.wantSends("/pay", 1)
}
