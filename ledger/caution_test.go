package ledger_test

import (
	"testing"
	"time"

	"keep-proxy/ledger"
)

// Who learns that an API is slower than it was taken for mends the questions that are open, and
// who learns that it is quicker doesn't shorten them.
func TestSettingsOfNowMakeAnOpenQuestionMoreCareful(t *testing.T) {
	t.Parallel()
	settle := func(d time.Duration) func(*ledger.Observe) {
		return func(o *ledger.Observe) { o.Caution.Settle = d }
	}
	thrice := func(o *ledger.Observe) { o.Caution.Confirmations = 3 }
	spaced := func(o *ledger.Observe) { o.Caution.Spacing = time.Minute }
	leads := func(to ledger.OnAbsent) func(*ledger.Observe) {
		return func(o *ledger.Observe) { o.Caution.OnAbsent = to }
	}
	for _, c := range []struct {
		name  string
		now   func(*ledger.Observe)
		claim func(*ledger.Claim)
		want  ledger.State
	}{
		{"nothing", func(*ledger.Observe) {}, nil, ledger.Failed},
		{"a longer settle", settle(time.Hour), nil, ledger.NeedsReconcile},
		{"a shorter settle", settle(time.Second), func(q *ledger.Claim) { q.Record.Policy.Settle = time.Hour }, ledger.NeedsReconcile},
		{"more confirmations", thrice, nil, ledger.NeedsReconcile},
		{"more time between them", spaced, nil, ledger.NeedsReconcile},
		{"a person to be asked", leads(ledger.AbsentEscalate), nil, ledger.Indeterminate},
		{"nobody to be asked", leads(ledger.AbsentRedispatch), func(q *ledger.Claim) { q.Record.Policy.OnAbsent = ledger.AbsentEscalate }, ledger.Indeterminate},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			change := []func(*ledger.Claim){}
			if c.claim != nil {
				change = append(change, c.claim)
			}
			w.unknown("a", change...)
			w.pass(ledger.DefaultSettle + time.Second)
			w.see("a", ledger.SeenAbsent, c.now)
			w.pass(ledger.DefaultSpacing + time.Second)
			w.see("a", ledger.SeenAbsent, c.now)
			w.is("a", c.want)
		})
	}
}

// What was counted before the settings became more careful counts only if it came up to these.
func TestConfirmationsComeUpToTheSettingsOfNow(t *testing.T) {
	t.Parallel()
	slower := func(o *ledger.Observe) { o.Caution.Settle = time.Hour }
	spaced := func(o *ledger.Observe) { o.Caution.Spacing = time.Minute }
	t.Run("an absence from before a longer settle", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.unknown("a")
		w.pass(ledger.DefaultSettle + time.Second)
		w.see("a", ledger.SeenAbsent)
		w.pass(time.Hour)
		w.see("a", ledger.SeenAbsent, slower)
		if early := w.is("a", ledger.NeedsReconcile).Observations[0]; early.Counted {
			t.Errorf("what was asked before settle was over still counts: %+v", early)
		}
		w.pass(ledger.DefaultSpacing)
		w.see("a", ledger.SeenAbsent, slower)
		w.is("a", ledger.Failed)
	})
	t.Run("absences that are too near to each other", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.unknown("a", func(q *ledger.Claim) { q.Record.Policy.Confirmations = 3 })
		w.pass(ledger.DefaultSettle + time.Second)
		for range 2 {
			w.see("a", ledger.SeenAbsent)
			w.pass(ledger.DefaultSpacing)
		}
		w.pass(time.Minute)
		w.see("a", ledger.SeenAbsent, spaced)
		w.is("a", ledger.NeedsReconcile)
		w.pass(time.Minute)
		w.see("a", ledger.SeenAbsent, spaced)
		w.is("a", ledger.Failed)
	})
	t.Run("absences that came up to them anyway", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.unknown("a")
		w.pass(2 * time.Hour)
		w.see("a", ledger.SeenAbsent)
		w.pass(time.Minute)
		w.see("a", ledger.SeenAbsent, slower, spaced)
		w.is("a", ledger.Failed)
	})
}

// What is queued to be sent again isn't, once the settings say that it shall not be.
func TestWhatIsQueuedHeedsTheSettingsOfNow(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		now  ledger.OnAbsent
		sent bool
		asks string
	}{
		{ledger.AbsentRedispatch, true, ""},
		{ledger.AbsentFail, false, ""},
		{ledger.AbsentEscalate, false, ledger.EscalationAbsent},
	} {
		t.Run(string(c.now), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.unknown("a", redispatches)
			m := w.absent("a")
			m, d, err := w.Redispatch(t.Context(), ledger.Redispatch{
				Key: m.Key, Version: m.Version, DispatchID: w.id(), Caution: ledger.Caution{OnAbsent: c.now},
			})
			w.ok(err)
			if (d != nil) != c.sent || m.Queued() {
				t.Errorf("sent %v, queued %v", d != nil, m.Queued())
			}
			if c.asks != "" {
				w.escalated("a", c.asks)
			} else if m.Escalated() {
				t.Errorf("a person is asked: %+v", m.Escalation)
			}
		})
	}
}
