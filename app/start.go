package app

import (
	"context"
	"errors"
	"fmt"
	"strings"
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

// WhileLocked tries again while another process has the ledger and worth is true. Then that process is about to leave,
// or to say where it serves the ledger. WhileLocked tries for 10 s at most.
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

// openStore opens the ledger, once another process that uses it for a moment has left. Somebody may repeat a command
// while the proxy is down. A proxy that gave up for it would stay down.
func (a *App) openStore(ctx context.Context, c badgerstore.Config) (*badgerstore.Store, error) {
	passing := func() bool { return a.options.Passing != nil && a.options.Passing() }
	return WhileLocked(ctx, passing, func() (*badgerstore.Store, error) { return badgerstore.Open(ctx, c) })
}

// markGaps opens the gap of a ledger that was restored. It marks what was active before this gap or an earlier one,
// ahead of recovery.
func (a *App) markGaps(ctx context.Context) error {
	if since := a.options.Restored; !since.IsZero() {
		// The same word may be of an earlier restore, whose gap the copy holds.
		held, _ := a.store.Behind()
		gap, err := a.ledger.RestoredBehind(ctx, since, held, a.options.Operator, "serve --restored "+since.Format(time.RFC3339))
		if err != nil {
			return fmt.Errorf("restored ledger: %w", err)
		}
		if gap.Open() {
			a.note(fmt.Sprintf("the ledger is a copy of %s: what would be sent, and may have been sent since, is asked about first; "+
				"keep-proxy ledger confirm ends that once you know what was done", gap.Since.UTC().Format(time.RFC3339)))
		}
	}
	if err := a.ledger.MarkGaps(ctx); err != nil {
		return err
	}
	return a.store.GapNoted()
}

// recovered says what recovery found, empty for nothing.
func recovered(c ledger.RecoverCounts) string {
	var parts []string
	for _, p := range []struct {
		n    int
		what string
	}{
		{c.NeedsReconcile, "to be reconciled"},
		{c.Indeterminate, "waiting for a person"},
		{c.Applied, "applied with an unknown result"},
		{c.Failed, "proven not to have been sent"},
	} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.what))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "an earlier process left mutations in flight: " + strings.Join(parts, ", ")
}

const (
	// patience is how long a step of a start may take before anybody is told.
	patience = time.Second
	// reminder is how often one that goes on is told of again.
	reminder = 10 * time.Second
)

// telling does a step of the start, and notes what takes long meanwhile. Until the step has ended nothing listens, and
// somebody may wait.
func (a *App) telling(what string, do func() error) error {
	ended, told := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(told)
		begun, next := time.Now(), time.NewTimer(patience)
		defer next.Stop()
		for {
			select {
			case <-ended:
				return
			case <-next.C:
				a.note(what + " is taking long: " + time.Since(begun).Round(time.Second).String() + " until now; nothing listens before it ends")
				next.Reset(reminder)
			}
		}
	}()
	err := do()
	close(ended)
	<-told
	return err
}
