package proxy

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"slices"
	"sync"

	"keep-proxy/dispatch"
)

// maxEvents bounds the events that are kept for clients, in bytes.
const maxEvents = 1 << 20

// events keeps what comes ahead of an answer, for its caller and for who comes back to it. A sending never waits for a
// client: one that reads too slowly gets no more.
type events struct {
	w     *work
	asked *http.Request
	x     *exchange
	// begun is closed once there are status and header, ended once there is the reply.
	begun, ended chan struct{}
	status       int
	header       http.Header
	reply        *reply

	mu sync.Mutex
	// kept are the newest bytes of all; gone counts those before.
	kept []byte
	gone int
	// ids are where the bytes behind each event begin, by the event's id.
	ids map[string]int
	// more is closed when there is more.
	more chan struct{}
}

// Begin implements dispatch.Events.
func (e *events) Begin(status int, h http.Header) {
	e.status, e.header = status, h.Clone()
	close(e.begun)
}

// Pass implements dispatch.Events.
func (e *events) Pass(id string, event []byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.kept = append(e.kept, event...); len(e.kept) > maxEvents {
		over := len(e.kept) - maxEvents/2
		e.kept, e.gone = slices.Clone(e.kept[over:]), e.gone+over
	}
	if id != "" {
		e.ids[id] = e.gone + len(e.kept)
	}
	close(e.more)
	e.more = make(chan struct{})
}

// behind is where the bytes behind an event begin; false if they are not kept.
func (e *events) behind(id string) (int, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	at, known := e.ids[id]
	return at, known && at >= e.gone
}

// from are the bytes from a place on. Without any, more says when there are. Where the place is gone, there is a gap.
func (e *events) from(at int) (b []byte, more <-chan struct{}, gap bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if at < e.gone {
		return nil, nil, true
	}
	return e.kept[at-e.gone:], e.more, false
}

// leadEvents does the work beside its handler. It returns the answer's head as soon as that is there, with the events
// as content, or else what the work came to.
func (p *Proxy) leadEvents(x *exchange, r *http.Request, w *work, call *call) (*reply, *http.Response) {
	e := &events{
		w: w, asked: r, x: x, begun: make(chan struct{}), ended: make(chan struct{}), ids: map[string]int{}, more: make(chan struct{}),
	}
	w.events = e
	p.following.add(e)
	go func() {
		defer func() {
			if v := recover(); v != nil {
				e.reply = &reply{refusal: p.panicked(v)}
			}
			p.following.remove(e)
			close(e.ended)
		}()
		e.reply = p.lead(x, w, call)
	}()
	select {
	case <-e.ended:
		return e.reply, nil
	case <-e.begun:
	}
	return nil, p.eventsOf(x, r, e, 0)
}

// eventsOf is an answer with the events from a place on.
func (p *Proxy) eventsOf(x *exchange, r *http.Request, e *events, at int) *http.Response {
	header := e.header.Clone()
	dispatch.StripAnswer(header)
	addVia(header, p.via("HTTP/1.1"))
	if x.caller.unmanaged {
		header.Set(dispatch.FieldScope, "unmanaged")
	}
	resp := newResponse(r, e.status, header, nil)
	delete(resp.Header, "Content-Length")
	resp.ContentLength = -1
	resp.Body = &eventContent{events: e, at: at, leads: x == e.x, client: x.client, last: func() *http.Response {
		if x == e.x && !e.reply.repeatable() {
			p.calls.leave(e.w.callKey, e.w.caller)
		}
		// Whoever asks gets it in the words of the call.
		return p.answered(x, e.asked.WithContext(r.Context()), e.w, e.reply)
	}}
	return resp
}

// eventContent is the events of an answer, and the answer as the last of them.
type eventContent struct {
	events *events
	at     int
	// leads says that its handler stays as long as the work.
	leads  bool
	client context.Context
	// last makes the answer of what the work came to.
	last func() *http.Response
	// final is what is left of it, and over says that it was made.
	final []byte
	over  bool
}

// Read implements io.Reader.
func (c *eventContent) Read(b []byte) (int, error) {
	for {
		kept, more, gap := c.events.from(c.at)
		switch {
		case gap:
			return 0, io.ErrUnexpectedEOF
		case len(kept) > 0:
			n := copy(b, kept)
			c.at += n
			return n, nil
		case len(c.final) > 0:
			n := copy(b, c.final)
			c.final = c.final[n:]
			return n, nil
		case c.over:
			return 0, io.EOF
		}
		select {
		case <-more:
		case <-c.events.ended:
			if kept, _, _ := c.events.from(c.at); len(kept) == 0 {
				if err := c.end(); err != nil {
					return 0, err
				}
			}
		case <-c.client.Done():
			return 0, c.client.Err()
		}
	}
}

// end puts the answer behind the events.
func (c *eventContent) end() error {
	c.over = true
	resp := c.last()
	answer, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close() // It was read.
	if err != nil {
		return err
	}
	c.final = []byte("event: message\n")
	for line := range bytes.Lines(answer) {
		c.final = slices.Concat(c.final, []byte("data: "), bytes.TrimRight(line, "\r\n"), []byte("\n"))
	}
	c.final = append(c.final, '\n')
	return nil
}

// Close implements io.Closer.
func (c *eventContent) Close() error {
	if !c.over && c.leads {
		c.over = true
		<-c.events.ended
		return c.last().Body.Close()
	}
	return nil
}

// following are the streams that are under way. A client whose connection broke asks for the rest of one by GET. What
// the upstream sends there is this proxy's to read, and its answer to judge.
type following struct {
	mu  sync.Mutex
	all map[*events]bool
}

func (f *following) add(e *events) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.all == nil {
		f.all = map[*events]bool{}
	}
	f.all[e] = true
}

func (f *following) remove(e *events) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.all, e)
}

// rest answers a request for the rest of a stream that is under way; nil for any other.
func (p *Proxy) rest(x *exchange, r *http.Request, authority string) *http.Response {
	id := r.Header.Get("Last-Event-ID")
	if id == "" || r.Method != http.MethodGet {
		return nil
	}
	p.following.mu.Lock()
	defer p.following.mu.Unlock()
	for e := range p.following.all {
		if at, known := e.behind(id); known && e.w.req.Authority() == authority && sameCaller(e.x.caller, x.caller) {
			x.body, x.read = e.w.body, true // A refusal is in the words of the call.
			return p.eventsOf(x, r, e, at)
		}
	}
	return nil
}

// sameCaller reports whether two requests come from one run, or one scope without any.
func sameCaller(a, b caller) bool {
	return a.run == b.run && a.workflow == b.workflow && a.item == b.item
}
