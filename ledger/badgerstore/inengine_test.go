package badgerstore

import (
	"testing"

	badger "github.com/dgraph-io/badger/v4"
)

// inEngine reads what the engine has, which may lack what is durable, and waits for nothing.
func inEngine(s *Store, fn func(snapshot) error) error {
	return s.db.View(func(txn *badger.Txn) error { return fn(snapshot{txn}) })
}

// emptied has nothing in the journal that the engine's logs and tables don't hold: what is lost of
// these isn't put back.
func emptied(t *testing.T, s *Store) {
	t.Helper()
	<-s.turn // Nothing is being committed.
	err := s.emptyJournal()
	s.turn <- struct{}{}
	if err != nil {
		t.Fatal(err)
	}
}

// allGiven waits until the engine has all that was acknowledged.
func allGiven(t *testing.T, s *Store) {
	t.Helper()
	if err := s.snapshot(func(snapshot) error { return nil }); err != nil {
		t.Fatal(err)
	}
}
