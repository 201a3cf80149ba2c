package badgerstore

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	badger "github.com/dgraph-io/badger/v4"

	"keep-proxy/ledger"
	"keep-proxy/ledger/ledgertest"
)

// lossy is a ledger of which each of nine commits may be lost.
type lossy struct {
	*changing
	// files are the folder of its long bodies.
	files string
	short []byte
	body  ledger.Body
}

// versions are those of the records that come with each commit.
var versions = []map[string]int64{
	1: {"a": 1}, 2: {"b": 1}, 3: {"a": 2}, 4: {}, 5: {"c": 1}, 6: {"a": 3, "b": 2, "c": 2}, 7: {}, 8: {"a": 4, "b": 3}, 9: {"b": 4},
}

func newLossy(t *testing.T) *lossy {
	t.Helper()
	l := &lossy{short: bytes.Repeat([]byte("s"), smallBody+1)}
	a, b := ledgertest.SampleMutation("a", ledger.InFlight, 0), ledgertest.SampleMutation("b", ledger.InFlight, 1)
	c, gone := ledgertest.SampleMutation("c", ledger.InFlight, 2), ledgertest.SampleMutation("gone", ledger.NeedsReconcile, 3)
	run, item := ledgertest.SampleRun("run-1", 0), ledgertest.SampleItem("order-1", 0)
	item.ID, item.Shared, item.ActiveRun = "i-0123456789abcdef0123", true, "run-1"
	item.State = ledger.ItemNeedsAttention
	l.changing = changedBy(t, len(versions)-1, func(s *Store, n int) (err error) {
		for name, m := range map[string]*ledger.Mutation{"a": a, "b": b, "c": c} {
			if v := versions[n][name]; v > 0 {
				m.Version = v
			}
		}
		switch n {
		case 2:
			b.Request.Body, err = s.WriteBody(t.Context(), bytes.NewReader(long("b")))
		case 4:
			l.body, err = s.WriteBody(t.Context(), bytes.NewReader(l.short))
			return err
		}
		if err != nil {
			return err
		}
		return s.Update(t.Context(), func(tx ledger.Tx) error {
			tell := func(m *ledger.Mutation) { tx.Append(ledger.Event{What: fmt.Sprint("commit ", n), Mutation: m.ID}) }
			switch n {
			case 1:
				tell(a)
				tell(gone)
				tx.Append(ledger.Event{What: "of no mutation"})
				return errors.Join(tx.PutMutation(a), tx.PutMutation(gone), tx.PutItem(item), tx.PutRun(run))
			case 2:
				tell(b)
				return tx.PutMutation(b)
			case 3:
				tell(a)
				tell(gone)
				a.State, a.NextTryAt, gone.Version = ledger.NeedsReconcile, ledgertest.Epoch, 2
				gone.State = ledger.Applied
				return errors.Join(tx.PutMutation(a), tx.PutMutation(gone))
			case 5:
				tell(c)
				c.Request.Body = l.body
				return tx.PutMutation(c)
			case 6:
				tell(a)
				a.State, a.ConnectorVersion = ledger.Applied, 4
				return errors.Join(tx.PutMutation(a), tx.PutMutation(b), tx.PutMutation(c))
			case 7:
				run.Version, run.State, run.EndedAt = 2, ledger.RunFinished, ledgertest.Epoch
				item.Version, item.State, item.ActiveRun = 2, ledger.ItemDone, ""
				tx.Append(ledger.Event{What: "of no mutation"})
				return errors.Join(tx.PutRun(run), tx.PutItem(item), tx.DropMutation(gone))
			case 8:
				tell(b)
				b.State, b.Escalation = ledger.Indeterminate, &ledger.Escalation{ID: b.ID + "-1", OpenedAt: ledgertest.Epoch}
				return errors.Join(tx.PutMutation(a), tx.PutMutation(b))
			}
			run.Version, item.Version = 3, 3
			return errors.Join(tx.PutMutation(b), tx.PutRun(run), tx.PutItem(item))
		})
	})
	l.files = l.c.bodiesDir()
	return l
}

// left is what is left if Badger has these commits, and the log none any more.
func (l *lossy) left(t *testing.T, commits ...int) Config {
	t.Helper()
	c := l.given(t, commits...)
	remove(t, c.bodiesDir())
	if err := os.CopyFS(c.bodiesDir(), os.DirFS(l.files)); err != nil {
		t.Fatal(err)
	}
	if err := refusesOrKeeps(t, c, nil); !errors.Is(err, ledger.ErrDamaged) {
		t.Fatalf("%v, want ErrDamaged", err)
	}
	return c
}

func accept(t *testing.T, c Config) Loss {
	t.Helper()
	loss, err := AcceptLoss(t.Context(), c, "because", "ada")
	if err != nil {
		t.Fatal(err)
	}
	return loss
}

// TestWhateverIsLostAndAcceptedTheRestIsSound loses commits from between others, and at the end: what is
// left agrees with itself.
func TestWhateverIsLostAndAcceptedTheRestIsSound(t *testing.T) {
	t.Parallel()
	l := newLossy(t)
	for _, kept := range [][]int{
		{2, 3, 4, 5, 6, 7, 8, 9}, {1, 3, 4, 5, 6, 7, 8, 9}, {1, 2, 4, 5, 6, 7, 8, 9}, {1, 2, 3, 5, 6, 7, 8, 9},
		{1, 2, 3, 4, 6, 7, 8, 9}, {1, 2, 3, 4, 5, 7, 8, 9}, {1, 2, 3, 4, 5, 6, 8, 9}, {1, 2, 3, 4, 5, 6, 7, 9},
		{3, 6}, {1, 4, 7, 9}, {5, 8}, {1, 2}, {1, 2, 4, 5}, {}, {1, 2, 5}, {1, 2, 6},
	} {
		t.Run(fmt.Sprint(kept), func(t *testing.T) {
			t.Parallel()
			c := l.left(t, kept...)
			accept(t, c)
			if _, err := Verify(t.Context(), c, nil); err != nil {
				t.Errorf("verified at once: %v", err)
			}
			s := mustOpenOnly(t, c)
			l.holds(t, s, kept)
			if err := s.Update(t.Context(), puttingBody(l.short)); err != nil {
				t.Error(err)
			}
			if got, err := readAll(t, s, l.body); err != nil || !bytes.Equal(got, l.short) {
				t.Errorf("content that was written anew: %d bytes, %v", len(got), err)
			}
			fill(t, s, 0, 2, 10)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if _, err := Verify(t.Context(), c, nil); err != nil {
				t.Errorf("verified afterwards: %v", err)
			}
		})
	}
}

// holds wants what these commits leave, and all that isn't settled in the way.
func (l *lossy) holds(t *testing.T, s *Store, kept []int) {
	t.Helper()
	want := map[string]int64{}
	for _, n := range kept {
		maps.Copy(want, versions[n])
	}
	var blocking []string
	for _, name := range []string{"a", "b", "c"} {
		m, err := s.MutationByID(t.Context(), ledgertest.SampleMutation(name, ledger.Applied, 0).ID)
		if want[name] == 0 {
			if !errors.Is(err, ledger.ErrNotFound) {
				t.Errorf("%s: %+v, %v; it was lost", name, m, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		version := m.Version
		if m.State == ledger.InFlight {
			if !m.Dispatches[0].Lost {
				t.Errorf("%s has its sender still", name)
			}
			version-- // It was marked.
		}
		if version != want[name] {
			t.Errorf("%s is version %d, want %d", name, version, want[name])
		}
		if m.Unresolved() {
			blocking = append(blocking, m.ID)
		}
		events, err := s.Events(t.Context(), m.ID, 0, 0)
		for _, e := range events {
			if e.Mutation != m.ID {
				t.Errorf("%s lists an event of %q", name, e.Mutation)
			}
		}
		if err != nil {
			t.Errorf("events of %s: %v", name, err)
		}
		l.hasBody(t, s, m, slices.Contains(kept, 4))
	}
	if m, err := s.MutationByID(t.Context(), ledgertest.SampleMutation("gone", ledger.Applied, 0).ID); err == nil && m.Unresolved() {
		blocking = append(blocking, m.ID)
	}
	blockers, err := gateOf(s).BlockersOf("refunds")
	if err != nil || len(blockers) != len(blocking) {
		t.Errorf("%d block, want %v, %v", len(blockers), blocking, err)
	}
	for _, b := range blockers {
		if !slices.Contains(blocking, b.ID) {
			t.Errorf("%s blocks, want %v", b.ID, blocking)
		}
	}
}

// hasBody wants the content of a record's request, but for one that was lost.
func (l *lossy) hasBody(t *testing.T, s *Store, m *ledger.Mutation, kept bool) {
	t.Helper()
	content := map[string][]byte{l.body.SHA256: l.short}[m.Request.Body.SHA256]
	if m.Request.Body.Size > ledger.InlineBody {
		content, kept = long("b"), true // Its file is there.
	}
	got, err := readAll(t, s, m.Request.Body)
	switch {
	case content == nil || kept:
		if err != nil || !bytes.Equal(got, content) {
			t.Errorf("content of %s: %d bytes, %v", m.Target, len(got), err)
		}
	case !errors.Is(err, ledger.ErrBodyDropped):
		t.Errorf("lost content of %s: %v", m.Target, err)
	}
}

// puttingBody puts a body that nothing names.
func puttingBody(content []byte) func(ledger.Tx) error {
	return func(tx ledger.Tx) error {
		_, err := tx.PutBody(content)
		return err
	}
}

// A long content that is gone besides is no reason to lose the record that names it.
func TestWhatNamesLostContentStaysIfTheLossIsAccepted(t *testing.T) {
	t.Parallel()
	l := newLossy(t)
	c := l.left(t, 1, 2)
	remove(t, c.bodiesDir())
	if loss := accept(t, c); loss.Bodies != 1 {
		t.Errorf("loss %+v", loss)
	}
	s := mustOpen(t, c)
	m, err := s.MutationByID(t.Context(), ledgertest.SampleMutation("b", ledger.Applied, 0).ID)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := readAll(t, s, m.Request.Body); !errors.Is(err, ledger.ErrBodyDropped) {
		t.Errorf("its content: %v", err)
	}
}

// An accepted loss says which events are gone, in the ledger and in its event.
func TestAnAcceptedLossNamesTheEventsThatAreGone(t *testing.T) {
	t.Parallel()
	l := newLossy(t)
	c := l.left(t, 1, 2, 5, 6, 7, 9)
	if loss := accept(t, c); loss.Events != 3 || loss.Bodies != 1 {
		t.Errorf("loss %+v", loss)
	}
	s := mustOpen(t, c)
	events, err := s.Events(t.Context(), "", 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	if e := events[len(events)-1]; !strings.Contains(e.Evidence, "5 to 6, 10 to 10") {
		t.Errorf("evidence %q", e.Evidence)
	}
	gone := ledgertest.SampleMutation("gone", ledger.Applied, 0).ID
	if events, err := s.Events(t.Context(), gone, 0, 100); err != nil || len(events) != 1 {
		t.Errorf("of a record that was dropped: %+v, %v; want one event", events, err)
	}
	ignore := func([]byte, ledger.Event) error { return nil }
	if err := s.snapshot(func(src snapshot) error {
		return errors.Join(verifyEvents(src, s.tip, s.lost, ignore), must(verifyEvents(src, s.tip, nil, ignore)),
			must(verifyEvents(src, s.tip, append(slices.Clone(s.lost), lostStretch{First: s.tip.Seq + 2}), ignore)))
	}); err != nil {
		t.Error(err)
	}
}

// must makes an error of none.
func must(err error) error {
	if !errors.Is(err, ledger.ErrDamaged) {
		return fmt.Errorf("want ErrDamaged, not %w", err)
	}
	return nil
}

// What goes missing after a loss was accepted is damage, wherever it lies.
func TestDamageAfterAnAcceptedLossIsFound(t *testing.T) {
	t.Parallel()
	l := newLossy(t)
	c := l.left(t, 1, 2, 4, 5, 6, 7, 9)
	accept(t, c)
	sound, other := c, l.given(t, 1, 2, 3, 4, 5, 6, 7, 8, 9)
	first := ledgertest.SampleMutation("a", ledger.Applied, 0)
	for name, k := range map[string][]byte{
		"events before the hole":             numbered(kEvents, 1),
		"events between two holes":           numbered(kEvents, 7),
		"events of no mutation":              numbered(kEvents, 9),
		"events since":                       numbered(kEvents, 11),
		"what was lost":                      lostKey,
		"that a record is found":             mutationIndexes(first)[0],
		"a record":                           mutationKey(first.Key),
		"what a commit of the hole is about": nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := sound
			c.Dir = copyFolder(t, sound.Dir)
			if k == nil {
				transplant(t, other, c, numbered(kEvents, 5))
			} else {
				cutOut(t, c, k)
			}
			if _, err := Verify(t.Context(), c, nil); !errors.Is(err, ledger.ErrDamaged) {
				t.Errorf("%v, want ErrDamaged", err)
			}
		})
	}
	if _, err := Verify(t.Context(), sound, nil); err != nil {
		t.Error(err)
	}
}

// A record that can't be read is damage before a loss was accepted and after, and nothing that
// keeps the rest from going on.
func TestARecordThatIsDamagedStaysSo(t *testing.T) {
	t.Parallel()
	l := newLossy(t)
	c := l.left(t, 1, 2, 3, 4, 5, 6, 7, 9)
	db, err := openEngine(c.engineOptions())
	if err != nil {
		t.Fatal(err)
	}
	k := mutationKey(ledgertest.SampleMutation("a", ledger.Applied, 0).Key)
	err = db.Update(func(txn *badger.Txn) error { return txn.Set(k, []byte("what no seal is about")) })
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	accept(t, c)
	if _, err := Verify(t.Context(), c, nil); !errors.Is(err, ledger.ErrDamaged) || !strings.Contains(err.Error(), keyName(k)) {
		t.Errorf("%v, want the record's damage", err)
	}
}

// That a loss from between others was accepted doesn't make each later one a loss of all times.
func TestALossAfterAnAcceptedOneBeganAtTheEnd(t *testing.T) {
	t.Parallel()
	l := newLossy(t)
	c := l.left(t, 1, 2, 4, 5, 6, 7, 8, 9)
	c.HighWaterFile = filepath.Join(t.TempDir(), "highwater")
	accept(t, c)
	s := mustOpenOnly(t, c)
	fill(t, s, 0, 1, 10)
	emptied(t, s)
	older := copyFolder(t, c.Dir)
	fill(t, s, 1, 2, 10)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	c.Dir = older
	accept(t, c)
	gaps := gapsOf(t, mustOpen(t, c))
	if len(gaps) != 2 || !gaps[0].Since.IsZero() || gaps[1].Since.IsZero() {
		t.Errorf("gaps %+v", gaps)
	}
}

// transplant copies a value from one ledger's engine to another's.
func transplant(t *testing.T, from, to Config, k []byte) {
	t.Helper()
	var sealed []byte
	for _, at := range []Config{from, to} {
		db, err := openEngine(at.engineOptions())
		if err != nil {
			t.Fatal(err)
		}
		err = db.Update(func(txn *badger.Txn) (err error) {
			if sealed != nil {
				return txn.Set(k, sealed)
			}
			sealed, err = snapshot{txn: txn}.raw(k)
			return err
		})
		if err := errors.Join(err, db.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

// After a loss was accepted the ledger goes on with a log of its own: what the one before held behind the
// hole is never folded over what follows.
func TestNothingOfBeforeIsFoldedAfterAnAcceptedLoss(t *testing.T) {
	t.Parallel()
	l := newLossy(t)
	c := l.left(t, 1, 2)
	l.logWithout(t, c, 3)
	if err := refusesOrKeeps(t, c, nil); !errors.Is(err, ledger.ErrDamaged) {
		t.Fatalf("%v, want ErrDamaged", err)
	}
	accept(t, c)
	s := mustOpenOnly(t, c)
	keys := fill(t, s, 0, 8, 10)
	crashed := testConfig(copyFolder(t, c.Dir))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []Config{crashed, c} {
		s := mustOpen(t, c)
		l.holds(t, s, []int{1, 2})
		goesOnIn(t, s, keys)
	}
}
