package badgerstore

import (
	"os"
	"path/filepath"
	"testing"

	"keep-proxy/ledger"
)

// TestLogsThatWereOnlyJustMade opens what a process leaves that was killed between
// making a log and giving it its length.
func TestLogsThatWereOnlyJustMade(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"000900.vlog", "00900.mem"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, keys := crashed(t)
			c := testConfig(dir)
			if err := os.WriteFile(filepath.Join(c.dataDir(), name), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := Verify(t.Context(), testConfig(copyFolder(t, dir)), nil); err != nil {
				t.Errorf("verified before the next start: %v", err)
			}
			s := mustOpen(t, c)
			for _, k := range keys {
				if err := s.View(t.Context(), func(v ledger.View) error { _, err := v.Mutation(k); return err }); err != nil {
					t.Fatalf("%s: %v", k, err)
				}
			}
		})
	}
}

// What Badger loses of its own logs is folded again, as long as the log has it.
func TestWhatBadgersLogsLoseIsFoldedAgain(t *testing.T) {
	t.Parallel()
	live := testConfig(t.TempDir())
	s := mustOpen(t, live)
	keys := fill(t, s, 0, 20, 10)
	emptied(t, s)
	keys = append(keys, fill(t, s, 20, 2, 10)...)
	c := testConfig(copyFolder(t, live.Dir))
	logs, err := filepath.Glob(filepath.Join(c.dataDir(), "*.mem"))
	if err != nil || len(logs) == 0 {
		t.Fatalf("%v, %v", logs, err)
	}
	for _, path := range logs {
		if err := os.Truncate(path, 0); err != nil {
			t.Fatal(err)
		}
	}
	// The identity lies in a table of the first start.
	if err := refusesOrKeeps(t, c, keys); err != nil {
		t.Error(err)
	}
}
