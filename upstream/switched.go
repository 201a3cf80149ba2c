package upstream

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// errProtocol is an answer 101 that can't be believed.
var errProtocol = &Error{ErrorMalformed, "the upstream changed protocols, but not as it was asked to"}

// Switched is a connection to an upstream after a change of protocols (RFC 9110 §7.8). It
// is the body of the answer 101, as net/http has it, and no HTTP any more. It ends with
// the context of its request.
type Switched struct{ reading *reading }

// upgrade sends a request that asks to change protocols, over a new connection that
// speaks HTTP/1.1 and carries nothing else: HTTP/2 has no change of protocols, and what is
// left of a connection after one belongs to no other request.
func (p *Passthrough) upgrade(r *http.Request) (*http.Response, error) {
	plan, err := makePlan(&Request{Method: r.Method, URL: r.URL, Host: r.Host, Header: r.Header})
	if err != nil {
		return nil, &Error{ErrorRequest, err.Error()}
	}
	if !readable(r) {
		return nil, &Error{ErrorRequest, "a change of protocols is asked for without content, by a method that is safe"}
	}
	plan.upgrade = r.Header["Upgrade"]
	ctx, cancel := context.WithTimeout(r.Context(), p.cfg.DialTimeout)
	c, _, failure := p.dialer.open(ctx, plan, plan.endpoint())
	cancel()
	if failure != nil {
		return nil, failure
	}
	resp, _, err := p.readOn(r.Context(), c.speakH1(), plan, r, nil)
	return resp, err
}

// switched makes a connection of an answer 101, or ends it.
func (e *reading) switched(plan *plan) (*http.Response, error) {
	if !e.believable(plan.upgrade) {
		e.end(false)
		return nil, errProtocol
	}
	e.resp.Body = &Switched{e}
	return e.resp, nil
}

// believable reports whether a 101 answers what was asked. It names only protocols that were asked
// for, and has no content (RFC 9110 §7.8, §8.6, RFC 9112 §6.1).
func (e *reading) believable(asked []string) bool {
	h := e.resp.Header
	if len(h["Content-Length"]) > 0 || len(e.resp.TransferEncoding) > 0 || len(h["Transfer-Encoding"]) > 0 ||
		!httpguts.HeaderValuesContainsToken(h["Connection"], "upgrade") {
		return false
	}
	named := 0
	for _, line := range h["Upgrade"] {
		for one := range strings.SplitSeq(line, ",") {
			if one = strings.TrimSpace(one); one == "" {
				continue
			}
			if !listed(asked, one) {
				return false
			}
			named++
		}
	}
	return named > 0
}

// listed reports whether one of these lists has the element, letters of either case alike.
func listed(lists []string, element string) bool {
	for _, list := range lists {
		for one := range strings.SplitSeq(list, ",") {
			if strings.EqualFold(strings.TrimSpace(one), element) {
				return true
			}
		}
	}
	return false
}

// Read implements io.Reader. It begins with what came behind the answer. io.EOF is the upstream's
// own end of its direction. With TLS, an end without a closing alert is another error.
func (s *Switched) Read(p []byte) (int, error) {
	n, err := s.reading.conn.br.Read(p)
	switch {
	case err == nil:
		return n, nil
	case errors.Is(err, io.EOF) && s.reading.conn.secure && s.reading.conn.raw.eof.Load():
		return n, passError(errTruncated)
	case errors.Is(err, io.EOF):
		return n, io.EOF
	}
	return n, s.why(err)
}

// Write implements io.Writer.
func (s *Switched) Write(p []byte) (int, error) {
	n, err := s.reading.conn.plain.Write(p)
	if err != nil {
		err = s.why(err)
	}
	return n, err
}

// why says why reading or writing failed.
func (s *Switched) why(err error) error {
	if cause := context.Cause(s.reading.ctx); cause != nil {
		return cause
	}
	return passError(err)
}

// CloseWrite ends this side's direction in good order, and leaves the other.
func (s *Switched) CloseWrite() error {
	below := s.reading.conn.plain.Conn
	if raw, ok := below.(*rawConn); ok {
		below = raw.Conn
	}
	if half, ok := below.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return net.ErrClosed
}

// Reset closes by a reset where the transport has one. The upstream then sees that the end is not
// in good order. What was written and hasn't arrived yet may be lost.
func (s *Switched) Reset() { s.reading.end(false) }

// Close ends the connection at once, without a closing alert. It may be called by any
// goroutine, more than once.
func (s *Switched) Close() error {
	if e := s.reading; !e.over.Swap(true) {
		e.release()
		_ = e.conn.raw.Close() // What was written still arrives.
	}
	return nil
}
