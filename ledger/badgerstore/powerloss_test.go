package badgerstore

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/rs/zerolog"

	"keep-proxy/ledger"
	"keep-proxy/ledger/ledgertest"
)

// lose makes a folder of what a loss of power may leave of dir now: of each log of the engine,
// any of the pages that were written since it was synced are lost, in one log others than in
// the next. durable are the logs when they were synced, names those of them that were listed.
func lose(t *testing.T, random *rand.Rand, dir string, durable map[string][]byte, names map[string]bool) string {
	t.Helper()
	left := filepath.Join(t.TempDir(), "left")
	from, to := filepath.Join(dir, "data"), filepath.Join(left, "data")
	if err := os.MkdirAll(to, 0o700); err != nil {
		t.Fatal(err)
	}
	logs, err := filepath.Glob(filepath.Join(from, "*"+logSuffix))
	if err != nil {
		t.Fatal(err)
	}
	// Before the manifest: what is flushed meanwhile lies in logs and in tables.
	for _, path := range logs {
		now, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(path)
		if !names[name] && random.IntN(2) == 0 {
			continue
		}
		size, was := len(now), durable[name]
		now = now[:used(now)]
		chance := random.IntN(3)
		for at := 0; at < len(now); at += journalPage {
			if random.IntN(2) < chance {
				page := now[at:min(at+journalPage, len(now))]
				n := copy(page, was[min(at, len(was)):])
				clear(page[n:])
			}
		}
		target := filepath.Join(to, name)
		if err := errors.Join(os.WriteFile(target, now, 0o600), os.Truncate(target, int64(size))); err != nil {
			t.Fatal(err)
		}
	}
	for _, pattern := range []string{"ledger.id", "highwater", "data/MANIFEST", "data/*.sst", "data/*.vlog", "data/KEYREGISTRY", "data/DISCARD"} {
		paths, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			content, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			name, _ := filepath.Rel(dir, path)
			if err := os.WriteFile(filepath.Join(left, name), content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	return left
}

// logsOf reads the engine's logs, all of which are durable.
func logsOf(t *testing.T, dir string) (durable map[string][]byte, names map[string]bool) {
	t.Helper()
	durable, names = map[string][]byte{}, map[string]bool{}
	logs, err := filepath.Glob(filepath.Join(dir, "data", "*"+logSuffix))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range logs {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		durable[filepath.Base(path)], names[filepath.Base(path)] = b[:used(b)], true
	}
	return durable, names
}

// goesOn opens a ledger that must hold keys, adds to it, and verifies it whole.
func goesOn(t *testing.T, c Config, keys []ledger.Key) {
	t.Helper()
	if err := refusesOrKeeps(t, c, keys); err != nil {
		t.Errorf("refused: %v", err)
		return
	}
	s := mustOpenOnly(t, c)
	fill(t, s, 1000, 2, 10)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := Verify(context.Background(), c, nil); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// TestWhatTheEngineLosesIsPutBack takes the power away at random moments around the change from
// one log of the engine to the next: of the ledger that is used, and once more while what was
// lost is put back.
func TestWhatTheEngineLosesIsPutBack(t *testing.T) {
	t.Parallel()
	if !ownLogSync {
		t.Skip("Badger syncs its log itself here")
	}
	lost, again := 0, 0
	for seed := range uint64(6) {
		if !proving() && (seed == 0 || lost > 0 && again > 0) {
			continue // The long form goes through all, one of them at the size in use.
		}
		random := rand.New(rand.NewPCG(seed, 5))
		c := testConfig(t.TempDir())
		// Once at the size that it has in use, then smaller, as content is what takes the time.
		unit := 1 << 10
		if seed > 0 {
			c.journal, unit = journalSize/8, unit/8
		}
		d := disk{logs: map[string][]byte{}, names: map[string]bool{}}
		armed := false
		var mu sync.Mutex // Two goroutines sync.
		c.synced = func(path string) error {
			mu.Lock()
			defer mu.Unlock()
			if !armed || filepath.Base(path) == "highwater" {
				return nil // Nothing of it is written and not synced once a command was answered.
			}
			return d.synced(path)
		}
		s := mustOpenOnly(t, c)
		keys := fill(t, s, 0, 11, 1000*unit)
		// The last one was too long for the journal, so that all of it is synced.
		mu.Lock()
		d.logs, d.names = logsOf(t, c.Dir)
		armed = true
		mu.Unlock()
		keys = append(keys, fill(t, s, 11, 1+random.IntN(16), 150*unit)...)
		mu.Lock()
		left := lose(t, random, c.Dir, d.logs, d.names)
		mu.Unlock()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		offline := testConfig(copyFolder(t, left))
		if _, err := Verify(t.Context(), offline, nil); err != nil {
			t.Errorf("seed %d: verified before it was opened: %v", seed, err)
		}
		c = testConfig(left)
		durable, names := logsOf(t, left)
		var log bytes.Buffer
		c.Logger = zerolog.New(&log)
		var twice string
		passings := random.IntN(3)
		c.puttingBack = func() {
			if passings--; passings < 0 && twice == "" {
				twice = lose(t, random, left, durable, names)
			}
		}
		goesOn(t, c, keys)
		if strings.Contains(log.String(), "put back") {
			lost++
		}
		if twice != "" {
			again++
			goesOn(t, testConfig(twice), keys)
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	if lost == 0 || again == 0 {
		t.Errorf("the power took something %d times, and once more %d times", lost, again)
	}
}

func TestAnyPartOfTheEngineIsPutBack(t *testing.T) {
	t.Parallel()
	h := newChanging(t, 5)
	for name, given := range map[string][]int{
		"nothing was lost":                   {1, 2, 3, 4, 5},
		"all was lost":                       {},
		"the end was lost":                   {1, 2, 3},
		"the beginning was lost":             {3, 4, 5},
		"one in between was lost":            {1, 2, 4, 5},
		"the first one was put back":         {2, 3, 4, 5, 1},
		"two were put back":                  {3, 4, 5, 1, 2},
		"all but the last one were put back": {4, 5, 1, 2, 3, 4},
		"all were put back":                  {3, 4, 5, 1, 2, 3, 4, 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := h.given(t, 5, given...)
			if _, err := Verify(t.Context(), testConfig(copyFolder(t, c.Dir)), nil); err != nil {
				t.Errorf("verified before it was opened: %v", err)
			}
			s := mustOpen(t, c)
			m, err := s.MutationByID(t.Context(), h.record.ID)
			if err != nil || m.Version != 5 {
				t.Fatalf("%+v, %v; want version 5", m, err)
			}
			fill(t, s, 0, 1, 10)
		})
	}
}

func TestAHoleThatTheJournalCannotFillIsDamage(t *testing.T) {
	t.Parallel()
	h := newChanging(t, 5)
	c := h.given(t, 4, 1, 3, 4, 5)
	if s, err := Open(t.Context(), c); !errors.Is(err, ledger.ErrDamaged) || !strings.Contains(err.Error(), "commit 7") && !strings.Contains(err.Error(), "journal") {
		if err == nil {
			_ = s.Close()
		}
		t.Errorf("%v, want ErrDamaged", err)
	}
	restored := c
	restored.Dir, restored.Restored = copyFolder(t, c.Dir), true
	if s, err := Open(t.Context(), restored); !errors.Is(err, ledger.ErrDamaged) {
		if err == nil {
			_ = s.Close()
		}
		t.Errorf("restored: %v, want ErrDamaged", err)
	}
	if _, err := AcceptLoss(t.Context(), c, "because", "ada"); err != nil {
		t.Fatal(err)
	}
	mustOpenOnly(t, c)
}

func TestABodyThatIsMissingIsNotPutBack(t *testing.T) {
	t.Parallel()
	c := testConfig(t.TempDir())
	c.HighWaterFile = filepath.Join(t.TempDir(), "highwater")
	s := mustOpenOnly(t, c)
	keys := fill(t, s, 0, 1, 10)
	allGiven(t, s)
	older := copyFolder(t, c.Dir)
	b := putBody(t, s, "named", long("a"))
	water, err := os.ReadFile(c.HighWaterFile)
	if err != nil {
		t.Fatal(err)
	}
	bodies := copyFolder(t, c.bodiesDir())
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	c.Dir = older
	place := func() {
		if err := os.WriteFile(c.HighWaterFile, water, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	place()
	if err := refusesOrKeeps(t, c, keys); !errors.Is(err, ledger.ErrShortened) {
		t.Errorf("%v, want ErrShortened", err)
	}
	if _, err := Verify(t.Context(), c, nil); !errors.Is(err, ledger.ErrShortened) {
		t.Errorf("verify: %v, want ErrShortened", err)
	}
	id := ledgertest.SampleMutation("named", ledger.Applied, 0).ID
	restored := c
	restored.Dir, restored.Restored = copyFolder(t, older), true
	s = mustOpenOnly(t, restored)
	if m, err := s.MutationByID(t.Context(), id); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("a record without its body: %+v, %v", m, err)
	}
	if err := errors.Join(s.GapNoted(), s.Close()); err != nil {
		t.Fatal(err)
	}
	restored.Restored = false
	goesOn(t, restored, keys)
	// With its file it comes back.
	place()
	remove(t, c.bodiesDir())
	if err := os.CopyFS(c.bodiesDir(), os.DirFS(bodies)); err != nil {
		t.Fatal(err)
	}
	s = mustOpen(t, c)
	if got, err := readAll(t, s, b); err != nil || !bytes.Equal(got, long("a")) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

// The next start moves the file.
func TestAHighWaterFileThatIsToBeMovedIsVerifiedWhereItIs(t *testing.T) {
	t.Parallel()
	c := testConfig(t.TempDir())
	s := mustOpenOnly(t, c)
	fill(t, s, 0, 3, 10)
	c.Dir = copyFolder(t, c.Dir) // As a kill leaves it, with commits to be put back.
	c.HighWaterFile = filepath.Join(t.TempDir(), "highwater")
	for range 2 {
		if _, err := Verify(t.Context(), c, nil); err != nil {
			t.Error(err)
		}
	}
	if moved, err := exists(c.HighWaterFile); err != nil || moved {
		t.Errorf("it was moved: %v, %v", moved, err)
	}
}

// TestAMovedHighWaterFileKeepsItsJournal takes from the engine what the journal holds, and has
// the file moved at the same start.
func TestAMovedHighWaterFileKeepsItsJournal(t *testing.T) {
	t.Parallel()
	h := newChanging(t, 3)
	c := h.given(t, 3)
	inside := c.highWaterPath()
	c.HighWaterFile = filepath.Join(t.TempDir(), "state", "highwater")
	s := mustOpen(t, c)
	if m, err := s.MutationByID(t.Context(), h.record.ID); err != nil || m.Version != 3 {
		t.Errorf("%+v, %v; want version 3", m, err)
	}
	if there, err := exists(inside); there || err != nil {
		t.Errorf("it lies where it was: %t, %v", there, err)
	}
}

// TestAcceptLossOfADamagedJournal goes on without what of the journal can't be read.
func TestAcceptLossOfADamagedJournal(t *testing.T) {
	t.Parallel()
	h := newChanging(t, 4)
	for name, given := range map[string][]int{"the engine has all": {1, 2, 3, 4}, "the engine has a part": {1, 2}, "the engine has a hole": {1, 3, 4}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := h.given(t, 4, given...)
			h.damageJournal(t, c, 2)
			if err := refusesOrKeeps(t, c, nil); !errors.Is(err, ledger.ErrDamaged) {
				t.Fatalf("%v, want ErrDamaged", err)
			}
			if _, err := AcceptLoss(t.Context(), c, "because", "ada"); err != nil {
				t.Fatal(err)
			}
			s := mustOpenOnly(t, c)
			fill(t, s, 0, 1, 10)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if _, err := Verify(t.Context(), c, nil); err != nil {
				t.Errorf("afterwards: %v", err)
			}
		})
	}
}

// TestACommitWhoseSyncFails leaves nothing of it, or all.
func TestACommitWhoseSyncFails(t *testing.T) {
	t.Parallel()
	broken := errors.New("a broken disk")
	c := testConfig(t.TempDir())
	armed := make(chan struct{})
	c.synced = func(path string) error {
		select {
		case <-armed:
			return broken
		default:
			return nil
		}
	}
	s := mustOpenOnly(t, c)
	keys := fill(t, s, 0, 3, 10)
	before, err := os.ReadFile(c.highWaterPath())
	if err != nil {
		t.Fatal(err)
	}
	gate := gateOf(s)
	close(armed)
	m := ledgertest.SampleMutation("a", ledger.Indeterminate, 0)
	err = s.Update(t.Context(), func(tx ledger.Tx) error {
		tx.Append(ledger.Event{What: "claim", Mutation: m.ID})
		return tx.PutMutation(m)
	})
	if !errors.Is(err, ledger.ErrUnavailable) || !errors.Is(s.Healthy(), broken) {
		t.Errorf("answered %v, healthy %v", err, s.Healthy())
	}
	if blockers, _ := gate.BlockersOf("refunds"); len(blockers) != 0 {
		t.Error("the gate shows what isn't durable")
	}
	if err := s.Update(t.Context(), func(ledger.Tx) error { return nil }); !errors.Is(err, ledger.ErrUnavailable) {
		t.Errorf("the next command: %v", err)
	}
	all, nothing := testConfig(copyFolder(t, c.Dir)), testConfig(copyFolder(t, c.Dir))
	if err := os.WriteFile(nothing.highWaterPath(), before, 0o600); err != nil {
		t.Fatal(err)
	}
	for c, held := range map[*Config]bool{&all: true, &nothing: false} {
		s := mustOpen(t, *c)
		_, err := s.MutationByID(t.Context(), m.ID)
		events, errEvents := s.Events(t.Context(), m.ID, 0, 10)
		if (err == nil) != held || (len(events) == 1) != held || errEvents != nil {
			t.Errorf("held %t: %v, %d events, %v", held, err, len(events), errEvents)
		}
		goesOnIn(t, s, keys)
	}
}

// goesOnIn wants the open ledger to hold keys.
func goesOnIn(t *testing.T, s *Store, keys []ledger.Key) {
	t.Helper()
	if err := s.View(t.Context(), func(v ledger.View) error {
		for _, k := range keys {
			if _, err := v.Mutation(k); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	fill(t, s, 2000, 1, 10)
}
