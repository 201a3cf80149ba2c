package upstream

import (
	"context"
	"sync"
	"time"

	"keep-proxy/internal/clock"
)

// watch ends a dispatch by force: when a deadline on the boot-time clock runs out,
// or when the context ends. Go's timers stand still while the machine sleeps, so it looks
// at least every lookEvery.
type watch struct {
	clock     clock.Clock
	lookEvery time.Duration
	kill      func()

	mu      sync.Mutex
	timer   *time.Timer
	total   time.Duration // boot time
	headBy  time.Duration // boot time; 0 while there is no such deadline
	head    bool          // the head was read
	cause   ErrorClass    // why kill was called
	over    bool
	release func() bool
}

// start begins to watch. Now and total are boot times.
func (w *watch) start(ctx context.Context, now, total time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.total = total
	w.timer = time.AfterFunc(w.pause(now), w.look)
	if ctx.Done() != nil {
		w.release = context.AfterFunc(ctx, func() { w.end(ErrorCanceled) })
	}
}

// pause is how long nobody has to look.
func (w *watch) pause(now time.Duration) time.Duration {
	return min(w.lookEvery, max(w.remaining(now), 0))
}

// remaining is the time until the next deadline.
func (w *watch) remaining(now time.Duration) time.Duration {
	by := w.total
	if w.headBy != 0 {
		by = min(by, w.headBy)
	}
	return by - now
}

// awaitHead starts the deadline for the head, unless it was read already.
func (w *watch) awaitHead(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.head {
		w.headBy = w.clock.Boot() + d
	}
}

// gotHead ends the deadline for the head.
func (w *watch) gotHead() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.head, w.headBy = true, 0
}

// look ends the dispatch if a deadline has run out.
func (w *watch) look() {
	w.mu.Lock()
	now := w.clock.Boot()
	over := w.remaining(now) <= 0
	if !over && !w.over {
		w.timer.Reset(w.pause(now))
	}
	w.mu.Unlock()
	if over {
		w.end(ErrorTimeout)
	}
}

// end kills the connection, once, and notes why.
func (w *watch) end(cause ErrorClass) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		return
	}
	w.over, w.cause = true, cause
	w.kill()
}

// stop ends the watch and returns why it had killed the connection, empty if it
// had not. After it, kill is not called any more.
func (w *watch) stop() ErrorClass {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	if w.timer != nil {
		w.timer.Stop()
	}
	if w.release != nil {
		w.release()
	}
	return w.cause
}

// ready looks once more before byte one and reports why the dispatch must not
// begin, empty if it may.
func (w *watch) ready(ctx context.Context, now time.Duration) ErrorClass {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.over:
		return w.cause
	case ctx.Err() != nil:
		return ErrorCanceled
	case w.remaining(now) <= 0:
		return ErrorTimeout
	}
	return ""
}
