package ledgertest_test

import (
	"testing"

	"keep-proxy/ledger"
	"keep-proxy/ledger/ledgertest"
)

func TestMemoryConforms(t *testing.T) {
	t.Parallel()
	ledgertest.TestStore(t, func(t *testing.T) ledgertest.Subject {
		s := ledgertest.NewMemory(ledger.Process{ID: "process-1"})
		return ledgertest.Subject{Store: s, KeepsOrphans: true, Reopen: func() ledger.Store {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			return s.Reopen(ledger.Process{ID: "process-2"})
		}}
	})
}
