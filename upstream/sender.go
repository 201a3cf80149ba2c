package upstream

import (
	"context"

	"keep-proxy/internal/clock"
	"keep-proxy/internal/fault"
)

// Sender sends requests, each of them once. Make it with [New]; its methods may be
// called concurrently.
type Sender struct {
	cfg    Config
	dialer *dialer
	pool   *pool
}

// New returns a Sender.
func New(cfg Config) *Sender {
	cfg = cfg.withDefaults()
	return &Sender{cfg: cfg, dialer: newDialer(cfg), pool: newPool(cfg.Clock.Boot, cfg.FreshFor)}
}

// Send sends the request once and returns when the head of the answer is complete
// or the dispatch has failed. It never returns nil and never sends again.
//
// The end of ctx breaks the dispatch off, which leaves its outcome uncertain: ctx
// should outlive the script that asked. Request.Total and Config.ResponseTimeout
// bound the dispatch anyway.
func (s *Sender) Send(ctx context.Context, r *Request) *Answer {
	started := clock.Take(s.cfg.Clock)
	p, err := makePlan(r)
	if err != nil {
		return s.unsent(started, nil, &Error{ErrorRequest, err.Error()})
	}
	c, failure := s.connection(ctx, p, started)
	if failure != nil {
		return s.unsent(started, nil, failure)
	}
	d, failure := s.begin(ctx, r, p, c, started)
	if failure != nil {
		return s.unsent(started, c, failure)
	}
	if c.h2 != nil {
		return d.sendH2(ctx)
	}
	return d.sendH1()
}

// CloseIdle closes the connections that carry no dispatch.
func (s *Sender) CloseIdle() { s.pool.drain(false) }

// Close closes the connections that carry no dispatch, and lets every other be
// closed at the end of its dispatch. Dispatches can still be sent.
func (s *Sender) Close() { s.pool.drain(true) }

// connection returns one that is fresh and quiet, or makes one.
func (s *Sender) connection(ctx context.Context, p *plan, started clock.Stamp) (*conn, *Error) {
	key := s.pool.keyFor(ctx, p)
	for c := s.pool.get(key, started.Boot); c != nil; c = s.pool.get(key, started.Boot) {
		if c.h2 == nil || !s.cfg.HTTP1.required(p.addr) {
			return c, nil
		}
		c.close()
	}
	return s.dialer.connect(ctx, p, key, p.total)
}

// begin does everything that can still go wrong before byte one, the deadlines and
// the caller's check last.
func (s *Sender) begin(ctx context.Context, r *Request, p *plan, c *conn, started clock.Stamp) (*dispatch, *Error) {
	d := newDispatch(s, p, c, started)
	d.trusted, d.interim = r.TrustRefused, r.Interim
	if b, ok := shortBody(p, c); ok {
		d.short = b
	} else if p.body != nil {
		src, err := p.body.Open()
		if err != nil {
			return nil, &Error{ErrorBody, "the request's body can't be opened"}
		}
		d.content = newContent(src, p.length)
	}
	now := s.cfg.Clock.Boot()
	d.watch.start(ctx, now, started.Boot+p.total)
	if cause := d.watch.ready(ctx, now); cause != "" {
		d.drop()
		return nil, causeError(cause)
	}
	if r.Check != nil {
		if err := r.Check(); err != nil {
			d.drop()
			return nil, &Error{ErrorCheck, err.Error()}
		}
	}
	pointBeforeByteOne.Pass()
	return d, nil
}

// shortBody is a body that is in memory and can be written at once, over HTTP/1.1. One whose
// length isn't what it said is left to be found out where it is read.
func shortBody(p *plan, c *conn) ([]byte, bool) {
	in, ok := p.body.(interface{ Whole() ([]byte, bool) })
	if !ok || c.h2 != nil || p.length > inlineBody {
		return nil, false
	}
	b, whole := in.Whole()
	return b, whole && int64(len(b)) == p.length
}

// unsent is the answer of a dispatch of which no byte was written. Its connection,
// if it had one, is closed.
func (s *Sender) unsent(started clock.Stamp, c *conn, why *Error) *Answer {
	ev := ended{Started: started, NotSent: true, ErrorClass: why.Class, Error: why.Text}
	if c != nil {
		c.close()
		ev.Link = c.link
	}
	ev.Ended = clock.Take(s.cfg.Clock)
	return &Answer{Body: noBody{}, ContentLength: -1, ex: &ev}
}

// The instants of a dispatch at which losing the process makes a difference.
var (
	pointBeforeByteOne  = fault.New("upstream.before_byte_one")
	pointRequestWritten = fault.New("upstream.request_written")
	pointHeadRead       = fault.New("upstream.head_read")
	pointAnswerComplete = fault.New("upstream.answer_complete")
)
