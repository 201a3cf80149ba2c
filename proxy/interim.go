package proxy

import (
	"maps"
	"net/http"
	"sync"
)

// interims passes the upstream's interim responses (RFC 9110 §15.2) on to the client,
// as they come and until the final one is there. Nil passes none.
type interims struct {
	mu   sync.Mutex
	w    http.ResponseWriter
	over bool
}

// interimsFor returns where the interim responses to r go. A client of HTTP/1.0 gets
// none; one that waits for 100 (Continue) gets just that, when its content is wanted. It
// is called once for an exchange.
func (x *exchange) interimsFor(r *http.Request) *interims {
	if x.answer == nil || !r.ProtoAtLeast(1, 1) || len(r.Header["Expect"]) > 0 {
		return nil
	}
	x.interims.w = x.answer.ResponseWriter
	return &x.interims
}

// Show implements upstream.Interims. It passes one on. 100 (Continue) and 101 (Switching Protocols) are matters of one
// connection.
func (i *interims) Show(status int, h http.Header) {
	if status <= http.StatusSwitchingProtocols || status > 199 {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.over {
		return
	}
	kept := h.Clone()
	stripAnswer(kept)
	out := i.w.Header()
	maps.Copy(out, kept)
	i.w.WriteHeader(status)
	for name := range kept {
		delete(out, name)
	}
}

// end lets no more pass: the header of the final response is about to be written.
func (i *interims) end() {
	if i == nil {
		return
	}
	i.mu.Lock()
	i.over = true
	i.mu.Unlock()
}

// asked is what upstream.Request.Interim takes.
func (i *interims) asked() func(int, http.Header) {
	if i == nil {
		return nil
	}
	return i.Show
}
