package managed

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"keep-proxy/admin/wire"
)

// statuses answers with one status after the other; the last one stays.
type statuses struct {
	list []wire.Status
	err  error
	n    int
}

func (s *statuses) Status(context.Context) (*wire.Status, error) {
	if s.err != nil {
		return nil, s.err
	}
	i := min(s.n, len(s.list)-1)
	s.n++
	return &s.list[i], nil
}

func standing(stops ...wire.Stopped) wire.Status { return wire.Status{Stopped: stops} }

func stop(scope, name, state string) wire.Stopped {
	return wire.Stopped{Blocks: wire.Blocks{Scope: scope, Name: name}, State: state}
}

func TestOnlyStopsOfTheOwnScopeCount(t *testing.T) {
	t.Parallel()
	scope := Scope{Workflow: "w", Item: "i"}
	for _, c := range []struct {
		name string
		stop wire.Stopped
		want Standing
	}{
		{"the own workflow", stop("workflow", "w", "needs_reconcile"), Standing{Pending: 1}},
		{"the own item", stop("item", "w/i", "needs_reconcile"), Standing{Pending: 1}},
		{"a sending whose owner was lost", stop("workflow", "w", "in_flight"), Standing{Pending: 1}},
		{"one that waits for a person", stop("workflow", "w", "indeterminate"), Standing{Waiting: 1}},
		{"another workflow", stop("workflow", "v", "needs_reconcile"), Standing{}},
		{"another item", stop("item", "w/j", "needs_reconcile"), Standing{}},
		{"a mutation alone", stop("mutation", "m1", "needs_reconcile"), Standing{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := Look(t.Context(), &statuses{list: []wire.Status{standing(c.stop)}}, scope)
			if err != nil || got != c.want {
				t.Errorf("got %+v, %v; want %+v", got, err, c.want)
			}
		})
	}
}

func TestReconciliationIsWaitedForAndPeopleAreNot(t *testing.T) {
	t.Parallel()
	pending := standing(stop("workflow", "w", "needs_reconcile"))
	person := standing(stop("workflow", "w", "indeterminate"))
	for _, c := range []struct {
		name  string
		list  []wire.Status
		wait  time.Duration
		want  Standing
		waits time.Duration
	}{
		{"nothing to wait for", []wire.Status{standing()}, time.Hour, Standing{}, 0},
		{"settled meanwhile", []wire.Status{pending, pending, standing()}, time.Hour, Standing{}, 2 * defaultPoll},
		{"given up meanwhile", []wire.Status{pending, person}, time.Hour, Standing{Waiting: 1}, defaultPoll},
		{"only a person can", []wire.Status{person}, time.Hour, Standing{Waiting: 1}, 0},
		{"not settled in time", []wire.Status{pending}, 3 * time.Second, Standing{Pending: 1}, 3 * time.Second},
		{"not to be waited for at all", []wire.Status{pending}, 0, Standing{Pending: 1}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				got, err := AwaitSettled(t.Context(), &statuses{list: c.list}, Scope{Workflow: "w"}, c.wait, func(Standing) {})
				if err != nil || got != c.want || time.Since(began) != c.waits {
					t.Errorf("got %+v, %v after %s; want %+v after %s", got, err, time.Since(began), c.want, c.waits)
				}
			})
		})
	}
}

func TestAnAPIThatCannotBeAskedIsAnError(t *testing.T) {
	t.Parallel()
	down := errors.New("connection refused")
	if _, err := AwaitSettled(t.Context(), &statuses{err: down}, Scope{}, time.Hour, nil); !errors.Is(err, down) {
		t.Errorf("error %v, want %v", err, down)
	}
}
