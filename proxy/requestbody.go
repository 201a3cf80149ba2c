package proxy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"keep-proxy/dispatch"
	"keep-proxy/ledger"
	"keep-proxy/proxy/strict"
	"keep-proxy/rules"
	"keep-proxy/upstream"
)

var errBodyTooLarge = errors.New("the body is over the limit")

// stoppedError says that content was awaited no more because its scope was stopped. It holds how
// long it has waited for the stop to end.
type stoppedError struct{ waited patience }

func (stoppedError) Error() string { return "stopped while the body was awaited" }

// readBody reads the whole content of r, at most limit bytes. A longer one answers errBodyTooLarge,
// and one that ends early the reader's error. One that a stop cut answers a stoppedError, one that
// can't be put aside a dispatch.SpoolError. The content ends with the exchange.
func (p *Proxy) readBody(x *exchange, r *http.Request, limit int64) (*dispatch.Content, error) {
	if r.Body == nil || r.Body == http.NoBody || r.ContentLength == 0 {
		return nil, nil
	}
	if r.ContentLength > limit {
		return nil, errBodyTooLarge
	}
	var c *dispatch.Content
	err := p.awaited(x, r, func() (err error) {
		c, err = p.readContent(x, r, limit)
		return err
	})
	return c, err
}

// whole is the request with its content, which is read once, of at most limit bytes.
func (p *Proxy) whole(x *exchange, r *http.Request, req *rules.Request, limit int64) (*rules.Request, *refusal) {
	if !x.read {
		var err error
		if x.body, err = p.readBody(x, r, limit); err != nil {
			return nil, p.unread(x, err, limit)
		}
		x.read = true
	}
	if body, plain := x.body.Plain(); plain && !req.BodyLoaded() {
		req = req.WithBody(body)
	}
	return req, nil
}

// awaited reads content of r, unless a stop ends that.
func (p *Proxy) awaited(x *exchange, r *http.Request, read func() error) error {
	if here, ok := r.Body.(interface{ AtHand() bool }); ok && here.AtHand() {
		return read() // There is no wait that a stop, or a deadline, could end.
	}
	s, _ := p.register(r.Context(), x.caller, true)
	defer s.end()
	if !s.awaits(x.answer, func() { p.expectContent(x) }) {
		_ = r.Body.Close() // None of it is read away before the answer.
		return stoppedError{s.waited(p)}
	}
	err := read()
	s.came()
	// What came whole all the same is for the claim's own gate to judge.
	if err != nil && s.wasStopped() {
		return stoppedError{s.waited(p)}
	}
	return err
}

// readStart judges the start of content that is streamed. What it read goes out before the rest.
func (p *Proxy) readStart(x *exchange, r *http.Request, req *rules.Request, m *rules.Match) (f *refusal) {
	if !m.ReadsStart(req) {
		return nil
	}
	var said bytes.Buffer
	rest := &failing{Reader: r.Body}
	err := p.awaited(x, r, func() error {
		var problem *rules.Refusal
		if 0 < r.ContentLength && r.ContentLength <= rules.StartOfBody {
			said.Grow(int(r.ContentLength) + bytes.MinRead)
			_, _ = said.ReadFrom(rest)
			problem = m.JudgeWhole(req, said.Bytes())
		} else {
			problem = m.JudgeStart(req, io.TeeReader(rest, &said))
		}
		if problem != nil {
			f = fromRules(problem)
		}
		return rest.failed
	})
	if err != nil {
		return p.unread(x, err, 0)
	}
	r.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(&said, rest), r.Body}
	return f
}

// failing notes why reading failed.
type failing struct {
	io.Reader
	failed error
}

// Read implements io.Reader.
func (f *failing) Read(b []byte) (int, error) {
	n, err := f.Reader.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		f.failed = err
	}
	return n, err
}

// readContent reads what readBody awaits.
func (p *Proxy) readContent(x *exchange, r *http.Request, limit int64) (*dispatch.Content, error) {
	if 0 < r.ContentLength && r.ContentLength <= ledger.InlineBody {
		body := make([]byte, r.ContentLength)
		if _, err := io.ReadFull(r.Body, body); err != nil {
			return nil, err
		}
		c := dispatch.InMemory(body)
		c.Packed = unpacks(r.Header)
		return c, nil
	}
	c, err := p.contents.Read(io.LimitReader(r.Body, limit+1), r.ContentLength, dispatch.MustSpool)
	x.after = append(x.after, func(bool) { c.Close() })
	switch {
	case err != nil:
		return nil, err
	case r.ContentLength > 0 && c.Len() < r.ContentLength:
		return nil, io.ErrUnexpectedEOF
	case c.Len() > limit:
		return nil, errBodyTooLarge
	}
	c.Packed = unpacks(r.Header)
	return c, nil
}

// unpacks reports whether a request's content may be longer where rules read it.
func unpacks(h http.Header) bool {
	return upstream.Coded(h) && !strings.EqualFold(strings.TrimSpace(strings.Join(h["Content-Encoding"], ",")), "aws-chunked")
}

// unread says why a request's content was not read whole.
func (p *Proxy) unread(x *exchange, err error, limit int64) *refusal {
	if stopped, ok := errors.AsType[stoppedError](err); ok {
		if f := p.gateAfter(x, stopped.waited); f != nil {
			return f
		}
		// The stop was lifted meanwhile; the content is lost.
		return refuse(problemIncomplete, "A stop ended the wait for the body; nothing was sent. Send the request again.")
	}
	return bodyRefusal(err, limit)
}

// expectContent lets the client's content come for so long from now. The server lifts
// the deadline at its end.
func (p *Proxy) expectContent(x *exchange) {
	if x.answer != nil {
		_ = http.NewResponseController(x.answer.ResponseWriter).SetReadDeadline(time.Now().Add(p.config.RequestTimeout))
	}
}

// bodyRefusal says why a request's body could not be read.
func bodyRefusal(err error, limit int64) *refusal {
	if errors.Is(err, errBodyTooLarge) {
		return refuse(problemTooLarge, fmt.Sprintf("The body is longer than %d bytes, which is the limit for a mutation; nothing was sent.", limit))
	}
	if spool := (dispatch.SpoolError{}); errors.As(err, &spool) {
		return ledgerRefusal(spool.Err)
	}
	if fault, ok := errors.AsType[*strict.Fault](err); ok {
		return faultRefusal(fault)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return refuse(problemRequestTimeout, "The body did not arrive in time (proxy.timeouts.request); nothing was sent.")
	}
	return refuse(problemIncomplete, "The body ended early; nothing was sent.")
}
