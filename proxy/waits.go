package proxy

import (
	"context"
	"sync"

	"keep-proxy/ledger"
)

// waits are the inline tries under way. Requests of a stopped scope wait for them before they are
// refused.
type waits struct {
	mu    sync.Mutex
	byKey map[ledger.Key]chan struct{}
	// ended is called after each end.
	ended func()
}

func newWaits(ended func()) *waits {
	return &waits{byKey: make(map[ledger.Key]chan struct{}), ended: ended}
}

// begin says that an inline try of k is under way. The returned function ends it, and may be called
// more than once.
func (w *waits) begin(k ledger.Key) (end func()) {
	done := make(chan struct{})
	w.mu.Lock()
	w.byKey[k] = done
	w.mu.Unlock()
	return sync.OnceFunc(func() {
		w.mu.Lock()
		if w.byKey[k] == done {
			delete(w.byKey, k)
		}
		w.mu.Unlock()
		close(done)
		w.ended()
	})
}

// trying reports whether an inline try of k is under way.
func (w *waits) trying(k ledger.Key) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.byKey[k] != nil
}

// wait returns once no try of these mutations is under way, or ctx ends. It
// reports whether it waited for any.
func (w *waits) wait(ctx context.Context, blockers []ledger.Blocker) bool {
	waited := false
	for _, b := range blockers {
		w.mu.Lock()
		done := w.byKey[b.Key]
		w.mu.Unlock()
		if done == nil {
			continue
		}
		waited = true
		select {
		case <-done:
		case <-ctx.Done():
			return true
		}
	}
	return waited
}

// awaitTurn waits until the connector's rate admits the request, which is then claimed:
// what waits is nowhere recorded. It ends with the caller, or with shutting down.
func (p *Proxy) awaitTurn(client context.Context, w *work) *refusal {
	ctx, stop := context.WithCancel(client)
	defer stop()
	defer context.AfterFunc(p.admitting, stop)()
	err := p.config.Turns.Turn(ctx, w.match.Connector)
	switch {
	case err == nil:
		return nil
	case client.Err() != nil:
		return refuse(problemIncomplete, "The caller went away before its turn; nothing was sent.")
	case p.admitting.Err() != nil:
		return draining()
	}
	return refuse(problemInternal, "The rate of connector "+w.match.Connector.Name+" can't be waited for; nothing was sent: "+err.Error()+".")
}
