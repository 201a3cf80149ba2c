package badgerstore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"keep-proxy/ledger"
	"keep-proxy/ledger/ledgertest"
)

// witnessed is a ledger with a witness, closed.
func witnessed(t *testing.T) Config {
	t.Helper()
	c := testConfig(t.TempDir())
	c.HighWaterFile = filepath.Join(t.TempDir(), "highwater")
	s := mustOpenOnly(t, c)
	fill(t, s, 0, 3, 10)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return c
}

// A witness that can't be read is damaged, not another ledger's: a person may go on without it.
func TestAWitnessThatIsDamaged(t *testing.T) {
	t.Parallel()
	c := witnessed(t)
	b, err := os.ReadFile(c.HighWaterFile)
	if err != nil {
		t.Fatal(err)
	}
	for at := range 90 {
		damaged := append([]byte(nil), b...)
		damaged[at] ^= 1
		place(t, c.HighWaterFile, damaged)
		_, err := c.readWitness()
		if at%30 == 0 { // A start judges by the same.
			err = closed(Open(context.Background(), c))
		}
		if !errors.Is(err, ledger.ErrDamaged) || errors.Is(err, ledger.ErrForeign) || !strings.Contains(err.Error(), c.HighWaterFile) {
			t.Errorf("byte %d: got %v, want ErrDamaged naming the file", at, err)
		}
	}
	if _, err := AcceptLoss(t.Context(), c, "the disk broke", "ann"); err != nil {
		t.Fatal(err)
	}
	fill(t, mustOpen(t, c), 3, 1, 10)
}

// Either of both may be the older copy: nobody can tell, and both are named.
func TestWitnessesThatDontFit(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(t *testing.T, c *Config){
		"an older folder": func(t *testing.T, c *Config) {
			t.Helper()
			older := copyFolder(t, c.Dir)
			s := mustOpenOnly(t, *c)
			fill(t, s, 3, 1, 10)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			c.Dir = older
		},
		"an older folder of the same epoch": func(t *testing.T, c *Config) {
			t.Helper()
			s := mustOpenOnly(t, *c)
			older := copyFolder(t, c.Dir)
			fill(t, s, 3, 1, 10)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			c.Dir = older
		},
		"an older witness": func(t *testing.T, c *Config) {
			t.Helper()
			older, err := os.ReadFile(c.HighWaterFile)
			if err != nil {
				t.Fatal(err)
			}
			s := mustOpenOnly(t, *c)
			fill(t, s, 3, 1, 10)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			place(t, c.HighWaterFile, older)
		},
		"another history of the same length": func(t *testing.T, c *Config) {
			t.Helper()
			other := *c
			other.Dir, other.HighWaterFile = copyFolder(t, c.Dir), filepath.Join(copyFolder(t, filepath.Dir(c.HighWaterFile)), "highwater")
			for _, c := range []Config{*c, other} {
				s := mustOpenOnly(t, c)
				fill(t, s, 3, 2, 10)
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
			}
			c.HighWaterFile = other.HighWaterFile
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := witnessed(t)
			change(t, &c)
			err := refusesOrKeeps(t, c, nil)
			if !errors.Is(err, ledger.ErrShortened) || !strings.Contains(err.Error(), c.HighWaterFile) || !strings.Contains(err.Error(), c.logPath()) {
				t.Errorf("got %v, want ErrShortened naming both files", err)
			}
		})
	}
}

// Within an epoch a witness may be a little behind, as a loss of power leaves it, and not more: counted
// from the first frame that it lacks, since nothing was to be synced in a pause before.
func TestAWitnessThatIsBehind(t *testing.T) {
	t.Parallel()
	for name, steps := range map[string]struct {
		pauses []int64
		ok     bool
	}{
		"by a second":              {[]int64{1}, true},
		"after a pause":            {[]int64{3600}, true},
		"a little, after a pause":  {[]int64{3600, 9}, true},
		"by more than it may be":   {[]int64{1, 5, 6}, false},
		"by more, in a long pause": {[]int64{1, 3600}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var seconds atomic.Int64
			c := testConfig(t.TempDir())
			c.HighWaterFile = filepath.Join(t.TempDir(), "highwater")
			now := c.Now
			c.Now = func() ledger.Stamp {
				s := now()
				s.Mono = time.Duration(seconds.Load()) * time.Second
				return s
			}
			s := mustOpenOnly(t, c)
			fill(t, s, 0, 2, 10)
			behind, err := os.ReadFile(c.HighWaterFile)
			if err != nil {
				t.Fatal(err)
			}
			for i, pause := range steps.pauses {
				seconds.Add(pause)
				fill(t, s, 2+i, 1, 10)
			}
			crashed := c
			crashed.Dir, crashed.HighWaterFile = copyFolder(t, c.Dir), filepath.Join(t.TempDir(), "highwater")
			place(t, crashed.HighWaterFile, behind)
			if err := refusesOrKeeps(t, crashed, nil); (err == nil) != steps.ok {
				t.Errorf("%v, want it taken: %v", err, steps.ok)
			}
		})
	}
}

// A start that was cut short between the witness and the first frame of its epoch begins again.
func TestAStartThatWasCutShortBeginsAgain(t *testing.T) {
	t.Parallel()
	c := witnessed(t)
	before := copyFolder(t, c.Dir)
	s := mustOpenOnly(t, c)
	last, err := openLog(testConfig(before))
	if err != nil {
		t.Fatal(err)
	}
	defer last.Close()
	w, err := c.openWitness(s.ID(), last.Last(), newEpoch())
	if err := errors.Join(err, w.close(), s.Close()); err != nil {
		t.Fatal(err)
	}
	w, err = c.openWitness(s.ID(), last.Last(), newEpoch())
	if err := errors.Join(err, w.close()); err != nil {
		t.Fatal(err)
	}
	if err := refusesOrKeeps(t, c, nil); !errors.Is(err, ledger.ErrShortened) {
		t.Errorf("beside a log that went on: %v, want ErrShortened", err)
	}
	c.Dir = before
	fill(t, mustOpen(t, c), 3, 1, 10)
}

// What was acknowledged is durable in the log. That Badger doesn't take it stops the ledger, and the next
// start has it.
func TestAFoldThatFailsStopsTheLedger(t *testing.T) {
	t.Parallel()
	c := testConfig(t.TempDir())
	c.calm = time.Hour
	s := mustOpenOnly(t, c)
	keys := fill(t, s, 0, 1, 10)
	left := testConfig(copyFolder(t, c.Dir))
	// Badger ends between the commit and its fold.
	if err := s.db.Close(); err != nil {
		t.Fatal(err)
	}
	foldNow(t, s)
	if err := s.state.awaitFold(s.tip.Commit, s.Healthy); !errors.Is(err, ledger.ErrUnavailable) || s.Healthy() == nil {
		t.Errorf("%v, healthy: %t", err, s.Healthy() == nil)
	}
	if err := s.do(t.Context(), putting(ledgertest.SampleMutation("a", ledger.Indeterminate, 0))); !errors.Is(err, ledger.ErrUnavailable) {
		t.Errorf("a later command is told %v", err)
	}
	goesOnIn(t, mustOpen(t, left), keys)
}

// The first error that Badger logs stops the ledger, and the call that tells it never returns.
func TestWhatTheEngineLogsStopsTheLedger(t *testing.T) {
	t.Parallel()
	s := mustOpenOnly(t, testConfig(t.TempDir()))
	fill(t, s, 0, 1, 10)
	returned := make(chan struct{})
	go func() {
		engineLog{log: s.config.Logger, failure: &s.failure}.Errorf("while flushing: %w", unix.EIO)
		close(returned)
	}()
	<-s.stalled
	if err := s.Healthy(); !errors.Is(err, unix.EIO) {
		t.Errorf("healthy: %v", err)
	}
	if err := s.do(t.Context(), putting(ledgertest.SampleMutation("a", ledger.Indeterminate, 0))); !errors.Is(err, ledger.ErrUnavailable) {
		t.Errorf("a later command: %v", err)
	}
	if err := s.Close(); !errors.Is(err, ledger.ErrUnavailable) || !strings.Contains(err.Error(), "left open") {
		t.Errorf("closing: %v", err)
	}
	select {
	case <-returned:
		t.Error("Badger goes on after what it told")
	default:
	}
}

// A sync that fails may have dropped what it was for: no later one makes up for it, whichever of
// them it is.
func TestASyncThatFailsOnceStopsTheLedger(t *testing.T) {
	t.Parallel()
	for nth, fired := int64(1), true; fired; nth++ {
		for _, failure := range []error{unix.EIO, unix.ENOSPC} {
			var left atomic.Int64
			c := testConfig(t.TempDir())
			c.ring = 256 << 10
			c.synced = func(string) error {
				if left.Add(-1) == 0 {
					return failure
				}
				return nil
			}
			s := mustOpenOnly(t, c)
			gate := gateOf(s)
			left.Store(nth)
			var keys []ledger.Key
			for i := range 6 {
				m := ledgertest.SampleMutation(fmt.Sprint(i), ledger.Applied, i)
				m.Target = strings.Repeat("x", 6<<10)
				fired = left.Load() <= 0
				err := s.do(t.Context(), putting(m))
				switch {
				case err == nil && fired:
					t.Errorf("command %d is acknowledged after sync %d has failed", i, nth)
				case err == nil:
					keys = append(keys, m.Key)
				case !errors.Is(err, ledger.ErrUnavailable) || !errors.Is(err, failure):
					t.Errorf("command %d, sync %d: %v", i, nth, err)
				}
			}
			if fired && s.Healthy() == nil {
				t.Errorf("sync %d has failed, and the store is healthy", nth)
			}
			if blockers, err := gate.BlockersOf("refunds"); len(blockers) != 0 {
				t.Errorf("the gate shows what was not acknowledged: %v, %v", blockers, err)
			}
			left.Store(-1)
			_ = s.Close() // It may say what has failed.
			c.synced = nil
			if err := refusesOrKeeps(t, c, keys); err != nil {
				t.Errorf("sync %d: %v", nth, err)
			}
		}
	}
}

// What a command read must be durable before it is answered, and what read nothing else needn't wait.
func TestOnlyWhatDependsOnNothingPendingIsAnsweredAtOnce(t *testing.T) {
	t.Parallel()
	stored, other := ledgertest.SampleMutation("stored", ledger.InFlight, 0), ledgertest.SampleMutation("other", ledger.Indeterminate, 0)
	read := func(k ledger.Key) func(*tx) error {
		return func(t *tx) error {
			_, err := t.Mutation(k)
			if errors.Is(err, ledger.ErrNotFound) {
				return nil
			}
			return err
		}
	}
	for name, c := range map[string]struct {
		fn   func(*tx) error
		want bool
	}{
		"a record that is durable":       {read(stored.Key), true},
		"a record that isn't":            {read(other.Key), false},
		"a record that was never there":  {read(ledgertest.SampleMutation("none", ledger.Applied, 0).Key), true},
		"a listing":                      {func(t *tx) error { _, err := t.ItemMutations("refunds", "order-1"); return err }, false},
		"what stands in the way":         {func(t *tx) error { _, err := t.Blockers("refunds"); return err }, false},
		"the gaps, which were put":       {func(t *tx) error { _, err := t.Gaps(); return err }, false},
		"a refusal that rests on a read": {func(t *tx) error { return errors.Join(read(other.Key)(t), ledger.ErrNotAllowed) }, false},
		"a change":                       {func(t *tx) error { return t.PutMutation(later(stored)) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := testConfig(t.TempDir())
			config.calm = time.Hour
			s := mustOpenOnly(t, config)
			if err := s.do(t.Context(), putting(stored.Clone())); err != nil {
				t.Fatal(err)
			}
			b := s.begin()
			defer s.end(b)
			put := func(t *tx) error {
				return errors.Join(t.PutMutation(other.Clone()), t.PutGaps([]ledger.Gap{{Number: 1}}))
			}
			if _, err := s.add(b, put); err != nil {
				t.Fatal(err)
			}
			if durable, _ := s.add(b, c.fn); durable != c.want {
				t.Errorf("answered at once: %t, want %t", durable, c.want)
			}
		})
	}
}

// later is the next version of a record.
func later(m *ledger.Mutation) *ledger.Mutation {
	next := m.Clone()
	next.Version, next.Target = m.Version+1, "changed"
	return next
}
