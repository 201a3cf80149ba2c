package proxy

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"keep-proxy/internal/verdict"
)

// wantBroken wants the connection's end not to be one in good order.
func wantBroken(t *testing.T, whose string, in io.Reader) {
	t.Helper()
	var late net.Error
	if text, err := io.ReadAll(in); err == nil || errors.As(err, &late) && late.Timeout() {
		t.Errorf("the end for %s: %v, behind %q; want a broken connection", whose, err, text)
	}
}

// reset breaks a connection off. What lies below TLS is reset without a closing alert.
func reset(c net.Conn) {
	if session, ok := c.(*tls.Conn); ok {
		c = session.NetConn()
	}
	_ = c.(*net.TCPConn).SetLinger(0)
	_ = c.Close()
}

// For a client of HTTP/1.0 the end of its connection is the end of an answer that has no length: in
// good order it would make the whole of a part.
func TestACutAnswerIsBrokenForAClientOfHTTP10(t *testing.T) {
	t.Parallel()
	for name, cut := range map[string]func(w *world, r *run){
		"by its upstream": nil,
		"by a stop": func(w *world, r *run) {
			if _, err := w.ledger.EndRun(t.Context(), r.id, verdict.Transient, "test", "test"); err != nil {
				t.Error(err)
			}
		},
	} {
		for _, secure := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", with TLS ", secure), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
					_, _ = io.WriteString(rw, "some")
					_ = http.NewResponseController(rw).Flush()
					if cut == nil {
						panic(http.ErrAbortHandler)
					}
					<-r.Context().Done()
				})
				r := w.open("a")
				c, before := net.Conn(nil), w.upstream.URL
				if secure {
					below, _, _ := r.tunnelTo(w.authority)
					c, before = tls.Client(below, &tls.Config{RootCAs: w.roots, ServerName: "127.0.0.1", MinVersion: tls.VersionTLS12}), ""
				} else {
					var err error
					if c, err = net.Dial("tcp", w.address); err != nil {
						t.Fatal(err)
					}
				}
				defer func() { _ = c.Close() }()
				_ = c.SetDeadline(time.Now().Add(waitLimit))
				_, _ = fmt.Fprintf(c, "GET %s/read HTTP/1.0\r\nHost: %s\r\n%s\r\n", before, w.authority, w.basic(r.token))
				in := bufio.NewReader(c)
				if cut != nil {
					resp, err := http.ReadResponse(in, nil)
					if err != nil {
						t.Fatal(err)
					}
					if _, err := io.ReadFull(resp.Body, make([]byte, len("some"))); err != nil {
						t.Fatal(err)
					}
					cut(w, r)
				}
				wantBroken(t, "the client", in)
			})
		}
	}
}

// carried is a client's connection and its upstream's, joined by the proxy.
type carried struct {
	*world
	run              *run
	client, upstream net.Conn
	in               *bufio.Reader
}

// listening is an upstream that gives each connection to who waits for it.
func listening(t *testing.T) (target string, accepted <-chan net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	conns := make(chan net.Conn, 1)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			conns <- c
		}
	}()
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().String(), conns
}

// carriedWays are how bytes are carried that nobody looks at.
var carriedWays = map[string]func(t *testing.T) carried{
	"a blind tunnel": func(t *testing.T) carried {
		t.Helper()
		target, accepted := listening(t)
		w := newWorld(t, created, func(c *Config) { c.Passthrough = []string{"127.0.0.1"} })
		r := w.open("a")
		c, in, _ := r.tunnelTo(target)
		return carried{w, r, c, <-accepted, in}
	},
	"changed protocols": func(t *testing.T) carried {
		t.Helper()
		hijacked := make(chan net.Conn, 1)
		plain := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
			c, _, err := http.NewResponseController(rw).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = io.WriteString(c, changes)
			hijacked <- c
		}))
		t.Cleanup(plain.Close)
		w := newWorld(t, created)
		authority := strings.TrimPrefix(plain.URL, "http://")
		w.use(strings.Replace(testRules, `["HOST"]`, `["`+authority+`"]`, 1) + liveRules)
		r := w.open("a")
		c, in, _ := r.tunnelTo(authority)
		_, _ = fmt.Fprintf(c, "GET /live HTTP/1.1\r\nHost: %s\r\n%s\r\n", authority, ask)
		if resp, err := http.ReadResponse(in, nil); err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
			t.Fatalf("answered %v, %v", resp, err)
		}
		return carried{w, r, c, <-hijacked, in}
	},
}

// What is carried is not known to have an end of its own: how one side's connection ends is how
// the other's does.
func TestABrokenEndIsNoneInGoodOrder(t *testing.T) {
	t.Parallel()
	for way, begin := range carriedWays {
		for name, tc := range map[string]struct {
			end            func(*testing.T, carried)
			client, server bool // whose connection is broken by it
		}{
			"the upstream resets": {func(_ *testing.T, c carried) { reset(c.upstream) }, true, false},
			"the client resets":   {func(_ *testing.T, c carried) { reset(c.client) }, false, true},
			"a stop": {func(t *testing.T, c carried) {
				t.Helper()
				if _, err := c.ledger.EndRun(t.Context(), c.run.id, verdict.Transient, "test", "test"); err != nil {
					t.Error(err)
				}
			}, true, true},
			"the proxy's end": {func(_ *testing.T, c carried) { c.proxy.Close() }, true, true},
		} {
			t.Run(way+", "+name, func(t *testing.T) {
				t.Parallel()
				c := begin(t)
				defer func() { _, _ = c.client.Close(), c.upstream.Close() }()
				for _, one := range []net.Conn{c.client, c.upstream} {
					_ = one.SetDeadline(time.Now().Add(waitLimit))
				}
				_, _ = io.WriteString(c.client, "ask")
				if _, err := io.ReadFull(c.upstream, make([]byte, len("ask"))); err != nil {
					t.Fatal(err)
				}
				_, _ = io.WriteString(c.upstream, "some")
				if _, err := io.ReadFull(c.in, make([]byte, len("some"))); err != nil {
					t.Fatal(err)
				}
				tc.end(t, c)
				if tc.client {
					wantBroken(t, "the client", c.in)
				}
				if tc.server {
					wantBroken(t, "the upstream", c.upstream)
				}
			})
		}
	}
}

// An end in good order stays one, however much is on its way when it comes.
func TestAnEndInGoodOrderStaysOne(t *testing.T) {
	t.Parallel()
	for way, begin := range carriedWays {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			c := begin(t)
			defer func() { _, _ = c.client.Close(), c.upstream.Close() }()
			for _, one := range []net.Conn{c.client, c.upstream} {
				_ = one.SetDeadline(time.Now().Add(waitLimit))
			}
			closeWrite(c.client)
			if text, err := io.ReadAll(c.upstream); len(text) > 0 || err != nil {
				t.Fatalf("the upstream read %q, %v", text, err)
			}
			go func() {
				_, _ = io.WriteString(c.upstream, strings.Repeat("x", 4<<20))
				_ = c.upstream.Close()
			}()
			if text, err := io.ReadAll(c.in); len(text) != 4<<20 || err != nil {
				t.Errorf("the client read %d bytes, %v", len(text), err)
			}
		})
	}
}
