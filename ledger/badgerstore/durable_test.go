package badgerstore

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"keep-proxy/internal/fault"
)

// Whoever finds the name of the ledger's folder gone after a loss of power takes an empty
// folder for a first start, and sends again what was acknowledged. So each folder that was made
// for the ledger is durable before the ledger is there.
func TestTheFoldersAboveAFirstLedgerAreDurable(t *testing.T) { //nolint:paralleltest // It watches the whole process.
	top := t.TempDir()
	c := testConfig(filepath.Join(top, "a", "ledger"))
	c.HighWaterFile = filepath.Join(top, "b", "c", "highwater")
	synced := map[string]bool{}
	last := ""
	stop := fault.Watch(func(s fault.Step) {
		rel, err := filepath.Rel(top, s.Name)
		if !s.Done || err != nil || strings.HasPrefix(rel, "..") {
			return
		}
		if s.Op == fault.OpSyncDir && last != "a/ledger/ledger.id" {
			synced[rel] = true
		}
		if s.Op == fault.OpRename {
			last = rel
		}
	})
	s := mustOpenOnly(t, c)
	stop()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{".", "a", "a/ledger", "b", "b/c"} {
		if !synced[dir] {
			t.Errorf("%s was not synced before ledger.id was there", dir)
		}
	}
}

// A sync or rename elsewhere would be no step that a test can end the process at.
func TestEachSyncAndRenameCanBeWatched(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	bare := regexp.MustCompile(`\.Sync\(\)|os\.Rename\(|Fdatasync|Msync|[^.a-z]fdatasync\(`)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") || strings.HasPrefix(file, "datasync_") || file == "durable.go" {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if found := bare.Find(text); found != nil {
			t.Errorf("%s calls %s: let it go through durable.go", file, found)
		}
	}
}

// A witness that isn't durable before the epoch that it names would be taken for an older copy after a loss
// of power, and a witness of the epoch before for the right one.
func TestTheWitnessIsDurableBeforeItsEpoch(t *testing.T) { //nolint:paralleltest // It watches the whole process.
	c := testConfig(t.TempDir())
	c.HighWaterFile = filepath.Join(t.TempDir(), "highwater")
	if err := mustOpenOnly(t, c).Close(); err != nil {
		t.Fatal(err)
	}
	var steps []string
	stop := fault.Watch(func(s fault.Step) {
		switch {
		case !s.Done:
		case s.Op == fault.OpSync && s.Name == c.logPath():
			steps = append(steps, "log")
		case s.Op == fault.OpRename && s.Name == c.HighWaterFile:
			steps = append(steps, "renamed")
		case s.Op == fault.OpSyncDir && s.Name == filepath.Dir(c.HighWaterFile) && len(steps) > 0 && steps[len(steps)-1] == "renamed":
			steps = append(steps, "named")
		}
	})
	s := mustOpenOnly(t, c)
	stop()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	// The log's newest frame is made durable first, and the epoch begins last.
	if got := strings.Join(steps, " "); got != "log renamed named log" {
		t.Errorf("the epoch begins before its witness is durable: %s", got)
	}
}
