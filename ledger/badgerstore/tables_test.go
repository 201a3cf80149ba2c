package badgerstore

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dgraph-io/badger/v4/options"
	"github.com/rs/zerolog"

	"keep-proxy/ledger"
)

// tablesOf returns the tables of a folder, at least one.
func tablesOf(t *testing.T, dir string) []string {
	t.Helper()
	tables, err := filepath.Glob(filepath.Join(dir, "data", "*.sst"))
	if err != nil || len(tables) == 0 {
		t.Fatalf("tables %v, %v", tables, err)
	}
	return tables
}

// sizes lists the files of a folder with their sizes.
func sizes(t *testing.T, dir string) map[string]int64 {
	t.Helper()
	out := map[string]int64{}
	for _, path := range files(t, dir) {
		st, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Base(path) != "ledger.lock" {
			out[path] = st.Size()
		}
	}
	return out
}

func TestDamagedTableIsNamedAtEachStartAndNothingIsChanged(t *testing.T) {
	t.Parallel()
	origin, _ := crashed(t)
	name := filepath.Base(tablesOf(t, origin)[0])
	for _, c := range []struct {
		name string
		do   func(path string, content []byte) error
	}{
		{"a bit in a block", func(path string, content []byte) error {
			content[len(content)/3] ^= 4
			return os.WriteFile(path, content, 0o600)
		}},
		{"a bit in the first byte", func(path string, content []byte) error {
			content[0] ^= 1
			return os.WriteFile(path, content, 0o600)
		}},
		{"a bit in the last byte", func(path string, content []byte) error {
			content[len(content)-1] ^= 1
			return os.WriteFile(path, content, 0o600)
		}},
		{"a cut tail", func(path string, content []byte) error { return os.Truncate(path, int64(len(content)/2)) }},
		{"nothing left", func(path string, _ []byte) error { return os.Truncate(path, 0) }},
		{"lost", func(path string, _ []byte) error { return os.Remove(path) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := copyFolder(t, origin)
			path := filepath.Join(dir, "data", name)
			content, err := os.ReadFile(path)
			if err := errors.Join(err, c.do(path, content)); err != nil {
				t.Fatal(err)
			}
			before := sizes(t, dir)
			for range 3 {
				_, err := Open(context.Background(), testConfig(dir))
				if !errors.Is(err, ledger.ErrDamaged) || !strings.Contains(err.Error(), name) {
					t.Errorf("got %v, want ErrDamaged naming %s", err, name)
				}
			}
			if _, err := AcceptLoss(context.Background(), testConfig(dir), "the disk", "ada"); err == nil ||
				!strings.Contains(err.Error(), "restore a backup") || strings.Contains(err.Error(), "ledger accept-loss") {
				t.Errorf("accepting what can't be opened: %v", err)
			}
			if after := sizes(t, dir); !maps.Equal(before, after) {
				t.Errorf("the folder was changed:\n%v\n%v", before, after)
			}
		})
	}
}

func TestTablesOfOtherFoldersAreNotTaken(t *testing.T) {
	t.Parallel()
	one, _ := crashed(t)
	other, _ := crashed(t)
	tables := tablesOf(t, one)
	swap(t, filepath.Join(other, "data", filepath.Base(tables[0])), tables[0])
	_, err := Open(context.Background(), testConfig(one))
	if !errors.Is(err, ledger.ErrDamaged) && !errors.Is(err, ledger.ErrShortened) {
		t.Errorf("with a table of another ledger: %v", err)
	}
}

func TestUnreadableFileIsNoDamage(t *testing.T) {
	t.Parallel()
	if os.Getuid() == 0 {
		t.Skip("root reads everything")
	}
	dir, _ := crashed(t)
	if err := os.Chmod(tablesOf(t, dir)[0], 0); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(context.Background(), testConfig(dir)); !errors.Is(err, ledger.ErrUnavailable) {
		t.Errorf("got %v, want ErrUnavailable: no loss may be accepted because a file can't be read", err)
	}
}

// The engine must not serve a block that doesn't match its checksum: a key that is read wrong
// is a record that is missing, which a checksum of records can't tell.
func TestTheEngineVerifiesWhatItReads(t *testing.T) {
	t.Parallel()
	if got := engineOptions(t.TempDir(), zerolog.Nop()).ChecksumVerificationMode; got != options.OnTableRead {
		t.Errorf("tables are verified in mode %d", got)
	}
}
