package app

import (
	"context"
	"crypto/sha256"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"keep-proxy/config"
	"keep-proxy/internal/clock"
	"keep-proxy/ledger"
	"keep-proxy/ledger/badgerstore"
)

// tended is a ledger with one applied mutation of an item that nobody works on.
type tended struct {
	*keeper
	store *badgerstore.Store
	fake  *clock.Fake
	dir   string
	body  ledger.Body
	key   ledger.Key
}

func tend(t *testing.T, c config.Retention) *tended {
	t.Helper()
	fake := clock.NewFake(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	now := func() ledger.Stamp { return ledger.Stamp(clock.Take(fake)) }
	w := &tended{fake: fake, dir: t.TempDir(), key: sha256.Sum256([]byte("paid"))}
	w.store = badgerstore.OpenForTest(t, badgerstore.Config{Dir: w.dir, Now: now, NewID: NewID, Logger: zerolog.Nop()})
	l := ledger.New(w.store, ledger.Config{Now: now, NewID: NewID})
	w.keeper = &keeper{
		store: w.store, ledger: l, retention: retentionOf(c), clock: fake, agreed: now(),
		metrics: newKeeperMetrics(prometheus.NewRegistry()), log: zerolog.Nop(),
	}
	var err error
	if w.body, err = w.store.WriteBody(t.Context(), strings.NewReader(strings.Repeat("x", 100<<10))); err != nil {
		t.Fatal(err)
	}
	claimed, err := l.Claim(t.Context(), ledger.Claim{
		Scope: ledger.Scope{Workflow: "w", Item: "i", Attempt: 1}, Key: w.key, DispatchID: NewID(),
		Record: ledger.Mutation{
			Intent:  ledger.Intent{Connector: "bank", Operation: "pay"},
			Payload: ledger.Payload{PayloadDigest: "p", SignificantDigest: "p", Request: ledger.Request{Body: w.body}},
		},
	})
	if err != nil || claimed.Dispatch == nil {
		t.Fatalf("%+v, %v", claimed, err)
	}
	d := *claimed.Dispatch
	d.Verdict, d.Reason = ledger.VerdictApplied, "200"
	if _, err := l.EndDispatch(t.Context(), ledger.EndDispatch{Key: w.key, Dispatch: d, Result: &ledger.Result{Status: 200}}); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *tended) mustPass(t *testing.T) {
	t.Helper()
	if err := w.pass(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// record is what is left of the mutation, nil for nothing.
func (w *tended) record(t *testing.T) (m *ledger.Mutation) {
	t.Helper()
	err := w.store.View(t.Context(), func(v ledger.View) (err error) {
		m, err = v.Mutation(w.key)
		return err
	})
	if err != nil && !errors.Is(err, ledger.ErrNotFound) {
		t.Fatal(err)
	}
	return m
}

func (w *tended) hasFile() bool {
	_, err := os.Stat(filepath.Join(w.dir, "bodies", w.body.SHA256))
	return err == nil
}

func TestKeeperForgetsByAge(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for _, c := range []struct {
		after config.After
		left  bool
	}{{config.AfterRefuse, true}, {config.AfterForget, false}} {
		w := tend(t, config.Retention{Keep: 2 * day, After: c.after})
		w.mustPass(t)
		w.fake.Advance(day)
		w.mustPass(t)
		if m := w.record(t); m == nil || !m.Forgotten.IsZero() || !w.hasFile() {
			t.Fatalf("%s: let go of too early: %+v", c.after, m)
		}
		w.fake.Advance(2 * day)
		w.mustPass(t)
		if m := w.record(t); m == nil || m.Forgotten.IsZero() || !m.Request.Body.Dropped || !w.hasFile() {
			t.Fatalf("%s: after its time: %+v", c.after, m)
		}
		w.mustPass(t)
		if w.hasFile() {
			t.Errorf("%s: its contents are there still", c.after)
		}
		w.fake.Advance(3 * day)
		w.mustPass(t)
		if m := w.record(t); (m != nil) != c.left {
			t.Errorf("%s: after twice its time: %+v", c.after, m)
		}
	}
}

// shortCommands is a ledger whose commands take no more than some records.
type shortCommands struct {
	most      int
	forgotten []ledger.Key
	broken    error
}

func (l *shortCommands) Forget(_ context.Context, keys []ledger.Key, _ ledger.Retention) (ledger.ForgetCounts, error) {
	if l.broken != nil {
		return ledger.ForgetCounts{}, l.broken
	}
	if len(keys) > l.most {
		return ledger.ForgetCounts{}, errors.New("too large")
	}
	l.forgotten = append(l.forgotten, keys...)
	return ledger.ForgetCounts{Dropped: len(keys)}, nil
}

// Records can be so long that a batch of them is too much for one command.
func TestKeeperForgetsLongRecords(t *testing.T) {
	t.Parallel()
	keys := make([]ledger.Key, 2*forgetBatch+1)
	for i := range keys {
		keys[i] = ledger.Key{byte(i)}
	}
	for name, l := range map[string]*shortCommands{
		"fewer at a time are not":         {most: 5},
		"each for itself is too long":     {},
		"the ledger takes nothing":        {most: 5, broken: ledger.ErrUnavailable},
		"all of a batch can be let go of": {most: forgetBatch},
	} {
		k := &keeper{ledger: l, metrics: newKeeperMetrics(prometheus.NewRegistry()), log: zerolog.Nop()}
		err := k.forget(t.Context(), keys, ledger.Retention{})
		if fits := l.most > 0 && l.broken == nil; fits != (err == nil) || fits != slices.Equal(l.forgotten, keys) {
			t.Errorf("%s: %d of %d are forgotten, %v", name, len(l.forgotten), len(keys), err)
		}
	}
}

// A damaged content is told until it is whole again, and nothing else stops for it.
func TestKeeperTellsOfDamagedContents(t *testing.T) {
	t.Parallel()
	w := tend(t, config.Retention{})
	registry := prometheus.NewRegistry()
	w.metrics = newKeeperMetrics(registry)
	told := func(name string) float64 {
		t.Helper()
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			if f.GetName() == name {
				return f.GetMetric()[0].GetGauge().GetValue() + f.GetMetric()[0].GetCounter().GetValue()
			}
		}
		t.Fatalf("nothing tells %s", name)
		return 0
	}
	path := filepath.Join(w.dir, "bodies", w.body.SHA256)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		content []byte
		want    float64
	}{
		{whole, 0}, {append([]byte{'y'}, whole[1:]...), 1}, {whole[1:], 1}, {whole, 0},
	} {
		if err := os.WriteFile(path, c.content, 0o600); err != nil {
			t.Fatal(err)
		}
		w.mustPass(t)
		if got := told("keep_ledger_damaged_bodies"); got != c.want {
			t.Errorf("%v contents are told to be damaged, want %v", got, c.want)
		}
	}
	if read := told("keep_ledger_scrubbed_bytes_total"); read < float64(4*(len(whole)-1)) {
		t.Errorf("%v bytes were read in four passes", read)
	}
	if err := w.store.Healthy(); err != nil {
		t.Error(err)
	}
}

// The wall clock says what is old only after it went as the boot clock did for a day. Until then a date that was set
// wrong, before the start or after it, drops nothing.
func TestKeeperBelievesTheWallClockAfterADay(t *testing.T) {
	t.Parallel()
	const day, years = 24 * time.Hour, 10 * 365 * 24 * time.Hour
	for name, c := range map[string]struct {
		happens func(w *tended)
		kept    bool
	}{
		"it jumps": {func(w *tended) { w.fake.JumpWall(years) }, true},
		"it jumped before a start of the process": {func(w *tended) {
			w.fake.JumpWall(years)
			w.restart()
		}, true},
		"it jumped before a start of the machine": {func(w *tended) {
			w.fake.JumpWall(years)
			w.fake.Reboot(time.Minute)
			w.restart()
			w.fake.Advance(day - time.Minute)
		}, true},
		"it has gone on for a day after that": {func(w *tended) {
			w.fake.JumpWall(years)
			w.fake.Reboot(time.Minute)
			w.restart()
			w.fake.Advance(day)
		}, false},
		"it jumped a day ago, in this boot": {func(w *tended) {
			w.fake.JumpWall(years)
			w.fake.Advance(2 * day)
		}, true},
		"it jumped before a start of the process, and went on for a day": {func(w *tended) {
			w.fake.JumpWall(years)
			w.restart()
			w.fake.Advance(day)
		}, true},
		"the process was started a moment ago": {func(w *tended) {
			w.fake.Advance(10 * day)
			w.restart()
		}, false},
	} {
		w := tend(t, config.Retention{Keep: 5 * day, After: config.AfterForget})
		c.happens(w)
		w.mustPass(t)
		if m := w.record(t); m == nil || m.Forgotten.IsZero() != c.kept {
			t.Errorf("%s: kept is not %t: %+v", name, c.kept, m)
		}
	}
}

// restart begins anew with what a start knows.
func (w *tended) restart() { w.agreed = w.now() }

func TestKeeperKeepsAllWithoutKeep(t *testing.T) {
	t.Parallel()
	w := tend(t, config.Retention{})
	w.fake.Advance(1000 * 24 * time.Hour)
	w.mustPass(t)
	if m := w.record(t); m == nil || !m.Forgotten.IsZero() {
		t.Errorf("forgotten: %+v", m)
	}
}

func TestKeeperEndsWithItsContext(t *testing.T) {
	t.Parallel()
	w := tend(t, config.Retention{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.pass(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	w.run(ctx)
}
