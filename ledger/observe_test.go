package ledger_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"keep-proxy/internal/verdict"
	"keep-proxy/ledger"
)

// unknown makes a mutation whose outcome is unknown.
func (w *world) unknown(name string, change ...func(*ledger.Claim)) *ledger.Run {
	w.t.Helper()
	r := w.open()
	w.finish(name, w.send(r, name, change...), ledger.VerdictUncertain)
	return r
}

func head(q *world, name string) {
	q.t.Helper()
	m := q.mutation(name)
	_, err := q.MarkCommitted(q.t.Context(), m.Key, m.Current().ID, 200)
	q.ok(err)
}

func TestObservedPresence(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		committed bool
		seen      ledger.Seen
		change    []func(*ledger.Observe)
		state     ledger.State
		result    ledger.ResultState
		kind      string
	}{
		{"applied", false, ledger.SeenApplied, nil, ledger.Applied, ledger.ResultKnown, ""},
		{"applied, and the result found", true, ledger.SeenApplied, nil, ledger.Applied, ledger.ResultKnown, ""},
		{"applied, without a result for the script", false, ledger.SeenApplied, []func(*ledger.Observe){withoutResult},
			ledger.Applied, ledger.ResultUnknown, ledger.EscalationNoResult},
		{"duplicate, tied to us", false, ledger.SeenDuplicate, []func(*ledger.Observe){strong},
			ledger.Applied, ledger.ResultKnown, ledger.EscalationDuplicate},
		{"duplicate, tied to us, without a result", false, ledger.SeenDuplicate, []func(*ledger.Observe){strong, withoutResult},
			ledger.Applied, ledger.ResultUnknown, ledger.EscalationDuplicate},
		{"duplicate by content", false, ledger.SeenDuplicate, nil, ledger.Indeterminate, "", ledger.EscalationIndeterminate},
		{"duplicate by content of what is committed", true, ledger.SeenDuplicate, nil,
			ledger.Applied, ledger.ResultUnknown, ledger.EscalationNoResult},
	} {
		for _, tried := range []string{"by the runner", "inline"} {
			t.Run(c.name+" "+tried, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				r := w.open()
				d := w.send(r, "a")
				if c.committed {
					head(w, "a")
				}
				if tried == "inline" {
					w.finish("a", d, ledger.VerdictUncertain, pending)
				} else {
					w.finish("a", d, ledger.VerdictUncertain)
				}
				w.see("a", c.seen, c.change...)
				if m := w.is("a", c.state); m.ResultState != c.result {
					t.Errorf("result %q, want %q", m.ResultState, c.result)
				}
				w.escalated("a", c.kind)
				if tried == "inline" && c.state == ledger.Applied {
					w.stands(r, ledger.RunRunning, "")
				} else {
					w.stands(r, ledger.RunPausedReconciliation, verdict.Indeterminate)
				}
			})
		}
	}
}

func TestAbsenceIsBelievedOnlyWhenItIsProven(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		// at are the times after the end of the dispatch at which absence is seen.
		at     []time.Duration
		change []func(*ledger.Observe)
		do     func(w *world)
		state  ledger.State
		reason string
	}{
		{"twice after settle", []time.Duration{301 * time.Second, 311 * time.Second}, nil, nil, ledger.Failed, ""},
		{"once after settle", []time.Duration{301 * time.Second}, nil, nil, ledger.NeedsReconcile, ""},
		{"just before settle is over", []time.Duration{298 * time.Second, 299 * time.Second}, nil, nil,
			ledger.NeedsReconcile, "settle was not over"},
		{"once before and once after settle", []time.Duration{299 * time.Second, 320 * time.Second}, nil, nil,
			ledger.NeedsReconcile, ""},
		{"twice, too close together", []time.Duration{301 * time.Second, 310 * time.Second}, nil, nil,
			ledger.NeedsReconcile, "too soon"},
		{"three times, the second too soon", []time.Duration{301 * time.Second, 310 * time.Second, 312 * time.Second}, nil, nil,
			ledger.Failed, ""},
		{"the rule takes no absence as proof", []time.Duration{301 * time.Second, 320 * time.Second},
			[]func(*ledger.Observe){func(o *ledger.Observe) { o.AbsenceIsProof = false }}, nil,
			ledger.NeedsReconcile, "proof"},
		{"committed", []time.Duration{301 * time.Second, 320 * time.Second}, nil, func(w *world) { head(w, "a") },
			ledger.NeedsReconcile, "known to have happened"},
		{"asked before settle was over, answered after it", []time.Duration{301 * time.Second, 320 * time.Second},
			[]func(*ledger.Observe){func(o *ledger.Observe) {
				o.Observation.At.Mono -= time.Minute
			}}, nil, ledger.NeedsReconcile, "settle was not over"},
		{"asked in the future", []time.Duration{301 * time.Second, 320 * time.Second},
			[]func(*ledger.Observe){func(o *ledger.Observe) { o.Observation.At.Mono += time.Minute }}, nil,
			ledger.NeedsReconcile, "can't be compared"},
		{"asked in another boot", []time.Duration{301 * time.Second, 320 * time.Second},
			[]func(*ledger.Observe){func(o *ledger.Observe) { o.Observation.At.BootID = "boot-0" }}, nil,
			ledger.NeedsReconcile, "settle was not over"},
		{"by a caller who says it counted", []time.Duration{1 * time.Second, 20 * time.Second},
			[]func(*ledger.Observe){func(o *ledger.Observe) { o.Observation.Counted = true }}, nil,
			ledger.NeedsReconcile, "settle was not over"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.unknown("a")
			if c.do != nil {
				c.do(w)
			}
			passed := time.Duration(0)
			for _, at := range c.at {
				w.pass(at - passed)
				passed = at
				w.see("a", ledger.SeenAbsent, c.change...)
			}
			m := w.is("a", c.state)
			last := m.Observations[len(m.Observations)-1]
			if !strings.Contains(last.Reason, c.reason) {
				t.Errorf("the last observation says %q, want %q", last.Reason, c.reason)
			}
		})
	}
}

func TestBelievedAbsenceGoesWhereTheRuleSays(t *testing.T) {
	t.Parallel()
	for on, want := range map[ledger.OnAbsent]ledger.State{
		ledger.AbsentFail: ledger.Failed, ledger.AbsentEscalate: ledger.Indeterminate,
		"": ledger.Indeterminate, "hope": ledger.Indeterminate,
	} {
		w := newWorld(t)
		w.unknown("a", func(q *ledger.Claim) { q.Record.Policy.OnAbsent = on })
		w.pass(301 * time.Second)
		w.see("a", ledger.SeenAbsent)
		w.pass(10 * time.Second)
		w.see("a", ledger.SeenAbsent)
		w.is("a", want)
	}
}

func TestMissingNumbersAreTheDefaults(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.unknown("a", func(q *ledger.Claim) {
		q.Record.Policy.Settle, q.Record.Policy.Confirmations, q.Record.Policy.Spacing = 0, 0, -1
	})
	w.pass(ledger.DefaultSettle - time.Second)
	w.see("a", ledger.SeenAbsent)
	w.pass(time.Second)
	w.see("a", ledger.SeenAbsent)
	w.pass(ledger.DefaultSpacing - time.Second)
	w.see("a", ledger.SeenAbsent)
	w.is("a", ledger.NeedsReconcile)
	w.pass(time.Second)
	w.see("a", ledger.SeenAbsent)
	w.is("a", ledger.Failed)
}

func TestAbsenceAfterARestartCountsFromTheProcess(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.send(w.open(), "a")
	w.pass(time.Hour)
	w.restart()
	w.see("a", ledger.SeenAbsent)
	w.pass(299 * time.Second)
	w.see("a", ledger.SeenAbsent)
	w.pass(10 * time.Second)
	w.see("a", ledger.SeenAbsent)
	w.is("a", ledger.NeedsReconcile)
	w.pass(10 * time.Second)
	w.see("a", ledger.SeenAbsent)
	w.is("a", ledger.Failed)
}

func TestConfirmationsOfAnotherBootDoNotCount(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.unknown("a")
	w.pass(301 * time.Second)
	w.see("a", ledger.SeenAbsent)
	w.now.BootID, w.now.Mono = "boot-2", time.Minute
	w.restart()
	w.pass(301 * time.Second)
	w.see("a", ledger.SeenAbsent)
	w.is("a", ledger.NeedsReconcile)
	w.pass(10 * time.Second)
	w.see("a", ledger.SeenAbsent)
	w.is("a", ledger.Failed)
}

func TestANewDispatchVoidsWhatWasSeen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.unknown("a", nativeKey)
	w.pass(301 * time.Second)
	w.see("a", ledger.SeenAbsent)
	d := w.resend("a")
	w.pass(20 * time.Second)
	w.see("a", ledger.SeenAbsent)
	w.finish("a", d, ledger.VerdictUncertain)
	w.pass(301 * time.Second)
	w.see("a", ledger.SeenAbsent)
	w.is("a", ledger.NeedsReconcile)
	w.pass(10 * time.Second)
	w.see("a", ledger.SeenAbsent)
	w.is("a", ledger.Failed)
}

func TestOneObjectIsEvidenceForOneMutation(t *testing.T) {
	t.Parallel()
	for _, seen := range []ledger.Seen{ledger.SeenApplied, ledger.SeenDuplicate, ledger.SeenAbsent} {
		w := newWorld(t)
		r := w.open(item("other"))
		w.finish("other", w.send(r, "other"), ledger.VerdictUncertain)
		w.see("other", ledger.SeenApplied, objects("tr_1"))
		w.unknown("a")
		w.pass(time.Hour)
		w.see("a", seen, objects("tr_1", "tr_2"), strong)
		m := w.is("a", ledger.NeedsReconcile)
		if o := m.Observations[0]; o.Seen != ledger.SeenRetry || !strings.Contains(o.Reason, key("other").ID()) {
			t.Errorf("%s: the observation is %s: %s", seen, o.Seen, o.Reason)
		}
		w.see("a", ledger.SeenApplied, objects("tr_2"))
		w.is("a", ledger.Applied)
	}
}

// Each of several objects is evidence, and each is looked up, in whatever order they come.
func TestEachOfSeveralObjectsIsEvidence(t *testing.T) {
	t.Parallel()
	for _, taken := range []string{"tr_1", "tr_2", "tr_3"} {
		w := newWorld(t)
		r := w.open(item("other"))
		w.finish("other", w.send(r, "other"), ledger.VerdictUncertain)
		w.see("other", ledger.SeenDuplicate, strong, objects("tr_1", "tr_2", "tr_3"))
		w.is("other", ledger.Applied)
		w.unknown("a")
		w.see("a", ledger.SeenDuplicate, strong, objects("tr_8", taken, "tr_9"))
		m := w.is("a", ledger.NeedsReconcile)
		if o := m.Observations[0]; o.Seen != ledger.SeenRetry || !strings.Contains(o.Reason, key("other").ID()) {
			t.Errorf("%s: the observation is %s: %s", taken, o.Seen, o.Reason)
		}
	}
}

func TestRetryStays(t *testing.T) {
	t.Parallel()
	for _, seen := range []ledger.Seen{ledger.SeenRetry, "", "perhaps"} {
		w := newWorld(t)
		w.unknown("a")
		w.see("a", seen)
		if m := w.is("a", ledger.NeedsReconcile); m.Tries != 0 || !m.NextTryAt.Equal(w.now.Wall.Add(10*time.Second)) {
			t.Errorf("%q: %d tries, due at %s", seen, m.Tries, m.NextTryAt)
		}
	}
}

func TestTriesCountAnewForEachUnknown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.unknown("a")
	w.pass(time.Hour)
	for range 7 {
		w.see("a", ledger.SeenRetry)
	}
	w.decide("a", ledger.OnDidNotHappen)
	w.finish("a", w.send(w.open(), "a"), ledger.VerdictUncertain)
	w.pass(time.Hour)
	w.see("a", ledger.SeenRetry)
	if m := w.is("a", ledger.NeedsReconcile); m.Tries != 1 {
		t.Errorf("%d tries at the second unknown", m.Tries)
	}
}

func TestExhaustion(t *testing.T) {
	t.Parallel()
	unreached := func(o *ledger.Observe) { o.Reached = false }
	ran := func(d time.Duration) func(*ledger.Observe) { return func(o *ledger.Observe) { o.Ran = d } }
	for _, c := range []struct {
		name   string
		before func(w *world)
		change []func(*ledger.Observe)
		tries  int
		state  ledger.State
	}{
		{"the eighth try after settle", func(w *world) { w.pass(time.Hour) }, nil, 8, ledger.Indeterminate},
		{"seven tries after settle", func(w *world) { w.pass(time.Hour) }, nil, 7, ledger.NeedsReconcile},
		{"tries before settle is over are free", nil, nil, 20, ledger.NeedsReconcile},
		{"an API that can't be reached uses up none", func(w *world) { w.pass(time.Hour) },
			[]func(*ledger.Observe){unreached}, 20, ledger.NeedsReconcile},
		{"24 hours of running time", nil, []func(*ledger.Observe){unreached, ran(8 * time.Hour)}, 3, ledger.Indeterminate},
		{"just under 24 hours", nil, []func(*ledger.Observe){unreached, ran(8*time.Hour - 1)}, 3, ledger.NeedsReconcile},
		{"a committed one is applied without its result", func(w *world) { head(w, "a"); w.pass(time.Hour) },
			nil, 8, ledger.Applied},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.unknown("a")
			if c.before != nil {
				c.before(w)
			}
			for range c.tries {
				w.see("a", ledger.SeenRetry, c.change...)
			}
			m := w.is("a", c.state)
			switch c.state {
			case ledger.Indeterminate:
				w.escalated("a", ledger.EscalationIndeterminate)
			case ledger.Applied:
				w.escalated("a", ledger.EscalationNoResult)
				if m.ResultState != ledger.ResultUnknown {
					t.Errorf("result %q", m.ResultState)
				}
			}
		})
	}
}

func TestExhaust(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.unknown("a")
	m := w.mutation("a")
	if _, err := w.Exhaust(t.Context(), m.Key, m.Version-1, "stale"); !errors.Is(err, ledger.ErrVersion) {
		t.Errorf("a stale version: %v", err)
	}
	_, err := w.Exhaust(t.Context(), m.Key, m.Version, "only none is left")
	w.ok(err)
	if m := w.is("a", ledger.Indeterminate); m.Reason != "only none is left" {
		t.Errorf("reason %q", m.Reason)
	}
	m = w.mutation("a")
	if _, err := w.Exhaust(t.Context(), m.Key, m.Version, "again"); !errors.Is(err, ledger.ErrNotAllowed) {
		t.Errorf("exhausting twice: %v", err)
	}
}

func TestStaleOrMisplacedObservationsAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.unknown("a", nativeKey)
	stale := w.observation("a", ledger.SeenApplied)
	w.resend("a")
	if _, err := w.Observe(t.Context(), stale); !errors.Is(err, ledger.ErrVersion) {
		t.Errorf("an observation from before a resend: %v", err)
	}
	inline := func(o *ledger.Observe) { o.Inline = true }
	if _, err := w.Observe(t.Context(), w.observation("a", ledger.SeenApplied, inline)); !errors.Is(err, ledger.ErrNotAllowed) {
		t.Errorf("an inline try of what is not in flight: %v", err)
	}
	w.see("a", ledger.SeenApplied)
	if _, err := w.Observe(t.Context(), w.observation("a", ledger.SeenAbsent)); !errors.Is(err, ledger.ErrNotAllowed) {
		t.Errorf("an observation of what is applied: %v", err)
	}
	w.pass(time.Hour)
	w.send(w.open(item("other")), "b")
	if _, err := w.Observe(t.Context(), w.observation("b", ledger.SeenApplied)); !errors.Is(err, ledger.ErrNotAllowed) {
		t.Errorf("an observation of what is being sent: %v", err)
	}
	w.is("b", ledger.InFlight)
}

func TestObservationsAreBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.unknown("a")
	w.pass(time.Hour)
	w.see("a", ledger.SeenAbsent)
	for range 100 {
		w.see("a", ledger.SeenRetry, func(o *ledger.Observe) { o.Reached = false })
	}
	if m := w.mutation("a"); len(m.Observations) > 64 || !m.Observations[0].Counted {
		t.Errorf("%d observations, the confirmation kept: %v", len(m.Observations), m.Observations[0].Counted)
	}
	w.see("a", ledger.SeenAbsent, func(o *ledger.Observe) { o.Reached = false })
	w.is("a", ledger.NeedsReconcile)
	w.pass(time.Minute)
	w.see("a", ledger.SeenAbsent)
	w.is("a", ledger.Failed)
}

// The spacing is between two askings: an answer that takes its time doesn't make up for one that
// was asked for too soon.
func TestASlowAnswerIsNoLaterAsking(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.unknown("a")
	w.pass(301 * time.Second)
	w.see("a", ledger.SeenAbsent)
	w.pass(5 * time.Second)
	slow := w.observation("a", ledger.SeenAbsent)
	w.pass(30 * time.Second)
	_, err := w.Observe(t.Context(), slow)
	w.ok(err)
	w.is("a", ledger.NeedsReconcile)
	w.see("a", ledger.SeenAbsent)
	w.is("a", ledger.Failed)
}
