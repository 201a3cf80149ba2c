package proxy

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"keep-proxy/proxy/h1"
	"keep-proxy/rules"
	"keep-proxy/upstream"
)

// tlsHandshake is the first byte of a TLS record that opens a connection
// (RFC 8446 §5.1).
const tlsHandshake = 0x16

// firstByteTimeout bounds the wait for a client to say what it speaks inside its
// tunnel.
const firstByteTimeout = 30 * time.Second

// connect answers a CONNECT request: who asks, for which host, and then a
// tunnel that ends in this proxy. Nothing is dialled yet.
func (p *Proxy) connect(w http.ResponseWriter, r *http.Request) {
	c, f := p.admitConnect(w, r)
	if f == nil && c == nil {
		return
	}
	if f != nil {
		p.turnAway(w, r, caller{}, f)
		return
	}
	target, err := normalTarget(r.Host)
	if err != nil {
		p.turnAway(w, r, *c, refuse(problemAmbiguous, "CONNECT needs host:port: "+err.Error()+"."))
		return
	}
	t := &tunnel{target: target, remote: r.RemoteAddr, caller: *c}
	if p.blind(target) {
		p.tunnelBlind(w, r, t)
		return
	}
	p.connected(t, r)
	p.goproxy.ServeHTTP(hijackKeeper{w}, r.WithContext(withClient(r.Context(), t)))
}

// admitConnect authenticates a CONNECT. Both results are nil when it has answered
// with a challenge.
func (p *Proxy) admitConnect(w http.ResponseWriter, r *http.Request) (*caller, *refusal) {
	c, err := p.who(r)
	if err == nil {
		return &c, nil
	}
	if errors.Is(err, errCredentials) {
		p.challenge(w, r)
		return nil, nil
	}
	return nil, ledgerRefusal(err)
}

// enterTunnel takes over a hijacked connection: TLS ends here with a leaf of our CA. Plaintext is
// served as it is, since some clients CONNECT to port 80.
func (p *Proxy) enterTunnel(r *http.Request, client net.Conn) {
	t := tunnelOf(r.Context())
	if t == nil {
		_ = client.Close()
		return
	}
	// No server has the connection before it is known what is spoken on it.
	disown := context.AfterFunc(p.ctx, func() { _ = client.Close() })
	defer disown()
	_, err := io.WriteString(client, "HTTP/1.1 200 OK\r\n\r\n")
	first := make([]byte, 1)
	if err == nil {
		_ = client.SetReadDeadline(time.Now().Add(min(firstByteTimeout, p.config.RequestTimeout)))
		_, err = io.ReadFull(client, first)
		_ = client.SetReadDeadline(time.Time{})
	}
	if err != nil {
		p.noteUnused(t, err)
		_ = client.Close()
		return
	}
	t.Conn, t.first = client, strings.NewReader(string(first))
	if first[0] != tlsHandshake {
		go func() {
			g := p.guard(t, t)
			p.loop.Serve(g)
			p.noteUnused(t, g.lost)
		}()
		return
	}
	p.enterTLS(t)
}

// noteUnused writes the log line of a tunnel that has ended, unless a request in it was logged. Its
// err is why nothing more came.
func (p *Proxy) noteUnused(t *tunnel, err error) {
	if t.told.Load() {
		return
	}
	name, detail := problem(""), "the client ended its tunnel before it asked for anything"
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		name, detail = problemRequestTimeout, "the client asks for nothing in its tunnel"
	case p.draining.Load():
		detail = "keep-proxy ended before the client asked for anything in its tunnel"
	case isNoTLS(err):
		name, detail = problemTLS, faultRecord.Error()
	case err == nil, errors.Is(err, net.ErrClosed): // Its server has ended it.
		name, detail = problemMalformed, "what came in the tunnel, if anything, is no request, and it was closed"
	}
	p.noteTunnel(t, name, detail)
}

// noteTunnel writes the log line of a tunnel; name is that of its refusal, empty for none.
func (p *Proxy) noteTunnel(t *tunnel, name problem, detail string) {
	level := zerolog.InfoLevel
	if name != "" {
		level = zerolog.WarnLevel
		p.config.Metrics.Request("", string(name), http.StatusOK, 0)
	}
	p.follow(Line{Method: http.MethodConnect, Status: http.StatusOK, Problem: string(name), Client: t.remote, Detail: detail, Delivered: true}, t)
	p.config.Log.WithLevel(level).Str("problem", string(name)).Str("method", http.MethodConnect).Str("host", t.target).Int("status", http.StatusOK).
		Str("client", t.remote).Str("workflow", t.caller.workflow).Str("item", t.caller.item).Str("run", t.caller.run).Str("detail", detail).Msg("request")
}

// enterTLS shakes hands with the client. What is spoken then decides who reads it:
// HTTP/1 is guarded, and HTTP/2 has frames that net/http holds to the letter itself.
func (p *Proxy) enterTLS(t *tunnel) {
	session := tls.Server(t, p.tls)
	ctx, cancel := context.WithTimeout(p.ctx, readHeaderTimeout)
	defer cancel()
	if err := session.HandshakeContext(ctx); err != nil {
		p.noteTunnel(t, problemTLS, "the client and the proxy agree on no TLS session; does the client trust the proxy's CA? "+err.Error())
		_ = session.Close()
		return
	}
	t.secure = true
	state := session.ConnectionState()
	if state.NegotiatedProtocol == "h2" {
		if !p.tunnels.push(session) {
			p.noteUnused(t, net.ErrClosed)
		}
		return
	}
	go func() {
		g := p.guard(session, t)
		p.loop.Serve(guardedTLS{g, state})
		p.noteUnused(t, g.lost)
	}()
}

// followHTTP2 is the ConnState hook of the server of HTTP/2, which doesn't say what it
// refuses without a handler.
func (p *Proxy) followHTTP2(c net.Conn, state http.ConnState) {
	if state != http.StateClosed {
		return
	}
	session, ok := c.(*tls.Conn)
	if !ok {
		return
	}
	if t, ok := session.NetConn().(*tunnel); ok {
		_ = t.Close()
		// What is closed tells only how the client ended it, if it did.
		_, err := session.Read(make([]byte, 1))
		p.noteUnused(t, err)
	}
}

// tlsConfig is that of all tunnels. It makes and renews its keys for session tickets (RFC 8446
// §2.2). With a config for each tunnel no client could resume a session. A client is shown the name
// that it asked for, else its tunnel's.
func (p *Proxy) tlsConfig() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		NextProtos: []string{"h2", "http/1.1"},
		GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			if hello.ServerName != "" {
				return p.leaves.get(strings.ToLower(hello.ServerName))
			}
			t, ok := hello.Conn.(*tunnel)
			if !ok {
				return nil, errors.New("TLS outside a tunnel")
			}
			host, _, err := net.SplitHostPort(t.target)
			if err != nil {
				return nil, err
			}
			return p.leaves.get(host)
		},
	}
}

// normalTarget brings the authority of a CONNECT into the form host:port that
// the requests inside are compared with.
func normalTarget(authority string) (string, error) {
	_, port, err := net.SplitHostPort(authority)
	if err != nil {
		return "", err
	}
	req, f := rules.Normalise(rules.Raw{Method: http.MethodGet, Scheme: "https", Authority: authority, Target: "/", Header: http.Header{}})
	if f != nil {
		return "", f
	}
	return net.JoinHostPort(req.Host, port), nil
}

// blind reports whether a host is tunnelled without being looked into. The
// mutations of a connector's host are never passed by blindly.
func (p *Proxy) blind(target string) bool {
	host, _, err := net.SplitHostPort(target)
	if err != nil || !covered(p.config.Passthrough, host, target) {
		return false
	}
	return !p.config.Rules().ConnectorHost(target)
}

// covered reports whether one of the entries names the target.
func covered(entries []string, host, target string) bool {
	return slices.ContainsFunc(entries, func(entry string) bool { return covers(entry, host, target) })
}

// covers reports whether an entry names the target.
func covers(entry, host, target string) bool {
	if suffix, ok := strings.CutPrefix(entry, "*"); ok {
		return strings.HasPrefix(suffix, ".") && (strings.HasSuffix(host, suffix) || strings.HasSuffix(target, suffix))
	}
	return strings.EqualFold(entry, host) || strings.EqualFold(entry, target)
}

// connected clears that a CONNECT to the same host was refused before.
func (p *Proxy) connected(t *tunnel, r *http.Request) {
	p.through(&exchange{caller: t.caller}, r, &http.Response{StatusCode: http.StatusOK})
}

// effectPassthrough is what the log calls that of a blind tunnel, which nobody knows.
const effectPassthrough = "passthrough"

// Reloaded must be called when Config.Rules has begun to give other rules. It cuts blind tunnels to
// what is now a connector's host. It also cuts connections that changed to a protocol which their
// rule names no more. Otherwise mutations there would pass unrecorded for as long as a client keeps
// them.
func (p *Proxy) Reloaded() { p.open.uncover() }

// tunnelBlind joins a client to an upstream and looks at nothing but the name in its ClientHello. The gate at CONNECT
// and later cuts apply to it (see Reloaded too).
func (p *Proxy) tunnelBlind(w http.ResponseWriter, r *http.Request, t *tunnel) {
	x := &exchange{caller: t.caller, tunnel: t, client: r.Context()}
	f := p.admitBlind(x)
	if f != nil {
		p.turnAway(w, r, t.caller, f)
		return
	}
	there, err := p.dialBlind(r.Context(), t.target)
	if err != nil {
		p.turnAway(w, r, t.caller, noTunnel(t.target, err))
		return
	}
	defer func() { _ = there.Close() }()
	p.connected(t, r)
	x.started, x.effect = p.config.Clock.Now(), effectPassthrough
	answer := &answerWriter{status: http.StatusOK}
	delivered := false
	defer func() {
		if f != nil {
			p.noteTunnel(t, f.problem, f.detail)
			return
		}
		p.config.Metrics.Request(x.effect, "", answer.status, p.config.Clock.Now().Sub(x.started))
		p.told(x, r, answer, delivered)
	}()
	client, _, err := hijackKeeper{w}.Hijack()
	if err != nil {
		return
	}
	defer func() { _ = client.Close() }()
	open, admitted := p.register(context.WithoutCancel(r.Context()), t.caller, false)
	defer open.end()
	if !admitted || !open.goUnseen(func() bool { return p.blind(t.target) }) {
		return // It would be cut at once.
	}
	// Nobody knows where what is carried ends: how one side ends is how the other does.
	breakOff := func() { h1.Reset(client); h1.Reset(there) }
	defer context.AfterFunc(open, breakOff)()
	if _, err := io.WriteString(client, "HTTP/1.1 200 OK\r\n\r\n"); err != nil {
		return
	}
	up := make(chan error, 1)
	go func() {
		var err error
		f, err = p.carryNamed(x, r, client, there, breakOff)
		up <- err
	}()
	n, err := carryBlind(nil, there, client, breakOff)
	delivered = errors.Join(err, <-up) == nil && !open.wasStopped()
	answer.bytes = n
}

// carryBlind carries one direction, from what was read ahead on. Its end in good order ends it at the other side.
func carryBlind(ahead []byte, from, to net.Conn, breakOff func()) (int64, error) {
	n, err := io.Copy(to, bytes.NewReader(ahead))
	if err == nil {
		var more int64
		more, err = io.Copy(to, from)
		n += more
	}
	if err != nil {
		breakOff()
		return n, err
	}
	closeWrite(to)
	return n, nil
}

// dialBlind connects a blind tunnel within the time that any other sending has for it.
func (p *Proxy) dialBlind(ctx context.Context, target string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, p.config.DialTimeout)
	defer cancel()
	return p.config.Dial(ctx, "tcp", target)
}

// noTunnel says why a blind tunnel leads nowhere.
func noTunnel(target string, err error) *refusal {
	if failed, ok := errors.AsType[*upstream.Error](err); ok && failed.Class == upstream.ErrorEgress {
		return notAllowed(target, failed.Text)
	}
	return refuse(problemNotSent, "No connection to "+target+": "+err.Error()+".").because(err)
}

// closeWrite ends one direction of a connection.
func closeWrite(c net.Conn) {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
		return
	}
	_ = c.Close()
}

// wrapped is a connection around another one.
type wrapped struct{ net.Conn }

// NetConn returns the connection below.
func (w wrapped) NetConn() net.Conn { return w.Conn }

// CloseWrite ends the sending direction, where the connection has two.
func (w wrapped) CloseWrite() error {
	closeWrite(w.Conn)
	return nil
}

// tunnel is a client's connection after CONNECT. What was authenticated and
// asked for there holds for every request inside.
type tunnel struct {
	wrapped
	// target is the normalised host:port of the CONNECT request.
	target string
	// remote is the client's address.
	remote string
	caller caller
	// agreed is an authority that is known to be the target's.
	agreed atomic.Pointer[string]
	// secure says that TLS ended here.
	secure bool
	// first holds what was read ahead of the first byte of the tunnel.
	first io.Reader
	// ended says that the client ended its direction of the connection.
	ended atomic.Bool
	// told says that the log has, or gets, a line of something that was asked in it.
	told atomic.Bool
}

// Read gives what was read ahead before it reads on.
func (t *tunnel) Read(p []byte) (int, error) {
	if t.first == nil {
		return t.read(p)
	}
	n, err := t.first.Read(p)
	if err == io.EOF {
		t.first = nil
		if n == 0 {
			return t.read(p)
		}
		err = nil
	}
	return n, err
}

func (t *tunnel) read(p []byte) (int, error) {
	n, err := t.Conn.Read(p)
	if errors.Is(err, io.EOF) {
		t.ended.Store(true)
	}
	return n, err
}

// bufferedConn gives the bytes that a server had buffered when its connection
// was hijacked.
type bufferedConn struct {
	wrapped
	buffered *bufio.Reader
}

// Read gives the buffered bytes first.
func (b *bufferedConn) Read(p []byte) (int, error) {
	if b.buffered == nil {
		return b.Conn.Read(p)
	}
	if b.buffered.Buffered() == 0 {
		b.buffered = nil
		return b.Conn.Read(p)
	}
	return b.buffered.Read(p)
}

// hijackKeeper makes bytes that arrived together with CONNECT (a TLS ClientHello, say) part of the
// hijacked connection. Otherwise goproxy drops the buffer that holds them.
type hijackKeeper struct{ http.ResponseWriter }

// Unwrap serves http.ResponseController.
func (h hijackKeeper) Unwrap() http.ResponseWriter { return h.ResponseWriter }

// Hijack implements http.Hijacker.
func (h hijackKeeper) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	c, rw, err := http.NewResponseController(h.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	if g := guardOf(c); g != nil {
		c = g.release()
	}
	if rw.Reader.Buffered() > 0 {
		c = &bufferedConn{wrapped{c}, rw.Reader}
	}
	return c, rw, nil
}

// handover is a listener whose connections are handed to it. One long-lived server serves every
// tunnel through it. So its Shutdown, idle timeouts and GOAWAY reach them all.
type handover struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newHandover() *handover {
	return &handover{conns: make(chan net.Conn), done: make(chan struct{})}
}

// push hands c over; after Close it closes c, and reports so.
func (h *handover) push(c net.Conn) (taken bool) {
	select {
	case h.conns <- c:
		return true
	case <-h.done:
		_ = c.Close()
		return false
	}
}

// Accept implements net.Listener.
func (h *handover) Accept() (net.Conn, error) {
	select {
	case c := <-h.conns:
		return c, nil
	case <-h.done:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (h *handover) Close() error {
	h.once.Do(func() { close(h.done) })
	return nil
}

// Addr implements net.Listener; the listener has no address of its own.
func (h *handover) Addr() net.Addr { return &net.UnixAddr{Name: "tunnels", Net: "unix"} }
