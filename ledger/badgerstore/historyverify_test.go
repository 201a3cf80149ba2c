package badgerstore

import (
	"context"
	"errors"
	"strings"
	"testing"

	"keep-proxy/ledger"
	"keep-proxy/ledger/ledgertest"
)

// TestVerifyFindsAnEventUnderAnotherRecord stores a record that lists the event of
// another, and one less of its own.
func TestVerifyFindsAnEventUnderAnotherRecord(t *testing.T) {
	t.Parallel()
	c := testConfig(t.TempDir())
	s := mustOpenOnly(t, c)
	a, b := ledgertest.SampleMutation("a", ledger.Applied, 0), ledgertest.SampleMutation("b", ledger.Applied, 1)
	err := s.do(t.Context(), func(t *tx) error {
		t.Append(ledger.Event{What: "claim", Mutation: a.ID})
		t.Append(ledger.Event{What: "claim", Mutation: b.ID})
		return errors.Join(t.PutMutation(a), t.PutMutation(b))
	})
	if err != nil {
		t.Fatal(err)
	}
	err = s.do(t.Context(), func(t *tx) error {
		wrong, _ := history(nil).with(2)
		return t.layer.putValue(mutationKey(a.Key), storedMutation{Record: a, History: wrong})
	})
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	_, err = Verify(context.Background(), c, nil)
	if !errors.Is(err, ledger.ErrDamaged) || !strings.Contains(err.Error(), "records list 2 events") {
		t.Errorf("got %v", err)
	}
}

// An event that was written anew, with a checksum that fits, is found by those after it.
func TestVerifyFindsAnEventThatWasChanged(t *testing.T) {
	t.Parallel()
	c := testConfig(t.TempDir())
	s := mustOpenOnly(t, c)
	for _, what := range []string{"one", "two", "three"} {
		if err := s.do(t.Context(), func(t *tx) error {
			t.Append(ledger.Event{What: what})
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	forged := encoded(t, &ledger.Event{Seq: 2, What: "forged"})
	err := s.do(t.Context(), func(t *tx) error {
		k := numbered(kEvents, 2)
		content, err := t.layer.get(k)
		if err != nil {
			return err
		}
		var stored storedEvents
		if err := decode(k, content, &stored); err != nil {
			return err
		}
		stored.Events[0] = forged
		return t.layer.putValue(k, stored)
	})
	emptied(t, s)
	// What opening looks at, which it finds, too, is not all.
	_, inside := s.verifyAll(context.Background(), nil)
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	_, outside := Verify(context.Background(), c, nil)
	for _, err := range []error{inside, outside} {
		if !errors.Is(err, ledger.ErrDamaged) || !strings.Contains(err.Error(), "event 3 doesn't follow") {
			t.Errorf("got %v", err)
		}
	}
}
