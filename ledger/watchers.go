package ledger

import "sync"

// watchers are whom the gate tells of its changes. The zero value is nobody.
type watchers struct {
	mu  sync.Mutex
	all map[chan<- struct{}]struct{}
}

// add implements Standings.Watch.
func (w *watchers) add(told chan<- struct{}) (stop func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.all == nil {
		w.all = make(map[chan<- struct{}]struct{})
	}
	w.all[told] = struct{}{}
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.all, told)
	}
}

// tell tells all of them, and waits for none: a channel that has no room says it already.
func (w *watchers) tell() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for told := range w.all {
		select {
		case told <- struct{}{}:
		default:
		}
	}
}
