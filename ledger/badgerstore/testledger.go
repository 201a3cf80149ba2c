package badgerstore

import (
	"context"
)

// TB is what OpenForTest needs of a test.
type TB interface {
	Helper()
	TempDir() string
	Cleanup(func())
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// OpenForTest opens a ledger for a test, in c.Dir or, if that is empty, in a
// temporary folder. On clean-up the ledger is closed and verified whole, so that a
// test whose commands broke it fails. Now and NewID are required, as for Open.
func OpenForTest(tb TB, c Config) *Store {
	tb.Helper()
	if c.Dir == "" {
		c.Dir = tb.TempDir()
	}
	s, err := Open(context.Background(), c)
	if err != nil {
		tb.Fatalf("open a ledger: %v", err)
		return nil
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Errorf("close the ledger: %v", err)
		}
		if _, err := Verify(context.Background(), c, nil); err != nil {
			tb.Errorf("the ledger doesn't verify: %v", err)
		}
	})
	return s
}

// CreateForTest makes a new ledger in c.Dir whose log has size bytes, a multiple of 4096. The shorter the log, the
// more often a process of its own folds.
func CreateForTest(tb TB, c Config, size int64) {
	tb.Helper()
	c.ring = size
	if _, err := Init(c); err != nil {
		tb.Fatalf("make a ledger: %v", err)
	}
}
