package badgerstore

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"golang.org/x/sys/unix"

	"keep-proxy/ledger"
	"keep-proxy/ledger/ledgertest"
)

// long is content that is kept in a file, another for each letter.
func long(letter string) []byte { return []byte(strings.Repeat(letter, 200<<10)) }

// putBody writes content and a record that names it.
func putBody(t *testing.T, s *Store, name string, content []byte) ledger.Body {
	t.Helper()
	b, err := s.WriteBody(t.Context(), bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	putNaming(t, s, name, b)
	return b
}

// putNaming stores a record that names b.
func putNaming(t *testing.T, s *Store, name string, b ledger.Body) {
	t.Helper()
	m := ledgertest.SampleMutation(name, ledger.Applied, 0)
	m.Result = &ledger.Result{Status: 200, Body: b}
	if err := s.Update(t.Context(), func(tx ledger.Tx) error { return tx.PutMutation(m) }); err != nil {
		t.Fatal(err)
	}
}

func readAll(t *testing.T, s *Store, b ledger.Body) ([]byte, error) {
	t.Helper()
	r, err := s.Body(t.Context(), b)
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(r)
	return content, errors.Join(err, r.Close())
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	out := []string{}
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

func TestLongBodyIsAFile(t *testing.T) {
	t.Parallel()
	c := testConfig(t.TempDir())
	s := mustOpen(t, c)
	b := putBody(t, s, "a", long("a"))
	if got := names(t, c.bodiesDir()); len(got) != 1 || got[0] != b.SHA256 {
		t.Errorf("bodies/ holds %v, want %s", got, b.SHA256)
	}
	if got := names(t, c.spoolDir()); len(got) != 0 {
		t.Errorf("spool/ holds %v", got)
	}
	if got, err := readAll(t, s, b); err != nil || !bytes.Equal(got, long("a")) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

func TestSpoolLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		use  func(t *testing.T, s *Store, f ledger.Spool)
		want int
	}{
		{"half of it was written", func(*testing.T, *Store, ledger.Spool) {}, 0},
		{"kept, and no record names it", func(t *testing.T, _ *Store, f ledger.Spool) {
			t.Helper()
			if _, err := f.Keep(t.Context()); err != nil {
				t.Fatal(err)
			}
		}, 0},
		{"kept, and a record names it", func(t *testing.T, s *Store, f ledger.Spool) {
			t.Helper()
			b, err := f.Keep(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			putNaming(t, s, "a", b)
		}, 1},
		{"kept twice at once, and a record names one of them", func(t *testing.T, s *Store, f ledger.Spool) {
			t.Helper()
			b, err := f.Keep(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			twin, err := s.Spool()
			if err != nil {
				t.Fatal(err)
			}
			_, err = twin.Write(long("s"))
			_, keepErr := twin.Keep(t.Context())
			if err := errors.Join(err, keepErr, twin.Close()); err != nil {
				t.Fatal(err)
			}
			putNaming(t, s, "a", b)
		}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			config := testConfig(t.TempDir())
			s := mustOpen(t, config)
			f, err := s.Spool()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.Write(long("s")); err != nil {
				t.Fatal(err)
			}
			c.use(t, s, f)
			if err := f.Close(); err != nil {
				t.Error(err)
			}
			if got := names(t, config.bodiesDir()); len(got) != c.want {
				t.Errorf("bodies/ holds %v, want %d files", got, c.want)
			}
			if got := names(t, config.spoolDir()); len(got) != 0 {
				t.Errorf("spool/ holds %v", got)
			}
		})
	}
}

func TestSpoolOfADeadProcessIsRemovedAtStart(t *testing.T) {
	t.Parallel()
	c := testConfig(t.TempDir())
	s := mustOpen(t, c)
	named := putBody(t, s, "named", long("n"))
	half, err := s.Spool()
	if err != nil {
		t.Fatal(err)
	}
	defer half.Close()
	if _, err := half.Write(long("h")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.WriteBody(t.Context(), bytes.NewReader(long("u"))); err != nil {
		t.Fatal(err)
	}
	crashed := testConfig(copyFolder(t, c.Dir))
	// A crash can come before the mark of a body that a record names is gone.
	if err := os.WriteFile(crashed.bodyMark(named.SHA256), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	again := mustOpen(t, crashed)
	if got := names(t, crashed.spoolDir()); len(got) != 0 {
		t.Errorf("spool/ holds %v", got)
	}
	if got := names(t, crashed.bodiesDir()); len(got) != 1 || got[0] != named.SHA256 {
		t.Errorf("bodies/ holds %v, want %s", got, named.SHA256)
	}
	if _, err := readAll(t, again, named); err != nil {
		t.Error(err)
	}
}

// harm is done to the file of one body; other is that of another of the same length.
var harms = []struct {
	name string
	do   func(path, other string) error
}{
	{"a flipped bit", func(path, _ string) error {
		content, err := os.ReadFile(path)
		content[1000] ^= 1
		return errors.Join(err, os.WriteFile(path, content, 0o600))
	}},
	{"a cut tail", func(path, _ string) error { return os.Truncate(path, 100<<10) }},
	{"something appended", func(path, _ string) error { return os.Truncate(path, 300<<10) }},
	{"lost", func(path, _ string) error { return os.Remove(path) }},
	{"swapped with another", func(path, other string) error {
		return errors.Join(os.Rename(path, path+"x"), os.Rename(other, path), os.Rename(path+"x", other))
	}},
	{"a folder in its place", func(path, _ string) error {
		return errors.Join(os.Remove(path), os.Mkdir(path, 0o700))
	}},
}

func TestDamagedBodyFileIsNeverRead(t *testing.T) {
	t.Parallel()
	for _, harm := range harms {
		t.Run(harm.name, func(t *testing.T) {
			t.Parallel()
			c := testConfig(t.TempDir())
			s := mustOpenOnly(t, c)
			b, other := putBody(t, s, "a", long("a")), putBody(t, s, "b", long("b"))
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if err := harm.do(c.bodyPath(b.SHA256), c.bodyPath(other.SHA256)); err != nil {
				t.Fatal(err)
			}
			if _, err := Verify(t.Context(), c, nil); err == nil || !strings.Contains(err.Error(), "accept-loss") && errors.Is(err, ledger.ErrDamaged) {
				t.Errorf("verify: %v", err)
			}
			s = mustOpenOnly(t, c)
			if _, err := readAll(t, s, b); !errors.Is(err, ledger.ErrDamaged) && !errors.Is(err, ledger.ErrUnavailable) {
				t.Errorf("read: %v", err)
			}
			if err := s.Backup(t.Context(), filepath.Join(t.TempDir(), "copy"), nil); err == nil {
				t.Error("a backup was made of it")
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestAcceptedLossOfABodyTouchesNothingElse(t *testing.T) {
	t.Parallel()
	c := testConfig(t.TempDir())
	s := mustOpenOnly(t, c)
	lost, kept := putBody(t, s, "a", long("a")), putBody(t, s, "b", long("b"))
	item := ledgertest.SampleItem("open", 0)
	if err := s.Update(t.Context(), func(tx ledger.Tx) error { return tx.PutItem(item) }); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Close(), os.Truncate(c.bodyPath(lost.SHA256), 10)); err != nil {
		t.Fatal(err)
	}
	loss, err := AcceptLoss(context.Background(), c, "the disk lost it", "ada")
	if err != nil || loss.Bodies != 1 || loss.Items+loss.Runs+loss.Mutations != 0 {
		t.Fatalf("%+v, %v", loss, err)
	}
	if _, err := AcceptLoss(context.Background(), c, "again", "ada"); !errors.Is(err, errNoLoss) {
		t.Errorf("accepted again: %v", err)
	}
	s = mustOpen(t, c)
	if _, err := readAll(t, s, lost); !errors.Is(err, ledger.ErrBodyDropped) {
		t.Errorf("the lost body: %v, want ErrBodyDropped", err)
	}
	if got, err := readAll(t, s, kept); err != nil || !bytes.Equal(got, long("b")) {
		t.Errorf("the other: %d bytes, %v", len(got), err)
	}
	// What is written again is there again.
	if again := putBody(t, s, "c", long("a")); again != lost {
		t.Errorf("%+v", again)
	}
	if got, err := readAll(t, s, lost); err != nil || !bytes.Equal(got, long("a")) {
		t.Errorf("written again: %d bytes, %v", len(got), err)
	}
}

func TestBackupHoldsLongBodies(t *testing.T) {
	t.Parallel()
	c := testConfig(t.TempDir())
	s := mustOpen(t, c)
	b := putBody(t, s, "a", long("a"))
	copied := testConfig(filepath.Join(t.TempDir(), "copy"))
	if err := s.Backup(t.Context(), copied.Dir, nil); err != nil {
		t.Fatal(err)
	}
	copied.Restored = true
	again := mustOpen(t, copied)
	if got, err := readAll(t, again, b); err != nil || !bytes.Equal(got, long("a")) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

func TestBodyThatCannotBeWrittenIsRefused(t *testing.T) {
	t.Parallel()
	free := uint64(1 << 40)
	c := testConfig(t.TempDir())
	c.MinFree = 1 << 20
	c.statfs = func(string) (uint64, error) { return free, nil }
	s := mustOpen(t, c)
	f, err := s.Spool()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(long("f")); err != nil {
		t.Fatal(err)
	}
	free = 0
	s.space.mu.Lock()
	s.space.measure()
	s.space.mu.Unlock()
	if _, err := f.Write(long("f")); !errors.Is(err, ledger.ErrLowSpace) {
		t.Errorf("a disk that fills meanwhile: %v", err)
	}
	if _, err := f.Keep(t.Context()); !errors.Is(err, ledger.ErrLowSpace) {
		t.Errorf("kept although a part is missing: %v", err)
	}
	if _, err := s.WriteBody(t.Context(), bytes.NewReader(long("g"))); !errors.Is(err, ledger.ErrLowSpace) {
		t.Errorf("a disk that is full: %v", err)
	}
	free = 1 << 40
	s.space.mu.Lock()
	s.space.measure()
	s.space.mu.Unlock()
	// A folder that is gone stands for a disk that can't be written.
	if err := os.Rename(c.bodiesDir(), c.bodiesDir()+"-away"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.WriteBody(t.Context(), bytes.NewReader(long("g"))); !errors.Is(err, ledger.ErrUnavailable) {
		t.Errorf("a folder that is gone: %v", err)
	}
	if err := os.Rename(c.bodiesDir()+"-away", c.bodiesDir()); err != nil {
		t.Fatal(err)
	}
	if err := s.Healthy(); err != nil {
		t.Errorf("a body that couldn't be written stopped the ledger: %v", err)
	}
}

// What a disk can't read is damage of the one content, as what it reads wrongly is: a scrub goes on, and a
// person can accept its loss. What can't be written of a copy says nothing about it.
func TestAContentThatTheDiskCannotReadIsDamaged(t *testing.T) {
	t.Parallel()
	content := long("a")
	sum, failed := sum256(content), &os.PathError{Op: "read", Path: "bodies/a", Err: unix.EIO}
	half := func(err error) io.Reader {
		return io.MultiReader(bytes.NewReader(content[:1<<10]), iotest.ErrReader(err))
	}
	if err := checkBody(sum, half(failed), io.Discard); !errors.Is(err, ledger.ErrDamaged) || !strings.Contains(err.Error(), "can't be read") {
		t.Errorf("a part that can't be read: %v", err)
	}
	if err := checkBody(sum, half(&os.PathError{Op: "read", Err: unix.ENOMEM}), io.Discard); err == nil || errors.Is(err, ledger.ErrDamaged) {
		t.Errorf("what may pass: %v", err)
	}
	if err := checkBody(sum, bytes.NewReader(content), failingWriter{failed}); !errors.Is(err, unix.EIO) || errors.Is(err, ledger.ErrDamaged) {
		t.Errorf("a copy that can't be written: %v", err)
	}
	if err := checkBody(sum, bytes.NewReader(content), io.Discard); err != nil {
		t.Error(err)
	}
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }
