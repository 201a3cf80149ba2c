package proxy

import (
	"sync"
	"time"

	"keep-proxy/ledger"
)

const (
	// lookEvery is how often what is open is held against the gate although nothing told of
	// a change: should a cause of a stop ever fail to tell, this is how late the stop comes.
	lookEvery = time.Second
	// Looking because of changes takes at most a fifth of a processor's time, and so, where
	// very much is open, comes at most maxPause late.
	lookPause = 4
	leastLook = time.Millisecond
	maxPause  = 50 * time.Millisecond
)

// stops is what makes the proxy look whether something that is open has to be cut.
type stops struct {
	// changed holds one if something has changed since the latest look: all that standing
	// asks tells it, the ledger's gate, what is unrecorded, and inline tries.
	changed chan struct{}

	mu sync.Mutex
	// ending are the runs whose end is being recorded, before their streams are cut.
	ending map[string]*refusing
}

// refusing is a run that is over once the ledger says so, and its open streams.
type refusing struct {
	cause   string
	streams streams
	cut     chan struct{}
}

func newStops() *stops {
	return &stops{changed: make(chan struct{}, 1), ending: make(map[string]*refusing)}
}

// tell says that something has changed.
func (s *stops) tell() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// watch cuts open streams whose scope was stopped, until Close; then it calls unwatch.
func (p *Proxy) watch(unwatch func()) {
	defer unwatch()
	again := time.NewTicker(p.config.lookEvery)
	defer again.Stop()
	for {
		select {
		case <-p.ctx.Done():
			return
		case <-again.C:
			if p.open.count() > 0 {
				p.look()
			}
		case <-p.stops.changed:
			p.lookAtChange()
		}
	}
}

// lookAtChange looks, and then waits so long that looking doesn't take all the time.
func (p *Proxy) lookAtChange() {
	began := p.config.Clock.Mono()
	p.look()
	took := p.config.Clock.Mono() - began
	if took < leastLook {
		return
	}
	select {
	case <-p.ctx.Done():
	case <-time.After(min(lookPause*took, maxPause)):
	}
}

// cutStopped looks, and returns once what it found is cut.
func (p *Proxy) cutStopped() {
	for _, r := range p.look() {
		<-r.cut
	}
}

// look cuts what is being streamed to scopes that are stopped now, but not while an
// inline try may still lift the stop. A run that is cut because of a stop has been
// refused, so that it is over, unless its requests would be held: such runs are returned,
// and cut once the ledger has been told.
func (p *Proxy) look() []*refusing {
	p.stops.mu.Lock()
	defer p.stops.mu.Unlock()
	over := map[string]*refusing{}
	p.open.sweep(func(c caller, all streams) {
		a := p.standing(c)
		if a.Hold && !p.inline.trying(a.Blocker.Key) {
			// The try may have ended since the gate was asked.
			a = p.standing(c)
		}
		switch {
		case a.Open:
			all.free()
		case a.Hold && p.inline.trying(a.Blocker.Key):
		case c.managed() && a.Problem == string(problemBlocked) && p.config.Hold <= 0:
			if over[c.run] == nil {
				over[c.run] = &refusing{cause: a.Blocker.ID, cut: make(chan struct{})}
			}
			over[c.run].streams = append(over[c.run].streams, all...)
		case a.Problem == string(problemBlocked) && p.config.Hold > 0:
			stopped, begins := all.stopped(p.config.Clock.Mono(), p.config.Hold)
			if stopped.cut(); begins {
				time.AfterFunc(p.config.Hold, p.stops.tell)
			}
		default:
			all.cut()
		}
	})
	found := make([]*refusing, 0, len(over))
	for run, r := range over {
		if going := p.stops.ending[run]; going != nil {
			going.streams = r.streams // All that are open, those that came since among them.
			r = going
		} else {
			p.stops.ending[run] = r
			// All together, so that the ledger makes one commit of them.
			go p.cutRun(run, r)
		}
		found = append(found, r)
	}
	return found
}

// cutRun ends a run because of a stop, and then cuts its streams. Where the ledger can't say that it is over, it
// is all the same: the stop may pass, and it must not go on then without what it was reading.
func (p *Proxy) cutRun(run string, r *refusing) {
	over := ledger.Over{Cause: r.cause, Why: "its open streams were cut because of a stop"}
	if _, err := p.ledger.RefuseRun(p.ctx, run, over.Why, over.Cause); err != nil && p.ctx.Err() == nil {
		p.config.Log.Error().Err(err).Str("run", run).Msg("run not ended; trying on")
		p.endLater(run, over)
	}
	p.stops.mu.Lock()
	delete(p.stops.ending, run)
	all := r.streams
	p.stops.mu.Unlock()
	all.cut()
	close(r.cut)
}
