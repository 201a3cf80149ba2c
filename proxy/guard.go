package proxy

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"keep-proxy/proxy/strict"
)

// Bounds of telling a client that its bytes were refused.
const (
	faultWriteTimeout = 5 * time.Second
	// faultLinger bounds in time, and faultDrain in bytes, what is still read and dropped. Closing
	// over unread bytes resets the connection, and the answer is lost.
	faultLinger = time.Second
	faultDrain  = 1 << 20
)

// guarded is a client's HTTP/1 connection as its server, package h1's, reads it. What a
// [strict.Scanner] finds fault with never gets there. Such a connection is answered with a problem,
// once it is that request's turn, and closed.
//
// A server may read while a handler runs, to see the client go. What comes then belongs to the next
// request, so its fault waits for the handler's end. So does everything behind a request whose
// answer may end HTTP on the connection. That is a CONNECT, or one that asks to change protocols.
// So does a fault in the content of a request that waits for its turn.
type guarded struct {
	wrapped
	proxy *Proxy
	// tunnel is nil for a connection that is in none.
	tunnel *tunnel
	scan   strict.Scanner
	// greeted says that the first byte was looked at.
	greeted bool
	// rest was read and not given on.
	rest  []byte
	fault *strict.Fault
	// credentials are those of the head with the fault, if they came with it.
	credentials http.Header
	// ended is what Read returns from now on.
	ended error
	// lost is why nothing more came, where there is no fault.
	lost error

	// busy says that a handler runs, begun how many have so far.
	busy  atomic.Bool
	begun atomic.Uint64
	// told says that the client had its answer. No server may then write one of its own about a line
	// that was cut.
	told atomic.Bool
	// raw says that the connection speaks HTTP no more.
	raw atomic.Bool

	// deadline is that of reads, in Unix nanoseconds, 0 for none.
	deadline atomic.Int64
	waiting  atomic.Bool
	wake     chan struct{}
	once     sync.Once
	closed   chan struct{}
}

// guardedTLS is a guarded connection inside TLS.
type guardedTLS struct {
	*guarded
	state tls.ConnectionState
}

// ConnectionState tells the server what to set as a request's TLS.
func (g guardedTLS) ConnectionState() tls.ConnectionState { return g.state }

func (p *Proxy) guard(c net.Conn, t *tunnel) *guarded {
	return &guarded{
		wrapped: wrapped{c}, proxy: p, tunnel: t, scan: strict.Scanner{MaxHead: p.config.MaxHead},
		wake: make(chan struct{}, 1), closed: make(chan struct{}),
	}
}

// guardOf finds the guarded connection that a server was given.
func guardOf(c net.Conn) *guarded {
	switch g := c.(type) {
	case *guarded:
		return g
	case guardedTLS:
		return g.guarded
	}
	return nil
}

// guardedListener guards what it accepts.
type guardedListener struct {
	net.Listener
	proxy *Proxy
}

// Accept implements net.Listener.
func (l guardedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return l.proxy.guard(c, nil), nil
}

// follow is the ConnState hook of the servers.
func follow(c net.Conn, state http.ConnState) {
	g := guardOf(c)
	if g == nil {
		return
	}
	switch state {
	case http.StateActive:
		g.begun.Add(1)
		g.busy.Store(true)
	case http.StateIdle:
		// What was read of a request that waits for its turn stays as it is.
		if g.latest() {
			g.scan.Resume()
		}
		g.busy.Store(false)
	case http.StateHijacked:
		g.raw.Store(true)
	case http.StateNew, http.StateClosed:
	}
}

// latest reports whether the request read last is the one handled last. A client needn't wait for
// an answer before it asks again.
func (g *guarded) latest() bool { return g.scan.Heads() == g.begun.Load() }

// Read gives what the scanner lets through.
func (g *guarded) Read(p []byte) (int, error) {
	for {
		switch {
		case g.ended != nil:
			return 0, g.ended
		case g.raw.Load():
			return g.readRaw(p)
		case g.fault != nil && g.scan.InBody() && g.latest():
			// Its handler is told, and answers.
			g.ended = broken(g.fault)
			continue
		case g.fault != nil && !g.busy.Load():
			return 0, g.refuse(g.fault)
		case g.fault != nil, g.scan.Connected(), g.scan.Upgrading() && len(g.rest) > 0:
			if err := g.wait(); err != nil {
				return 0, err
			}
			continue
		case g.scan.Upgrading():
			if err := g.ahead(p); err != nil {
				return 0, err
			}
			continue
		}
		n, err := g.fill(p)
		if n > 0 {
			if n = g.let(p, n); n > 0 {
				return n, nil
			}
			continue
		}
		if err != nil {
			g.lost = err
			return 0, g.endedEarly(err)
		}
	}
}

// ahead reads what may belong to another protocol, and keeps it: so the client is seen to
// go.
func (g *guarded) ahead(p []byte) error {
	n, err := g.Conn.Read(p)
	g.rest = append(g.rest[:0], p[:n]...)
	if n > 0 {
		return nil
	}
	return err
}

// readRaw reads what no scanner looks at.
func (g *guarded) readRaw(p []byte) (int, error) {
	if len(g.rest) > 0 {
		n := copy(p, g.rest)
		g.rest = g.rest[n:]
		return n, nil
	}
	return g.Conn.Read(p)
}

// fill reads what was kept, else from the connection.
func (g *guarded) fill(p []byte) (int, error) {
	if len(g.rest) > 0 {
		return copy(p, g.rest), nil
	}
	return g.Conn.Read(p)
}

// let shows the scanner n bytes of p and returns how many are given on. What stays is
// kept.
func (g *guarded) let(p []byte, n int) int {
	if !g.greeted {
		g.greeted = true
		if g.fault = foreign(p[0]); g.fault != nil {
			return 0
		}
	}
	skip, pass, f := g.scan.Scan(p[:n])
	if g.fault = f; f != nil {
		g.credentials = credentialsIn(p[:n])
	}
	switch taken := skip + pass; {
	case len(g.rest) > 0:
		g.rest = g.rest[taken:]
	case f == nil && taken < n:
		g.rest = append(g.rest[:0], p[taken:n]...)
	}
	if skip > 0 {
		copy(p, p[skip:skip+pass])
	}
	return pass
}

// endedEarly turns the end of the connection into an answer if a head had begun. It notes the end
// where nobody can be answered.
func (g *guarded) endedEarly(err error) error {
	switch {
	case g.busy.Load():
	case isNoTLS(err):
		g.proxy.noteFault(g, faultRecord, 0, true) // By an alert.
	case !g.scan.Begun():
	case errors.Is(err, os.ErrDeadlineExceeded):
		return g.refuse(strict.FaultLate)
	case errors.Is(err, io.EOF):
		return g.refuse(strict.FaultEnded)
	case !errors.Is(err, net.ErrClosed): // Else we have ended it.
		g.proxy.noteFault(g, strict.FaultEnded, 0, false)
	}
	return err
}

// wait returns when a handler has ended, or the deadline came. The server ends reads
// beside a handler by a deadline in the past.
func (g *guarded) wait() error {
	if !g.busy.Load() {
		return io.EOF
	}
	g.waiting.Store(true)
	defer g.waiting.Store(false)
	for g.busy.Load() && !g.raw.Load() {
		var late <-chan time.Time
		if at := g.deadline.Load(); at != 0 {
			left := time.Until(time.Unix(0, at))
			if left <= 0 {
				return os.ErrDeadlineExceeded
			}
			t := time.NewTimer(left)
			defer t.Stop()
			late = t.C
		}
		select {
		case <-g.wake:
		case <-late:
		case <-g.closed:
			return net.ErrClosed
		}
	}
	return nil
}

// SetReadDeadline implements net.Conn.
func (g *guarded) SetReadDeadline(t time.Time) error {
	g.noteDeadline(t)
	return g.Conn.SetReadDeadline(t)
}

// SetDeadline implements net.Conn.
func (g *guarded) SetDeadline(t time.Time) error {
	g.noteDeadline(t)
	return g.Conn.SetDeadline(t)
}

func (g *guarded) noteDeadline(t time.Time) {
	var at int64
	if !t.IsZero() {
		at = max(t.UnixNano(), 1)
	}
	g.deadline.Store(at)
	if g.waiting.Load() {
		select {
		case g.wake <- struct{}{}:
		default:
		}
	}
}

// Close implements net.Conn.
func (g *guarded) Close() error {
	g.once.Do(func() { close(g.closed) })
	return g.Conn.Close()
}

// Write implements net.Conn.
func (g *guarded) Write(p []byte) (int, error) {
	if g.told.Load() {
		return 0, net.ErrClosed
	}
	return g.Conn.Write(p)
}

// release returns the connection as it was before it was guarded, with what was read ahead. It no
// longer speaks HTTP.
func (g *guarded) release() net.Conn {
	if len(g.rest) == 0 {
		return g.Conn
	}
	return g
}

// broken is an error that the server does not answer by itself.
func broken(f *strict.Fault) error { return &net.OpError{Op: "read", Net: "http", Err: f} }

// refuse answers a request that can't be read, and ends the connection.
func (g *guarded) refuse(f *strict.Fault) error {
	g.ended = broken(f)
	g.told.Store(true)
	_ = g.SetWriteDeadline(time.Now().Add(faultWriteTimeout))
	status, err := g.say(f)
	g.proxy.noteFault(g, f, status, err == nil)
	if err != nil {
		return g.ended
	}
	closeWrite(g.Conn)
	_ = g.Conn.SetReadDeadline(time.Now().Add(faultLinger))
	_, _ = io.Copy(io.Discard, io.LimitReader(g.Conn, faultDrain))
	return g.ended
}

// refuseHead is what a server does with a head that it can't read although the scanner can.
func refuseHead(c net.Conn, status int) {
	g := guardOf(c)
	switch {
	case g == nil:
	case status == http.StatusRequestHeaderFieldsTooLarge:
		_ = g.refuse(strict.FaultLongHead)
	default:
		_ = g.refuse(strict.FaultHead)
	}
}

// say writes the answer in the language that the client spoke.
func (g *guarded) say(f *strict.Fault) (status int, err error) {
	if hint, ok := hints[f]; ok {
		_, err = io.WriteString(g.Conn, hint)
		return 0, err
	}
	x, r := &exchange{}, &http.Request{Header: g.credentials}
	if g.tunnel != nil {
		x.caller, r.Host = g.tunnel.caller, g.tunnel.target
	} else if c, err := g.proxy.who(r); err == nil {
		x.caller = c
	}
	resp := g.proxy.refusing(x, r, faultRefusal(f))
	defer func() { _ = resp.Body.Close() }()
	resp.Close = true
	resp.Header.Set("Date", g.proxy.config.Clock.Now().UTC().Format(http.TimeFormat))
	return resp.StatusCode, resp.Write(g.Conn)
}

// credentialsField is the field that says whose a request is, in a head that can't be read otherwise.
var credentialsField = regexp.MustCompile(`(?i)\nproxy-authorization:[ \t]*([^\r\n]+)`)

func credentialsIn(head []byte) http.Header {
	found := credentialsField.FindSubmatch(head)
	if found == nil {
		return nil
	}
	return http.Header{"Proxy-Authorization": {strings.TrimSpace(string(found[1]))}}
}

// faultRefusal is the problem that answers a fault.
func faultRefusal(f *strict.Fault) *refusal {
	r := refuse(faultProblem(f), f.Error()+"; nothing was sent, and the connection is closed.")
	r.status = f.Status
	return r
}

func faultProblem(f *strict.Fault) problem {
	switch {
	case f == faultRecord:
		return problemTLS
	case f.Status == http.StatusMisdirectedRequest:
		return problemMisdirected
	case f.Status == http.StatusRequestTimeout:
		return problemRequestTimeout
	}
	return problemMalformed
}

// noteFault writes the one log line of what can't be read on.
func (p *Proxy) noteFault(g *guarded, f *strict.Fault, status int, told bool) {
	p.noteRefused(g, g.tunnel, faultProblem(f), f.Error(), status, told)
}

// noteRefused counts a connection that was refused, and writes its one log line. Outside of tunnels
// t is nil.
func (p *Proxy) noteRefused(c net.Conn, t *tunnel, name problem, detail string, status int, told bool) {
	p.config.Metrics.Request("", string(name), status, 0)
	e := p.config.Log.Warn().Int("status", status).Str("problem", string(name)).Str("detail", detail).Bool("delivered", told)
	l := Line{Status: status, Problem: string(name), Detail: detail, Delivered: told}
	if a := c.RemoteAddr(); a != nil {
		l.Client = a.String()
		e.Str("client", l.Client)
	}
	p.follow(l, t)
	if t != nil {
		t.told.Store(true)
		e.Str("host", t.target).Str("workflow", t.caller.workflow).Str("item", t.caller.item).Str("run", t.caller.run)
	}
	e.Msg("request")
}

// Connections that begin in another language than HTTP, by their first byte.
var (
	faultTLS = &strict.Fault{Status: http.StatusBadRequest, Section: "RFC 8446 §5.1",
		Detail: "The client speaks TLS to a listener that speaks HTTP; the proxy's address begins with http://, for https targets too"}
	faultSocks4 = &strict.Fault{Status: http.StatusBadRequest, Section: "SOCKS 4",
		Detail: "The client speaks SOCKS; this is an HTTP proxy"}
	faultSocks5 = &strict.Fault{Status: http.StatusBadRequest, Section: "RFC 1928 §3",
		Detail: "The client speaks SOCKS; this is an HTTP proxy"}
)

// problemTLS is what the log calls bytes that are no TLS where it is spoken. They are
// answered by an alert, and so with no problem.
const problemTLS problem = "tls"

// faultRecord is what ends a connection on which TLS was spoken before.
var faultRecord = &strict.Fault{Status: http.StatusBadRequest, Section: "RFC 8446 §5", Detail: "What the client sends is no record of its TLS session"}

// isNoTLS reports whether err is TLS's about what the other side sent. That side was told by an
// alert.
func isNoTLS(err error) bool {
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return true
	}
	alert, ok := errors.AsType[*net.OpError](err)
	return ok && alert.Op == "local error"
}

// hints answer such clients in their own language.
var hints = map[*strict.Fault]string{
	// A fatal alert, handshake_failure (RFC 8446 §6).
	faultTLS: "\x15\x03\x03\x00\x02\x02\x28",
	// "Request rejected or failed".
	faultSocks4: "\x00\x5b\x00\x00\x00\x00\x00\x00",
	// "No acceptable methods".
	faultSocks5: "\x05\xff",
}

// foreign knows the first bytes of what is no HTTP.
func foreign(first byte) *strict.Fault {
	switch first {
	case tlsHandshake:
		return faultTLS
	case 4:
		return faultSocks4
	case 5:
		return faultSocks5
	}
	return nil
}
