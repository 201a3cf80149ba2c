package ledger

import "sync"

// Watchers are whom a Store tells of changes of its gate. The zero value is nobody.
type Watchers struct {
	mu  sync.Mutex
	all map[chan<- struct{}]struct{}
}

// Add implements Store.Watch.
func (w *Watchers) Add(told chan<- struct{}) (stop func()) {
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

// Tell tells all of them, and waits for none: a channel that has no room says it already.
func (w *Watchers) Tell() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for told := range w.all {
		select {
		case told <- struct{}{}:
		default:
		}
	}
}
