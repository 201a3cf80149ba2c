package badgerstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"keep-proxy/ledger"
	"keep-proxy/ledger/ledgertest"
)

func TestLockNamesTheHolder(t *testing.T) {
	t.Parallel()
	c := testConfig(t.TempDir())
	mustOpen(t, c)
	_, err := Open(t.Context(), c)
	if !errors.Is(err, ledger.ErrLocked) || !strings.Contains(err.Error(), fmt.Sprintf("held by process %d (", os.Getpid())) {
		// The engine has a lock of its own, which is taken after files of ours were written.
		t.Errorf("got %v, want ErrLocked with the holder", err)
	}
}

func TestPassingTroubleIsNoDamage(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err, want error
	}{
		"held by another program":    {errors.New(`Cannot acquire directory lock on "x"`), ledger.ErrLocked},
		"a full disk":                {fmt.Errorf("open: %w", syscall.ENOSPC), ledger.ErrUnavailable},
		"a disk that fails, as text": {errors.New("read: input/output error"), ledger.ErrUnavailable},
		"a bad checksum":             {errors.New("checksum mismatch"), ledger.ErrDamaged},
	} {
		if err := engineError(c.err); !errors.Is(err, c.want) || errors.Is(err, ledger.ErrDamaged) != errors.Is(c.want, ledger.ErrDamaged) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

func TestFolderIsClosedToOthers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	mustOpen(t, testConfig(dir))
	st, err := os.Stat(dir)
	if err != nil || st.Mode().Perm() != 0o700 {
		t.Errorf("mode %v, %v; want 0700", st.Mode(), err)
	}
}

func TestFolderThatCantBeMade(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Open(t.Context(), testConfig(file))
	if err == nil || !strings.Contains(err.Error(), "ledger folder") {
		t.Errorf("got %v", err)
	}
}

func TestInitRefusesWhatIsThere(t *testing.T) {
	t.Parallel()
	c := testConfig(t.TempDir())
	c.ID = "mine"
	id, err := Init(c)
	if err != nil || id != "mine" {
		t.Fatalf("%q, %v", id, err)
	}
	if _, err := Init(c); !errors.Is(err, ledger.ErrNotAllowed) {
		t.Errorf("twice: %v", err)
	}
	if s := mustOpen(t, c); s.ID() != "mine" {
		t.Errorf("id %q", s.ID())
	}
}

func TestLowSpaceRefusesNewMutationsOnly(t *testing.T) {
	t.Parallel()
	var free atomic.Uint64
	free.Store(1 << 40)
	c := testConfig(t.TempDir())
	c.MinFree = 64 << 20
	c.statfs = func(string) (uint64, error) { return free.Load(), nil }
	var low, enough atomic.Int32
	c.Logger = zerolog.New(io.Discard).Hook(zerolog.HookFunc(func(_ *zerolog.Event, _ zerolog.Level, text string) {
		switch {
		case strings.HasPrefix(text, "the disk is nearly full: new mutations are refused"):
			low.Add(1)
		case strings.HasPrefix(text, "there is space again"):
			enough.Add(1)
		}
	}))
	s := mustOpen(t, c)
	m := ledgertest.SampleMutation("a", ledger.InFlight, 0)
	put := func(m *ledger.Mutation) error {
		s.space.mu.Lock()
		s.space.measured = time.Time{}
		s.space.mu.Unlock()
		return s.Update(context.Background(), func(tx ledger.Tx) error {
			if err := tx.PutMutation(m); err != nil && !errors.Is(err, ledger.ErrLowSpace) {
				return err
			}
			return nil // even a command that swallows the error must not go through
		})
	}
	if err := put(m); err != nil {
		t.Fatal(err)
	}
	if ok, err := exists(s.space.reservePath()); !ok || err != nil {
		t.Errorf("no reserve: %v", err)
	}
	free.Store(40 << 20)
	if err := put(ledgertest.SampleMutation("b", ledger.InFlight, 0)); !errors.Is(err, ledger.ErrLowSpace) {
		t.Errorf("a new mutation: %v, want ErrLowSpace", err)
	}
	if ok, err := exists(s.space.reservePath()); ok || err != nil {
		t.Errorf("the reserve is still held: %v", err)
	}
	m.Version, m.State = 2, ledger.Applied
	if err := put(m); err != nil {
		t.Errorf("an outcome: %v", err)
	}
	free.Store(1 << 40)
	if err := put(ledgertest.SampleMutation("b", ledger.InFlight, 0)); err != nil {
		t.Errorf("with space again: %v", err)
	}
	if err := s.Healthy(); err != nil {
		t.Errorf("low space made the store unhealthy: %v", err)
	}
	if low.Load() != 1 || enough.Load() != 1 {
		t.Errorf("the log says %d times that space is low, %d times that there is enough again", low.Load(), enough.Load())
	}
}

func TestWitnessFailurePoisons(t *testing.T) {
	t.Parallel()
	c := testConfig(t.TempDir())
	c.HighWaterFile = filepath.Join(t.TempDir(), "highwater")
	s := mustOpenOnly(t, c)
	fill(t, s, 0, 1, 10)
	gate := gateOf(s)
	if err := s.witness.file.Close(); err != nil {
		t.Fatal(err)
	}
	m := ledgertest.SampleMutation("a", ledger.Indeterminate, 0)
	put := func() error {
		return s.Update(context.Background(), func(tx ledger.Tx) error { return tx.PutMutation(m) })
	}
	if err := put(); !errors.Is(err, ledger.ErrUnavailable) {
		t.Errorf("the command whose witness failed: %v", err)
	}
	if blockers, _ := gate.BlockersOf("refunds"); len(blockers) != 0 {
		t.Error("the gate shows what was not acknowledged")
	}
	if err := put(); !errors.Is(err, ledger.ErrUnavailable) {
		t.Errorf("a later command: %v", err)
	}
	if err := s.Healthy(); err == nil || !strings.Contains(err.Error(), "witness") {
		t.Errorf("Healthy: %v", err)
	}
}

func TestDamageFoundWhileRunningPoisons(t *testing.T) {
	t.Parallel()
	s := mustOpenOnly(t, testConfig(t.TempDir()))
	m := ledgertest.SampleMutation("a", ledger.InFlight, 0)
	other := ledgertest.SampleMutation("b", ledger.InFlight, 0)
	if err := s.do(context.Background(), func(tx *tx) error { return tx.PutMutation(other) }); err != nil {
		t.Fatal(err)
	}
	err := s.do(context.Background(), func(tx *tx) error {
		sealed, err := tx.layer.raw(mutationKey(other.Key))
		// The value of b, stored under a's key, as if blocks had changed places.
		tx.layer.set(mutationKey(m.Key), sealed, nil)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	err = s.Update(context.Background(), func(tx ledger.Tx) error {
		if _, err := tx.Mutation(m.Key); errors.Is(err, ledger.ErrNotFound) {
			return nil
		}
		return tx.PutMutation(m)
	})
	if !errors.Is(err, ledger.ErrDamaged) {
		t.Errorf("got %v, want ErrDamaged", err)
	}
	if err := s.Update(context.Background(), func(ledger.Tx) error { return nil }); !errors.Is(err, ledger.ErrUnavailable) {
		t.Errorf("a later command: %v, want ErrUnavailable", err)
	}
}

func TestPanickingCommandIsDropped(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, testConfig(t.TempDir()))
	err := s.Update(t.Context(), func(tx ledger.Tx) error { panic("a bug") })
	if err == nil || !strings.Contains(err.Error(), "a bug") {
		t.Errorf("got %v", err)
	}
	fill(t, s, 0, 1, 10)
}

func TestOversizedCommandIsRefused(t *testing.T) {
	t.Parallel()
	c := testConfig(t.TempDir())
	c.ring = logSize
	s := mustOpen(t, c)
	for _, c := range []struct {
		name string
		size int
		ok   bool
	}{
		{"a head of 1 MiB fits", 1 << 20, true},
		{"6 MiB don't", 6 << 20, false},
	} {
		m := ledgertest.SampleMutation(c.name, ledger.Applied, 0)
		m.Result = &ledger.Result{Status: 200, Header: ledger.Header{"Long": {strings.Repeat("x", c.size)}}}
		err := s.Update(t.Context(), func(tx ledger.Tx) error { return tx.PutMutation(m) })
		if c.ok && err != nil || !c.ok && !errors.Is(err, errTooLarge) {
			t.Errorf("%s: %v", c.name, err)
		}
		if !c.ok {
			continue
		}
		err = s.View(t.Context(), func(v ledger.View) error {
			got, err := v.Mutation(m.Key)
			if err == nil && len(got.Result.Header["Long"][0]) != c.size {
				t.Errorf("%s: the parts don't fit", c.name)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
	fill(t, s, 0, 1, 10)
}

// A restart forgets none of them sooner.
func TestARestartKeepsTheTokensOfEndedRuns(t *testing.T) {
	t.Parallel()
	c := testConfig(t.TempDir())
	s := mustOpen(t, c)
	now := time.Now()
	ended := func(id string, ago time.Duration) *ledger.Run {
		r := ledgertest.SampleRun(id, 0)
		r.Item, r.TokenSHA256, r.State, r.EndedAt = id, "token-"+id, ledger.RunAborted, now.Add(-ago)
		return r
	}
	late, early := ended("late", 23*time.Hour), ended("early", 25*time.Hour)
	if err := s.Update(t.Context(), func(tx ledger.Tx) error { return errors.Join(tx.PutRun(late), tx.PutRun(early)) }); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = mustOpen(t, c)
	if r, _, err := gateOf(s).StandingByToken(late.TokenSHA256); err != nil || r.ID != "late" || r.State != ledger.RunAborted {
		t.Errorf("ended 23 hours ago: %+v, %v", r, err)
	}
	if _, _, err := gateOf(s).StandingByToken(early.TokenSHA256); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("ended 25 hours ago: %v, want ErrNotFound", err)
	}
}

func TestUnsealRefuses(t *testing.T) {
	t.Parallel()
	k := []byte("m/key")
	good := seal(k, []byte("content"), 0)
	for name, c := range map[string]struct {
		key, sealed []byte
		want        error
	}{
		"another key":     {[]byte("m/other"), good, ledger.ErrDamaged},
		"a cut value":     {k, good[:5], ledger.ErrDamaged},
		"no content":      {k, good[:6], ledger.ErrDamaged},
		"unknown flags":   {k, seal(k, nil, 0x80), ledger.ErrDamaged},
		"a newer format":  {k, inFormat(k, format+1), ledger.ErrFormat},
		"an older format": {k, inFormat(k, format-1), ledger.ErrFormat},
	} {
		if _, _, err := unseal(c.key, c.sealed); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	for i := range good {
		for bit := range 8 {
			flipped := append([]byte(nil), good...)
			flipped[i] ^= 1 << bit
			if _, _, err := unseal(k, flipped); err == nil {
				t.Fatalf("bit %d of byte %d flipped: taken", bit, i)
			}
		}
	}
}

// inFormat seals a value as a program of another format would.
func inFormat(k []byte, format byte) []byte {
	b := seal(k, nil, 0)
	b[0] = format
	sum := checksum(k, b)
	b[2], b[3], b[4], b[5] = byte(sum), byte(sum>>8), byte(sum>>16), byte(sum>>24)
	return b
}
