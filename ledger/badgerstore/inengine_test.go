package badgerstore

import (
	"testing"
	"time"

	badger "github.com/dgraph-io/badger/v4"
)

// engineView reads what Badger itself has.
func engineView(db *badger.DB, fn func(snapshot) error) error {
	return db.View(func(txn *badger.Txn) error { return fn(snapshot{txn: txn}) })
}

// emptied waits until Badger has all that was acknowledged.
func emptied(t *testing.T, s *Store) {
	t.Helper()
	if err := s.state.awaitFold(s.state.durable.Load(), s.Healthy); err != nil {
		t.Fatal(err)
	}
}

// stallsAfter makes s less patient.
func (s *Store) stallsAfter(d time.Duration) {
	s.config.stall = d
	for _, w := range []*watch{s.commands, s.syncs, s.foldWatch} {
		w.every.Store(int64(d / looks))
	}
}
