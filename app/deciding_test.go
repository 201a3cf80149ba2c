package app

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"keep-proxy/internal/clock"
	"keep-proxy/ledger"
	"keep-proxy/ledger/ledgertest"
	"keep-proxy/reconcilers"
	"keep-proxy/rules"
	"keep-proxy/upstream"
)

// bubbleClock follows time as a synctest bubble passes it.
type bubbleClock struct{ start time.Time }

func (c bubbleClock) Now() time.Time      { return time.Now().Round(0) }
func (c bubbleClock) Mono() time.Duration { return time.Since(c.start) + time.Hour }
func (c bubbleClock) Boot() time.Duration { return time.Since(c.start) + time.Hour }
func (bubbleClock) BootID() string        { return "boot" }

// queue notes what the runner found due.
type queue struct {
	*ledger.Ledger
	mu  sync.Mutex
	due []ledger.Key
}

func (q *queue) Due(ctx context.Context, now time.Time) ([]ledger.Key, time.Time, error) {
	due, next, err := q.Ledger.Due(ctx, now)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.due = append(q.due, due...)
	return due, next, err
}

func (q *queue) found(k ledger.Key) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Contains(q.due, k)
}

// noSending fails the test: none of its records has a rule, so none can be sent.
type noSending struct{ t *testing.T }

func (s noSending) Send(context.Context, *upstream.Request) *upstream.Answer {
	s.t.Error("something was sent")
	return &upstream.Answer{}
}

type noCredentials struct{}

func noPinned(context.Context, string) (*rules.Connector, error) { return nil, ledger.ErrNotFound }

func (noCredentials) For(string, string, string) (header, value string, err error) {
	return "", "", nil
}

// What a person wants looked at is looked at now, not when the runner next looks at its
// queue by itself.
func TestAPersonsDecisionWakesTheRunner(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		stored func() []*ledger.Mutation
		decide func(context.Context, deciding, *ledger.Mutation) error
	}{
		"check again": {
			func() []*ledger.Mutation {
				return []*ledger.Mutation{ledgertest.SampleMutation("a", ledger.Indeterminate, 0)}
			},
			func(ctx context.Context, d deciding, m *ledger.Mutation) error {
				_, err := d.Resolve(ctx, ledger.Resolve{
					Key: m.Key, Action: ledger.OnCheckAgain, Version: m.Version, Actor: "ada", Reason: "it is back", NextTryAt: time.Now(),
				})
				return err
			},
		},
		"run an obligation": {
			func() []*ledger.Mutation {
				of, m := ledgertest.SampleMutation("b", ledger.Applied, 0), ledgertest.SampleMutation("a", ledger.Failed, 1)
				of.Obligations = []ledger.Key{m.Key}
				m.Undo = &ledger.Undo{Of: of.Key, Object: "re_1", Operation: of.Operation, Order: 1}
				return []*ledger.Mutation{m, of}
			},
			func(ctx context.Context, d deciding, m *ledger.Mutation) error {
				_, err := d.RunObligation(ctx, ledger.RunObligation{Key: m.Key, Version: m.Version, Actor: "ada", Reason: "do it"})
				return err
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { wakes(t, c.stored(), c.decide) })
		})
	}
}

// wakes has the first of the stored records decided on.
func wakes(t *testing.T, stored []*ledger.Mutation, decide func(context.Context, deciding, *ledger.Mutation) error) {
	t.Helper()
	of := bubbleClock{time.Now()}
	now := func() ledger.Stamp { return ledger.Stamp(clock.Take(of)) }
	a := &App{ledger: ledger.New(
		ledgertest.NewMemory(ledger.Process{ID: "p", Started: now()}), ledger.Config{Now: now, NewID: NewID})}
	q := &queue{Ledger: a.ledger}
	var err error
	a.reconciler, err = reconcilers.New(reconcilers.Config{
		Ledger: q, Sender: noSending{t}, Credentials: noCredentials{}, Pinned: noPinned, Clock: of, NewID: NewID, Log: zerolog.Nop(),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer a.reconciler.Close()
	for _, m := range stored {
		if err := a.ledger.Update(t.Context(), func(tx ledger.Tx) error { return tx.PutMutation(m) }); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	running.Go(func() { a.reconciler.Run(ctx) })
	synctest.Wait()
	m := stored[0]
	if q.found(m.Key) {
		t.Fatal("it was due before the decision")
	}
	if err := decide(t.Context(), a.decisions(), m); err != nil {
		t.Fatal(err)
	}
	// No time passes in the bubble until everything waits for it.
	synctest.Wait()
	if !q.found(m.Key) {
		t.Error("the runner sleeps on")
	}
}
