package reconcilers

import (
	"context"
	"sync"

	"golang.org/x/time/rate"

	"keep-proxy/rules"
)

// limits bounds the requests to each connector.
type limits struct {
	fallback float64

	mu  sync.Mutex
	all map[string]*limit
}

type limit struct {
	rule rules.Rate
	*rate.Limiter
}

func newLimits(fallback float64) *limits {
	return &limits{fallback: fallback, all: map[string]*limit{}}
}

// wait blocks until a request to the connector is admitted, or ctx ends.
func (l *limits) wait(ctx context.Context, c *rules.Connector) error { return l.of(c).Wait(ctx) }

// of returns the connector's limiter, made anew when its rule says another rate.
func (l *limits) of(c *rules.Connector) *rate.Limiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	if known := l.all[c.Name]; known != nil && known.rule == c.Rate {
		return known.Limiter
	}
	perSecond, burst := l.fallback, max(int(l.fallback), 1)
	if c.Rate.Requests > 0 && c.Rate.Per > 0 {
		perSecond, burst = float64(c.Rate.Requests)/c.Rate.Per.Seconds(), c.Rate.Requests
	}
	made := rate.NewLimiter(rate.Limit(perSecond), burst)
	l.all[c.Name] = &limit{c.Rate, made}
	return made
}
