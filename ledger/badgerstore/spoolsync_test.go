package badgerstore

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"keep-proxy/ledger"
)

// What a disk didn't take for certain must not be named by a record, however often it is
// asked for: a sync that failed once may seem to succeed the next time.
func TestASpoolWhoseSyncFailsIsNeverKept(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(t *testing.T, s *Store, f *spool) (mend func()){
		"its own": func(t *testing.T, _ *Store, f *spool) func() {
			t.Helper()
			whole := f.file
			gone, err := os.Create(filepath.Join(t.TempDir(), "gone"))
			if err := errors.Join(err, gone.Close()); err != nil {
				t.Fatal(err)
			}
			f.file = gone
			return func() { f.file = whole }
		},
		"its folder's": func(_ *testing.T, s *Store, _ *spool) func() {
			dir := s.config.Dir
			s.config.Dir = filepath.Join(dir, "gone")
			return func() { s.config.Dir = dir }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := mustOpenOnly(t, testConfig(t.TempDir()))
			kept, err := s.Spool()
			if err != nil {
				t.Fatal(err)
			}
			f, ok := kept.(*spool)
			if !ok {
				t.Fatalf("a spool is a %T", kept)
			}
			if _, err := f.Write(long("s")); err != nil {
				t.Fatal(err)
			}
			mend := fail(t, s, f)
			_, first := f.Keep(t.Context())
			mend()
			if !errors.Is(first, ledger.ErrUnavailable) {
				t.Errorf("the sync that failed: %v", first)
			}
			if _, err := f.Keep(t.Context()); !errors.Is(err, ledger.ErrUnavailable) {
				t.Errorf("keeping it again: %v", err)
			}
			if _, err := f.Write([]byte("more")); !errors.Is(err, ledger.ErrUnavailable) {
				t.Errorf("writing on: %v", err)
			}
			if err := f.Close(); err != nil {
				t.Error(err)
			}
			for _, folder := range []string{s.config.bodiesDir(), s.config.spoolDir()} {
				if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
					t.Errorf("%s holds %d files, %v", filepath.Base(folder), len(left), err)
				}
			}
		})
	}
}
