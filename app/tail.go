package app

import (
	"context"
	"sync"
	"sync/atomic"

	"keep-proxy/admin/wire"
	"keep-proxy/proxy"
)

// tailBuffer is how many requests a follower may be behind before some are left out.
const tailBuffer = 1024

// tail hands requests to whoever follows them. Nothing waits for a follower, and
// nothing is kept without one. It implements proxy.Observer.
type tail struct {
	active atomic.Int64

	mu        sync.Mutex
	followers map[*follower]struct{}
}

// follower is one reader of requests.
type follower struct {
	lines chan wire.Served
	wants func(*wire.Served) bool
	// missed counts what came while lines was full.
	missed int64
}

func newTail() *tail { return &tail{followers: make(map[*follower]struct{})} }

// Active implements proxy.Observer.
func (t *tail) Active() bool { return t.active.Load() > 0 }

// Tell implements proxy.Observer.
func (t *tail) Tell(l proxy.Line) {
	r := wire.Served{
		At: l.At, Method: l.Method, Host: l.Host, Path: l.Path, Status: l.Status, Bytes: l.Bytes,
		Duration: wire.Duration(l.Duration), Delivered: l.Delivered, Effect: l.Effect, Problem: l.Problem,
		Workflow: l.Workflow, Item: l.Item, Run: l.Run, Connector: l.Connector, Operation: l.Operation,
		Mutation: l.Mutation, State: l.State, Decision: l.Decision,
		Upgrade: l.Upgrade, Received: l.Received, Ended: l.Ended, Client: l.Client, Detail: l.Detail,
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for f := range t.followers {
		if !f.wants(&r) {
			continue
		}
		told := r
		told.Missed = f.missed
		select {
		case f.lines <- told:
			f.missed = 0
		default:
			f.missed++
		}
	}
}

// follow calls each for every request that wants takes, from now on. It ends with ctx or when each fails. The function
// begun is called when nothing is missed any more.
func (t *tail) follow(ctx context.Context, wants func(*wire.Served) bool, begun func() error, each func(wire.Served) error) error {
	f := &follower{lines: make(chan wire.Served, tailBuffer), wants: wants}
	t.mu.Lock()
	t.followers[f] = struct{}{}
	t.mu.Unlock()
	t.active.Add(1)
	defer func() {
		t.active.Add(-1)
		t.mu.Lock()
		delete(t.followers, f)
		t.mu.Unlock()
	}()
	if err := begun(); err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case r := <-f.lines:
			if err := each(r); err != nil {
				return err
			}
		}
	}
}
