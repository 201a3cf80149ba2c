package upstream

import (
	"context"
	"net/http"
	"slices"
	"strings"
)

// ClientKey is where the context of a request holds which connection of a client it came by, if
// any: something that can be compared, and is no other's. Connections on which somebody logged in
// are that client's alone.
type ClientKey struct{}

// nobody is whose a connection is that isn't used again.
type nobody struct{}

// mostBound bounds the idle connections on which somebody logged in: those of clients that have gone
// nobody takes any more.
const mostBound = 64

// bindsConnection reports whether a request logs in by a scheme that servers take for all that
// follows on the connection (RFC 4559 §6, NTLM): whoever comes next there would act in that name
// (RFC 9110 §3.3).
func bindsConnection(h http.Header) bool {
	for _, field := range h["Authorization"] {
		scheme, _, _ := strings.Cut(strings.TrimLeft(field, " \t"), " ")
		if strings.EqualFold(scheme, "Negotiate") || strings.EqualFold(scheme, "NTLM") {
			return true
		}
	}
	return false
}

// keyFor is what the connection of a request is kept for. A client that logged in goes on with a
// connection of its own as long as that is kept: the later ones of its requests don't say so again.
func (p *pool) keyFor(ctx context.Context, r *plan) endpoint {
	key := r.endpoint()
	if r.binds {
		p.bound.Store(true)
	} else if !p.bound.Load() {
		return key
	}
	own := key
	own.client = ctx.Value(ClientKey{})
	switch {
	case r.binds && own.client == nil:
		own.client = nobody{}
	case own.client == nil, !r.binds && !p.keeps(own):
		return key
	}
	return own
}

// keeps reports whether there are idle connections for key.
func (p *pool) keeps(key endpoint) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.idle[key]) > 0
}

// dropSurplus closes the one that is idle for longest of those which somebody logged in on, if they are
// too many.
func (p *pool) dropSurplus() {
	p.mu.Lock()
	var oldest *conn
	bound := 0
	for key, conns := range p.idle {
		if key.client == nil || len(conns) == 0 {
			continue
		}
		bound += len(conns)
		if oldest == nil || conns[0].idleSince < oldest.idleSince {
			oldest = conns[0]
		}
	}
	if bound > mostBound {
		p.idle[oldest.key] = slices.Delete(p.idle[oldest.key], 0, 1)
	} else {
		oldest = nil
	}
	p.mu.Unlock()
	if oldest != nil {
		oldest.close()
	}
}
