package reconcilers

import (
	"context"
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
					if err := l.wait(t.Context(), &rules.Connector{Name: "api", Rate: tc.rate}); err != nil {
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
	t.Parallel()
	l := newLimits(5)
	slow := &rules.Connector{Name: "api", Rate: rules.Rate{Requests: 1, Per: time.Hour}}
	if first := l.of(slow); l.of(slow) != first {
		t.Error("each request has a limiter of its own")
	}
	fast := &rules.Connector{Name: "api", Rate: rules.Rate{Requests: 1000, Per: time.Second}}
	if l.of(slow) == l.of(fast) {
		t.Error("a new rate has no effect")
	}
	if l.of(fast) == l.of(&rules.Connector{Name: "other", Rate: fast.Rate}) {
		t.Error("two connectors share a limiter")
	}
}

func TestWaitForTheRateEndsWithTheTry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, c := newLimits(5), &rules.Connector{Name: "api", Rate: rules.Rate{Requests: 1, Per: time.Hour}}
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
