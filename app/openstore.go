package app

import (
	"context"
	"errors"
	"time"

	"keep-proxy/ledger"
	"keep-proxy/ledger/badgerstore"
)

// How often a ledger that another process has is tried again, and for how long.
const (
	passingPoll = 50 * time.Millisecond
	passingWait = 10 * time.Second
)

// openStore opens the ledger, once who only passes through it has left: a proxy that gave up
// for a command that somebody repeats while it is down would stay down.
func (a *App) openStore(ctx context.Context, c badgerstore.Config) (*badgerstore.Store, error) {
	patience, cancel := context.WithTimeout(ctx, passingWait)
	defer cancel()
	poll := time.NewTicker(passingPoll)
	defer poll.Stop()
	for {
		store, err := badgerstore.Open(ctx, c)
		if !errors.Is(err, ledger.ErrLocked) || a.options.Passing == nil || !a.options.Passing() {
			return store, err
		}
		select {
		case <-patience.Done():
			return store, err
		case <-poll.C:
		}
	}
}
