package upstream

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
)

// changing asks for a change to some protocols.
func changing(t *testing.T, u *url.URL, protocols ...string) *http.Request {
	t.Helper()
	r := get(t, u)
	r.Header = http.Header{"Connection": {"Upgrade"}, "Upgrade": protocols, "X-Mine": {"1"}}
	return r
}

// alert ends TLS, if it is spoken, as it should end.
func (p *peer) alert() {
	if session, ok := p.Conn.(*countingConn).Conn.(*tls.Conn); ok {
		_ = session.CloseWrite()
	}
}

const switches = "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: WebSocket\r\n\r\n"

func TestAChangeOfProtocolsIsAskedForOverHTTP1(t *testing.T) {
	t.Parallel()
	for scheme, cfg := range map[string]*tls.Config{"http": nil, "https": serverTLS("h2", "http/1.1")} {
		t.Run(scheme, func(t *testing.T) {
			t.Parallel()
			heads, ends := make(chan *http.Request, 4), make(chan error, 4)
			up := serve(t, cfg, func(p *peer) {
				r, _, ok := p.request()
				if !ok {
					return
				}
				heads <- r
				p.say(switches + "first\n")
				_, err := io.Copy(p.Conn, p.br)
				p.alert()
				ends <- err
			})
			p := passer(t, Config{})
			for range 2 {
				resp, err := p.RoundTrip(changing(t, up.url(scheme, "/live"), "websocket", "chat/2"))
				if err != nil {
					t.Fatal(err)
				}
				r := <-heads
				if r.Proto != "HTTP/1.1" || r.Method != http.MethodGet || r.Header.Get("X-Mine") != "1" ||
					strings.Join(r.Header["Connection"], "|") != "Upgrade" || strings.Join(r.Header["Upgrade"], "|") != "websocket, chat/2" {
					t.Errorf("the upstream got %s %s %v", r.Method, r.Proto, r.Header)
				}
				conn, ok := resp.Body.(*Switched)
				if resp.StatusCode != http.StatusSwitchingProtocols || !ok {
					t.Fatalf("answered %d with %T", resp.StatusCode, resp.Body)
				}
				in := bufio.NewReader(conn)
				for _, line := range []string{"first\n", "second\n"} {
					if got, err := in.ReadString('\n'); got != line || err != nil {
						t.Fatalf("read %q, %v", got, err)
					}
					_, _ = io.WriteString(conn, "second\n")
				}
				if err := conn.CloseWrite(); err != nil {
					t.Error(err)
				}
				if err := <-ends; err != nil {
					t.Errorf("the upstream's reading ended with %v", err)
				}
				if rest, err := io.ReadAll(in); string(rest) != "second\n" || err != nil {
					t.Errorf("at the end came %q, %v", rest, err)
				}
				_ = conn.Close()
			}
			if n := up.conns.Load(); n != 2 {
				t.Errorf("two changes took %d connections", n)
			}
		})
	}
}

// A connection on which a change was asked for is nobody else's, whatever was answered.
func TestNoOtherRequestUsesTheConnectionOfAChange(t *testing.T) {
	t.Parallel()
	up := serve(t, nil, func(p *peer) {
		for {
			if _, _, more := p.request(); !more {
				return
			}
			p.say(ok)
		}
	})
	p := passer(t, Config{})
	for range 2 {
		if status, content, _, err := readAll(p, changing(t, up.url("http", "/"), "websocket")); status != 200 || content != "ok" || err != nil {
			t.Errorf("an ordinary answer: %d %q, %v", status, content, err)
		}
	}
	for range 2 {
		if _, _, _, err := readAll(p, get(t, up.url("http", "/"))); err != nil {
			t.Error(err)
		}
	}
	if n := up.conns.Load(); n != 3 {
		t.Errorf("%d connections, want one for each change and one for the reads", n)
	}
}

func TestChangesThatCannotBeAskedForSendNothing(t *testing.T) {
	t.Parallel()
	other := serve(t, serverTLS("spdy/3"), func(p *peer) { p.request() })
	plain := serve(t, nil, func(p *peer) { p.request() })
	for name, c := range map[string]struct {
		cfg    Config
		r      *http.Request
		change func(*http.Request)
		class  ErrorClass
	}{
		"an upstream without HTTP/1.1": {Config{}, changing(t, other.url("https", "/"), "websocket"), nil, ErrorTLS},
		"a forbidden address": {Config{Egress: func(netip.AddrPort) error { return errors.New("private") }},
			changing(t, plain.url("http", "/"), "websocket"), nil, ErrorEgress},
		"content": {Config{}, changing(t, plain.url("http", "/"), "websocket"), func(r *http.Request) {
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader("x")), 1
		}, ErrorRequest},
		"another method":              {Config{}, changing(t, plain.url("http", "/"), "websocket"), func(r *http.Request) { r.Method = "POST" }, ErrorRequest},
		"a protocol that ends a line": {Config{}, changing(t, plain.url("http", "/"), "x\r\nA: b"), nil, ErrorRequest},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.change != nil {
				c.change(c.r)
			}
			_, err := passer(t, c.cfg).RoundTrip(c.r)
			own, ok := errors.AsType[*Error](err)
			if !ok || own.Class != c.class || !own.Class.Unsent() {
				t.Errorf("ended with %v", err)
			}
		})
	}
	t.Cleanup(func() {
		if n := other.sends.Load() + plain.sends.Load(); n != 0 {
			t.Errorf("%d requests arrived", n)
		}
	})
}

// What an end looks like tells whether something may be missing.
func TestEndsOfAConnectionThatChanged(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cfg     *tls.Config
		end     func(*peer)
		orderly bool
	}{
		"plain, ended":           {nil, func(*peer) {}, true},
		"plain, reset":           {nil, (*peer).reset, false},
		"TLS, with its alert":    {serverTLS("http/1.1"), func(*peer) {}, true},
		"TLS, without its alert": {serverTLS("http/1.1"), func(p *peer) { _ = p.Conn.(*countingConn).Conn.(*tls.Conn).NetConn().Close() }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scheme := map[bool]string{true: "http", false: "https"}[c.cfg == nil]
			up := serve(t, c.cfg, func(p *peer) {
				p.request()
				p.say(switches + "end")
				_, _ = p.br.ReadByte()
				c.end(p)
				if c.orderly {
					p.alert()
				}
			})
			resp, err := passer(t, Config{}).RoundTrip(changing(t, up.url(scheme, "/"), "websocket"))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = resp.Body.Close() }()
			_, _ = io.WriteString(resp.Body.(io.Writer), "x")
			text, err := io.ReadAll(resp.Body)
			if (err == nil) != c.orderly || c.orderly && string(text) != "end" {
				t.Errorf("read %q, %v", text, err)
			}
		})
	}
}

func TestAContextEndsAConnectionThatChanged(t *testing.T) {
	t.Parallel()
	up := serve(t, nil, func(p *peer) {
		p.request()
		p.say(switches)
		p.wait()
	})
	ctx, cancel := context.WithCancelCause(t.Context())
	resp, err := passer(t, Config{}).RoundTrip(changing(t, up.url("http", "/"), "websocket").WithContext(ctx))
	if err != nil {
		t.Fatal(err)
	}
	why := errors.New("cut")
	cancel(why)
	if _, err := resp.Body.Read(make([]byte, 1)); !errors.Is(err, why) {
		t.Errorf("reading ended with %v", err)
	}
	_ = resp.Body.Close()
}

// The connection of a request that asked to change protocols is never another's, whatever the answer
// to it was.
func TestAConnectionThatWasToChangeCarriesNothingElse(t *testing.T) {
	t.Parallel()
	for name, content := range map[string]string{"an answer without content": "", "an answer with content": "no"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("From", r.RemoteAddr)
				_, _ = io.WriteString(w, content)
			}))
			defer srv.Close()
			p := passer(t, Config{})
			var from []string
			for _, asked := range [][]string{{"websocket"}, nil, nil} {
				r := get(t, mustURL(t, srv.URL))
				if asked != nil {
					r.Header["Connection"], r.Header["Upgrade"] = []string{"Upgrade"}, asked
				}
				resp, err := p.RoundTrip(r)
				if err != nil {
					t.Fatal(err)
				}
				from = append(from, resp.Header.Get("From"))
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			}
			if from[0] == from[1] || from[1] != from[2] {
				t.Errorf("the requests came from %q", from)
			}
		})
	}
}
