package badgerstore

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"keep-proxy/ledger"
	"keep-proxy/ledger/ledgertest"
)

// pastRun is a ledger with a run that is over, one that goes on, and a mutation that
// stops their workflow.
type pastRun struct {
	t           *testing.T
	s           *Store
	gate        *ledger.Ledger
	begun       time.Time
	since       atomic.Int64
	going, over *ledger.Run
	stop        *ledger.Mutation
}

func newPastRun(t *testing.T, calm time.Duration) *pastRun {
	t.Helper()
	p := &pastRun{
		t: t, begun: time.Now().Round(0), going: ledgertest.SampleRun("going", 0), over: ledgertest.SampleRun("over", 1),
		stop: ledgertest.SampleMutation("stop", ledger.Indeterminate, 0),
	}
	c := testConfig(t.TempDir())
	c.calm = calm
	c.Now = func() ledger.Stamp {
		return ledger.Stamp{Wall: p.begun.Add(time.Duration(p.since.Load())), BootID: "boot"}
	}
	p.s = mustOpen(t, c)
	p.gate = gateOf(p.s)
	p.update(func(tx ledger.Tx) error { return errors.Join(tx.PutRun(p.going), tx.PutRun(p.over)) })
	p.over.Version, p.over.State, p.over.EndedAt, p.over.Reason = 2, ledger.RunAborted, p.begun, "told"
	p.update(func(tx ledger.Tx) error { return errors.Join(tx.PutRun(p.over), tx.PutMutation(p.stop)) })
	return p
}

func (p *pastRun) update(fn func(ledger.Tx) error) {
	p.t.Helper()
	if err := p.s.Update(p.t.Context(), fn); err != nil {
		p.t.Fatal(err)
	}
}

// later lets time pass, and commits something.
func (p *pastRun) later(d time.Duration) {
	p.t.Helper()
	p.since.Store(int64(d))
	p.stop.Version++
	p.update(func(tx ledger.Tx) error { return tx.PutMutation(p.stop) })
}

// asked is the run that is over, by its id and by its token.
func (p *pastRun) asked(check func(by string, r ledger.Run, blockers []ledger.Blocker, err error)) {
	r, blockers, err := p.gate.Standing(p.over.ID)
	check("its id", r, blockers, err)
	r, blockers, err = p.gate.StandingByToken(p.over.TokenSHA256)
	check("its token", r, blockers, err)
}

// A day's runs don't stay in memory, and each of them is known all the same.
func TestEndedRunsAreKnownForADay(t *testing.T) {
	t.Parallel()
	p := newPastRun(t, time.Hour)
	for _, since := range []time.Duration{0, 24*time.Hour - time.Second} {
		p.later(since)
		p.asked(func(by string, r ledger.Run, blockers []ledger.Blocker, err error) {
			if err != nil || r.ID != "over" || r.State != ledger.RunAborted || r.Reason != "told" || len(blockers) != 1 {
				t.Errorf("after %s, by %s: %+v, %v, %v", since, by, r, blockers, err)
			}
		})
	}
	p.later(24*time.Hour + time.Second)
	p.asked(func(by string, r ledger.Run, _ []ledger.Blocker, err error) {
		if !errors.Is(err, ledger.ErrNotFound) || r.ID != "" {
			t.Errorf("a day later, by %s: %+v, %v, want ErrNotFound", by, r, err)
		}
	})
	if r, _, err := p.gate.StandingByToken(p.going.TokenSHA256); err != nil || r.ID != "going" {
		t.Errorf("one that isn't over, a day later: %+v, %v", r, err)
	}
}

// A loss that was accepted may leave the token of a run that is gone.
func TestATokenOfALostRunIsUnknown(t *testing.T) {
	t.Parallel()
	c := testConfig(t.TempDir())
	s, err := Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.do(t.Context(), func(tx *tx) error {
		return tx.layer.put(named(kToken, "lost"), []byte("run-1"))
	}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := gateOf(s).StandingByToken("lost"); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("%v, want ErrNotFound", err)
	}
	if err := errors.Join(s.Healthy(), s.Close()); err != nil {
		t.Errorf("it stops the ledger: %v", err)
	}
}
