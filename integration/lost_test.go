package integration

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"keep-proxy/admin/wire"
	"keep-proxy/internal/fakes/oracle"
	"keep-proxy/internal/fakes/script"
)

// impatientWith lets a sending wait no longer than a test wants to for an answer that never
// comes: not before the upstream has done what it does before it falls silent. With another
// fault it has the time that a busy machine takes.
func impatientWith(fault string) func(*settings) {
	return func(s *settings) {
		switch {
		case strings.Contains(fault, "commit-silence"):
			s.Response = "5s"
		case strings.Contains(fault, "silence"):
			s.Response = "1s"
		}
	}
}

// variant is a case against upstreams that offer HTTP/2, or don't.
type variant struct {
	name, fault string
	protocol    func(*settings)
}

// overEach makes a variant for each fault and protocol.
func overEach(faults ...string) (all []variant) {
	for _, fault := range faults {
		all = append(all,
			variant{fault + " over http/1.1", fault, func(s *settings) { s.HTTP1 = true }},
			variant{fault + " over h2", fault, func(*settings) {}})
	}
	return all
}

func TestALostAcknowledgementIsFoundByAsking(t *testing.T) {
	t.Parallel()
	for _, v := range overEach(
		"commit-close", "commit-reset", "commit-abort", "commit-500", "commit-502", "commit-503",
		"commit-cut", "commit-cut-chunked", "commit-silence",
	) {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, impatientWith(v.fault), v.protocol)
			w.probed.arm(v.fault)
			run := w.open("a")
			first := run.transfer(w.probed, "R-1").wantApplied(http.StatusCreated)
			if got := first.header.Get("Location"); got != "/transfers/tr_000001" {
				t.Errorf("Location is %q", got)
			}
			run.wantState("running")
			w.again("a").transfer(w.probed, "R-1").wantReplay(first)
			w.probed.want("transfer:R-1", 1, 1)
		})
	}
}

func TestALostAcknowledgementIsResentUnderTheVendorsKey(t *testing.T) {
	t.Parallel()
	for _, v := range overEach("commit-close", "commit-reset", "commit-500", "commit-503", "commit-silence") {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, impatientWith(v.fault), v.protocol)
			w.keyed.arm(v.fault)
			first := w.open("a").transfer(w.keyed, "R-1").wantApplied(http.StatusCreated)
			w.again("a").transfer(w.keyed, "R-1").wantReplay(first)
			w.keyed.want("transfer:R-1", 1, 2)
			keys := map[string]bool{}
			for _, e := range w.keyed.tally().Of(oracle.KindReceived) {
				keys[e.Key] = true
			}
			if len(keys) != 1 {
				t.Errorf("the two sendings carried %d vendor keys: %v", len(keys), keys)
			}
		})
	}
}

// A cut success is known to have happened, so nothing is sent again for it, key or
// no key.
func TestACutAnswerIsAskedForAndNotResent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.keyed.arm("commit-cut")
	first := w.open("a").transfer(w.keyed, "R-1").wantApplied(http.StatusCreated)
	w.again("a").transfer(w.keyed, "R-1").wantReplay(first)
	w.keyed.want("transfer:R-1", 1, 1)
}

func TestWhatNeverHappenedIsSentAgainOnceAbsenceIsBelieved(t *testing.T) {
	t.Parallel()
	for _, v := range overEach("close", "reset", "abort", "500", "502", "503", "own-500", "409", "silence") {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, impatientWith(v.fault), v.protocol)
			w.probed.arm(v.fault)
			run := w.open("a")
			got := run.transfer(w.probed, "R-1").wantRefusal("unknown-outcome", 424, "goes on asking")
			if got.Mutation == nil || got.Mutation.State != "needs_reconcile" || got.Class != "indeterminate" || got.Item != "a" || got.Run != run.id {
				t.Errorf("the refusal says %+v", got)
			}
			run.wantState("paused:reconciliation")
			// On a slow machine settle may be over by now.
			if _, err := w.tryOpen("b"); err != nil || w.mutation("a").State != "failed" {
				wantProblem(t, err, "blocked", http.StatusLocked)
			}
			run.read(w.probed).wantRefusal("run-aborted", 424, "over")

			m := w.awaitState("a", "failed")
			w.wantBelieved(m)
			w.probed.want("transfer:R-1", 0, 1)
			first := w.open("a").transfer(w.probed, "R-1").wantApplied(http.StatusCreated)
			w.again("a").transfer(w.probed, "R-1").wantReplay(first)
			w.probed.want("transfer:R-1", 1, 2)
		})
	}
}

func TestWhatNeverHappenedIsDoneByTheResend(t *testing.T) {
	t.Parallel()
	for _, fault := range []string{"close", "reset", "500", "own-500", "silence"} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, impatientWith(fault))
			w.keyed.arm(fault)
			w.open("a").transfer(w.keyed, "R-1").wantApplied(http.StatusCreated)
			w.keyed.await("both sendings arrived", received("transfer:R-1", 2))
			w.keyed.want("transfer:R-1", 1, 2)
		})
	}
}

func TestACommitThatComesLateInsideSettleIsFound(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault   string
		restart bool
	}{
		"after the connection was closed":               {"commit-late", false},
		"after the proxy stopped waiting":               {"silence-then-late", false},
		"after the proxy was started again in between":  {"commit-late", true},
		"after it stopped waiting, and a restart later": {"silence-then-late", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, impatientWith(c.fault), func(s *settings) { s.Settle = "2m" })
			w.probed.arm(c.fault)
			w.open("a").transfer(w.probed, "R-1").wantRefusal("unknown-outcome", 424, "goes on asking")
			if c.restart {
				w.restart()
			}
			w.probed.await("the transfer arrived", received("transfer:R-1", 1))
			w.probed.want("transfer:R-1", 0, 1)
			w.probed.Release(script.GateLate)
			m := w.awaitState("a", "applied")
			if m.Result == nil || m.Result.Status != http.StatusCreated || m.Result.Source != "observation" {
				t.Errorf("result: %+v", m.Result)
			}
			a := w.again("a").transfer(w.probed, "R-1")
			if a.status != http.StatusCreated || a.header.Get("Keep-Replayed") != "true" {
				t.Errorf("a new run got %v", a)
			}
			w.probed.want("transfer:R-1", 1, 1)
		})
	}
}

// wantBelieved holds a failed record against the rule for believing absence: two
// confirmations, apart, each seen after settle was over.
func (w *world) wantBelieved(m *wire.Mutation) {
	w.t.Helper()
	settle, err := time.ParseDuration(w.settings.Settle)
	if err != nil {
		w.t.Fatal(err)
	}
	var counted []time.Time
	for _, o := range m.Observations {
		if o.Counted && !o.Voided {
			counted = append(counted, o.At)
		}
	}
	ended := m.Dispatches[len(m.Dispatches)-1].EndedAt
	switch {
	case len(counted) != 2:
		w.t.Errorf("absence was confirmed %d times, want 2: %+v", len(counted), m.Observations)
	case counted[0].Sub(ended) < settle || counted[1].Sub(counted[0]).Abs() < 30*time.Millisecond:
		w.t.Errorf("a dispatch that ended at %v was believed absent at %v under settle %v", ended, counted, settle)
	}
}

func TestADefiniteRefusalIsPassedOnAndTriedAgainByTheNextRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.probed.arm("400")
	run := w.open("a")
	a := run.transfer(w.probed, "R-1")
	if a.status != http.StatusBadRequest || a.header.Get("Keep-State") != "failed" {
		t.Errorf("got %v", a)
	}
	run.wantState("aborted")
	run.read(w.probed).wantRefusal("run-aborted", 424, "over")
	w.open("a").transfer(w.probed, "R-1").wantApplied(http.StatusCreated)
	w.probed.want("transfer:R-1", 1, 2)
}

func TestTooManyRequestsLeavesTheRunItsGrace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.probed.arm("429")
	run := w.open("a")
	a := run.transfer(w.probed, "R-1")
	if a.status != http.StatusTooManyRequests || a.header.Get("Retry-After") != "1" || a.header.Get("Keep-State") != "failed" {
		t.Errorf("got %v, Retry-After %q", a, a.header.Get("Retry-After"))
	}
	run.wantState("failing")
	if m := w.mutation("a"); m.Class != "transient" || m.RetryAfter.IsZero() {
		t.Errorf("class %s, retry after %v", m.Class, m.RetryAfter)
	}
	run.transfer(w.probed, "R-2").wantRefusal("run-failing", 503, "only the same request")
	if got := run.read(w.probed).status; got != http.StatusOK {
		t.Errorf("a read in the grace: %d", got)
	}
	run.transfer(w.probed, "R-1").wantApplied(http.StatusCreated)
	run.wantState("running")
	w.probed.want("transfer:R-1", 1, 2)
	w.probed.want("transfer:R-2", 0, 0)
}

func TestAnEarlyAnswerIsJudged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.probed.arm("early-413")
	if a := w.open("a").transfer(w.probed, "R-1"); a.status != http.StatusRequestEntityTooLarge || a.header.Get("Keep-State") != "failed" {
		t.Errorf("got %v", a)
	}
	w.open("a").transfer(w.probed, "R-1").wantApplied(http.StatusCreated)
	if n := w.probed.tally().Effects("transfer:R-1"); n != 1 {
		t.Errorf("%d effects", n)
	}
}

func TestNothingIsCarriedToAnUpstreamThatIsNotThere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if err := w.probed.Server.Close(); err != nil {
		t.Fatal(err)
	}
	run := w.open("a")
	run.transfer(w.probed, "R-1").wantRefusal("not-sent", 502, "safe to try again")
	run.wantState("failing")
	if m := w.mutation("a"); m.State != "failed" || m.Dispatches[0].BytesWritten != 0 {
		t.Errorf("%s, %d bytes written", m.State, m.Dispatches[0].BytesWritten)
	}
}
