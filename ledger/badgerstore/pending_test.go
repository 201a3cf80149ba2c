package badgerstore

import (
	"context"
	"errors"
	"testing"

	"keep-proxy/ledger"
	"keep-proxy/ledger/ledgertest"
)

// held is a store whose next sync of the log waits for the test.
type held struct {
	*Store
	begun, end chan struct{}
	gate       *ledger.Ledger
	err        error
}

func hold(t *testing.T) *held {
	t.Helper()
	h := &held{begun: make(chan struct{}), end: make(chan struct{})}
	c := testConfig(t.TempDir())
	armed := make(chan struct{})
	c.synced = func(string) error {
		select {
		case <-armed:
		default:
			return nil
		}
		select {
		case h.begun <- struct{}{}:
			<-h.end
			return h.err
		case <-h.end:
			return h.err
		}
	}
	h.Store = mustOpenOnly(t, c)
	h.gate = gateOf(h.Store)
	close(armed)
	return h
}

// start begins to put m and tells when the command is evaluated.
func (h *held) start(m *ledger.Mutation) (evaluated chan struct{}, answer chan error) {
	evaluated, answer = make(chan struct{}), make(chan error, 1)
	go func() {
		answer <- h.Update(context.Background(), func(tx ledger.Tx) error {
			defer close(evaluated)
			return tx.PutMutation(m)
		})
	}()
	return evaluated, answer
}

func TestNothingIsShownBeforeItsSync(t *testing.T) {
	t.Parallel()
	for name, failure := range map[string]error{"that succeeds": nil, "that fails": errors.New("a broken disk")} {
		t.Run("a sync "+name, func(t *testing.T) {
			t.Parallel()
			h := hold(t)
			h.err = failure
			first, second := ledgertest.SampleMutation("a", ledger.Indeterminate, 0), ledgertest.SampleMutation("b", ledger.InFlight, 0)
			_, answerFirst := h.start(first)
			<-h.begun
			evaluated, answerSecond := h.start(second)
			<-evaluated // While the first is being synced.
			if blockers, _ := h.gate.BlockersOf("refunds"); len(blockers) != 0 {
				t.Error("the gate shows what isn't durable")
			}
			if err := h.View(t.Context(), func(v ledger.View) error { _, err := v.Mutation(first.Key); return err }); !errors.Is(err, ledger.ErrNotFound) {
				t.Errorf("a reader sees what isn't durable: %v", err)
			}
			for _, answer := range []chan error{answerFirst, answerSecond} {
				select {
				case err := <-answer:
					t.Errorf("answered before the sync: %v", err)
				default:
				}
			}
			close(h.end)
			for i, answer := range []chan error{answerFirst, answerSecond} {
				err := <-answer
				if failure == nil && err != nil || failure != nil && !errors.Is(err, ledger.ErrUnavailable) {
					t.Errorf("answer %d: %v", i, err)
				}
			}
			if failed := h.Healthy() != nil; failed != (failure != nil) {
				t.Errorf("Healthy: %v", h.Healthy())
			}
		})
	}
}

func TestReadsCauseNoSync(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, testConfig(t.TempDir()))
	fill(t, s, 0, 1, 2)
	before := s.Commits()
	for range 10 {
		if err := s.Update(t.Context(), func(ledger.Tx) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	if n := s.Commits() - before; n != 0 {
		t.Errorf("%d commits for commands that changed nothing", n)
	}
}
