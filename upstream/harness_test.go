package upstream

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// rawUpstream is an upstream on a socket that counts for itself: connections, and
// bytes that it read.
type rawUpstream struct {
	l     net.Listener
	conns atomic.Int64
	bytes atomic.Int64
	sends atomic.Int64 // requests that the handler read
	done  sync.WaitGroup
	halt  chan struct{} // closed at the end of the test
}

// peer is one connection as the upstream sees it.
type peer struct {
	net.Conn
	up *rawUpstream
	br *bufio.Reader
}

// serve starts an upstream that calls handle for every connection, which is closed
// when handle returns. With a certificate it speaks TLS.
func serve(tb testing.TB, cfg *tls.Config, handle func(*peer)) *rawUpstream {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	u := &rawUpstream{l: l, halt: make(chan struct{})}
	var mu sync.Mutex
	open := map[net.Conn]bool{}
	u.done.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			u.conns.Add(1)
			mu.Lock()
			open[c] = true
			mu.Unlock()
			u.done.Go(func() {
				defer func() {
					mu.Lock()
					delete(open, c)
					mu.Unlock()
					_ = c.Close()
				}()
				conn := c
				if cfg != nil {
					session := tls.Server(c, cfg)
					if session.Handshake() != nil {
						return
					}
					conn = session
				}
				counted := &countingConn{Conn: conn, n: &u.bytes}
				handle(&peer{Conn: counted, up: u, br: bufio.NewReader(counted)})
			})
		}
	})
	tb.Cleanup(func() {
		_ = l.Close()
		close(u.halt)
		mu.Lock()
		for c := range open {
			_ = c.Close()
		}
		mu.Unlock()
		u.done.Wait()
	})
	return u
}

type countingConn struct {
	net.Conn
	n *atomic.Int64
}

func (c *countingConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.n.Add(int64(n))
	return n, err
}

// request reads one request with its whole body and counts it.
func (p *peer) request() (*http.Request, []byte, bool) {
	r, err := http.ReadRequest(p.br)
	if err != nil {
		return nil, nil, false
	}
	content, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, nil, false
	}
	p.up.sends.Add(1)
	return r, content, true
}

// say writes what the upstream answers, as it is.
func (p *peer) say(answer string) { _, _ = io.WriteString(p.Conn, answer) }

// wait blocks until the peer has closed its side.
func (p *peer) wait() { _, _ = io.Copy(io.Discard, p.br) }

// hold keeps the connection open to the end of the test, without reading.
func (p *peer) hold() { <-p.up.halt }

// reset closes the TCP connection with a reset.
func (p *peer) reset() {
	conn := p.Conn.(*countingConn).Conn
	if session, ok := conn.(*tls.Conn); ok {
		conn = session.NetConn()
	}
	_ = conn.(*net.TCPConn).SetLinger(0)
	_ = conn.Close()
}

// answering reads one request on each connection and answers it as given, then
// closes.
func answering(answer string) func(*peer) {
	return func(p *peer) {
		if _, _, ok := p.request(); ok {
			p.say(answer)
		}
	}
}

func (u *rawUpstream) url(scheme, path string) *url.URL {
	return &url.URL{Scheme: scheme, Host: u.l.Addr().String(), Path: path}
}

// identity is a certificate for 127.0.0.1 and the pool that trusts it.
var identity = sync.OnceValues(func() (tls.Certificate, *x509.CertPool) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		panic(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		panic(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, roots
})

func roots() *x509.CertPool {
	_, pool := identity()
	return pool
}

func serverTLS(protos ...string) *tls.Config {
	cert, _ := identity()
	return &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: protos}
}

// sender returns a Sender that trusts the test certificate and leaves no
// connection behind.
func sender(tb testing.TB, cfg Config) *Sender {
	tb.Helper()
	if cfg.Roots == nil {
		cfg.Roots = roots()
	}
	s := New(cfg)
	tb.Cleanup(s.Close)
	return s
}

func post(u *url.URL, content string) *Request {
	r := &Request{Method: http.MethodPost, URL: u, Header: http.Header{"Idempotency-Key": {"k"}}, TrustRefused: true}
	if content != "" {
		r.Body = Bytes(content)
	}
	return r
}

// got is an answer that was drained.
type got struct {
	*Answer
	content string
	err     error // of the body, nil for a whole one
	ev      Evidence
}

// send sends, drains and closes.
func send(tb testing.TB, s *Sender, r *Request) got {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	a := s.Send(ctx, r)
	content, err := io.ReadAll(a.Body)
	a.Close()
	return got{Answer: a, content: string(content), err: err, ev: a.Evidence()}
}

// check compares what a dispatch came to with what it should have come to.
func (g got) check(tb testing.TB, want Evidence) {
	tb.Helper()
	ev := g.ev
	if ev.NotSent != want.NotSent || ev.Refused != want.Refused || ev.Head != want.Head || ev.Status != want.Status ||
		ev.BodyComplete != want.BodyComplete || ev.ErrorClass != want.ErrorClass || ev.Reused != want.Reused {
		tb.Errorf("evidence\n got %s\nwant %s", brief(ev), brief(want))
	}
	if (ev.Error == "") != (ev.ErrorClass == "") {
		tb.Errorf("error class %q with text %q", ev.ErrorClass, ev.Error)
	}
	if ev.NotSent && ev.BytesWritten != 0 || !ev.NotSent && ev.BytesWritten == 0 {
		tb.Errorf("%d bytes written, not sent: %v", ev.BytesWritten, ev.NotSent)
	}
	if ev.Ended.BootID == "" || ev.Ended.Mono < ev.Started.Mono {
		tb.Errorf("ended %+v, started %+v", ev.Ended, ev.Started)
	}
	// A busy machine may take any time, but hardly just this one.
	if took := ev.Ended.Wall.Sub(ev.HeadAt); ev.BodyComplete && ev.RequestComplete && lastWords <= took && took < lastWords+time.Second {
		tb.Errorf("a whole exchange took %v behind its head: it waited for a writer that had ended", took)
	}
	if ev.BodyBytes != int64(len(g.content)) {
		tb.Errorf("%d body bytes in the evidence, %d read", ev.BodyBytes, len(g.content))
	}
	if ev.BodyComplete != (g.err == nil) {
		tb.Errorf("body complete: %v, but reading it ended with %v", ev.BodyComplete, g.err)
	}
	if ev.Head != !ev.HeadAt.IsZero() {
		tb.Errorf("head: %v, read at %v", ev.Head, ev.HeadAt)
	}
}

// brief prints what check compares.
func brief(ev Evidence) string {
	return fmt.Sprintf("not sent %v, refused %v, head %v, status %d, body complete %v, class %q (%s), reused %v",
		ev.NotSent, ev.Refused, ev.Head, ev.Status, ev.BodyComplete, ev.ErrorClass, ev.Error, ev.Reused)
}

// zeros is a Body of n zero bytes.
type zeros int64

func (z zeros) Open() (io.ReadCloser, error) {
	return io.NopCloser(io.LimitReader(bytes.NewReader(make([]byte, z)), int64(z))), nil
}

func (z zeros) Len() int64 { return int64(z) }

func mustURL(tb testing.TB, s string) *url.URL {
	tb.Helper()
	u, err := url.Parse(s)
	if err != nil {
		tb.Fatal(err)
	}
	return u
}

// srvRoots trusts a test server's certificate.
func srvRoots(srv *httptest.Server) *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(srv.Certificate())
	return pool
}
