package proxy

import "context"

// looker is the context of a client of which one can see whether it has gone without being
// told (package h1): that spares following it, which takes a goroutine that reads beside the
// handler.
type looker interface {
	// CanLook reports whether Look tells anything.
	CanLook() bool
	// Look ends the context if the client has gone.
	Look()
}

// follow makes sure that the client of a mutation is known to have gone when that is asked:
// whether it has decides what is a repeat, and what was delivered, whatever the method. One
// that can be looked at is, just then; any other is followed from now on.
func (x *exchange) follow() {
	if l, ok := x.client.(looker); ok && l.CanLook() {
		if x.answer != nil {
			x.answer.looks = true
		}
		return
	}
	x.client.Done()
}

// hasGone reports whether a client has gone.
func hasGone(client context.Context) bool {
	if l, ok := client.(looker); ok {
		l.Look()
	}
	return client.Err() != nil
}
