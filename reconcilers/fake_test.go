package reconcilers

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"keep-proxy/internal/clock"
	"keep-proxy/ledger"
	"keep-proxy/rules"
	"keep-proxy/upstream"
)

// bubbleClock follows time as a synctest bubble passes it.
type bubbleClock struct{ start time.Time }

func (c bubbleClock) Now() time.Time      { return time.Now().Round(0) }
func (c bubbleClock) Mono() time.Duration { return time.Since(c.start) + time.Hour }
func (c bubbleClock) Boot() time.Duration { return time.Since(c.start) + time.Hour }
func (c bubbleClock) BootID() string      { return "boot-1" }

// fakeLedger is a ledger whose commands only note that they were called. Its
// connectors are missing, so that each try ends with an Observe that says so.
type fakeLedger struct {
	unrecorded ledger.Unrecorded
	clock      clock.Clock

	mu        sync.Mutex
	mutations map[ledger.Key]*ledger.Mutation
	unhealthy error
	// reads counts the records that were read.
	reads int
	// tells says that it knows connectors without reading.
	tells bool
	// observe replaces what Observe does after it moved the record's next try.
	observe  func(ctx context.Context, c ledger.Observe) error
	finish   func(f ledger.EndDispatch) error
	observed []ledger.Observe
	finished []ledger.EndDispatch
}

func newFakeLedger(c clock.Clock) *fakeLedger {
	return &fakeLedger{clock: c, mutations: map[ledger.Key]*ledger.Mutation{}}
}

var errNoConnector = errors.New("no such connector in this test")

// add puts a record into the queue, due after the given time.
func (f *fakeLedger) add(n byte, connector string, due time.Duration) ledger.Key {
	return f.addKey(ledger.Key{n}, connector, due)
}

func (f *fakeLedger) addKey(k ledger.Key, connector string, due time.Duration) ledger.Key {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := ledger.Stamp(clock.Take(f.clock))
	m := &ledger.Mutation{
		Intent:    ledger.Intent{Key: k, ID: k.ID(), Connector: connector},
		Version:   1,
		CreatedAt: now.Wall, UpdatedAt: now.Wall,
		Outcome: ledger.Outcome{
			State:        ledger.NeedsReconcile,
			UnknownSince: now,
			Dispatches:   []ledger.Dispatch{{ID: "d", Owner: "p1", Started: now, Ended: now, Verdict: ledger.VerdictUncertain}},
		},
		Asking:  ledger.Asking{NextTryAt: now.Wall.Add(due)},
		Payload: ledger.Payload{Policy: ledger.Policy{Settle: 5 * time.Minute, Confirmations: 2, Spacing: 10 * time.Second}},
	}
	f.mutations[m.Key] = m
	return m.Key
}

func (f *fakeLedger) Observe(ctx context.Context, c ledger.Observe) (ledger.Moved, error) {
	if f.observe != nil {
		if err := f.observe(ctx, c); err != nil {
			return ledger.Moved{}, err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.observed = append(f.observed, c)
	m := *f.mutations[c.Key]
	if m.Version != c.Version {
		return ledger.Moved{}, ledger.ErrVersion
	}
	m.Version++
	m.UpdatedAt = f.clock.Now()
	m.NextTryAt, m.RunningAge = c.NextTryAt, m.RunningAge+c.Ran
	m.Observations = append(slices.Clone(m.Observations), c.Observation)
	f.mutations[c.Key] = &m
	return ledger.Moved{Mutation: &m}, nil
}

func (f *fakeLedger) Spool() (ledger.Spool, error) { return nil, ledger.ErrUnavailable }

func (f *fakeLedger) Unrecorded() *ledger.Unrecorded { return &f.unrecorded }

func (f *fakeLedger) EndDispatch(_ context.Context, c ledger.EndDispatch) (ledger.Moved, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.finish != nil {
		if err := f.finish(c); err != nil {
			return ledger.Moved{}, err
		}
	}
	f.finished = append(f.finished, c)
	return ledger.Moved{Mutation: f.mutations[c.Key]}, nil
}

func (f *fakeLedger) Resend(context.Context, ledger.Resend) (*ledger.Mutation, *ledger.Dispatch, error) {
	return nil, nil, ledger.ErrNotAllowed
}

func (f *fakeLedger) Redispatch(context.Context, ledger.Redispatch) (*ledger.Mutation, *ledger.Dispatch, error) {
	return nil, nil, ledger.ErrNotAllowed
}

func (f *fakeLedger) CallOffRedispatch(context.Context, ledger.Key, int64, time.Time, string) (*ledger.Mutation, error) {
	return nil, ledger.ErrNotAllowed
}

func (f *fakeLedger) Exhaust(context.Context, ledger.Key, int64, string) (ledger.Moved, error) {
	return ledger.Moved{}, ledger.ErrNotAllowed
}

func (f *fakeLedger) Recover(_ context.Context, next func(*ledger.Mutation) time.Time) (ledger.RecoverCounts, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var counts ledger.RecoverCounts
	for k, m := range f.mutations {
		if m.State == ledger.InFlight {
			moved := *m
			moved.State, moved.NextTryAt = ledger.NeedsReconcile, next(m)
			f.mutations[k] = &moved
			counts.NeedsReconcile++
		}
	}
	return counts, f.unhealthy
}

func (f *fakeLedger) View(_ context.Context, fn func(ledger.View) error) error {
	return fn(fakeView{f: f})
}

func (f *fakeLedger) Read(ctx context.Context, fn func(ledger.View) error) error {
	return f.View(ctx, fn)
}

func (f *fakeLedger) Body(context.Context, ledger.Body) (io.ReadCloser, error) {
	return io.NopCloser(bytes.NewReader(nil)), nil
}

func (f *fakeLedger) WriteBody(context.Context, io.Reader) (ledger.Body, error) {
	return ledger.Body{}, ledger.ErrUnavailable
}

func (*fakeLedger) SentAlike(context.Context, *ledger.Mutation, func(*ledger.Mutation) bool) (string, error) {
	return "", ledger.ErrUnavailable
}

func (*fakeLedger) LaterOfTarget(context.Context, *ledger.Mutation) (string, error) {
	return "", ledger.ErrUnavailable
}

func noPinned(context.Context, string) (*rules.Connector, error) { return nil, errNoConnector }

func (f *fakeLedger) Due(_ context.Context, now time.Time) (due []ledger.Key, next time.Time, _ error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := slices.SortedFunc(maps.Values(f.mutations), func(a, b *ledger.Mutation) int {
		return cmp.Or(a.NextTryAt.Compare(b.NextTryAt), bytes.Compare(a.Key[:], b.Key[:]))
	})
	for _, m := range all {
		switch {
		case m.State != ledger.NeedsReconcile:
		case m.NextTryAt.After(now):
			return due, m.NextTryAt, nil
		default:
			due = append(due, m.Key)
		}
	}
	return due, time.Time{}, nil
}

func (f *fakeLedger) ConnectorOf(k ledger.Key) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.tells {
		return ""
	}
	return f.mutations[k].Connector
}

func (f *fakeLedger) Process() ledger.Process {
	return ledger.Process{ID: "p1", Started: ledger.Stamp{Wall: f.clock.Now().Add(-time.Hour), BootID: "boot-1"}}
}

func (f *fakeLedger) Healthy() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.unhealthy
}

func (f *fakeLedger) set(fn func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fn()
}

// tries returns how often each record was observed.
func (f *fakeLedger) tries() map[ledger.Key]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := map[ledger.Key]int{}
	for _, c := range f.observed {
		n[c.Key]++
	}
	return n
}

// fakeView reads single records only.
type fakeView struct {
	ledger.View
	f *fakeLedger
}

func (v fakeView) Mutation(k ledger.Key) (*ledger.Mutation, error) {
	v.f.mu.Lock()
	defer v.f.mu.Unlock()
	v.f.reads++
	m := v.f.mutations[k]
	if m == nil {
		return nil, ledger.ErrNotFound
	}
	private := *m
	return &private, nil
}

var _ Ledger = (*ledger.Ledger)(nil)

// noSender must not be reached.
type noSender struct{ t *testing.T }

func (s noSender) Send(context.Context, *upstream.Request) *upstream.Answer {
	s.t.Error("something was sent")
	return nil
}

// fixed gives the same credential always.
type fixed struct {
	header, value string
	err           error
}

func (c fixed) For(string, string, string) (string, string, error) { return c.header, c.value, c.err }

// bubble makes a Reconciler over a fakeLedger inside a synctest bubble.
func bubble(t *testing.T, s Settings) (*Reconciler, *fakeLedger) {
	t.Helper()
	c := bubbleClock{time.Now()}
	f := newFakeLedger(c)
	r, err := New(Config{
		Ledger: f, Sender: noSender{t}, Credentials: fixed{}, Pinned: noPinned, Clock: c, NewID: func() string { return "id" },
		Settings: s, Random: func() float64 { return 0.5 }, Log: zerolog.Nop(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r, f
}

// running runs the runner until the returned function is called.
func running(r *Reconciler) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.Run(ctx)
	}()
	synctest.Wait()
	return func() {
		cancel()
		<-done
	}
}

// pass lets time pass in a bubble, until everything waits again.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}
