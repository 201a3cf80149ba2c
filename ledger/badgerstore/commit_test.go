package badgerstore

import (
	"context"
	"strings"
	"testing"
	"time"

	"keep-proxy/ledger"
)

// The events of a command are held against what it may change, and stored once with its batch.
func TestACommandOfManyEventsDoesNotStopTheLedger(t *testing.T) {
	t.Parallel()
	c := testConfig(t.TempDir())
	c.ring = logSize
	s := mustOpen(t, c)
	const each = 4 << 10
	n := s.mostCommand/each - 16
	if 2*n*each < int(s.db.MaxBatchSize()) {
		t.Fatal("they would fit twice")
	}
	err := s.Update(context.Background(), func(tx ledger.Tx) error {
		for range n {
			tx.Append(ledger.Event{At: time.Now(), What: "claim", Evidence: strings.Repeat("x", each-128)})
		}
		return nil
	})
	if err != nil || s.Healthy() != nil {
		t.Errorf("%v; %v", err, s.Healthy())
	}
}
