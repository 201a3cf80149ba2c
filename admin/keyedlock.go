package admin

import "sync"

// keyedLock lets one caller at a time work on a key. It holds memory for keys in
// use only. The zero value is ready.
type keyedLock struct {
	mu    sync.Mutex
	inUse map[string]*waiters
}

// waiters is one key's lock and how many hold it or wait for it.
type waiters struct {
	mu    sync.Mutex
	count int
}

// lock waits for the key and returns the function that lets it go.
func (l *keyedLock) lock(key string) (unlock func()) {
	l.mu.Lock()
	if l.inUse == nil {
		l.inUse = map[string]*waiters{}
	}
	w := l.inUse[key]
	if w == nil {
		w = &waiters{}
		l.inUse[key] = w
	}
	w.count++
	l.mu.Unlock()
	w.mu.Lock()
	return func() {
		w.mu.Unlock()
		l.mu.Lock()
		defer l.mu.Unlock()
		if w.count--; w.count == 0 {
			delete(l.inUse, key)
		}
	}
}
