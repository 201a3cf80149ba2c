package badgerstore

import (
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"keep-proxy/ledger"
)

// power is a disk that loses its power around each sync of the log, the witness, and what lies between:
// what was acknowledged by then has to be there with what was durable by then. What Badger has is taken as
// it lies there, since each of its commits is durable.
type power struct {
	t *testing.T
	c Config
	// log and witness are as they were synced last; of the witness, nothing before the first time.
	log, witness []byte
	begun        bool
	mu           sync.Mutex
	keys         []ledger.Key
	frames       int
	losses       int
}

func (p *power) acknowledged(keys []ledger.Key) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keys = append(p.keys, keys...)
}

// synced is told by one goroutine.
func (p *power) synced(path string) error {
	if !p.begun {
		return nil
	}
	p.mu.Lock()
	keys := slices.Clone(p.keys)
	p.mu.Unlock()
	log, err := os.ReadFile(p.c.logPath())
	if err != nil {
		return err
	}
	witness, err := os.ReadFile(p.c.HighWaterFile)
	if err != nil {
		return err
	}
	if path == p.c.logPath() {
		p.lose("before the sync", p.log, keys)
		p.frames++
		for _, share := range []int{1, 2, 3} {
			if proving() || share == 1+p.frames%3 { // One in turn, or all in make proof.
				p.lose("a torn frame", torn(p.log, log, share), keys)
			}
		}
		p.log = log
	} else {
		p.witness = witness
	}
	p.lose("after the sync", p.log, keys)
	return nil
}

// torn has of the pages that were written every so many only.
func torn(before, after []byte, share int) []byte {
	const page = 4096
	left, n := slices.Clone(before), 0
	for at := 0; at < len(after); at += page {
		end := min(at+page, len(after))
		if slices.Equal(before[at:end], after[at:end]) {
			continue
		}
		if n++; n%(share+1) == 0 {
			copy(left[at:end], after[at:end])
		}
	}
	return left
}

func (p *power) lose(what string, log []byte, keys []ledger.Key) {
	p.t.Helper()
	p.losses++
	c := p.c
	c.synced = nil
	left, err := os.MkdirTemp(p.t.TempDir(), "left")
	if err != nil {
		p.t.Fatal(err)
	}
	defer os.RemoveAll(left)
	c.Dir, c.HighWaterFile = filepath.Join(left, "ledger"), filepath.Join(left, "witness")
	copyTo(p.t, c.Dir, p.c.Dir)
	place(p.t, c.logPath(), log)
	place(p.t, c.HighWaterFile, p.witness)
	if _, err := Verify(p.t.Context(), c, nil); err != nil {
		p.t.Errorf("loss %d of power, %s, verified: %v", p.losses, what, err)
	}
	if err := refusesOrKeeps(p.t, c, keys); err != nil {
		p.t.Errorf("loss %d of power, %s: what was acknowledged is gone: %v", p.losses, what, err)
	}
}

// TestALossOfPowerAtEachSync holds the order of a commit's steps, of folding, and of the ring's turn: at each
// instant what is durable of all files together is the whole of what was acknowledged.
func TestALossOfPowerAtEachSync(t *testing.T) {
	t.Parallel()
	for name, run := range map[string]struct {
		ring      int64
		n, filler int
	}{
		"a ring that turns often": {28 * 4096, 12, 2 << 10},
		"long frames":             {64 * 4096, 9, 12 << 10},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &power{t: t, c: testConfig(t.TempDir())}
			p.c.HighWaterFile = filepath.Join(t.TempDir(), "witness")
			p.c.ring = run.ring
			// Nothing is folded before the ring is half full.
			p.c.calm, p.c.stall = time.Hour, time.Hour
			p.c.synced = p.synced
			s := mustOpenOnly(t, p.c)
			var err error
			if p.log, err = os.ReadFile(p.c.logPath()); err != nil {
				t.Fatal(err)
			}
			p.witness, err = os.ReadFile(p.c.HighWaterFile)
			if p.begun = true; err != nil {
				t.Fatal(err)
			}
			for i := range run.n {
				p.acknowledged(fill(t, s, i, 1, run.filler))
			}
			if s.foldedTip.Commit < 3 {
				t.Errorf("%d commits were folded: the ring never turned", s.foldedTip.Commit)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			p.lose("after the end", p.log, p.keys)
		})
	}
}
