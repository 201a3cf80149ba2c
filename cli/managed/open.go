package managed

import (
	"context"
	"errors"
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
