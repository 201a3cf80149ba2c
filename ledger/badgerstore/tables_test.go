package badgerstore

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	badger "github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"
	"golang.org/x/sys/unix"

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
	other, _ := crashedAnew(t)
	tables := tablesOf(t, one)
	swap(t, filepath.Join(other, "data", filepath.Base(tables[0])), tables[0])
	_, err := Open(context.Background(), testConfig(one))
	if !errors.Is(err, ledger.ErrDamaged) && !errors.Is(err, ledger.ErrShortened) {
		t.Errorf("with a table of another ledger: %v", err)
	}
}

// The data of another ledger are whole in themselves: only that they say whose they are
// tells them apart, also where the mark of what was acknowledged fits them.
func TestDataOfAnotherLedgerAreNotTaken(t *testing.T) {
	t.Parallel()
	ours, theirs := testConfig(t.TempDir()), testConfig(t.TempDir())
	for _, c := range []Config{ours, theirs} {
		s := mustOpenOnly(t, c)
		fill(t, s, 0, 3, 10)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	id, err := readIdentity(ours.identityPath())
	if err != nil {
		t.Fatal(err)
	}
	other, err := readIdentity(theirs.identityPath())
	if err != nil {
		t.Fatal(err)
	}
	swap(t, theirs.dataDir(), ours.dataDir())
	swap(t, theirs.logPath(), ours.logPath())
	s, err := Open(context.Background(), ours)
	if err == nil {
		_ = s.Close()
	}
	if !errors.Is(err, ledger.ErrDamaged) || !strings.Contains(err.Error(), "ledger.id says "+id.ID) || !strings.Contains(err.Error(), "the data are those of "+other.ID) {
		t.Errorf("with the data of another ledger: %v", err)
	}
}

func TestUnreadableFileIsNoDamage(t *testing.T) {
	t.Parallel()
	origin, _ := crashed(t)
	table, err := filepath.Rel(origin, tablesOf(t, origin)[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{table, filepath.Join("data", "MANIFEST"), "ledger.id", "log"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := copyFolder(t, origin)
			path := filepath.Join(dir, name)
			// Root reads what its mode forbids, but nobody follows a link to itself.
			if err := errors.Join(os.Rename(path, path+".away"), os.Symlink(path, path)); err != nil {
				t.Fatal(err)
			}
			for _, try := range []func() error{
				func() error { _, err := Open(context.Background(), testConfig(dir)); return err },
				func() error {
					_, err := AcceptLoss(context.Background(), testConfig(dir), "the disk", "ada")
					return err
				},
			} {
				err := try()
				if !errors.Is(err, unix.ELOOP) || isDamage(err) || errors.Is(err, ledger.ErrMissing) || errors.Is(err, ledger.ErrShortened) {
					t.Errorf("%v: no loss may be accepted because a file can't be read", err)
				}
			}
		})
	}
}

// What holds the ledger together is missing or another's, though each value is whole.
func TestAFoldThatIsMissingIsDamage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, want string
		change     func(t *testing.T, s snapshot, folds [][]byte) (k, value []byte)
	}{
		{"the first one is missing", "neither in the log", func(_ *testing.T, _ snapshot, folds [][]byte) (k, value []byte) {
			return folds[0], nil
		}},
		{"one between others is missing", "neither in the log", func(_ *testing.T, _ snapshot, folds [][]byte) (k, value []byte) {
			return folds[1], nil
		}},
		{"the last one is missing", "neither in the log", func(_ *testing.T, _ snapshot, folds [][]byte) (k, value []byte) {
			return folds[2], nil
		}},
		{"one is another's", "of another fold", func(t *testing.T, s snapshot, folds [][]byte) (k, value []byte) {
			t.Helper()
			var r foldRecord
			content, err := s.get(folds[2])
			if err := errors.Join(err, decode(folds[2], content, &r)); err != nil {
				t.Fatal(err)
			}
			return folds[1], sealed(t, folds[1], r)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			config := testConfig(t.TempDir())
			for n := range 3 {
				s := mustOpenOnly(t, config)
				fill(t, s, 5*n, 5, 10)
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
			}
			healed := testConfig(copyFolder(t, config.Dir))
			alter := func(config Config) {
				alter(t, config, func(s snapshot) (k, value []byte) {
					folds, err := s.keys([]byte{kFold})
					if err != nil || len(folds) < 3 {
						t.Fatalf("%d folds, %v", len(folds), err)
					}
					return c.change(t, s, folds)
				})
			}
			var end tip
			s := mustOpenOnly(t, config)
			end = s.tip
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			alter(config)
			if err := createLog(config, end.Commit+1); err != nil { // It has none of it any more.
				t.Fatal(err)
			}
			s, err := Open(context.Background(), config)
			if err == nil {
				s.Close()
			}
			if !errors.Is(err, ledger.ErrDamaged) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want ErrDamaged that says %q", err, c.want)
			}
			if c.name == "one is another's" {
				return
			}
			// As long as the log has it, it is folded again.
			alter(healed)
			mustOpen(t, healed)
		})
	}
}

// sealed is v as it is stored under k.
func sealed(t *testing.T, k []byte, v any) []byte {
	t.Helper()
	return seal(k, encoded(t, v), 0)
}

// alter puts a value into a closed ledger's engine, or takes it out if it is nil.
func alter(t *testing.T, c Config, change func(snapshot) (k, value []byte)) {
	t.Helper()
	db, err := openEngine(c.engineOptions())
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(txn *badger.Txn) error {
		k, value := change(snapshot{txn: txn})
		if value == nil {
			return txn.Delete(k)
		}
		return txn.Set(k, value)
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
}

// The engine must not serve a block that doesn't match its checksum: a key that is read wrong
// is a record that is missing, which a checksum of records can't tell.
func TestTheEngineVerifiesWhatItReads(t *testing.T) {
	t.Parallel()
	if got := (Config{}).engineOptions().ChecksumVerificationMode; got != options.OnTableRead {
		t.Errorf("tables are verified in mode %d", got)
	}
}
