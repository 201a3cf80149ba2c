package badgerstore

import (
	"errors"
	"math/rand/v2"
	"os"
	"reflect"
	"testing"

	"keep-proxy/ledger"
)

// smallJournal is short enough that a few commits go around it.
const smallJournal = 64 << 10

// testWater is a high-water file of its own, with its journal, as of an open ledger.
type testWater struct {
	*highWater
	c      Config
	random *rand.Rand
	// marked is the tip of its mark, after are the commits since.
	marked tip
	after  []journaled
}

func newTestWater(t *testing.T, seed uint64) *testWater {
	t.Helper()
	w := &testWater{c: testConfig(t.TempDir()), random: rand.New(rand.NewPCG(seed, 1)), marked: tip{Commit: 7, Link: [32]byte{7}}}
	w.c.journal = smallJournal
	if err := createHighWater(w.c, "test", "", w.marked); err != nil {
		t.Fatal(err)
	}
	var err error
	if w.highWater, err = openHighWater(w.c, w.marked, "first", ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.close() })
	return w
}

func (w *testWater) tip() tip {
	if n := len(w.after); n > 0 {
		return w.after[n-1].tip
	}
	return w.marked
}

// next is a commit after the last one, whose record has about so many bytes.
func (w *testWater) next(size int) journaled {
	last := w.tip()
	j := journaled{tip: tip{Commit: last.Commit + 1, Seq: w.random.Uint64(), At: w.random.Int64()}, before: last.Link}
	fillRandom(w.random, j.tip.Link[:])
	fillRandom(w.random, j.tip.Hash[:])
	value := make([]byte, size)
	fillRandom(w.random, value)
	j.changes = []delta{{entry: entry{key: []byte("k")}}, {entry: entry{key: []byte("m"), sealed: value}}}
	return j
}

func fillRandom(r *rand.Rand, b []byte) {
	for i := range b {
		b[i] = byte(r.Uint32())
	}
}

// keep appends a commit.
func (w *testWater) keep(j journaled) (kept bool, err error) {
	w.take(j)
	return w.append()
}

// write appends a commit, and returns what the file held before.
func (w *testWater) write(t *testing.T, size int) (before []byte) {
	t.Helper()
	before = w.content(t)
	j := w.next(size)
	kept, err := w.keep(j)
	if err != nil || !kept {
		t.Fatalf("commit %d: kept %t, %v", j.tip.Commit, kept, err)
	}
	w.after = append(w.after, j)
	return before
}

func (w *testWater) empty(t *testing.T) {
	t.Helper()
	if err := w.settle(journalEnd{w.tip(), w.written}); err != nil {
		t.Fatal(err)
	}
	w.marked, w.after = w.tip(), nil
}

func (w *testWater) content(t *testing.T) []byte {
	t.Helper()
	b, err := os.ReadFile(w.c.highWaterPath())
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// expect reads b as the file and wants the mark and so many of the commits after it.
func (w *testWater) expect(t *testing.T, what string, b []byte, commits int) {
	t.Helper()
	a, err := parseHighWater("highwater", b)
	if err != nil {
		t.Errorf("%s: %v", what, err)
		return
	}
	if a.mark.Tip != w.marked {
		t.Errorf("%s: the mark is %d, want %d", what, a.mark.Tip.Commit, w.marked.Commit)
	}
	if len(a.after) != commits {
		t.Errorf("%s: %d commits, want %d", what, len(a.after), commits)
		return
	}
	for n, j := range a.after {
		if !reflect.DeepEqual(j, w.after[n]) {
			t.Errorf("%s: commit %d isn't what was written", what, j.tip.Commit)
		}
	}
}

// refuses wants b to be refused as damaged.
func (w *testWater) refuses(t *testing.T, what string, b []byte) {
	t.Helper()
	if a, err := parseHighWater("highwater", b); !errors.Is(err, ledger.ErrDamaged) {
		t.Errorf("%s: %d commits, %v; want ErrDamaged", what, len(a.after), err)
	}
}

// place is where the last commit lies in either copy.
func (w *testWater) place() (from, to [2]int) {
	n := len(w.after[len(w.after)-1].appendTo(nil, w.mark.Key))
	for half := range 2 {
		to[half] = marksSize + half*smallJournal + int(w.at)
		from[half] = to[half] - n
	}
	return from, to
}
