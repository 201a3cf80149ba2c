package badgerstore

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"keep-proxy/ledger"
)

// power is a disk that loses its power just before each sync: what was acknowledged by then has
// to be there with what was durable by then.
type power struct {
	t    *testing.T
	disk disk
	dir  string
	// manifest is that of the engine at the beginning, nil to take it as it is: it names none of
	// the tables that are made meanwhile, so that all lies in the logs.
	manifest []byte
	begun    bool
	one      sync.Mutex
	mu       sync.Mutex
	keys     []ledger.Key
	losses   int
	// every says at how many syncs the power is lost.
	every int
}

func (p *power) acknowledged(keys []ledger.Key) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keys = append(p.keys, keys...)
}

// synced is told of the syncs of two goroutines; one waits while the other's loss is looked at.
func (p *power) synced(path string) error {
	p.one.Lock()
	defer p.one.Unlock()
	p.mu.Lock()
	keys := slices.Clone(p.keys)
	p.mu.Unlock()
	if p.begun {
		if p.losses++; p.losses%p.every == 0 {
			p.lose(keys)
		}
	}
	err := p.disk.synced(path)
	if p.disk.flushed {
		// Its table is there already, and durable: the engine has taken the log away.
		p.manifest = nil
	}
	return err
}

func (p *power) lose(keys []ledger.Key) {
	p.t.Helper()
	left := p.disk.leave(p.t, p.dir)
	err := os.WriteFile(filepath.Join(left, "highwater"), p.disk.logs["highwater"], 0o600)
	if p.manifest != nil {
		err = errors.Join(err, os.WriteFile(filepath.Join(left, "data", "MANIFEST"), p.manifest, 0o600))
	}
	if err != nil {
		p.t.Error(err)
		return
	}
	c := testConfig(left)
	if _, err := Verify(p.t.Context(), c, nil); err != nil {
		p.t.Errorf("loss %d of power, verified: %v", p.losses, err)
	}
	if err := refusesOrKeeps(p.t, c, keys); err != nil {
		p.t.Errorf("loss %d of power: what was acknowledged is gone: %v", p.losses, err)
	}
	if err := os.RemoveAll(left); err != nil {
		p.t.Error(err)
	}
}

// TestALossOfPowerBeforeEachSync holds the order of a commit's syncs, of the journal's emptying,
// and of the change from one log of the engine to the next: at each instant what is durable of
// all files together is the whole of what was acknowledged.
func TestALossOfPowerBeforeEachSync(t *testing.T) {
	t.Parallel()
	if !ownLogSync {
		t.Skip("Badger syncs its log itself here")
	}
	for name, run := range map[string]struct {
		journal                int64
		n, filler, every, logs int
	}{
		"a journal that is emptied often":          {journal: 64 << 10, n: 10, filler: 2 << 10, every: 1, logs: 1},
		"commits too long for the journal":         {journal: 64 << 10, n: 3, filler: 20 << 10, every: 1, logs: 1},
		"a log that ends within a journal's worth": {journal: 2 << 20, n: 170, filler: 100 << 10, every: 43, logs: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &power{t: t, disk: disk{logs: map[string][]byte{}, names: map[string]bool{}}, dir: t.TempDir(), every: run.every}
			c := testConfig(p.dir)
			c.journal, c.synced = run.journal, p.synced
			c.stall = time.Hour // A sync here takes as long as the ledger that is left is looked at.
			s := mustOpenOnly(t, c)
			allGiven(t, s)
			p.one.Lock()
			var err error
			p.manifest, err = os.ReadFile(filepath.Join(c.dataDir(), "MANIFEST"))
			p.begun = true
			p.one.Unlock()
			if err != nil {
				t.Fatal(err)
			}
			for i := range run.n {
				p.acknowledged(fill(t, s, i, 1, run.filler))
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if logs := len(p.disk.names); logs < run.logs {
				t.Errorf("%d logs, want %d", logs, run.logs)
			}
			p.lose(p.keys)
		})
	}
}

// The engine never has a commit that isn't durable: a table of it may be written, and found at
// the next start, before its log is synced.
func TestTheEngineHasNoCommitBeforeItIsDurable(t *testing.T) {
	t.Parallel()
	c := testConfig(t.TempDir())
	var opened atomic.Pointer[Store]
	syncs := 0
	c.synced = func(path string) error {
		s := opened.Load()
		if s == nil || path != c.highWaterPath() {
			return nil
		}
		syncs++
		return inEngine(s, func(src snapshot) error {
			next := s.water.last.Commit + 1
			if _, err := readCommit(src, next); !errors.Is(err, ledger.ErrNotFound) {
				t.Errorf("the engine has commit %d while that is made durable: %v", next, err)
			}
			return nil
		})
	}
	s := mustOpenOnly(t, c)
	opened.Store(s)
	fill(t, s, 0, 5, 10)
	if opened.Store(nil); syncs < 5 {
		t.Errorf("%d syncs of the high-water file", syncs)
	}
}
