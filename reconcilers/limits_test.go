package reconcilers

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"keep-proxy/rules"
)

func TestRateOfAConnector(t *testing.T) {
	for name, tc := range map[string]struct {
		rate     rules.Rate
		requests int
		want     time.Duration
	}{
		"the rule's rate admits its burst":     {rules.Rate{Requests: 3, Per: time.Minute}, 3, 0},
		"and then one at a time":               {rules.Rate{Requests: 3, Per: time.Minute}, 5, 40 * time.Second},
		"without a rate the default holds":     {rules.Rate{}, 7, 400 * time.Millisecond},
		"a rate that says nothing is no rate":  {rules.Rate{Requests: 3}, 7, 400 * time.Millisecond},
		"a rate of none per minute is no rate": {rules.Rate{Per: time.Minute}, 7, 400 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, start := newLimits(5), time.Now()
				for range tc.requests {
					if err := l.wait(t.Context(), &rules.Connector{Head: rules.Head{Name: "api"}, Rate: tc.rate}); err != nil {
						t.Fatal(err)
					}
				}
				if took := time.Since(start).Round(time.Millisecond); took != tc.want {
					t.Errorf("%d requests took %v, want %v", tc.requests, took, tc.want)
				}
			})
		})
	}
}

func TestRateFollowsTheRule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, start := newLimits(5), time.Now()
		slow := &rules.Connector{Head: rules.Head{Name: "api"}, Rate: rules.Rate{Requests: 1, Per: time.Hour}}
		fast := &rules.Connector{Head: rules.Head{Name: "api"}, Rate: rules.Rate{Requests: 1000, Per: time.Second}}
		other := &rules.Connector{Head: rules.Head{Name: "other"}, Rate: slow.Rate}
		for _, c := range []*rules.Connector{slow, other, fast} {
			if err := l.wait(t.Context(), c); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(start); took > time.Minute {
			t.Errorf("a new rate has no effect: %v", took)
		}
		// Going back brings no new burst.
		if err := l.wait(t.Context(), slow); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took < 59*time.Minute {
			t.Errorf("the earlier rate began anew: %v", took)
		}
	})
}

func TestRateOfDispatches(t *testing.T) {
	for name, tc := range map[string]struct {
		rate rules.Rate
		want time.Duration
	}{
		"the rule's rate":                 {rules.Rate{Requests: 2, Per: time.Minute}, 4 * 30 * time.Second},
		"a rule without one bounds none":  {rules.Rate{}, 0},
		"one that says nothing is no one": {rules.Rate{Requests: 2}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, start, c := newLimits(5), time.Now(), &rules.Connector{Head: rules.Head{Name: "api"}, Rate: tc.rate}
				var all sync.WaitGroup
				for range 6 {
					all.Go(func() {
						if err := l.turn(t.Context(), c); err != nil {
							t.Error(err)
						}
					})
				}
				all.Wait()
				if took := time.Since(start).Round(time.Millisecond); took != tc.want {
					t.Errorf("6 dispatches took %v, want %v", took, tc.want)
				}
			})
		})
	}
}

// However many dispatches wait, a probe has at most one of them before it.
func TestAskingIsNotBehindAQueueOfDispatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, c := newLimits(5), &rules.Connector{Head: rules.Head{Name: "api"}, Rate: rules.Rate{Requests: 1, Per: time.Second}}
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() { _ = l.turn(ctx, c) })
		}
		synctest.Wait()
		start := time.Now()
		if err := l.wait(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("a probe waited %v", took)
		}
		cancel()
		all.Wait()
	})
}

func TestWaitForTheRateEndsWithTheTry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, c := newLimits(5), &rules.Connector{Head: rules.Head{Name: "api"}, Rate: rules.Rate{Requests: 1, Per: time.Hour}}
		if err := l.wait(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := l.wait(ctx, c); err == nil {
			t.Error("a request was admitted over the rate")
		}
	})
}
