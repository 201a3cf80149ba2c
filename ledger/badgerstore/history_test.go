package badgerstore

import (
	"bytes"
	"slices"
	"testing"

	"keep-proxy/ledger"
	"keep-proxy/ledger/ledgertest"
)

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

// TestLongHistory lists events that the record takes, and those that it doesn't.
func TestLongHistory(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, testConfig(t.TempDir()))
	m := ledgertest.SampleMutation("a", ledger.InFlight, 0)
	const changes = fullHistory + 20
	for i := range changes {
		m.Version = int64(i + 1)
		err := s.Update(t.Context(), func(tx ledger.Tx) error {
			tx.Append(ledger.Event{What: "claim", Mutation: m.ID})
			return tx.PutMutation(m)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	err := s.Update(t.Context(), func(tx ledger.Tx) error {
		tx.Append(ledger.Event{What: "replayed", Mutation: m.ID})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var seqs []uint64
	for after := uint64(0); ; after = seqs[len(seqs)-1] {
		events, err := s.Events(t.Context(), m.ID, after, 50)
		if err != nil {
			t.Fatal(err)
		}
		if len(events) == 0 {
			break
		}
		for _, e := range events {
			seqs = append(seqs, e.Seq)
		}
	}
	if len(seqs) != changes+1 || !slices.IsSorted(seqs) {
		t.Errorf("%d events %v, want %d in order", len(seqs), seqs, changes+1)
	}
}
