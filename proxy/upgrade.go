package proxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync/atomic"

	"keep-proxy/dispatch"
	"keep-proxy/proxy/h1"
	"keep-proxy/rules"
)

// Who ended a tunnel after a change of protocols, as its log line says it.
const (
	endedClient   = "client"
	endedUpstream = "upstream"
	endedStop     = "stop"
	endedShutdown = "shutdown"
)

// switchedBuffer is what one direction holds of what it carries: a record of TLS.
const switchedBuffer = 16 << 10

// half is a connection whose two directions end one by one. Close ends both at once,
// without a closing alert of TLS; Reset does, so that nobody takes it for an end in good order.
type half interface {
	io.ReadWriteCloser
	CloseWrite() error
	Reset()
}

// switched is an exchange whose connections speak another protocol than HTTP from the
// upstream's 101 on. Nobody looks at what they say.
type switched struct {
	stream           *stream
	client, upstream half
	// protocol is what the upstream changed to.
	protocol string
	// received came from the client, sent from the upstream.
	received, sent atomic.Int64
	first          atomic.Pointer[string]
	ended          string
	// counted says that Shutdown waits for its end.
	counted bool
}

// askedProtocols are the protocols that a request asks to change to. They are read before the
// connection's fields are taken out of it. A client of HTTP/1.0 asks for nothing.
func askedProtocols(r *http.Request) ([]string, *refusal) {
	if !wantsUpgrade(r) {
		return nil, nil
	}
	if r.ProtoMajor != 1 {
		return nil, refuse(problemDenied, "Protocol upgrades are refused over HTTP/2; nothing was sent.")
	}
	raw := rules.Raw{Method: r.Method, Header: r.Header, HasBody: r.ContentLength != 0 && r.Body != nil && r.Body != http.NoBody}
	asked, f := raw.Upgrade()
	if f != nil {
		return nil, fromRules(f)
	}
	return asked, nil
}

// upgrade passes on a request that asks to change protocols, to those that its rule names.
func (p *Proxy) upgrade(x *exchange, r *http.Request, req *rules.Request, m *rules.Match) *http.Response {
	allowed, f := m.Upgrade(x.asked)
	if f != nil {
		return p.refused(x, r, fromRules(f))
	}
	x.effect, x.protocols = m.Effect.String(), allowed
	return p.pass(x, r, req, x.connector)
}

// changes reports whether the rules in force let the request change to these protocols, which an
// upstream named.
func (p *Proxy) changes(req *rules.Request, named string) bool {
	protocols, _ := rules.Protocols([]string{named})
	m := p.config.Rules().Match(req)
	allowed, refusal := m.Upgrade(protocols)
	return refusal == nil && len(allowed) == len(protocols)
}

// askFor makes a request ask for a change of protocols. Its header may be the judged one.
func askFor(out *http.Request, protocols []string) {
	if len(protocols) > 0 {
		out.Header = maps.Clone(out.Header)
		out.Header["Connection"], out.Header["Upgrade"] = []string{"Upgrade"}, protocols
	}
}

// changed takes over what an upstream changed to, if it was asked for that.
func (p *Proxy) changed(open *stream, x *exchange, r *http.Request, resp *http.Response) *http.Response {
	upstream, ok := resp.Body.(half)
	if !ok || len(x.protocols) == 0 {
		_ = resp.Body.Close()
		return p.refused(x, r, refuse(problemDenied, "The upstream changed protocols, which was not asked for."))
	}
	protocol := strings.Join(resp.Header["Upgrade"], ", ")
	x.switched = &switched{stream: open, upstream: upstream, protocol: protocol}
	out := &http.Response{StatusCode: resp.StatusCode, Header: resp.Header, Body: http.NoBody}
	dispatch.StripAnswer(out.Header)
	out.Header["Connection"], out.Header["Upgrade"] = []string{"Upgrade"}, []string{protocol}
	addVia(out.Header, p.via(resp.Proto))
	if x.caller.unmanaged {
		out.Header.Set(dispatch.FieldScope, "unmanaged")
	}
	return out
}

// offer says with 426 (Upgrade Required) which protocols the client may ask for here (RFC 9110
// §15.5.22). Those are the ones that both the upstream and the rule name. HTTP/2 has none, nor has
// HTTP/1.0. They are hidden from goproxy, which would take the answer for that of a WebSocket.
func offer(x *exchange, r *http.Request, status int, named []string) {
	if status != http.StatusUpgradeRequired || x.rule == nil || x.answer == nil || r.ProtoMajor != 1 || r.ProtoMinor == 0 {
		return
	}
	protocols, sound := rules.Protocols(named)
	if both := x.rule.Upgrades(protocols); sound && len(both) > 0 {
		x.answer.offers = strings.Join(both, ", ")
	}
}

// clientSide is the client's connection, which is no HTTP any more.
type clientSide struct {
	wrapped
	// below is what its TLS is spoken over; nil without TLS.
	below *tunnel
}

// Read implements io.Reader. With TLS an end without a closing alert is no io.EOF: the
// client has gone.
func (c *clientSide) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if errors.Is(err, io.EOF) && c.below != nil && c.below.ended.Load() {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// Close implements half.
func (c *clientSide) Close() error {
	if c.below != nil {
		return c.below.Close()
	}
	return c.Conn.Close()
}

// Reset implements half.
func (c *clientSide) Reset() { h1.Reset(c.Conn) }

// carrySwitched gives the client its 101, and then carries bytes both ways. It ends when both sides
// have ended, one is lost, or the exchange is cut. It reports whether both ended in good order.
func (p *Proxy) carrySwitched(x *exchange, r *http.Request, resp *http.Response) (orderly bool) {
	s := x.switched
	defer func() { _ = s.upstream.Close() }()
	if s.counted = p.switched.Begin(); !s.counted {
		x.switched = nil
		x.answer.carry(p.refused(x, r, draining().cutOff())) //nolint:bodyclose // carry closes it.
		return x.answer.finish()
	}
	conn, _, err := hijackKeeper{x.answer.ResponseWriter}.Hijack()
	if err != nil {
		s.ended = endedClient
		x.answer.severed.Store(true) // Else the server would answer by itself.
		return false
	}
	client := &clientSide{wrapped: wrapped{conn}}
	if x.tunnel != nil && x.tunnel.secure {
		client.below = x.tunnel
	}
	s.client = client
	defer func() { _ = client.Close() }()
	defer context.AfterFunc(s.stream, s.kill)()
	if !s.stream.goUnseen(func() bool { return p.changes(x.request, s.protocol) }) {
		s.stream.cut()
	}
	p.config.Metrics.Upgraded(1, 0, 0)
	orderly = s.carryBoth(resp)
	x.answer.status, x.answer.bytes = resp.StatusCode, s.sent.Load()
	p.config.Metrics.Upgraded(-1, s.received.Load(), s.sent.Load())
	s.ended = *s.first.Load()
	if s.stream.wasStopped() {
		s.ended, orderly = endedStop, false
		if p.ctx.Err() != nil {
			s.ended = endedShutdown
		}
	}
	return orderly
}

// carryBoth writes the 101, and carries both directions to their ends.
func (s *switched) carryBoth(resp *http.Response) (orderly bool) {
	var head bytes.Buffer
	head.WriteString("HTTP/1.1 101 Switching Protocols\r\n")
	_ = resp.Header.Write(&head)
	head.WriteString("\r\n")
	if _, err := s.client.Write(head.Bytes()); err != nil {
		s.over(endedClient)
		return false
	}
	up := make(chan bool, 1)
	go func() { up <- s.carry(s.client, s.upstream, &s.received, endedClient, endedUpstream) }()
	down := s.carry(s.upstream, s.client, &s.sent, endedUpstream, endedClient)
	return <-up && down
}

// carry carries one direction. Its end in good order ends it at the other side, whose own direction
// goes on. Any other end ends both.
func (s *switched) carry(from, to half, count *atomic.Int64, source, sink string) (orderly bool) {
	buffer := make([]byte, switchedBuffer)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			written, failed := to.Write(buffer[:n])
			if count.Add(int64(written)); failed != nil {
				s.over(sink)
				s.kill()
				return false
			}
		}
		switch {
		case err == nil:
			continue
		case errors.Is(err, io.EOF):
			s.over(source)
			if to.CloseWrite() == nil {
				return true
			}
		default:
			s.over(source)
		}
		s.kill()
		return false
	}
}

// over notes who ended it, the first alone.
func (s *switched) over(who string) { s.first.CompareAndSwap(nil, &who) }

// kill ends both sides at once, and neither in good order.
func (s *switched) kill() {
	s.client.Reset()
	s.upstream.Reset()
}
