package badgerstore

import (
	"os"
	"path/filepath"
	"testing"

	"keep-proxy/internal/fault"
)

// TestTheHighWaterMarkSurvivesALossOfPower leaves of the high-water file what was synced of
// it, and of the ledger what it held before its last commits. Those that the journal holds are
// put back, and that others are missing is found out. It watches the syncs of this process, and
// so runs alone.
func TestTheHighWaterMarkSurvivesALossOfPower(t *testing.T) { //nolint:paralleltest // see above
	for name, end := range map[string]struct {
		lives int
		lost  bool
	}{
		"in one life":        {1, false},
		"and a life of more": {2, true},
	} {
		t.Run(name, func(t *testing.T) {
			c := testConfig(t.TempDir())
			c.HighWaterFile = filepath.Join(t.TempDir(), "highwater")
			s := mustOpenOnly(t, c)
			keys := fill(t, s, 0, 3, 10)
			synced, err := os.ReadFile(c.HighWaterFile)
			if err != nil {
				t.Fatal(err)
			}
			allGiven(t, s)
			older := copyFolder(t, c.Dir)
			stop := fault.Watch(func(step fault.Step) {
				if step.Op == fault.OpSync && step.Done && step.Name == c.HighWaterFile {
					synced, err = os.ReadFile(c.HighWaterFile)
				}
			})
			for life := range end.lives {
				if life > 0 {
					if err := s.Close(); err != nil {
						t.Fatal(err)
					}
					s = mustOpenOnly(t, c)
				}
				keys = append(keys, fill(t, s, len(keys), 3, 10)...)
			}
			stop()
			if err != nil {
				t.Fatal(err)
			}
			c.Dir, c.HighWaterFile = older, filepath.Join(t.TempDir(), "highwater")
			if err := os.WriteFile(c.HighWaterFile, synced, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := refusesOrKeeps(t, c, keys); (err != nil) != end.lost {
				t.Errorf("a ledger of which commits are missing: %v, lost for good: %t", err, end.lost)
			}
		})
	}
}
