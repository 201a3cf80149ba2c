package server

import (
	"context"
	"net/http"
	"sync"

	"keep-proxy/internal/fakes/script"
)

// rest knows the requests that are at work on a change. Each is at work from its arrival until the last commit of its
// story. The time that a fault has it wait doesn't count. How long that work takes is a matter of the machine, and no
// lateness of the API.
type rest struct {
	mu     sync.Mutex
	atWork map[*exchange]chan struct{}
}

// begin takes in a request that may commit.
func (r *rest) begin(x *exchange) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.atWork == nil {
		r.atWork = map[*exchange]chan struct{}{}
	}
	r.atWork[x] = make(chan struct{})
}

// end says that the request commits nothing before it begins again, and reports whether it
// was at work. It may be called again.
func (r *rest) end(x *exchange) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	done, ok := r.atWork[x]
	if ok {
		close(done)
		delete(r.atWork, x)
	}
	return ok
}

// wait returns once what is at work now has committed, or ctx ends.
func (r *rest) wait(ctx context.Context) error {
	r.mu.Lock()
	now := make([]chan struct{}, 0, len(r.atWork))
	for _, done := range r.atWork {
		now = append(now, done)
	}
	r.mu.Unlock()
	for _, done := range now {
		select {
		case <-done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// commits reports whether the story is going to commit something.
func commits(steps []script.Step) bool {
	for _, step := range steps {
		if step.Do == script.Commit {
			return true
		}
	}
	return false
}

func reads(r *http.Request) bool { return r.Method == http.MethodGet || r.Method == http.MethodHead }

// Rest returns once the requests that have come will commit nothing any more. Those that a fault holds back don't
// count.
func (s *Server) Rest(ctx context.Context) error { return s.rest.wait(ctx) }
