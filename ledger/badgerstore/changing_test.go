package badgerstore

import (
	"bytes"
	"encoding/binary"
	"os"
	"slices"
	"testing"
	"time"

	badger "github.com/dgraph-io/badger/v4"

	"keep-proxy/ledger"
	"keep-proxy/ledger/badgerstore/wal"
)

// changing is a ledger as it was before some commits, and what each of them changed.
type changing struct {
	c Config
	// older is its folder as of the beginning, log the log at the end.
	older string
	log   []byte
	after []frame
}

// changedBy is a ledger after so many commits, of which commit makes each.
func changedBy(t *testing.T, commits int, commit func(s *Store, n int) error) *changing {
	t.Helper()
	h := &changing{c: testConfig(t.TempDir())}
	s := mustOpenOnly(t, h.c)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	h.older = copyFolder(t, h.c.Dir)
	h.c.calm = time.Hour
	s = mustOpenOnly(t, h.c)
	for n := range commits {
		if err := commit(s, n+1); err != nil {
			t.Fatal(err)
		}
	}
	end := testConfig(copyFolder(t, h.c.Dir))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	var err error
	if h.log, err = os.ReadFile(end.logPath()); err != nil {
		t.Fatal(err)
	}
	l, err := openLog(end)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := l.Replay(func(head wal.Head, content []byte) error {
		f, err := parseFrame(head.Number, content)
		h.after = append(h.after, f)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	h.after = h.after[len(h.after)-commits:]
	return h
}

// given is the older copy, to whose Badger these commits were folded, each by itself, with a log that has
// none of them any more.
func (h *changing) given(t *testing.T, commits ...int) Config {
	t.Helper()
	c := testConfig(copyFolder(t, h.older))
	db, err := openEngine(c.engineOptions())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}()
	first := h.after[0].tip.Commit
	if err := db.Update(func(txn *badger.Txn) error { // What came before them: the end of one epoch, the beginning of the next.
		l := newWrites(nil)
		folded, _, err := readFolds(snapshot{txn: txn}, tip{})
		if err != nil {
			return err
		}
		folded.Commit++
		before := folded
		before.Commit = first - 1
		if err := l.putValue(foldKey(first-1, 0), foldRecord{First: folded.Commit, Tip: before, Parts: 1}); err != nil {
			return err
		}
		return l.apply(txn)
	}); err != nil {
		t.Fatal(err)
	}
	for _, n := range commits {
		f := h.after[n-1]
		if err := db.Update(func(txn *badger.Txn) error {
			l := newWrites(nil)
			if err := l.putValue(foldKey(f.tip.Commit, 0), foldRecord{First: f.tip.Commit, Tip: f.tip, Parts: 1}); err != nil {
				return err
			}
			return applyAll(txn, slices.Concat(f.entries, l.writes))
		}); err != nil {
			t.Fatal(err)
		}
	}
	if err := createLog(c, h.after[len(h.after)-1].tip.Commit); err != nil {
		t.Fatal(err)
	}
	return c
}

// logWithout gives c the log as it was, of which no copy of a commit's frame can be read.
func (h *changing) logWithout(t *testing.T, c Config, commit int) {
	t.Helper()
	const page, number, content = 4096, 24, 200
	b := bytes.Clone(h.log)
	damaged := 0
	for at := 2 * page; at < len(b); at += page {
		if binary.BigEndian.Uint64(b[at+number:]) == h.after[commit-1].tip.Commit {
			b[at+content] ^= 1
			damaged++
		}
	}
	if err := os.WriteFile(c.logPath(), b, 0o600); err != nil || damaged != 2 {
		t.Fatalf("%d copies damaged, %v", damaged, err)
	}
}

// goesOnIn wants the open ledger to hold keys, and adds to it.
func goesOnIn(t *testing.T, s *Store, keys []ledger.Key) {
	t.Helper()
	for _, k := range keys {
		if m := seen(t, s, k); m.Key != k {
			t.Errorf("under %s lies %s", k, m.Key)
		}
	}
	fill(t, s, 2000, 1, 10)
}
