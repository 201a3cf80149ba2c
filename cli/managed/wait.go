package managed

import (
	"context"
	"errors"
	"fmt"
	"time"

	"keep-proxy/admin/client"
	"keep-proxy/admin/wire"
)

const (
	// openPoll is how often a run that is refused because of a stop is asked for again.
	openPoll = 500 * time.Millisecond
	// A run whose opening was not answered is asked for every lostPoll, for lostPatience.
	lostPoll     = 500 * time.Millisecond
	lostPatience = 15 * time.Second
)

// ErrOpenLost says that whether a run was opened isn't known.
var ErrOpenLost = errors.New("whether a run was opened isn't known")

// pause waits for d, and not longer than until ctx ends, whose error it returns then.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// OpenSettled opens a run. If that is refused because of an outcome on which reconciliation works, it asks again. It
// does so until wait is over or ctx ends. Where a person must decide it doesn't wait. It calls say once, with the
// first refusal that it waits for.
func OpenSettled(
	ctx context.Context, open func(context.Context) (*wire.OpenedRun, error), wait time.Duration, say func(*client.Problem),
) (*wire.OpenedRun, error) {
	limit, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	for said := false; ; said = true {
		opened, err := open(ctx)
		refused, ok := errors.AsType[*client.Problem](err)
		if !ok || refused.Name() != "blocked" || refused.Mutation == nil || !pending(refused.Mutation.State) || limit.Err() != nil {
			return opened, err
		}
		if !said {
			say(refused)
		}
		if pause(limit, openPoll) != nil {
			return opened, err
		}
	}
}

// OpenSurely opens a run. If the answer is lost, it calls say once, and asks again for 15 s at most. The proxy may
// have been started again at that moment. Each time open asks under the same Idempotency-Key, so that it finds the
// run that was opened. Without that the run would keep its item busy until its time limit.
func OpenSurely(
	ctx context.Context, open func(context.Context) (*wire.OpenedRun, error), say func(format string, args ...any),
) (*wire.OpenedRun, error) {
	opened, err := open(ctx)
	if err == nil || answered(err) || errors.Is(err, client.ErrNotAsked) {
		return opened, err
	}
	if ctx.Err() == nil {
		say("the answer to the opening of the run was lost; asking for it again, for %s", lostPatience)
	}
	limit, cancel := context.WithTimeout(ctx, lostPatience)
	defer cancel()
	for pause(limit, lostPoll) == nil {
		if opened, err = open(limit); err == nil || answered(err) {
			return opened, err
		}
	}
	return nil, fmt.Errorf("%w: %w", ErrOpenLost, err)
}

// answered reports whether an error is the API's own refusal.
func answered(err error) bool {
	_, ok := errors.AsType[*client.Problem](err)
	return ok
}

// StatusAPI is what waiting for a scope needs of the admin API.
type StatusAPI interface {
	Status(ctx context.Context) (*wire.Status, error)
}

// Scope is whose stops are waited for. Item may be empty.
type Scope struct {
	Workflow, Item string
	// Mutation is one that is waited for whatever it stops; empty for none.
	Mutation string
}

// covers reports whether a stop admits no run of the scope, or is of its mutation.
func (s Scope) covers(stop wire.Stopped) bool {
	switch {
	case s.Mutation != "" && stop.Mutation == s.Mutation:
		return true
	case stop.Scope == "workflow":
		return stop.Name == s.Workflow
	case stop.Scope == "item":
		return s.Item != "" && stop.Name == s.Workflow+"/"+s.Item
	}
	return false
}

// Standing is what stops a scope now.
type Standing struct {
	// Pending counts mutations on which reconciliation works: waiting helps.
	Pending int
	// Waiting counts mutations that only a person can settle.
	Waiting int
	// Oldest is the oldest of the pending.
	Oldest wire.Stopped
}

// Look counts what stops a scope.
func Look(ctx context.Context, api StatusAPI, scope Scope) (Standing, error) {
	var out Standing
	status, err := api.Status(ctx)
	if err != nil {
		return out, err
	}
	for _, stop := range status.Stopped {
		switch {
		case !scope.covers(stop):
		case pending(stop.State):
			if out.Pending++; out.Pending == 1 {
				out.Oldest = stop // The oldest comes first.
			}
		default:
			out.Waiting++
		}
	}
	return out, nil
}

// pending reports whether reconciliation works on a mutation that stops something.
func pending(state string) bool { return state == "needs_reconcile" || state == "in_flight" }

// AwaitSettled waits until reconciliation has nothing left to do for a scope, a person is needed, or wait is over. It
// calls say when it has to wait longer than a second, and after each try.
func AwaitSettled(ctx context.Context, api StatusAPI, scope Scope, wait time.Duration, say func(Standing)) (Standing, error) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	for began, said := time.Now(), (Standing{}); ; {
		standing, err := Look(context.WithoutCancel(ctx), api, scope)
		if err != nil || standing.Pending == 0 || standing.Waiting > 0 {
			return standing, err
		}
		o, last := standing.Oldest, said.Oldest
		if (said.Pending == 0 || o.Mutation != last.Mutation || o.Tries != last.Tries) && time.Since(began) > tellAfter {
			said = standing
			say(standing)
		}
		if pause(ctx, poll) != nil {
			return standing, nil
		}
	}
}
