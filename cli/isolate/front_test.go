package isolate

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"

	"keep-proxy/cli/netns"
)

// world is a front whose one port is a loopback listener's.
type world struct {
	front *Front
	port  string
}

func newWorld(t *testing.T, transparent bool) *world {
	t.Helper()
	listen := func() net.Listener {
		l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	l, own := listen(), listen()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	w := &world{front: NewFront(), port: port}
	at := netip.MustParseAddrPort(l.Addr().String()).Port()
	w.front.User, w.front.Reach = url.UserPassword("run", "secret"), NewReach(nil, nil, nil)
	w.front.Names = NewNames(func(context.Context, string) (bool, error) { return true, nil })
	if transparent {
		w.front.Transparent = []uint16{at}
	}
	packets, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.front.Serve(ctx, &netns.Network{TCP: []net.Listener{own, l}, Packets: packets})
	}()
	t.Cleanup(func() { cancel(); <-ended; _ = write.Close() })
	return w
}

// dial connects as a command does that knows no proxy.
func (w *world) dial(t *testing.T) net.Conn {
	t.Helper()
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", "127.0.0.1:"+w.port)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// asked is the CONNECT request that the proxy gets, and what follows it.
func (w *world) asked(t *testing.T) (net.Conn, *http.Request, *bufio.Reader) {
	t.Helper()
	c, err := w.front.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	r := bufio.NewReader(c)
	req, err := http.ReadRequest(r)
	if err != nil {
		t.Fatal(err)
	}
	return c, req, r
}

func TestAClientThatKnowsNoProxyGetsATunnel(t *testing.T) {
	w := newWorld(t, true)
	c := w.dial(t)
	fmt.Fprintf(c, "POST /pay HTTP/1.1\r\nHost: api.test:%s\r\nContent-Length: 2\r\n\r\nhi", w.port)
	proxy, req, rest := w.asked(t)
	if user, ok := strings.CutPrefix(req.Header.Get("Proxy-Authorization"), "Basic "); req.Method != http.MethodConnect || req.Host != "api.test:"+w.port || !ok || user == "" {
		t.Errorf("%s %s %v, want a CONNECT with the run's credentials", req.Method, req.Host, req.Header)
	}
	fmt.Fprint(proxy, "HTTP/1.1 200")
	fmt.Fprint(proxy, " OK\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n")
	inner, err := http.ReadRequest(rest)
	if err != nil || inner.URL.Path != "/pay" {
		t.Fatalf("%v, %v; want what the client said behind the CONNECT", inner, err)
	}
	if body, _ := io.ReadAll(inner.Body); string(body) != "hi" {
		t.Errorf("body %q", body)
	}
	answer, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil || answer.StatusCode != http.StatusCreated {
		t.Errorf("%v, %v; want the answer alone, without that to CONNECT", answer, err)
	}
}

func TestTheServerNameIsWhomTheClientWants(t *testing.T) {
	w := newWorld(t, true)
	c := w.dial(t)
	go func() {
		_ = tls.Client(c, &tls.Config{ServerName: "api.test", MinVersion: tls.VersionTLS12}).HandshakeContext(t.Context())
	}()
	_, req, rest := w.asked(t)
	if first, err := rest.Peek(1); req.Host != "api.test:"+w.port || err != nil || first[0] != 22 {
		t.Errorf("%s, then %v: want the name of the hello, and the hello", req.Host, first)
	}
}

func TestARefusedTunnelIsTold(t *testing.T) {
	w := newWorld(t, true)
	c := w.dial(t)
	fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: api.test\r\n\r\n")
	proxy, _, _ := w.asked(t)
	fmt.Fprint(proxy, "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n")
	if answer, err := http.ReadResponse(bufio.NewReader(c), nil); err != nil || answer.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("%v, %v; want the refusal", answer, err)
	}
	c = w.dial(t)
	go func() {
		_ = tls.Client(c, &tls.Config{ServerName: "api.test", MinVersion: tls.VersionTLS12}).HandshakeContext(t.Context())
	}()
	proxy, _, _ = w.asked(t)
	if _, err := fmt.Fprint(proxy, "HTTP/1.1 503 Service Unavailable\r\n\r\n"); err == nil {
		t.Error("a client of TLS was told in clear")
	}
}

func TestOtherPortsLeadNowhere(t *testing.T) {
	w := newWorld(t, false)
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", "127.0.0.1:"+w.port)
	if err == nil { // The reset may come before.
		_, err = c.Read(make([]byte, 1))
	}
	if !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("%v, want a reset", err)
	}
	if got := w.front.Refused.List(); len(got) != 1 || got[0].Target != "127.0.0.1:"+w.port || got[0].Count != 1 {
		t.Errorf("%v, want the one refusal", got)
	}
}

func TestANameIsOneTargetByAllItsAddresses(t *testing.T) {
	w := newWorld(t, true)
	addrs, _, err := w.front.Names.addresses(t.Context(), "api.test")
	if err != nil {
		t.Fatal(err)
	}
	for _, addr := range addrs {
		if got := w.front.called(netip.AddrPortFrom(addr, 9443)); got != "api.test:9443" {
			t.Errorf("%v is called %q", addr, got)
		}
	}
	if got := w.front.called(netip.MustParseAddrPort("[2001:db8::1]:22")); got != "[2001:db8::1]:22" {
		t.Errorf("a real address is called %q", got)
	}
}

func TestNobodyIsHeardAfterTheRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, said := range []string{"GET / HTTP/1.1\r\n", "\x16\x03", ""} {
			ctx, cancel := context.WithCancel(t.Context())
			client, c := net.Pipe()
			heard := make(chan struct{})
			go func() { defer close(heard); hear(ctx, c) }()
			fmt.Fprint(client, said)
			synctest.Wait()
			cancel()
			<-heard
		}
	})
}

func TestWhoIsMeant(t *testing.T) {
	t.Parallel()
	const address = "10.1.2.3"
	for _, c := range []struct{ said, found, want string }{
		{"api.test", "", "api.test"},
		{"API.test", "api.test", "API.test"},
		{"api", "api.corp.test", "api"},       // the resolver added a search domain
		{"evil.test", "api.test", "api.test"}, // the proxy answers 421 in that tunnel
		{"", "api.test", "api.test"},
		{"", "", address},
	} {
		if got := meant(c.said, c.found, netip.MustParseAddr(address)); got != c.want {
			t.Errorf("said %q, found %q: %q, want %q", c.said, c.found, got, c.want)
		}
	}
}

func TestOnlyAHostGoesIntoTheHead(t *testing.T) {
	t.Parallel()
	for authority, want := range map[string]string{
		"api.test": "api.test", "api.test:8443": "api.test", "[2001:db8::1]:443": "2001:db8::1", "[2001:db8::1]": "2001:db8::1",
		"": "", "a b": "", "a\r\nX: y": "", "user@api.test": "", "a/b": "",
	} {
		if got := hostOnly(authority); got != want {
			t.Errorf("%q: %q, want %q", authority, got, want)
		}
	}
}

// scarce finds no descriptor at first.
type scarce struct {
	net.Listener
	short int
	conns []net.Conn
}

func (s *scarce) Accept() (net.Conn, error) {
	if s.short--; s.short >= 0 {
		return nil, &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
	}
	if len(s.conns) == 0 {
		return nil, net.ErrClosed
	}
	c := s.conns[0]
	s.conns = s.conns[1:]
	return c, nil
}

func TestAcceptingGoesOnWhenDescriptorsWereShort(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var open sync.WaitGroup
		var taken atomic.Int32
		each(&open, &scarce{short: 3, conns: []net.Conn{nil, nil}}, func(net.Conn) { taken.Add(1) })
		open.Wait()
		if taken.Load() != 2 {
			t.Errorf("%d connections were taken, want 2", taken.Load())
		}
	})
}
