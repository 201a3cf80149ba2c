package app

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"keep-proxy/config"
	"keep-proxy/internal/fakes/testca"
	"keep-proxy/upstream"
)

// otherProxy takes CONNECT, answers as it is told, and echoes what comes through.
type otherProxy struct {
	addr string

	mu    sync.Mutex
	heads []string
}

// newOtherProxy listens with a certificate if ca isn't nil. answer is what follows a
// CONNECT.
func newOtherProxy(t *testing.T, ca *testca.CA, answer string) *otherProxy {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if ca != nil {
		leaf, err := ca.Leaf()
		if err != nil {
			t.Fatal(err)
		}
		l = tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{*leaf}, MinVersion: tls.VersionTLS12})
	}
	t.Cleanup(func() { _ = l.Close() })
	p := &otherProxy{addr: l.Addr().String()}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go p.serve(c, answer)
		}
	}()
	return p
}

func (p *otherProxy) serve(c net.Conn, answer string) {
	defer func() { _ = c.Close() }()
	br := bufio.NewReader(c)
	r, err := http.ReadRequest(br)
	if err != nil {
		return
	}
	p.mu.Lock()
	p.heads = append(p.heads, fmt.Sprintf("%s %s %s", r.Method, r.Host, r.Header.Get("Proxy-Authorization")))
	p.mu.Unlock()
	if _, err := io.WriteString(c, answer); err == nil {
		_, _ = io.Copy(c, br)
	}
}

func (p *otherProxy) asked() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.heads...)
}

const tunnelled = "HTTP/1.1 200 Connection established\r\n\r\n"

func secretOf(t *testing.T, text string) config.Secret {
	t.Helper()
	s, err := config.ParseSecret(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestEverythingGoesOutThroughTheOtherProxy(t *testing.T) {
	t.Parallel()
	ca, roots := authority(t)
	for _, scheme := range []string{"http", "https"} {
		t.Run(scheme, func(t *testing.T) {
			t.Parallel()
			var authority *testca.CA
			if scheme == "https" {
				authority = ca
			}
			other := newOtherProxy(t, authority, tunnelled)
			e := newEgress(config.Egress{DenyPrivate: true})
			e.resolver = nameserver(t, func(name string, _ int) []string {
				return map[string][]string{"api.test": {"198.51.100.7"}, "inside.test": {"198.51.100.7", "10.0.0.1"}}[name]
			})
			env := map[string]string{"PASSWORD": "s3cret"}
			p, err := newUpstreamProxy(e, config.UpstreamProxy{URL: scheme + "://" + other.addr, User: "keep", Password: secretOf(t, "${env:PASSWORD}")},
				config.Sources{LookupEnv: func(name string) (string, bool) { v, ok := env[name]; return v, ok }}, &upstream.Trust{Roots: roots})
			if err != nil {
				t.Fatal(err)
			}
			// Both a name that is known here and one that only the other knows.
			for _, name := range []string{"api.test", "unknown.test"} {
				c, err := p.Dial(t.Context(), "tcp", name+":443")
				if err != nil {
					t.Fatal(err)
				}
				echo := make([]byte, 5)
				_, err = io.WriteString(c, "hello")
				if _, readErr := io.ReadFull(c, echo); errors.Join(err, readErr) != nil || string(echo) != "hello" {
					t.Errorf("through the tunnel came %q, %v, %v", echo, err, readErr)
				}
				_ = c.Close()
			}
			// What egress forbids is forbidden here as well.
			for _, addr := range []string{"10.0.0.1:443", "127.0.0.1:8081", "inside.test:443", "[::1]:80"} {
				if _, err := p.Dial(t.Context(), "tcp", addr); classOf(err) != upstream.ErrorEgress {
					t.Errorf("%s: %v", addr, err)
				}
			}
			credentials := "Basic " + base64.StdEncoding.EncodeToString([]byte("keep:s3cret"))
			want := []string{"CONNECT api.test:443 " + credentials, "CONNECT unknown.test:443 " + credentials}
			if got := other.asked(); strings.Join(got, "\n") != strings.Join(want, "\n") {
				t.Errorf("the other proxy was asked\n%q, want\n%q", got, want)
			}
		})
	}
}

// RFC 9110 §9.3.6: fields that frame mean nothing in a success of CONNECT.
func TestAFramedAnswerToConnectOpensATunnel(t *testing.T) {
	t.Parallel()
	for _, field := range []string{"Content-Length: 3", "Content-Length: 0", "Transfer-Encoding: chunked"} {
		other := newOtherProxy(t, nil, "HTTP/1.1 200 OK\r\n"+field+"\r\n\r\n")
		e := newEgress(config.Egress{})
		e.resolver = nameserver(t, func(string, int) []string { return []string{"198.51.100.7"} })
		p, err := newUpstreamProxy(e, config.UpstreamProxy{URL: "http://" + other.addr}, config.Sources{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		c, err := p.Dial(t.Context(), "tcp", "api.test:443")
		if err != nil {
			t.Errorf("%s: %v", field, err)
			continue
		}
		echo := make([]byte, 5)
		_, err = io.WriteString(c, "hello")
		if _, readErr := io.ReadFull(c, echo); errors.Join(err, readErr) != nil || string(echo) != "hello" {
			t.Errorf("%s: through the tunnel came %q, %v, %v", field, echo, err, readErr)
		}
		_ = c.Close()
	}
}

func TestWhatTheOtherProxyRefusesIsNotSent(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ answer, says string }{
		"refused":               {"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n", "403"},
		"wants credentials":     {"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n", "407"},
		"answers nonsense":      {"SSH-2.0-OpenSSH_9.2\r\n", "malformed"},
		"has a head too long":   {"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", maxConnectHead) + "\r\n\r\n", "EOF"},
		"says more than it may": {tunnelled + "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "more than an answer"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			other := newOtherProxy(t, nil, c.answer)
			p, err := newUpstreamProxy(newEgress(config.Egress{}), config.UpstreamProxy{URL: "http://" + other.addr}, config.Sources{}, nil)
			if err != nil {
				t.Fatal(err)
			}
			conn, err := p.Dial(t.Context(), "tcp", "192.0.2.1:443")
			if conn != nil || classOf(err) != upstream.ErrorProxy || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, %v; want %s", conn, err, c.says)
			}
		})
	}
}

// In a blind tunnel the upstream may speak first, and what it says comes with the other proxy's
// answer, or behind it.
func TestAnUpstreamMaySpeakFirstInABlindTunnel(t *testing.T) {
	t.Parallel()
	const greeting = "220 mail.test\r\n"
	for name, answer := range map[string]string{"with the answer": tunnelled + greeting, "behind it": tunnelled} {
		other := newOtherProxy(t, nil, answer)
		p, err := newUpstreamProxy(newEgress(config.Egress{}), config.UpstreamProxy{URL: "http://" + other.addr}, config.Sources{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		c, err := p.DialBlind(t.Context(), "tcp", "192.0.2.1:25")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if name == "behind it" {
			_, _ = io.WriteString(c, greeting)
		}
		_, _ = io.WriteString(c, "QUIT\r\n")
		half, ok := c.(interface{ CloseWrite() error })
		if !ok {
			t.Fatalf("%s: its directions don't end one by one", name)
		}
		_ = half.CloseWrite()
		if said, err := io.ReadAll(c); string(said) != greeting+"QUIT\r\n" || err != nil {
			t.Errorf("%s: %q, %v", name, said, err)
		}
		_ = c.Close()
	}
	p, err := newUpstreamProxy(newEgress(config.Egress{Deny: []string{"192.0.2.0/24"}}), config.UpstreamProxy{URL: "http://127.0.0.1:1"}, config.Sources{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if c, err := p.DialBlind(t.Context(), "tcp", "192.0.2.1:25"); c != nil || classOf(err) != upstream.ErrorEgress {
		t.Errorf("what egress forbids: %v, %v", c, err)
	}
}

func TestNoProxyIsConnectedToDirectly(t *testing.T) {
	t.Parallel()
	other := newOtherProxy(t, nil, tunnelled)
	port, connected := listener(t, "127.0.0.1:0")
	e := newEgress(config.Egress{})
	p, err := newUpstreamProxy(e, config.UpstreamProxy{URL: "http://" + other.addr, NoProxy: []string{"127.0.0.0/8", "*.intern.test", "one.test:8443"}}, config.Sources{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	c, err := p.Dial(t.Context(), "tcp", "127.0.0.1:"+port)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, c) // Until the listener has counted and closed it.
	_ = c.Close()
	if connected.Load() != 1 || len(other.asked()) != 0 {
		t.Errorf("%d direct connections, the other proxy was asked %v", connected.Load(), other.asked())
	}
	for addr, direct := range map[string]bool{"a.intern.test:443": true, "intern.test:443": false, "one.test:8443": true, "one.test:443": false, "128.0.0.1:1": false} {
		host, port, _ := net.SplitHostPort(addr)
		if got := p.goesDirect(host, port); got != direct {
			t.Errorf("%s goes directly: %t", addr, got)
		}
	}
	// What goes directly is judged as without another proxy.
	e.protect(net.TCPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:" + port)))
	if _, err := p.Dial(t.Context(), "tcp", "127.0.0.1:"+port); classOf(err) != upstream.ErrorEgress {
		t.Errorf("our own listener was dialled: %v", err)
	}
}

// What the operator named goes the way that everything goes, whatever egress says to scripts.
func TestWhatTheOperatorNamesGoesThroughTheOtherProxy(t *testing.T) {
	t.Parallel()
	other := newOtherProxy(t, nil, tunnelled)
	port, connected := listener(t, "127.0.0.1:0")
	p, err := newUpstreamProxy(newEgress(config.Egress{Deny: []string{"hooks.test", "10.0.0.0/8"}}),
		config.UpstreamProxy{URL: "http://" + other.addr, NoProxy: []string{"127.0.0.2"}}, config.Sources{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, addr := range []string{"hooks.test:443", "10.0.0.1:443"} {
		c, err := p.DialNamed(t.Context(), "tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		_ = c.Close()
	}
	if got := other.asked(); len(got) != 2 || got[0] != "CONNECT hooks.test:443 " {
		t.Errorf("the other proxy was asked %q", got)
	}
	c, err := p.DialNamed(t.Context(), "tcp", "127.0.0.1:"+port)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, c) // Until the listener has counted and closed it.
	_ = c.Close()
	if connected.Load() != 1 || len(other.asked()) != 2 {
		t.Errorf("%d connections on this machine, the other proxy was asked %v", connected.Load(), other.asked())
	}
}

// A proxy that goes out through itself never ends.
func TestTheOtherProxyIsNotOurselves(t *testing.T) {
	t.Parallel()
	port, connected := listener(t, "127.0.0.1:0")
	e := newEgress(config.Egress{})
	e.protect(net.TCPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:" + port)))
	for _, host := range []string{"127.0.0.1", "localhost", "0.0.0.0", "[::ffff:127.0.0.1]"} {
		p, err := newUpstreamProxy(e, config.UpstreamProxy{URL: "http://" + host + ":" + port}, config.Sources{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		c, err := p.Dial(t.Context(), "tcp", "192.0.2.1:443")
		if c != nil || classOf(err) != upstream.ErrorProxy || host != "localhost" && !strings.Contains(err.Error(), "keep-proxy itself") {
			t.Errorf("%s: %v, %v", host, c, err)
		}
	}
	if n := connected.Load(); n != 0 {
		t.Errorf("%d connections", n)
	}
}

func TestAnotherProxyThatProvesNothingIsToldNothing(t *testing.T) {
	t.Parallel()
	ca, _ := authority(t)
	_, strangers := authority(t)
	other := newOtherProxy(t, ca, tunnelled)
	p, err := newUpstreamProxy(newEgress(config.Egress{}), config.UpstreamProxy{URL: "https://" + other.addr, User: "keep", Password: secretOf(t, "${env:PASSWORD}")},
		config.Sources{LookupEnv: func(string) (string, bool) { return "s3cret", true }}, &upstream.Trust{Roots: strangers})
	if err != nil {
		t.Fatal(err)
	}
	if c, err := p.Dial(t.Context(), "tcp", "192.0.2.1:443"); c != nil || classOf(err) != upstream.ErrorCertificate {
		t.Errorf("%v, %v", c, err)
	}
	if got := other.asked(); len(got) != 0 {
		t.Errorf("it was asked %q", got)
	}
}

// A name that only the other proxy can look up is still one that proxy.egress.deny may list.
func TestDeniedNamesThatOnlyTheOtherProxyKnows(t *testing.T) {
	t.Parallel()
	other := newOtherProxy(t, nil, tunnelled)
	e := newEgress(config.Egress{Deny: []string{"inside.test", "*.closed.test"}})
	e.resolver = nameserver(t, func(string, int) []string { return nil })
	p, err := newUpstreamProxy(e, config.UpstreamProxy{URL: "http://" + other.addr}, config.Sources{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"inside.test", "INSIDE.test", "a.closed.test"} {
		if c, err := p.Dial(t.Context(), "tcp", name+":443"); c != nil || classOf(err) != upstream.ErrorEgress {
			t.Errorf("%s: %v, %v", name, c, err)
		}
	}
	if got := other.asked(); len(got) != 0 {
		t.Errorf("the other proxy was asked %q", got)
	}
	c, err := p.Dial(t.Context(), "tcp", "closed.test:443")
	if err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
}

func TestAnotherProxyThatSaysNothingIsLeft(t *testing.T) {
	t.Parallel()
	other := newOtherProxy(t, nil, "")
	p, err := newUpstreamProxy(newEgress(config.Egress{}), config.UpstreamProxy{URL: "http://" + other.addr}, config.Sources{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := p.Dial(ctx, "tcp", "192.0.2.1:443")
		ended <- err
	}()
	for len(other.asked()) == 0 {
		runtime.Gosched()
	}
	cancel()
	select {
	case err := <-ended:
		if classOf(err) != upstream.ErrorProxy {
			t.Errorf("got %v", err)
		}
	case <-time.After(2 * time.Minute):
		t.Error("it is waited for although nobody waits any more")
	}
}
