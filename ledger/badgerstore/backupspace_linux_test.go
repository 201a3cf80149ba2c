package badgerstore

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"keep-proxy/ledger"
	"keep-proxy/ledger/ledgertest"
)

// A copy for which there is no room must not end the process that copies: its engine writes through
// memory maps.
func TestACopyLeavesRoomForTheLedger(t *testing.T) {
	t.Parallel()
	dir := smallDisk(t, "size=200m")
	c := testConfig(filepath.Join(dir, "ledger"))
	c.MinFree = 1 << 20
	s := mustOpenOnly(t, c)
	for i := range 700 {
		content := bytes.Repeat(fmt.Appendf(nil, "%08d", i), ledger.InlineBody/8)
		if _, err := s.WriteBody(t.Context(), bytes.NewReader(content)); err != nil {
			t.Fatal(err)
		}
	}
	err := s.Backup(t.Context(), filepath.Join(dir, "copy"), nil)
	if !errors.Is(err, ledger.ErrLowSpace) {
		t.Errorf("a copy without room for it: %v", err)
	}
	m := ledgertest.SampleMutation("a", ledger.Indeterminate, 0)
	if err := s.Update(t.Context(), func(tx ledger.Tx) error { return tx.PutMutation(m) }); err != nil {
		t.Errorf("a mutation after it: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
