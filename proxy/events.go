package proxy

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"sync"

	"keep-proxy/dispatch"
)

// maxEvents bounds the events that wait for a client, in bytes.
const maxEvents = 1 << 20

// events carries what comes ahead of an answer to the caller that leads. A sending never waits for a client: one that
// reads too slowly gets no more, and its answer when it asks again.
type events struct {
	begun  chan struct{}
	status int
	header http.Header

	mu     sync.Mutex
	queue  []byte
	lagged bool
	// more has room for one: there is something in the queue.
	more chan struct{}
}

func newEvents() *events {
	return &events{begun: make(chan struct{}), more: make(chan struct{}, 1)}
}

// Begin implements dispatch.Events.
func (e *events) Begin(status int, h http.Header) {
	e.status, e.header = status, h.Clone()
	close(e.begun)
}

// Pass implements dispatch.Events.
func (e *events) Pass(event []byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.lagged = e.lagged || len(e.queue)+len(event) > maxEvents; e.lagged {
		return
	}
	e.queue = append(e.queue, event...)
	select {
	case e.more <- struct{}{}:
	default:
	}
}

// take empties the queue.
func (e *events) take() (queue []byte, lagged bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	queue, e.queue = e.queue, nil
	return queue, e.lagged
}

// leadEvents does the work beside its handler. It returns the answer's head as soon as that is there, with the events
// as content, or else what the work came to.
func (p *Proxy) leadEvents(x *exchange, r *http.Request, w *work, call *call) (*reply, *http.Response) {
	w.events = newEvents()
	ended := make(chan *reply, 1)
	go func() {
		var out *reply
		defer func() {
			if v := recover(); v != nil {
				out = &reply{refusal: p.panicked(v)}
			}
			ended <- out
		}()
		out = p.lead(x, w, call)
	}()
	select {
	case out := <-ended:
		return out, nil
	case <-w.events.begun:
	}
	header := w.events.header
	dispatch.StripAnswer(header)
	header.Del("Content-Length")
	addVia(header, p.via("HTTP/1.1"))
	if x.caller.unmanaged {
		header.Set(dispatch.FieldScope, "unmanaged")
	}
	resp := newResponse(r, w.events.status, header, nil)
	delete(resp.Header, "Content-Length")
	resp.ContentLength = -1
	resp.Body = &eventContent{events: w.events, ended: ended, client: x.client, last: func(s *reply) *http.Response {
		if !s.repeatable() {
			p.calls.leave(w.callKey, w.caller)
		}
		return p.answered(x, r, w, s)
	}}
	return nil, resp
}

// eventContent is the events of an answer, and the answer as the last of them.
type eventContent struct {
	events *events
	ended  chan *reply
	client context.Context
	// last makes the answer of what the work came to.
	last func(*reply) *http.Response
	rest []byte
	over bool
}

// Read implements io.Reader.
func (c *eventContent) Read(b []byte) (int, error) {
	for len(c.rest) == 0 {
		if c.over {
			return 0, io.EOF
		}
		select {
		case <-c.events.more:
			c.rest, _ = c.events.take()
		case s := <-c.ended:
			if err := c.end(s); err != nil {
				return 0, err
			}
		case <-c.client.Done():
			return 0, c.client.Err()
		}
	}
	n := copy(b, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

// end puts the answer behind the events.
func (c *eventContent) end(s *reply) error {
	c.over = true
	queue, lagged := c.events.take()
	resp := c.last(s)
	answer, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close() // It was read.
	switch {
	case err != nil:
		return err
	case lagged:
		return io.ErrUnexpectedEOF // There is a gap.
	}
	c.rest = queue
	c.rest = append(c.rest, "event: message\n"...)
	for line := range bytes.Lines(answer) {
		c.rest = append(append(append(c.rest, "data: "...), bytes.TrimRight(line, "\r\n")...), '\n')
	}
	c.rest = append(c.rest, '\n')
	return nil
}

// Close implements io.Closer. The handler stays as long as the work that it leads.
func (c *eventContent) Close() error {
	if !c.over {
		c.over = true
		resp := c.last(<-c.ended)
		return resp.Body.Close()
	}
	return nil
}
