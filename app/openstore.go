package app

import (
	"context"
	"errors"
	"time"

	"keep-proxy/ledger"
	"keep-proxy/ledger/badgerstore"
)

// lockedPoll is how often a ledger that another process has is looked at again, and
// lockedWait for how long.
const (
	lockedPoll = 50 * time.Millisecond
	lockedWait = 10 * time.Second
)

// WhileLocked tries again while another process has the ledger and worth says that it is about
// to leave, or to say where it serves it. It gives up after 10 s.
func WhileLocked[T any](ctx context.Context, worth func() bool, try func() (T, error)) (T, error) {
	patience, cancel := context.WithTimeout(ctx, lockedWait)
	defer cancel()
	poll := time.NewTicker(lockedPoll)
	defer poll.Stop()
	for {
		found, err := try()
		if !errors.Is(err, ledger.ErrLocked) || !worth() {
			return found, err
		}
		select {
		case <-patience.Done():
			return found, err
		case <-poll.C:
		}
	}
}

// openStore opens the ledger, once who only passes through it has left: a proxy that gave up
// for a command that somebody repeats while it is down would stay down.
func (a *App) openStore(ctx context.Context, c badgerstore.Config) (*badgerstore.Store, error) {
	passing := func() bool { return a.options.Passing != nil && a.options.Passing() }
	return WhileLocked(ctx, passing, func() (*badgerstore.Store, error) { return badgerstore.Open(ctx, c) })
}
