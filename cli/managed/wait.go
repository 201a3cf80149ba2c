package managed

import (
	"context"
	"time"

	"keep-proxy/admin/wire"
)

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
			out.Pending++
		default:
			out.Waiting++
		}
	}
	return out, nil
}

// pending reports whether reconciliation works on a mutation that stops something.
func pending(state string) bool { return state == "needs_reconcile" || state == "in_flight" }

// AwaitSettled waits until reconciliation has nothing left to do for a scope, a
// person is needed, or wait is over. say is called once, when it has to wait
// longer than a second.
func AwaitSettled(ctx context.Context, api StatusAPI, scope Scope, wait time.Duration, say func(Standing)) (Standing, error) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	poll := time.NewTicker(defaultPoll)
	defer poll.Stop()
	began, said := time.Now(), false
	standing, err := Look(context.WithoutCancel(ctx), api, scope)
	for err == nil && standing.Pending > 0 && standing.Waiting == 0 {
		if !said && time.Since(began) > time.Second {
			said = true
			say(standing)
		}
		select {
		case <-ctx.Done():
			return standing, nil
		case <-poll.C:
		}
		standing, err = Look(context.WithoutCancel(ctx), api, scope)
	}
	return standing, err
}
