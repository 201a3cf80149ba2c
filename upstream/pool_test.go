package upstream

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"keep-proxy/internal/clock"
)

var whole = Evidence{Head: true, Status: 200, BodyComplete: true}

func reused(ev Evidence) Evidence {
	ev.Reused = true
	return ev
}

// answeringAll answers every request of a connection.
func answeringAll(answer string) func(*peer) {
	return func(p *peer) {
		for {
			if _, _, read := p.request(); !read {
				return
			}
			p.say(answer)
		}
	}
}

func TestConnectionsAreUsedAgainWhileFresh(t *testing.T) {
	t.Parallel()
	for _, scheme := range []string{"http", "https"} {
		t.Run(scheme, func(t *testing.T) {
			t.Parallel()
			fake := clock.NewFake(time.Now())
			cfg := serverTLS("http/1.1")
			if scheme == "http" {
				cfg = nil
			}
			u := serve(t, cfg, answeringAll(ok))
			s := sender(t, Config{Clock: fake})
			r := post(u.url(scheme, "/"), "x")
			next := func(want Evidence, conns int64) {
				t.Helper()
				send(t, s, r).check(t, want)
				if n := u.conns.Load(); n != conns {
					t.Errorf("%d connections, want %d", n, conns)
				}
			}
			next(whole, 1)
			fake.Advance(2*time.Second - 1)
			next(reused(whole), 1)
			fake.Advance(2 * time.Second)
			next(whole, 2)
			fake.Sleep(2 * time.Second)
			next(whole, 3)
			fake.JumpWall(time.Hour)
			next(reused(whole), 3)
			s.CloseIdle()
			next(whole, 4)
			s.Close()
			next(whole, 5)
			next(whole, 6)
		})
	}
}

func TestConnectionsThatMustNotBeUsedAgain(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 3*bufferSize)
	for name, tc := range map[string]struct {
		answer string
		cfg    Config
		closes bool
	}{
		"the upstream asks to close":           {"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok", Config{}, false},
		"HTTP/1.0":                             {"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", Config{}, false},
		"a length beside chunked":              {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", Config{}, false},
		"the upstream closed it":               {ok, Config{}, true},
		"stray bytes after the answer":         {ok + "HTTP/1.1 200 OK\r\n\r\n", Config{}, false},
		"stray bytes after a long answer":      {"HTTP/1.1 200 OK\r\nContent-Length: 24576\r\n\r\n" + long + "x", Config{}, false},
		"a connection that can't be looked at": {ok, Config{Dial: opaqueDial}, false},
		"never by configuration":               {ok, Config{FreshFor: -1}, false},
	} {
		for _, scheme := range []string{"http", "https"} {
			t.Run(name+", "+scheme, func(t *testing.T) {
				t.Parallel()
				var answered atomic.Int64
				cfg := serverTLS("http/1.1")
				if scheme == "http" {
					cfg = nil
				}
				u := serve(t, cfg, func(p *peer) {
					if _, _, read := p.request(); !read {
						return
					}
					p.say(tc.answer)
					answered.Add(1)
					if !tc.closes {
						p.wait()
					}
				})
				c := tc.cfg
				if c.FreshFor == 0 {
					c.FreshFor = time.Hour // Age must not be what takes it out.
				}
				s := sender(t, c)
				for n := range int64(2) {
					g := send(t, s, post(u.url(scheme, "/"), "x"))
					g.check(t, whole)
					if u.conns.Load() != n+1 {
						t.Errorf("send %d: %d connections", n+1, u.conns.Load())
					}
					awaitNoQuiet(t, s)
				}
				if n := u.sends.Load(); n != 2 {
					t.Errorf("the upstream read %d requests, want 2", n)
				}
			})
		}
	}
}

// awaitNoQuiet waits until no idle connection of s is quiet: what the upstream
// wrote or closed is on its way to us.
func awaitNoQuiet(t *testing.T, s *Sender) {
	t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for anyQuiet(s) {
		if time.Now().After(deadline) {
			t.Fatal("the connection stays quiet")
		}
		runtime.Gosched()
	}
}

func anyQuiet(s *Sender) bool {
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	for _, conns := range s.pool.idle {
		for _, c := range conns {
			if c.quiet() {
				return true
			}
		}
	}
	return false
}

// opaqueDial hides the socket.
func opaqueDial(_ context.Context, network, addr string) (net.Conn, error) {
	c, err := net.Dial(network, addr)
	return struct{ net.Conn }{c}, err
}

// What a 204 announces can come when the next request is on its way, and would be the start of
// its answer.
func TestWhatFollowsAnAnswerWithoutContentIsNoAnswer(t *testing.T) {
	t.Parallel()
	for name, field := range map[string]string{"a length": "Content-Length: 40", "chunks": "Transfer-Encoding: chunked"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := serve(t, nil, func(p *peer) {
				if _, _, read := p.request(); !read {
					return
				}
				p.say("HTTP/1.1 204 No Content\r\n" + field + "\r\n\r\n")
				if _, _, read := p.request(); read {
					p.say(ok)
				}
				p.wait()
			})
			s := sender(t, Config{FreshFor: time.Hour})
			for range 2 {
				send(t, s, post(u.url("http", "/"), "x")).check(t, Evidence{Head: true, Status: http.StatusNoContent, BodyComplete: true})
			}
		})
	}
}

func TestIdleConnectionsAreClosedWhenNoLongerFresh(t *testing.T) {
	t.Parallel()
	closed := make(chan struct{})
	u := serve(t, nil, func(p *peer) {
		p.request()
		p.say(ok)
		p.wait()
		close(closed)
	})
	s := sender(t, Config{FreshFor: time.Millisecond})
	send(t, s, post(u.url("http", "/"), "x")).check(t, whole)
	<-closed
}

func TestAnEarlyTimerDoesNotCloseAFreshConnection(t *testing.T) {
	t.Parallel()
	fake := clock.NewFake(time.Now())
	u := serve(t, nil, answeringAll(ok))
	s := sender(t, Config{Clock: fake})
	r := post(u.url("http", "/"), "x")
	send(t, s, r).check(t, whole)
	s.pool.sweep()
	send(t, s, r).check(t, reused(whole))
	fake.Advance(2 * time.Second)
	s.pool.sweep()
	if len(s.pool.idle) != 0 {
		t.Error("a connection that is no longer fresh was kept")
	}
}

func TestOneUpstreamKeepsABoundedNumberOfIdleConnections(t *testing.T) {
	t.Parallel()
	p := newPool(clock.NewFake(time.Now()).Boot, time.Hour)
	for range maxIdle + 1 {
		ours, theirs := net.Pipe()
		defer theirs.Close()
		raw := newRawConn(ours)
		p.put(&conn{key: endpoint{addr: "k"}, raw: raw, plain: &plainConn{Conn: raw}}, p.now())
	}
	if n := len(p.idle[endpoint{addr: "k"}]); n != maxIdle {
		t.Errorf("%d idle connections, want %d", n, maxIdle)
	}
	p.drain(true)
}

// halted is content whose second half comes once it is closed.
type halted int64

func (h halted) Len() int64 { return int64(h) }

func (h halted) Open() (io.ReadCloser, error) {
	release := make(chan struct{})
	content, err := held{zeros(h), release}.Open()
	return &halting{content, release}, err
}

type halting struct {
	io.ReadCloser
	release chan struct{}
}

func (h *halting) Close() error {
	close(h.release)
	return h.ReadCloser.Close()
}

// An upstream may answer and read on. What it reads next must not be taken for the rest of
// a request that was cut off.
func TestAConnectionThatARequestWasCutOffOnIsNotUsedAgain(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]*tls.Config{"http": nil, "https": serverTLS("http/1.1")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var whole atomic.Int64
			u := serve(t, cfg, func(p *peer) {
				r, err := http.ReadRequest(p.br)
				if err != nil {
					return
				}
				if r.ContentLength > inlineBody {
					p.say("HTTP/1.1 413 X\r\nContent-Length: 2\r\n\r\nno")
					p.wait()
					return
				}
				if content, err := io.ReadAll(r.Body); err == nil && string(content) == "x" {
					whole.Add(1)
				}
				p.say(ok)
				p.wait()
			})
			s := sender(t, Config{ResponseTimeout: 2 * time.Minute})
			large := post(u.url(name, "/"), "")
			large.Body = halted(4 * inlineBody)
			send(t, s, large).check(t, Evidence{Head: true, Status: http.StatusRequestEntityTooLarge, BodyComplete: true})
			send(t, s, post(u.url(name, "/"), "x")).check(t, Evidence{Head: true, Status: http.StatusOK, BodyComplete: true, RequestComplete: true})
			if conns, read := u.conns.Load(), whole.Load(); conns != 2 || read != 1 {
				t.Errorf("%d connections, on which %d whole requests were read after the one that was cut off; want 2 and 1", conns, read)
			}
		})
	}
}
