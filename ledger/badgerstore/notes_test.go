package badgerstore

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"keep-proxy/ledger"
	"keep-proxy/ledger/ledgertest"
)

// However many notes there are, and whatever some of them come to, they are done in their order
// before the command behind them, also where they fill more than one commit.
func TestNotesAreDoneInOrderBeforeTheNextCommand(t *testing.T) {
	t.Parallel()
	for name, size := range map[string]int{"short ones": 1, "more than fit a commit": 4 << 10} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := mustOpen(t, testConfig(t.TempDir()))
			const all = 3 * mostNotes
			key := ledgertest.SampleMutation("a", ledger.Applied, 0).Key
			for n := range all {
				s.Note(func(tx ledger.Tx) error {
					tx.Append(ledger.Event{What: fmt.Sprint(n), Evidence: strings.Repeat("e", size)})
					if n%7 == 3 {
						return errors.New("refused")
					}
					return tx.PutDelivery(fmt.Sprint(n), key, ledger.Delivery{})
				})
			}
			err := s.Update(t.Context(), func(tx ledger.Tx) error {
				_, err := tx.Delivery(fmt.Sprint(all-1), key)
				return errors.Join(err, tx.PutRun(ledgertest.SampleRun("run-1", 0)))
			})
			if err != nil {
				t.Fatal(err)
			}
			next := 0
			for seq := uint64(0); ; {
				page, err := s.Events(t.Context(), "", seq, 100)
				if err != nil {
					t.Fatal(err)
				}
				if len(page) == 0 {
					break
				}
				for _, e := range page {
					if next%7 == 3 {
						next++
					}
					if e.What != fmt.Sprint(next) {
						t.Fatalf("event %d is of note %s, want %d", e.Seq, e.What, next)
					}
					next, seq = next+1, e.Seq
				}
			}
			if next != all {
				t.Errorf("%d notes, want %d", next, all)
			}
		})
	}
}

// Notes of which nobody has told the committer since are not left behind by it.
func TestNotesAreDoneWithoutACommand(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, testConfig(t.TempDir()))
	for n := range 5 {
		done := make(chan struct{})
		for range n + 1 {
			s.Note(func(tx ledger.Tx) error {
				tx.Append(ledger.Event{What: "noted"})
				return nil
			})
		}
		s.Note(func(tx ledger.Tx) error {
			close(done)
			return nil
		})
		<-done
	}
}
