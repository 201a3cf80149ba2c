package badgerstore

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"keep-proxy/ledger"
	"keep-proxy/ledger/ledgertest"
)

var ids atomic.Int64

// testConfig is a configuration with ids of its own and a clock that runs.
func testConfig(dir string) Config {
	return Config{
		Dir: dir, Version: "0.1.0", Logger: zerolog.Nop(),
		NewID: func() string { return fmt.Sprintf("id%d", ids.Add(1)) },
		Now: func() ledger.Stamp {
			return ledger.Stamp{Wall: time.Now().Round(0), BootID: "boot"}
		},
		// On a slow machine it would rest while a test evaluates commands in its place.
		calm: 30 * time.Millisecond,
		// A start reads the whole ring.
		ring: 8 << 20,
		// The race detector marks each byte of a memtable at each start.
		memtable: 7 << 20,
	}
}

func mustOpen(tb testing.TB, c Config) *Store {
	tb.Helper()
	return OpenForTest(tb, c)
}

func TestConformance(t *testing.T) {
	t.Parallel()
	conformance(t, 0)
}

// What is kept for the next command is kept for its speed alone.
func TestConformanceWithoutWhatIsKept(t *testing.T) {
	t.Parallel()
	conformance(t, time.Nanosecond)
}

func conformance(t *testing.T, calm time.Duration) {
	t.Helper()
	ledgertest.TestStore(t, func(t *testing.T) ledgertest.Subject {
		t.Helper()
		c := testConfig(t.TempDir())
		c.calm, c.ring = calm, 24<<20
		s := mustOpen(t, c)
		return ledgertest.Subject{Store: s, Reopen: func() ledger.Store {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			return mustOpen(t, c)
		}}
	})
}
