package upstream

import (
	"context"
	"net/http"
	"strings"
)

// ClientKey is where the context of a request holds which connection of a client it came by, if
// any: something that can be compared, and is no other's. Connections on which somebody logged in
// are that client's alone.
type ClientKey struct{}

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
		own.client = new(byte) // Nobody's, so that it isn't used again.
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
