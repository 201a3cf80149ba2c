package app_test

import (
	"crypto/sha256"
	"net"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"keep-proxy/app"
	"keep-proxy/internal/clock"
	"keep-proxy/ledger"
	"keep-proxy/ledger/badgerstore"
)

// A start whose listeners can't be opened has recovered all the same: nobody could ask
// before that.
func TestRecoveryComesBeforeTheListeners(t *testing.T) {
	t.Parallel()
	_, c := bankAndSettings(t, t.TempDir())
	key := ledger.Key(sha256.Sum256([]byte("lost")))
	state := func(do func(*ledger.Ledger)) (state ledger.State) {
		fake := clock.NewFake(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
		now := func() ledger.Stamp { return ledger.Stamp(clock.Take(fake)) }
		store, err := badgerstore.Open(t.Context(), badgerstore.Config{Dir: app.LedgerDir(c), Now: now, NewID: app.NewID, Logger: zerolog.Nop()})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := store.Close(); err != nil {
				t.Error(err)
			}
		}()
		do(ledger.New(store, ledger.Config{Now: now, NewID: app.NewID}))
		if err := store.View(t.Context(), func(v ledger.View) error {
			m, err := v.Mutation(key)
			if err == nil {
				state = m.State
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
		return state
	}
	if s := state(func(l *ledger.Ledger) {
		if _, err := l.Claim(t.Context(), ledger.Claim{
			Scope: ledger.Scope{Workflow: "w", Item: "i", Attempt: 1}, Key: key, DispatchID: app.NewID(),
			Record: ledger.Mutation{
				Intent:  ledger.Intent{Connector: "bank", Operation: "pay"},
				Payload: ledger.Payload{PayloadDigest: "p", SignificantDigest: "p"},
			},
		}); err != nil {
			t.Fatal(err)
		}
	}); s != ledger.InFlight {
		t.Fatalf("it is %s", s)
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	c.Proxy.Listen = []string{taken.Addr().String()}
	a, err := app.New(t.Context(), app.Options{Config: c, Log: zerolog.Nop(), Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Start(t.Context()); err == nil {
		stop(t, a)
		t.Fatal("it listens at an address that is taken")
	}
	if s := state(func(*ledger.Ledger) {}); s != ledger.Indeterminate {
		t.Errorf("it is %s when the listeners are to be opened", s)
	}
}
