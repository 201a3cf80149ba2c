package managed

import (
	"context"
	"errors"
	"fmt"
	"time"

	"keep-proxy/admin/client"
	"keep-proxy/admin/wire"
)

// openPoll is how often a run that is refused because of a stop is asked for again.
const openPoll = 500 * time.Millisecond

// OpenSettled opens a run. While that is refused because of an outcome on which
// reconciliation works, it asks again, until wait is over or ctx ends; not where a person
// must decide. say is called once, with the first refusal that it waits for.
func OpenSettled(
	ctx context.Context, open func(context.Context) (*wire.OpenedRun, error), wait time.Duration, say func(*client.Problem),
) (*wire.OpenedRun, error) {
	patience, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	poll := time.NewTicker(openPoll)
	defer poll.Stop()
	for said := false; ; {
		opened, err := open(ctx)
		refused := reconciling(err)
		if refused == nil || patience.Err() != nil {
			return opened, err
		}
		if !said {
			said = true
			say(refused)
		}
		select {
		case <-patience.Done():
			return opened, err
		case <-poll.C:
		}
	}
}

// reconciling is the refusal because of an outcome that the API is asked about, nil for
// any other error.
func reconciling(err error) *client.Problem {
	p, ok := errors.AsType[*client.Problem](err)
	if ok && p.Name() == "blocked" && p.Mutation != nil && pending(p.Mutation.State) {
		return p
	}
	return nil
}

// ErrOpenLost says that whether a run was opened isn't known.
var ErrOpenLost = errors.New("whether a run was opened isn't known")

// Bounds of asking again for a run whose opening was not answered.
const (
	lostPoll     = 500 * time.Millisecond
	lostPatience = 15 * time.Second
)

// OpenSurely opens a run. Where the answer is lost, as when the proxy is started again at
// that moment, it asks again until it is answered, until ctx ends and for 15 s at most: open asks under the
// same Idempotency-Key each time, so that it finds the run that was opened. Without that
// the run would keep its item busy until its time limit, and nobody would know of it. say
// is called once then.
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
	patience, cancel := context.WithTimeout(ctx, lostPatience)
	defer cancel()
	poll := time.NewTicker(lostPoll)
	defer poll.Stop()
	for {
		select {
		case <-patience.Done():
			return nil, fmt.Errorf("%w: %w", ErrOpenLost, err)
		case <-poll.C:
		}
		if opened, err = open(patience); err == nil || answered(err) {
			return opened, err
		}
	}
}

// answered reports whether an error is the API's own refusal.
func answered(err error) bool {
	_, ok := errors.AsType[*client.Problem](err)
	return ok
}
