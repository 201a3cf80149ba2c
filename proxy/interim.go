package proxy

import (
	"maps"
	"net/http"
	"sync"

	"keep-proxy/dispatch"
	"keep-proxy/upstream"
)

// interims passes the upstream's interim responses (RFC 9110 §15.2) on to the client as they come,
// until the final one. Nil passes none.
type interims struct {
	mu   sync.Mutex
	w    http.ResponseWriter
	over bool
	// queue is where those to a mutation wait, since its sending must not wait for a client that
	// doesn't read. When all have been passed on, done is closed; it is nil before the first. Nil
	// passes each on at once.
	queue chan interim
	done  chan struct{}

	// For those to a read, which a stop cuts, writing says that one is being written until its client
	// reads. Then severed says that no more shall be.
	writes           sync.Mutex
	answer           *answerWriter
	writing, severed bool
}

// interim is one of them.
type interim struct {
	status int
	header http.Header
}

// interimsFor returns where the interim responses to r go. A client of HTTP/1.0 gets
// none; one that waits for 100 (Continue) gets just that, when its content is wanted. It
// is called once for an exchange.
func (x *exchange) interimsFor(r *http.Request) *interims {
	if x.answer == nil || !r.ProtoAtLeast(1, 1) || len(r.Header["Expect"]) > 0 {
		return nil
	}
	x.interims.w, x.interims.answer = x.answer.ResponseWriter, x.answer
	return &x.interims
}

// queued lets those to come wait, as many as a sending shows.
func (i *interims) queued() *interims {
	if i != nil {
		i.queue = make(chan interim, upstream.MaxInterim)
	}
	return i
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
	dispatch.StripAnswer(kept)
	if i.queue == nil {
		if i.begins() {
			i.write(interim{status, kept})
			i.ends()
		}
		return
	}
	if i.done == nil {
		i.done = make(chan struct{})
		go i.passOn()
	}
	select {
	case i.queue <- interim{status, kept}:
	default: // No sending shows more.
	}
}

// passOn writes what is queued, to its end.
func (i *interims) passOn() {
	defer close(i.done)
	for one := range i.queue {
		i.write(one)
	}
}

func (i *interims) write(one interim) {
	out := i.w.Header()
	maps.Copy(out, one.header)
	i.w.WriteHeader(one.status)
	for name := range one.header {
		delete(out, name)
	}
}

// begins reports whether one may be written.
func (i *interims) begins() bool {
	i.writes.Lock()
	defer i.writes.Unlock()
	i.writing = !i.severed
	return i.writing
}

func (i *interims) ends() {
	i.writes.Lock()
	defer i.writes.Unlock()
	i.writing = false
}

// sever lets no more be written. One that waits for a client which doesn't read fails, and the
// client gets nothing more. Any other client is told why it gets no more.
func (i *interims) sever() {
	if i == nil {
		return
	}
	i.writes.Lock()
	defer i.writes.Unlock()
	if i.severed = true; i.writing {
		i.answer.sever()
	}
}

// end lets no more come: the final response is there.
func (i *interims) end() {
	if i == nil {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.over && i.queue != nil {
		close(i.queue)
	}
	i.over = true
}

// passed waits until all that came have been passed on. The header of the final response is about
// to be written.
func (i *interims) passed() {
	i.end()
	if i != nil && i.done != nil {
		<-i.done
	}
}

// asked is what upstream.Request.Interim takes.
func (i *interims) asked() func(int, http.Header) {
	if i == nil {
		return nil
	}
	return i.Show
}
