package badgerstore

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"keep-proxy/ledger"
	"keep-proxy/ledger/ledgertest"
)

func (l *backlog) addChanges(n uint64, changes ...entry) {
	var list []delta
	c := newChanged(newHorizon(), l)
	for _, e := range changes {
		list = append(list, delta{entry: e, hash: c.hash(e.key)})
	}
	l.add(list, journalEnd{tip{Commit: n}, int64(n)})
}

func keyChange(k, v string) entry {
	if v == "" {
		return entry{key: []byte(k)}
	}
	return entry{[]byte(k), []byte(v)}
}

// look says what lies under the keys a to e: a value, - where it was removed, . where the backlog
// doesn't know.
func (l *backlog) look(parcels []*parcel) string {
	var out strings.Builder
	for _, k := range []string{"a", "b", "c", "d", "e"} {
		sealed, ok := l.value([]byte(k))
		if parcels != nil {
			sealed, ok = l.valueIn(parcels, newChanged(nil, l).hash([]byte(k)), []byte(k))
		}
		switch {
		case !ok:
			out.WriteByte('.')
		case sealed == nil:
			out.WriteByte('-')
		default:
			out.Write(sealed)
		}
	}
	return out.String()
}

func TestTheBacklogHoldsWhatTheEngineLacks(t *testing.T) {
	t.Parallel()
	l := newBacklog()
	if l.next() != nil {
		t.Error("there is something to give")
	}
	l.addChanges(1, keyChange("a", "1"), keyChange("b", "1"), keyChange("c", ""))
	l.addChanges(2, keyChange("a", "2"), keyChange("b", ""), keyChange("c", "2"))
	if got := l.look(nil); got != "2-2.." {
		t.Errorf("two commits: %s", got)
	}
	first := l.next()
	if first.end.tip.Commit != 2 || len(first.list) != 3 {
		t.Errorf("%d changes up to commit %d are given, want 3 up to 2", len(first.list), first.end.tip.Commit)
	}
	l.addChanges(3, keyChange("a", ""), keyChange("d", "3"))
	if got := l.look(nil); got != "--23." {
		t.Errorf("while the first two are given: %s", got)
	}
	batch := l.parcels()
	if got := l.look(batch); got != "--23." {
		t.Errorf("a batch that is begun now: %s", got)
	}
	l.leave()
	if got := l.look(nil); got != "-..3." {
		t.Errorf("once they were given: %s", got)
	}
	l.next()
	l.leave()
	l.addChanges(4, keyChange("e", "4"))
	if got := l.look(nil); got != "....4" {
		t.Errorf("with all before the last: %s", got)
	}
	// Whatever comes, what the batch looks into stays as it is.
	l.next()
	l.leave()
	l.addChanges(5, keyChange("a", "5"))
	if got := l.look(batch); got != "--23." {
		t.Errorf("the batch sees %s later", got)
	}
	var below []string
	l.overlayIn(batch, nil, func(e entry) { below = append(below, string(e.key)+string(e.sealed)) })
	if got := strings.Join(below, " "); got != "a2 b c2 a d3" {
		t.Errorf("the batch lists %s, want older changes first", got)
	}
}

// What the engine gets at once must fit into one transaction of it.
func TestTheBacklogTakesNoMoreThanTheEngineDoes(t *testing.T) {
	t.Parallel()
	l := newBacklog()
	if !l.takes(2 * maxBatch) {
		t.Error("an empty one refuses a commit")
	}
	l.addChanges(1, keyChange("a", strings.Repeat("x", maxBatch/2)))
	if l.addChanges(2, keyChange("a", strings.Repeat("y", maxBatch/2))); !l.takes(maxBatch/2 - 1024) {
		t.Error("what was written over counts twice")
	}
	if l.takes(maxBatch / 2) {
		t.Error("it takes more than the engine does")
	}
}

// readBy reads a record that was acknowledged.
func readBy(ctx context.Context, by func(context.Context, func(ledger.View) error) error, k ledger.Key) (m *ledger.Mutation, err error) {
	err = by(ctx, func(v ledger.View) (err error) {
		m, err = v.Mutation(k)
		return err
	})
	return m, err
}

// TestEachReadSeesWhatTheEngineLacks reads a record that was just acknowledged, one that lies in
// parts, and one that was removed, before the engine has been given any of it.
func TestEachReadSeesWhatTheEngineLacks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(m *ledger.Mutation) func(ledger.Tx) error
		want   string
	}{
		"a record": {func(m *ledger.Mutation) func(ledger.Tx) error {
			m.Version, m.Target = 2, "changed"
			return func(tx ledger.Tx) error { return tx.PutMutation(m) }
		}, "changed"},
		"a record in parts": {func(m *ledger.Mutation) func(ledger.Tx) error {
			m.Version, m.Target, m.Reason = 2, "in parts", strings.Repeat("x", partSize+1)
			return func(tx ledger.Tx) error { return tx.PutMutation(m) }
		}, "in parts"},
		"one that was removed": {func(m *ledger.Mutation) func(ledger.Tx) error {
			return func(tx ledger.Tx) error { return tx.DropMutation(m) }
		}, ledger.ErrNotFound.Error()},
	} {
		for way, read := range map[string]func(*Store, context.Context, func(ledger.View) error) error{
			"a view": (*Store).View,
			"a command": func(s *Store, ctx context.Context, fn func(ledger.View) error) error {
				return s.Update(ctx, func(tx ledger.Tx) error { return fn(tx) })
			},
		} {
			t.Run(name+" by "+way, func(t *testing.T) {
				t.Parallel()
				config := testConfig(t.TempDir())
				config.journal = 8 << 20 // A record in parts has room there.
				s := mustOpen(t, config)
				m := ledgertest.SampleMutation("a", ledger.NeedsReconcile, 0)
				if err := s.do(t.Context(), putting(m)); err != nil {
					t.Fatal(err)
				}
				allGiven(t, s)
				if err := s.Update(t.Context(), c.change(m)); err != nil {
					t.Fatal(err)
				}
				if given := s.giving.given.Load(); given >= s.horizon.durable.Load() {
					t.Error("the engine has it: this shows nothing")
				}
				got, err := readBy(t.Context(), func(ctx context.Context, fn func(ledger.View) error) error { return read(s, ctx, fn) }, m.Key)
				if err == nil && got.Target != c.want || err != nil && err.Error() != c.want {
					t.Errorf("%+v, %v; want %s", got, err, c.want)
				}
			})
		}
	}
}

// A command reads what the one before has put, in whichever of the batches, the parcels and the
// engine that lies as it is begun, and while it is evaluated.
func TestACommandReadsWhatTheOneBeforeHasPut(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, testConfig(t.TempDir()))
	k := numbered(kPending, 1<<40)
	done := make(chan struct{})
	var readers sync.WaitGroup
	readers.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				allGiven(t, s)
			}
		}
	})
	for n := range uint64(500) {
		err := s.do(t.Context(), func(tx *tx) error {
			content, err := tx.layer.get(k)
			if n > 0 && (err != nil || binary.BigEndian.Uint64(content) != n) {
				return fmt.Errorf("%x, %w is read, want %d", content, err, n)
			}
			return tx.layer.put(k, binary.BigEndian.AppendUint64(nil, n+1))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	close(done)
	readers.Wait()
	if err := s.do(t.Context(), func(tx *tx) error { tx.layer.remove(k); return nil }); err != nil {
		t.Fatal(err)
	}
}

// A listing that is asked for after an answer has what was answered for.
func TestAllThatWasAnsweredIsListed(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, testConfig(t.TempDir()))
	for n := range 20 {
		fill(t, s, n, 1, 10)
		if page, err := s.Mutations(t.Context(), ledger.Filter{}); err != nil || len(page.Items) != n+1 {
			t.Errorf("%d records are listed, %v; want %d", len(page.Items), err, n+1)
		}
	}
}

// Commits that the engine got at once have one number there: that the later one isn't behind the
// one before it says nothing.
func TestCommitsThatWereGivenAtOnceAreThere(t *testing.T) {
	t.Parallel()
	h := newChanging(t, 5)
	for name, c := range map[string]struct {
		given [][]int
		back  bool
	}{
		"all at once":           {[][]int{{1, 2, 3, 4, 5}}, false},
		"by two and three":      {[][]int{{1, 2}, {3, 4, 5}}, false},
		"and the end was lost":  {[][]int{{1, 2, 3}}, true},
		"the beginning is lost": {[][]int{{3, 4, 5}}, true},
		"the beginning is back": {[][]int{{3, 4, 5}, {1, 2}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := h.givenAtOnce(t, 5, c.given...)
			var log bytes.Buffer
			config.Logger = zerolog.New(&log)
			s := mustOpen(t, config)
			if back := strings.Contains(log.String(), "put back"); back != c.back {
				t.Errorf("put back: %t, want %t", back, c.back)
			}
			if m := seen(t, s, h.record.Key); m.Version != 5 {
				t.Errorf("version %d, want 5", m.Version)
			}
		})
	}
}

// A process that is killed leaves in the journal what the engine lacks.
func TestWhatTheEngineLacksOutlivesTheProcess(t *testing.T) {
	t.Parallel()
	c := testConfig(t.TempDir())
	s := mustOpenOnly(t, c)
	keys := fill(t, s, 0, 40, 10)
	if given := s.giving.given.Load(); given >= s.horizon.durable.Load() {
		t.Fatal("the engine has all of it: this shows nothing")
	}
	if err := refusesOrKeeps(t, testConfig(copyFolder(t, c.Dir)), keys); err != nil {
		t.Errorf("refused: %v", err)
	}
}

// Once no command has come for a while the engine gets all, without being asked for it.
func TestARestGivesTheEngineAll(t *testing.T) {
	t.Parallel()
	c := testConfig(t.TempDir())
	c.calm = 10 * time.Millisecond
	s := mustOpen(t, c)
	fill(t, s, 0, 3, 10)
	for late := time.Now().Add(time.Minute); s.giving.given.Load() < s.horizon.durable.Load(); runtime.Gosched() {
		if time.Now().After(late) {
			t.Fatalf("the engine has commit %d of %d", s.giving.given.Load(), s.horizon.durable.Load())
		}
	}
}

// Up to the mark all is durable in the engine's log, so it must not move before that is synced.
func TestTheMarkWaitsForTheLog(t *testing.T) {
	t.Parallel()
	if !ownLogSync {
		t.Skip("Badger syncs its log itself here")
	}
	c := testConfig(t.TempDir())
	c.journal = 64 << 10
	h := newHeldLog(&c)
	s := mustOpen(t, c)
	marked := func() uint64 {
		a, err := readHighWater(c.highWaterPath())
		if err != nil {
			t.Fatal(err)
		}
		return a.mark.Tip.Commit
	}
	h.arm()
	n, before := 0, s.giving.durably().tip.Commit
	for half := false; !half; n++ {
		fill(t, s, n, 1, 10)
		<-s.turn
		half = s.water.wantsRoom()
		s.turn <- struct{}{}
	}
	<-h.begun
	for end := n + 2; n < end; n++ { // Each of these finds the journal half full.
		fill(t, s, n, 1, 10)
	}
	if now := marked(); now > before {
		t.Errorf("the mark moved from commit %d to %d before the log was synced", before, now)
	}
	h.letGo()
	fill(t, s, n, 40, 10)
	if now := marked(); now <= before {
		t.Errorf("the mark is at commit %d still", now)
	}
}

// While the log of the engine is synced, commits go on.
func TestCommitsGoOnWhileTheEngineIsGivenSomething(t *testing.T) {
	t.Parallel()
	if !ownLogSync {
		t.Skip("Badger syncs its log itself here")
	}
	c := testConfig(t.TempDir())
	c.journal = 64 << 10
	h := newHeldLog(&c)
	s := mustOpen(t, c)
	keys := fill(t, s, 0, 2, 10)
	h.arm()
	before := s.horizon.durable.Load()
	s.giving.want(before, true)
	<-h.begun
	keys = append(keys, fill(t, s, len(keys), 2, 10)...)
	if s.horizon.durable.Load() < before+2 {
		t.Error("commits wait for the engine")
	}
	h.letGo()
	// More than the journal has room for.
	keys = append(keys, fill(t, s, len(keys), 40, 10)...)
	goesOnIn(t, s, keys)
}
