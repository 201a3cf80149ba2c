package badgerstore

import (
	"os"
	"testing"
)

// Each of both marks says where the journal begins: one that is damaged leaves the other, also
// once the journal was written over.
func TestEitherMarkWillDo(t *testing.T) {
	t.Parallel()
	c := testConfig(t.TempDir())
	c.journal = 64 << 10
	s := mustOpenOnly(t, c)
	keys := fill(t, s, 0, 30, 10)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(c.highWaterPath())
	if err != nil {
		t.Fatal(err)
	}
	for slot := range 2 {
		c := testConfig(copyFolder(t, c.Dir))
		b := append([]byte(nil), whole...)
		clear(b[slot*slotSize:][:slotSize])
		if err := os.WriteFile(c.highWaterPath(), b, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := refusesOrKeeps(t, c, keys); err != nil {
			t.Errorf("without mark %d: %v", slot, err)
		}
	}
}
