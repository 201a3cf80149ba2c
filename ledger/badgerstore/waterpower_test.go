package badgerstore

import (
	"os"
	"path/filepath"
	"testing"

	"keep-proxy/internal/fault"
)

// TestTheHighWaterMarkSurvivesALossOfPower leaves of the high-water file what was synced of
// it, and of the ledger what it held before its last commits: that it is shorter than what
// was acknowledged is found out. It watches the syncs of this process, and so runs alone.
func TestTheHighWaterMarkSurvivesALossOfPower(t *testing.T) {
	c := testConfig(t.TempDir())
	c.HighWaterFile = filepath.Join(t.TempDir(), "highwater")
	s := mustOpenOnly(t, c)
	keys := fill(t, s, 0, 3, 10)
	synced, err := os.ReadFile(c.HighWaterFile)
	if err != nil {
		t.Fatal(err)
	}
	older := copyFolder(t, c.Dir)
	stop := fault.Watch(func(step fault.Step) {
		if step.Op == fault.OpSync && step.Done && step.Name == c.HighWaterFile {
			synced, err = os.ReadFile(c.HighWaterFile)
		}
	})
	keys = append(keys, fill(t, s, 3, 3, 10)...)
	stop()
	if err != nil {
		t.Fatal(err)
	}
	c.Dir, c.HighWaterFile = older, filepath.Join(t.TempDir(), "highwater")
	if err := os.WriteFile(c.HighWaterFile, synced, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := refusesOrKeeps(t, c, keys); err == nil {
		t.Error("a ledger that is shorter than what was acknowledged was opened")
	}
}
