package proxy

import (
	"bytes"
	"io"
	"net/http"

	"keep-proxy/ledger"
	"keep-proxy/rules"
)

// observe notes a request of no connector in the history. With its body it is noted at the exchange's end, when that
// has passed.
func (p *Proxy) observe(x *exchange, r *http.Request, req *rules.Request) {
	note := func(body []byte) {
		p.ledger.Observed(ledger.Event{
			Why: req.Method + " to a host of no connector is let through; this event is all that is recorded of it",
			Run: x.caller.run, Workflow: x.caller.workflow, Item: x.caller.item, Evidence: rules.Observe(req, body).String(),
		})
	}
	if !amongHosts(p.config.ObserveBodies, r) || r.Body == nil {
		note(nil)
		return
	}
	seen := &start{}
	r.Body = struct {
		io.Reader
		io.Closer
	}{io.TeeReader(r.Body, seen), r.Body}
	x.after = append(x.after, func(bool) { note(seen.whole()) })
}

// start keeps what is written, unless that is more than is kept of an observed request.
type start struct {
	bytes.Buffer
	cut bool
}

// Write implements io.Writer.
func (s *start) Write(b []byte) (int, error) {
	if s.cut = s.cut || s.Len()+len(b) > rules.MostObserved; !s.cut {
		s.Buffer.Write(b)
	}
	return len(b), nil
}

// whole is all that was written; nil if that was too much.
func (s *start) whole() []byte {
	if s.cut {
		return nil
	}
	return s.Bytes()
}
