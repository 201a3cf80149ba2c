package badgerstore

import (
	"bytes"
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"keep-proxy/ledger"
	"keep-proxy/ledger/ledgertest"
)

// letGo drops the result of the named record, as retention does.
func letGo(t *testing.T, s *Store, name string) {
	t.Helper()
	k := ledgertest.SampleMutation(name, ledger.Applied, 0).Key
	if err := s.Update(t.Context(), func(tx ledger.Tx) error {
		m, err := tx.Mutation(k)
		if err != nil {
			return err
		}
		m.Version++
		m.Result.Body.Dropped = true
		return tx.PutMutation(m)
	}); err != nil {
		t.Fatal(err)
	}
}

// stored reports whether anything is kept of a body.
func stored(t *testing.T, s *Store, b ledger.Body) bool {
	t.Helper()
	b.Dropped = false
	_, err := readAll(t, s, b)
	if err != nil && !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("body %s: %v", b.SHA256, err)
	}
	return err == nil
}

func mustSweep(t *testing.T, s *Store) Swept {
	t.Helper()
	done, err := s.SweepBodies(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return done
}

func TestSweepRemovesWhatNoRecordNames(t *testing.T) {
	t.Parallel()
	c := testConfig(t.TempDir())
	s := mustOpen(t, c)
	dropped, kept := putBody(t, s, "a", long("a")), putBody(t, s, "b", long("b"))
	inline := putBody(t, s, "c", []byte(strings.Repeat("c", 20<<10)))
	putNaming(t, s, "e", kept)
	if done := mustSweep(t, s); done != (Swept{}) {
		t.Errorf("all is named: %+v", done)
	}
	for _, name := range []string{"a", "b", "c"} {
		letGo(t, s, name)
	}
	// What a crash leaves between value and file.
	orphan := bodyFileName("orphan")
	for _, name := range []string{orphan, orphan + ".damaged"} {
		if err := os.WriteFile(c.bodyPath(name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if done := mustSweep(t, s); done.Bodies != 2 || done.Bytes != dropped.Size+inline.Size || done.Orphans != 1 {
		t.Errorf("%+v", done)
	}
	if stored(t, s, dropped) || stored(t, s, inline) || !stored(t, s, kept) {
		t.Error("the wrong ones are kept")
	}
	if left := names(t, c.bodiesDir()); !slices.Equal(left, slices.Sorted(slices.Values([]string{kept.SHA256, orphan + ".damaged"}))) {
		t.Errorf("files left: %v", left)
	}
	// The same content comes again.
	if again := putBody(t, s, "f", long("a")); !stored(t, s, again) {
		t.Error("content that was swept can't be kept again")
	}
	if done := mustSweep(t, s); done != (Swept{}) {
		t.Errorf("nothing is left to do: %+v", done)
	}
}

func bodyFileName(content string) string { return ledgertest.SampleBody([]byte(content)).SHA256 }

// TestSweepGivesWayToNewNames lets bodies be named anew between the look at the records
// and the removal.
func TestSweepGivesWayToNewNames(t *testing.T) {
	t.Parallel()
	c := testConfig(t.TempDir())
	s := mustOpen(t, c)
	contents := map[string][]byte{"inline": []byte(strings.Repeat("i", 20<<10)), "file": long("f")}
	for name, content := range contents {
		b := putBody(t, s, name, content)
		letGo(t, s, name)
		sum, err := bodySum(b)
		if err != nil {
			t.Fatal(err)
		}
		remove := func() (done Swept) {
			if err := s.removeBodies(t.Context(), [][32]byte{[32]byte(sum)}, &done); err != nil {
				t.Fatal(err)
			}
			return done
		}
		if err := s.beginNaming(t.Context()); err != nil {
			t.Fatal(err)
		}
		// Kept, and not named yet.
		f, err := s.Spool()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write(content); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Keep(t.Context()); err != nil {
			t.Fatal(err)
		}
		if done := remove(); done.Bodies != 0 || !stored(t, s, b) {
			t.Errorf("%s: swept while a record was about to name it: %+v", name, done)
		}
		putNaming(t, s, name+" again", b)
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		if done := remove(); done.Bodies != 0 || !stored(t, s, b) {
			t.Errorf("%s: swept although a record named it: %+v", name, done)
		}
		if err := s.endNaming(); err != nil {
			t.Fatal(err)
		}
		if done := mustSweep(t, s); done != (Swept{}) {
			t.Errorf("%s: %+v", name, done)
		}
	}
}

// TestBodyComesAgainWhileItIsSwept keeps content after its value was removed, and before
// its file is.
func TestBodyComesAgainWhileItIsSwept(t *testing.T) {
	t.Parallel()
	remove := func(s *Store, b ledger.Body) error { return s.pending.removed(b.SHA256, true) }
	comesAgain(t, remove, func(*Store, ledger.Body) error { return nil })
}

// TestBodyIsNamedAgainBeforeItsSweepEnds has all who want it gone before the file would be
// removed, as when the sweep has many to remove.
func TestBodyIsNamedAgainBeforeItsSweepEnds(t *testing.T) {
	t.Parallel()
	remove := func(s *Store, b ledger.Body) error { return s.pending.removed(b.SHA256, true) }
	comesAgain(t, func(*Store, ledger.Body) error { return nil }, remove)
}

// comesAgain keeps swept content after its value was removed; kept is called then, and
// named once a record names it.
func comesAgain(t *testing.T, kept, named func(*Store, ledger.Body) error) {
	t.Helper()
	c := testConfig(t.TempDir())
	s := mustOpen(t, c)
	b := putBody(t, s, "a", long("a"))
	letGo(t, s, "a")
	sum, err := bodySum(b)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.beginNaming(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.do(context.Background(), func(t *tx) error {
		_, err := t.dropBodies([][32]byte{[32]byte(sum)})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	f, err := s.Spool()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(long("a")); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Keep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := kept(s, b); err != nil {
		t.Fatal(err)
	}
	putNaming(t, s, "b", b)
	if err := errors.Join(f.Close(), named(s, b), s.endNaming()); err != nil {
		t.Fatal(err)
	}
	if got, err := readAll(t, s, b); err != nil || !bytes.Equal(got, long("a")) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

// TestBodyWrittenTwiceBeforeItIsNamed has two who write the same, and one who names it.
func TestBodyWrittenTwiceBeforeItIsNamed(t *testing.T) {
	t.Parallel()
	for name, content := range map[string][]byte{"short": []byte(strings.Repeat("s", 20<<10)), "long": long("l")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := mustOpenOnly(t, testConfig(t.TempDir()))
			for range 2 {
				if _, err := s.WriteBody(t.Context(), bytes.NewReader(content)); err != nil {
					t.Fatal(err)
				}
			}
			b := ledgertest.SampleBody(content)
			putNaming(t, s, "a", b)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if again := mustOpen(t, s.config); !stored(t, again, b) {
				t.Error("what a record names was swept at the next start")
			}
		})
	}
}

// TestBodyWrittenWhileItIsSwept has content that nobody names written, and named after the
// sweep came by.
func TestBodyWrittenWhileItIsSwept(t *testing.T) {
	t.Parallel()
	for name, content := range map[string][]byte{"short": []byte(strings.Repeat("s", 20<<10)), "long": long("l")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := mustOpen(t, testConfig(t.TempDir()))
			putBody(t, s, "a", content)
			letGo(t, s, "a")
			b, err := s.WriteBody(t.Context(), bytes.NewReader(content))
			if err != nil {
				t.Fatal(err)
			}
			if done := mustSweep(t, s); done != (Swept{}) {
				t.Errorf("swept while a record was about to name it: %+v", done)
			}
			putNaming(t, s, "b", b)
			if !stored(t, s, b) {
				t.Error("it is gone")
			}
		})
	}
}

func TestScrub(t *testing.T) {
	t.Parallel()
	c := testConfig(t.TempDir())
	s := mustOpenOnly(t, c)
	keys := fill(t, s, 0, 40, 20<<10)
	damagedBody, sound := putBody(t, s, "a", long("a")), putBody(t, s, "b", long("b"))
	if err := os.WriteFile(c.bodyPath(damagedBody.SHA256), long("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	seen := map[ledger.Key]bool{}
	reports := 0
	done, err := s.Scrub(t.Context(), func(m *ledger.Mutation) error { seen[m.Key] = true; return nil }, func(Scrubbed) error { reports++; return nil })
	if err != nil || done.Bodies != 2 || !slices.Equal(done.Damaged, []string{damagedBody.SHA256}) || reports < 3 {
		t.Errorf("%+v, %d reports, %v", done, reports, err)
	}
	for _, k := range keys {
		if !seen[k] {
			t.Errorf("record %s was left out", k.ID())
		}
	}
	if err := s.Healthy(); err != nil || !stored(t, s, sound) {
		t.Errorf("a damaged body stopped the ledger: %v", err)
	}
	cause := errors.New("enough")
	if _, err := s.Scrub(t.Context(), func(*ledger.Mutation) error { return cause }, nil); !errors.Is(err, cause) {
		t.Errorf("a visitor that fails: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Scrub(ctx, nil, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("a scrub that is called off: %v", err)
	}
	// A value that is another's: nobody asked for it, and the scrub finds it.
	if err := s.do(t.Context(), func(tx *tx) error {
		sealed, err := tx.layer.raw(mutationKey(keys[0]))
		tx.layer.set(mutationKey(ledger.Key{1}), sealed, nil)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Scrub(t.Context(), nil, nil); !errors.Is(err, ledger.ErrDamaged) {
		t.Errorf("a damaged value: %v", err)
	}
	if err := s.Update(t.Context(), func(ledger.Tx) error { return nil }); !errors.Is(err, ledger.ErrUnavailable) {
		t.Errorf("damage that the scrub found doesn't stop the ledger: %v", err)
	}
}
