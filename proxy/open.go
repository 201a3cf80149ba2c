package proxy

import (
	"sync"
	"time"
)

// cutInterval is how often open streams are compared with the gate, so that a
// stop that came from elsewhere (a person, a takeover, a time limit) cuts them.
const cutInterval = 100 * time.Millisecond

// open is what is being streamed now: it is cut when its scope is stopped.
type open struct {
	mu      sync.Mutex
	streams map[*stream]struct{}
}

type stream struct {
	caller caller
	cut    func()
}

func newOpen() *open { return &open{streams: make(map[*stream]struct{})} }

// add registers a stream; cut must be safe to call at any time, more than once.
// The returned function takes the stream out again.
func (o *open) add(c caller, cut func()) (forget func()) {
	s := &stream{caller: c, cut: cut}
	o.mu.Lock()
	o.streams[s] = struct{}{}
	o.mu.Unlock()
	return func() {
		o.mu.Lock()
		delete(o.streams, s)
		o.mu.Unlock()
	}
}

// sweep cuts every stream whose caller stopped reports true for.
func (o *open) sweep(stopped func(caller) bool) {
	o.mu.Lock()
	all := make([]*stream, 0, len(o.streams))
	for s := range o.streams {
		all = append(all, s)
	}
	o.mu.Unlock()
	for _, s := range all {
		if stopped(s.caller) {
			s.cut()
		}
	}
}
