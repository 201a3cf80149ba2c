package badgerstore

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"

	"keep-proxy/ledger"
	"keep-proxy/ledger/ledgertest"
)

// held is a store whose next sync of the log waits for the test.
type held struct {
	*Store
	begun, end chan struct{}
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
			if blockers, _ := h.BlockersOf("refunds"); len(blockers) != 0 {
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

func TestHistory(t *testing.T) {
	t.Parallel()
	var h history
	var want []uint64
	for seq := uint64(3); ; seq += seq / 2 {
		next, ok := h.with(seq)
		if !ok {
			break
		}
		h, want = next, append(want, seq)
	}
	if got, err := h.seqs(); err != nil || !slices.Equal(got, want) || len(want) < 20 {
		t.Errorf("%d, %v; want %d", got, err, want)
	}
	if _, ok := history(nil).with(0); ok {
		t.Error("event 0 was taken")
	}
	short, _ := history(nil).with(5)
	if _, ok := short.with(5); ok {
		t.Error("an event was taken twice")
	}
	a, _ := short.with(6)
	b, _ := short.with(7)
	if bytes.Equal(a, b) {
		t.Error("two histories share what they were made of")
	}
	for _, bad := range []history{{0}, {0x80}, {1, 0}} {
		if _, err := bad.seqs(); err == nil {
			t.Errorf("%x is taken", []byte(bad))
		}
	}
}
