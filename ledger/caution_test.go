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
