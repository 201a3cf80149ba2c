package reconcilers

import (
	"context"
	"math"
	"sync"

	"golang.org/x/time/rate"

	"keep-proxy/rules"
)

// limits bounds the requests to each connector: what is asked of it, and what is sent.
type limits struct {
	fallback float64

	mu  sync.Mutex
	all map[string]*limit
}

type limit struct {
	*rate.Limiter
	// head holds the dispatch that is next. The others wait behind it. A request about an unknown
	// outcome then waits for at most one of them.
	head chan struct{}
}

func newLimits(fallback float64) *limits {
	return &limits{fallback: fallback, all: map[string]*limit{}}
}

// wait blocks until a request to the connector is admitted, or ctx ends.
func (l *limits) wait(ctx context.Context, c *rules.Connector) error {
	if l.unbounded() {
		return ctx.Err()
	}
	return l.of(c).Wait(ctx)
}

// unbounded says that no rate has to be kept, not even a connector's.
func (l *limits) unbounded() bool { return math.IsInf(l.fallback, 1) }

// turn blocks until a dispatch to the connector is admitted, or ctx ends. A rule
// without a rate bounds no dispatch.
func (l *limits) turn(ctx context.Context, c *rules.Connector) error {
	if !c.Rate.Bounds() || l.unbounded() {
		return ctx.Err()
	}
	known := l.of(c)
	select {
	case known.head <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-known.head }()
	return known.Wait(ctx)
}

// of returns the connector's limiter. Versions of a rule with different rates share
// it: what one has used up, the other doesn't have.
func (l *limits) of(c *rules.Connector) *limit {
	perSecond, burst := rate.Limit(l.fallback), max(int(l.fallback), 1)
	if c.Rate.Bounds() {
		perSecond, burst = rate.Limit(float64(c.Rate.Requests)/c.Rate.Per.Seconds()), c.Rate.Requests
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	known := l.all[c.Name]
	if known == nil {
		known = &limit{rate.NewLimiter(perSecond, burst), make(chan struct{}, 1)}
		l.all[c.Name] = known
	}
	if known.Limit() != perSecond {
		known.SetLimit(perSecond)
	}
	if known.Burst() != burst {
		known.SetBurst(burst)
	}
	return known
}
