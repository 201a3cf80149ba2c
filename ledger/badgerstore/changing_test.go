package badgerstore

import (
	"os"
	"slices"
	"testing"

	badger "github.com/dgraph-io/badger/v4"

	"keep-proxy/ledger"
	"keep-proxy/ledger/ledgertest"
)

// changing is a ledger of one record that each commit changes, as older copies and its journal
// have it.
type changing struct {
	c      Config
	record *ledger.Mutation
	// older is a folder as of the beginning, waters the high-water file after each commit.
	older  string
	waters [][]byte
	// after are the commits since.
	after []journaled
}

func newChanging(t *testing.T, commits int) *changing {
	t.Helper()
	record := ledgertest.SampleMutation("a", ledger.InFlight, 0)
	h := changedBy(t, commits, func(s *Store, n int) error {
		record.Version = int64(n)
		return s.Update(t.Context(), func(tx ledger.Tx) error {
			tx.Append(ledger.Event{What: "claim", Mutation: record.ID})
			return tx.PutMutation(record)
		})
	})
	h.record = record
	return h
}

// changedBy is a ledger after so many commits, of which commit makes each.
func changedBy(t *testing.T, commits int, commit func(s *Store, n int) error) *changing {
	t.Helper()
	h := &changing{c: testConfig(t.TempDir())}
	s := mustOpenOnly(t, h.c)
	allGiven(t, s)
	h.older = copyFolder(t, h.c.Dir)
	for n := range commits {
		if err := commit(s, n+1); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(h.c.highWaterPath())
		if err != nil {
			t.Fatal(err)
		}
		h.waters = append(h.waters, b)
	}
	a, err := readHighWater(h.c.highWaterPath())
	if err != nil {
		t.Fatal(err)
	}
	if h.after = a.after; len(h.after) < commits {
		t.Fatalf("%d commits are in the journal", len(h.after))
	}
	h.after = h.after[len(h.after)-commits:]
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return h
}

// given is the older copy, whose engine was given these commits in this order, beside the
// high-water file after so many.
func (h *changing) given(t *testing.T, waters int, commits ...int) Config {
	t.Helper()
	var each [][]int
	for _, n := range commits {
		each = append(each, []int{n})
	}
	return h.givenAtOnce(t, waters, each...)
}

// givenAtOnce is given for commits of which the engine gets several in one transaction.
func (h *changing) givenAtOnce(t *testing.T, waters int, each ...[]int) Config {
	t.Helper()
	c := testConfig(copyFolder(t, h.older))
	if err := os.WriteFile(c.highWaterPath(), h.waters[waters-1], 0o600); err != nil {
		t.Fatal(err)
	}
	db, err := openChecked(engineOptions(c.dataDir(), c.Logger))
	if err != nil {
		t.Fatal(err)
	}
	for _, commits := range each {
		if err := db.Update(func(txn *badger.Txn) error {
			for _, n := range commits {
				for _, e := range h.after[n-1].changes {
					if err := e.apply(txn); err != nil {
						return err
					}
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return c
}

// damageJournal makes both copies of a commit in the journal unreadable.
func (h *changing) damageJournal(t *testing.T, c Config, commit int) {
	t.Helper()
	b := slices.Clone(h.waters[len(h.waters)-1])
	m, err := parseMarks("", b)
	if err != nil {
		t.Fatal(err)
	}
	damaged := 0
	for at := marksSize; at < len(b); at += journalPage {
		if j, _, ok, _ := parseJournaled(b[at:], m.Key); ok && j.tip.Commit == h.after[commit-1].tip.Commit {
			b[at+journalHead] ^= 1
			damaged++
		}
	}
	if err := os.WriteFile(c.highWaterPath(), b, 0o600); err != nil || damaged != 2 {
		t.Fatalf("%d copies damaged, %v", damaged, err)
	}
}
