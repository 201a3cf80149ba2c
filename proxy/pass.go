package proxy

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"keep-proxy/dispatch"
	"keep-proxy/rules"
	"keep-proxy/upstream"
)

// pass streams a request that is not recorded, both ways, never buffered. It is
// cut when its scope is stopped.
func (p *Proxy) pass(x *exchange, r *http.Request, req *rules.Request, connector string) *http.Response {
	if !safe(r.Method) || r.ContentLength != 0 {
		// What is no mere read ends with its client; that one is followed from the start.
		r.Context().Done()
	}
	ctx, refused := p.admittedStream(r.Context(), x)
	if refused != nil {
		return p.refused(x, r, refused)
	}
	out, err := p.passRequest(ctx, x, r, req, connector)
	if err != nil {
		return p.refused(x, r, refuse(problemInternal, "The request can't be rebuilt or lacks its configured credentials; nothing was sent: "+err.Error()+"."))
	}
	askFor(out, x.protocols)
	interim := x.interimsFor(r)
	ctx.shows(interim)
	resp, err := p.passOn(out, interim)
	interim.end()
	if err != nil {
		return p.refused(x, r, p.passRefusal(ctx, x, err, out.URL.Host))
	}
	if resp.StatusCode == http.StatusSwitchingProtocols {
		return p.changed(ctx, x, r, resp)
	}
	idle := p.config.IdleTimeout
	if x.rule != nil {
		idle = or(x.rule.Timeout, idle)
	}
	resp.Body = ctx.content(x.answer, &idling{resp.Body, idle, ctx.cut})
	length, known := resp.Header["Content-Length"]
	named := resp.Header["Upgrade"]
	if dispatch.StripAnswer(resp.Header) {
		bare := *resp // The trailers go to the other one.
		bare.Trailer = nil
		resp = &bare
	} else {
		stripTrailer(resp.Trailer) // Which is announced, and told again at the end.
		body, whole := resp.Body, resp
		resp.Body = &content{Reader: body, close: func() { _ = body.Close() }, atEnd: func() { stripTrailer(whole.Trailer) }}
	}
	if known {
		resp.Header["Content-Length"] = length
	}
	offer(x, r, resp.StatusCode, named)
	addVia(resp.Header, p.via(resp.Proto))
	if x.caller.unmanaged {
		resp.Header.Set(dispatch.FieldScope, "unmanaged")
	}
	return resp
}

func stripTrailer(h http.Header) {
	maps.DeleteFunc(h, func(name string, _ []string) bool { return !upstream.MayTrail(name) })
}

// admittedStream is openStream for a request that isn't sent yet. A stop since the gate is waited
// for or refuses, as at the gate. It can cut the stream only once the request is sent.
func (p *Proxy) admittedStream(client context.Context, x *exchange) (*stream, *refusal) {
	for {
		s, open := p.register(client, x.caller, false)
		if open {
			x.after = append(x.after, func(bool) { s.end() })
			return s, nil
		}
		s.end()
		if f := p.gate(x); f != nil {
			return nil, f
		}
	}
}

// openStream registers an exchange as something that a stop cuts.
func (p *Proxy) openStream(client context.Context, x *exchange) *stream {
	s, _ := p.register(client, x.caller, false)
	x.after = append(x.after, func(bool) { s.end() })
	return s
}

// register adds a stream to what a stop cuts. A stop after the caller had passed the gate may have
// looked before there was anything to cut. So may the end of the proxy. It reports whether the gate
// is open still.
func (p *Proxy) register(client context.Context, c caller, held bool) (s *stream, open bool) {
	s = p.open.add(client, c, held)
	if p.ctx.Err() != nil {
		s.cut()
	}
	if open = p.standing(c).Open; !open {
		p.stops.tell()
	}
	return s, open
}

// content is the content of an answer on its way to the client.
type content struct {
	io.Reader
	// atEnd is called at its end, nil for nothing: trailers may be there only then.
	atEnd func()
	close func()
}

// Read implements io.Reader.
func (c *content) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	if errors.Is(err, io.EOF) && c.atEnd != nil {
		c.atEnd()
	}
	return n, err
}

// Close implements io.Closer.
func (c *content) Close() error {
	c.close()
	return nil
}

// uncut is an answer's content that ends when it is cut, and isn't whole then. An upstream may end
// a stream in good order when its connection is closed. That end can come in before the connection
// is closed here.
type uncut struct {
	io.ReadCloser
	ctx context.Context
}

// Read implements io.Reader.
func (u *uncut) Read(p []byte) (int, error) {
	if u.ctx.Err() != nil {
		return 0, context.Cause(u.ctx)
	}
	n, err := u.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) && u.ctx.Err() != nil {
		err = context.Cause(u.ctx)
	}
	return n, err
}

// idling is an answer's content that is cut when no more of it comes for a while. How long the client takes doesn't count.
type idling struct {
	io.ReadCloser
	most time.Duration
	cut  func()
}

// Read implements io.Reader.
func (i *idling) Read(p []byte) (int, error) {
	defer time.AfterFunc(i.most, i.cut).Stop()
	return i.ReadCloser.Read(p)
}

// unlimited bounds what is carried and not judged, which may take as long as it likes.
const unlimited = 100 * 365 * 24 * time.Hour

// passOn sends an unrecorded request. With an Idempotency-Key, net/http repeats a request of any
// method without a body if its connection turns out dead. So what is not safe (RFC 9110 §9.2.1) and
// has no body goes out by the way that sends once.
func (p *Proxy) passOn(out *http.Request, interim *interims) (*http.Response, error) {
	if safe(out.Method) || out.ContentLength != 0 {
		return p.config.Reads.RoundTrip(out)
	}
	a := p.config.Sender.Send(out.Context(), &upstream.Request{
		Method: out.Method, URL: out.URL, Host: out.Host, Header: out.Header, Interim: interim.asked(), Total: unlimited, Response: unlimited,
	})
	if a.Status == 0 {
		ev := a.Evidence()
		a.Close()
		return nil, &upstream.Error{Class: ev.ErrorClass, Text: ev.Error}
	}
	resp := newResponse(out, a.Status, a.Header.Clone(), nil)
	resp.ContentLength, resp.Trailer, resp.Proto = a.ContentLength, a.Trailer, a.Evidence().Protocol
	resp.Header.Del("Content-Length")
	if a.ContentLength >= 0 {
		resp.Header.Set("Content-Length", strconv.FormatInt(a.ContentLength, 10))
	}
	resp.Body = &content{Reader: a.Body, close: a.Close, atEnd: func() { resp.Trailer = a.Trailer }}
	return resp, nil
}

func safe(method string) bool {
	return method == http.MethodGet || method == http.MethodHead || method == http.MethodOptions
}

// passRequest rebuilds what is sent from what was judged. The fields of the one
// connection went before it was judged.
func (p *Proxy) passRequest(ctx *stream, x *exchange, r *http.Request, req *rules.Request, connector string) (*http.Request, error) {
	address, star := strings.CutSuffix(req.URL(), "*")
	if star = star && req.Target() == "*"; !star {
		address = req.URL()
	}
	if req.AsIs() {
		address = req.Scheme + "://" + req.Authority() + "/"
	}
	out, err := http.NewRequestWithContext(ctx, req.Method, address, http.NoBody) //nolint:gosec // Where it goes is for egress to judge.
	if err != nil {
		return nil, err
	}
	if star {
		out.URL.Path = "*" // RFC 9112 §3.2.4; net/url can't read it.
	}
	if req.AsIs() {
		out.URL.Opaque = req.Target() // net/url would spell it anew.
	}
	out.Host, out.Trailer = req.Authority(), r.Trailer
	if out.Header, err = p.passHeader(x, req, connector, p.via(r.Proto)); err != nil {
		return nil, err
	}
	switch {
	case !req.HasBody():
	case x.read:
		out.ContentLength = x.body.Len()
		if out.Body, err = x.body.Open(); err != nil {
			return nil, err
		}
	default:
		p.streams(x)
		expect := func() bool { return ctx.awaits(x.answer, func() { p.expectContent(x) }) }
		out.Body, out.ContentLength = &clientBody{ReadCloser: r.Body, expect: expect, came: ctx.came, failed: &x.bodyErr}, r.ContentLength
	}
	return out, nil
}

// streams lets the answer begin while content still goes the other way. The server must then read
// none of it away.
func (*Proxy) streams(x *exchange) {
	if x.answer != nil {
		_ = http.NewResponseController(x.answer.ResponseWriter).EnableFullDuplex()
	}
}

// passHeader is what a request goes out with. The judged fields are changed in a copy,
// or not at all.
func (p *Proxy) passHeader(x *exchange, req *rules.Request, connector, via string) (http.Header, error) {
	judged := req.Header
	name, value, credentials, err := p.credentials(connector, req)
	if err != nil {
		return nil, err
	}
	credentials = credentials && !dispatch.Resigns(value, name) // Its content may not be at hand: the script signed it.
	_, agent := judged["User-Agent"]
	_, subkey := judged[headerSubkey]
	_, item := judged[headerItem]
	if agent && !subkey && !item && !credentials && via == "" && !x.trailers {
		return judged, nil
	}
	out := maps.Clone(judged)
	stripRequest(out)
	if !agent {
		// net/http would add its own.
		out["User-Agent"] = nil
	}
	if credentials {
		out.Set(name, value)
	}
	if x.trailers {
		out["Te"] = trailersTaken
	}
	addVia(out, via)
	return out, nil
}

// clientBody is a request's content on its way upstream. It notes why it broke: whoever
// sends it tells that as an error of sending.
type clientBody struct {
	io.ReadCloser
	// expect is called before each read, and reports whether there shall be one; came at
	// the end.
	expect func() bool
	came   func()
	failed *atomic.Pointer[error]
}

// Read implements io.Reader.
func (b *clientBody) Read(p []byte) (int, error) {
	if !b.expect() {
		return 0, context.Canceled
	}
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.came()
	}
	if err != nil && !errors.Is(err, io.EOF) {
		b.failed.Store(&err)
	}
	return n, err
}

// credentials is the field that the operator configured for a connector's requests to
// that host.
func (p *Proxy) credentials(connector string, to *rules.Request) (name, value string, ok bool, err error) {
	if connector == "" {
		return "", "", false, nil
	}
	return p.config.Credentials.Always(connector, to.Scheme, to.Authority())
}

// passRefusal says why a read got no answer. ctx is the read's own.
func (p *Proxy) passRefusal(ctx *stream, x *exchange, err error, host string) *refusal {
	// What was cut breaks its content off, and that ends the client's context.
	if ctx.wasStopped() {
		if f := p.gate(x); f != nil {
			return f.cutOff()
		}
	}
	if broke := x.bodyErr.Load(); broke != nil {
		return bodyRefusal(*broke, 0).cutOff()
	}
	var failed *upstream.Error
	if errors.As(err, &failed) && failed.Class == upstream.ErrorEgress {
		return notAllowed(host, failed.Text)
	}
	f := refuse(problemNotSent, "No answer from "+host+": "+err.Error()+".").because(err)
	if failed == nil || !failed.Class.Unsent() {
		f.title = "No answer came"
		f.detail += " The request may have arrived there; it is not recorded."
	}
	return f
}
