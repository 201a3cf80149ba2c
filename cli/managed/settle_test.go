package managed

import (
	"context"
	"errors"
	"fmt"
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
	out := wire.Stopped{Blocks: wire.Blocks{Scope: scope, Name: name}, State: state}
	if scope == "mutation" {
		out.Mutation = name
	}
	return out
}

func TestOnlyStopsOfTheOwnScopeCount(t *testing.T) {
	t.Parallel()
	scope := Scope{Workflow: "w", Item: "i", Mutation: "m2"}
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
		{"another mutation alone", stop("mutation", "m1", "needs_reconcile"), Standing{}},
		{"the own mutation alone", stop("mutation", "m2", "needs_reconcile"), Standing{Pending: 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := Look(t.Context(), &statuses{list: []wire.Status{standing(c.stop)}}, scope)
			if err != nil || got.Pending != c.want.Pending || got.Waiting != c.want.Waiting {
				t.Errorf("got %+v, %v; want %+v", got, err, c.want)
			}
		})
	}
}

func TestReconciliationIsWaitedForAndPeopleAreNot(t *testing.T) {
	t.Parallel()
	pending := standing(stop("workflow", "w", "needs_reconcile"))
	person := standing(stop("workflow", "w", "indeterminate"))
	again := standing(stop("workflow", "w", "needs_reconcile"))
	again.Stopped[0].Tries = 1
	for _, c := range []struct {
		name  string
		list  []wire.Status
		wait  time.Duration
		want  Standing
		waits time.Duration
		said  int
	}{
		{"nothing to wait for", []wire.Status{standing()}, time.Hour, Standing{}, 0, 0},
		{"settled meanwhile", []wire.Status{pending, pending, standing()}, time.Hour, Standing{}, 2 * poll, 0},
		{"given up meanwhile", []wire.Status{pending, person}, time.Hour, Standing{Waiting: 1}, poll, 0},
		{"only a person can", []wire.Status{person}, time.Hour, Standing{Waiting: 1}, 0, 0},
		{"not settled in time", []wire.Status{pending}, 10 * time.Second, Standing{Pending: 1}, 10 * time.Second, 1},
		{"not to be waited for at all", []wire.Status{pending}, 0, Standing{Pending: 1}, 0, 0},
		{"asked meanwhile", []wire.Status{pending, pending, pending, pending, pending, pending, pending, pending, pending, pending, pending, pending, again}, 10 * time.Second, Standing{Pending: 1}, 10 * time.Second, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began, said := time.Now(), 0
				got, err := AwaitSettled(t.Context(), &statuses{list: c.list}, Scope{Workflow: "w"}, c.wait, func(Standing) { said++ })
				if err != nil || got.Pending != c.want.Pending || got.Waiting != c.want.Waiting || said != c.said || time.Since(began) != c.waits {
					t.Errorf("got %+v, %v after %s, said %d times; want %+v after %s, %d", got, err, time.Since(began), said, c.want, c.waits, c.said)
				}
			})
		})
	}
}

func TestARunIsOpenedOnceItsStopIsSettled(t *testing.T) {
	t.Parallel()
	stopped := func(state string) error {
		return &wire.Problem{Type: wire.ProblemPrefix + "blocked", Mutation: &wire.MutationRef{ID: "m-1", State: state}}
	}
	busy, unnamed := &wire.Problem{Type: wire.ProblemPrefix + "item-busy"}, &wire.Problem{Type: wire.ProblemPrefix + "blocked"}
	text := func(err error) string {
		p, ok := errors.AsType[*wire.Problem](err)
		if !ok {
			return fmt.Sprint(err)
		}
		return fmt.Sprint(p.Name(), p.Mutation)
	}
	for _, c := range []struct {
		name    string
		answers []error
		wait    time.Duration
		want    error
		waits   time.Duration
		said    int
	}{
		{"nothing stops it", []error{nil}, time.Hour, nil, 0, 0},
		{"settled meanwhile", []error{stopped("needs_reconcile"), stopped("in_flight"), nil}, time.Hour, nil, 2 * openPoll, 1},
		{"busy once it is settled", []error{stopped("needs_reconcile"), busy}, time.Hour, busy, openPoll, 1},
		{"not settled in time", []error{stopped("needs_reconcile")}, 3*openPoll - 1, stopped("needs_reconcile"), 3*openPoll - 1, 1},
		{"given up meanwhile", []error{stopped("needs_reconcile"), stopped("indeterminate")}, time.Hour, stopped("indeterminate"), openPoll, 1},
		{"only a person can", []error{stopped("indeterminate")}, time.Hour, stopped("indeterminate"), 0, 0},
		{"by what is not said", []error{unnamed}, time.Hour, unnamed, 0, 0},
		{"not to be waited for at all", []error{stopped("needs_reconcile")}, 0, stopped("needs_reconcile"), 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began, asked, said := time.Now(), 0, 0
				opened, err := OpenSettled(t.Context(), func(context.Context) (*wire.OpenedRun, error) {
					answer := c.answers[min(asked, len(c.answers)-1)]
					asked++
					if answer != nil {
						return nil, answer
					}
					return &wire.OpenedRun{}, nil
				}, c.wait, func(*wire.Problem) { said++ })
				if text(err) != text(c.want) || (opened == nil) != (c.want != nil) || time.Since(began) != c.waits || said != c.said {
					t.Errorf("got %v, %v after %s, told %d times", opened, err, time.Since(began), said)
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
