package upstream

import (
	"context"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"keep-proxy/internal/clock"
	"keep-proxy/internal/verdict"
)

// quick looks at a fake clock often. ResponseTimeout starts at a moment that an
// upstream can't see, so tests over sockets leave it out of play.
func quick(c *clock.Fake) Config {
	return Config{Clock: c, LookEvery: time.Millisecond, ResponseTimeout: 24 * time.Hour}
}

func TestUpstreamThatBreaksOffLeavesTheOutcomeUncertain(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		handle func(*peer)
		size   int64
		class  ErrorClass
	}{
		"reset after the request":        {func(p *peer) { p.request(); p.reset() }, 1, ErrorReset},
		"reset inside the head":          {func(p *peer) { p.request(); p.say("HTTP/1.1 2"); p.reset() }, 1, ErrorReset},
		"closed after the request":       {func(p *peer) { p.request() }, 1, ErrorEOF},
		"reset in the middle of a body":  {func(p *peer) { _, _ = http.ReadRequest(p.br); p.reset() }, 64 << 20, ErrorReset},
		"closed in the middle of a body": {func(p *peer) { _, _ = http.ReadRequest(p.br) }, 64 << 20, ErrorReset},
	} {
		for _, scheme := range []string{"http", "https"} {
			t.Run(name+", "+scheme, func(t *testing.T) {
				t.Parallel()
				cfg := serverTLS("http/1.1")
				if scheme == "http" {
					cfg = nil
				}
				u := serve(t, cfg, tc.handle)
				r := post(u.url(scheme, "/"), "")
				r.Body = zeros(tc.size)
				g := send(t, sender(t, Config{}), r)
				want := Evidence{ErrorClass: tc.class}
				if c := g.ev.ErrorClass; c == ErrorEOF || c == ErrorReset {
					want.ErrorClass = c // a close with unread bytes is a reset, and either may be seen first
				}
				g.check(t, want)
				if v := Judge(g.ev, Facts{Method: "POST"}, verdict.Opinion{Kind: verdict.OpinionApplied}); v.Kind != Uncertain || v.Reason != ReasonNoHead {
					t.Errorf("verdict %+v", v)
				}
				if n := u.conns.Load(); n != 1 {
					t.Errorf("%d connections, want 1", n)
				}
			})
		}
	}
}

func TestDeadlinesEndADispatchThatWaits(t *testing.T) {
	t.Parallel()
	const total = time.Hour
	wait := func(then func()) func(*peer) {
		return func(p *peer) {
			if _, _, read := p.request(); read {
				then()
			}
			p.wait()
		}
	}
	for name, tc := range map[string]struct {
		handle func(*clock.Fake) func(*peer)
		size   int64
		want   Evidence
	}{
		"an upstream that never answers": {func(c *clock.Fake) func(*peer) {
			return wait(func() { c.Advance(total) })
		}, 1, Evidence{ErrorClass: ErrorTimeout}},
		"the machine sleeps while it waits": {func(c *clock.Fake) func(*peer) {
			return wait(func() { c.Sleep(total) })
		}, 1, Evidence{ErrorClass: ErrorTimeout}},
		"endless interim responses": {func(c *clock.Fake) func(*peer) {
			return func(p *peer) {
				p.request()
				p.say("HTTP/1.1 102 Processing\r\n\r\n")
				c.Advance(total)
				p.wait()
			}
		}, 1, Evidence{ErrorClass: ErrorTimeout}},
		"an upstream that does not read": {func(c *clock.Fake) func(*peer) {
			return func(p *peer) {
				_, _ = http.ReadRequest(p.br)
				c.Advance(total)
				p.hold()
			}
		}, 64 << 20, Evidence{ErrorClass: ErrorTimeout}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fake := clock.NewFake(time.Now())
			u := serve(t, nil, tc.handle(fake))
			r := post(u.url("http", "/"), "")
			r.Body, r.Total = zeros(tc.size), total
			g := send(t, sender(t, quick(fake)), r)
			g.check(t, tc.want)
		})
	}
}

func TestDeadlineEndsABodyThatStalls(t *testing.T) {
	t.Parallel()
	fake := clock.NewFake(time.Now())
	u := serve(t, nil, func(p *peer) {
		p.request()
		p.say("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nok")
		p.wait()
	})
	a := sender(t, quick(fake)).Send(t.Context(), post(u.url("http", "/"), "x"))
	fake.Sleep(DefaultTotal)
	content, err := io.ReadAll(a.Body)
	g := got{Answer: a, content: string(content), err: err, ev: a.Evidence()}
	g.check(t, Evidence{Head: true, Status: 200, ErrorClass: ErrorTimeout})
	if g.content != "ok" && g.content != "" {
		t.Errorf("content %q", g.content)
	}
}

func TestAHeadInTimeLiftsItsDeadline(t *testing.T) {
	t.Parallel()
	fake := clock.NewFake(time.Now())
	u := serve(t, nil, func(p *peer) {
		p.request()
		p.say("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n")
		p.wait()
	})
	cfg := quick(fake)
	cfg.ResponseTimeout = time.Minute
	a := sender(t, cfg).Send(context.Background(), post(u.url("http", "/"), "x"))
	defer a.Close()
	fake.Advance(2 * time.Minute)
	d := a.ex.(*dispatch)
	d.watch.look()
	if cause := d.watch.stop(); cause != "" {
		t.Errorf("ended by %q after its head was read", cause)
	}
}

func TestCancellationEndsADispatchThatWaits(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	u := serve(t, nil, func(p *peer) {
		p.request()
		cancel()
		p.wait()
	})
	a := sender(t, Config{}).Send(ctx, post(u.url("http", "/"), "x"))
	_, err := io.ReadAll(a.Body)
	got{Answer: a, err: err, ev: a.Evidence()}.check(t, Evidence{ErrorClass: ErrorCanceled})
}

// closings notes that a connection was closed by us.
type closings struct {
	net.Conn
	closed atomic.Bool
}

func (c *closings) Close() error {
	c.closed.Store(true)
	return c.Conn.Close()
}

// Once a sending has ended, nothing of it may still go out, also where the upstream keeps
// the connection open.
func TestASendingThatBreaksOffClosesItsConnection(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer string
		want   Evidence
	}{
		"a malformed head":      {"200 OK\r\n\r\n", Evidence{ErrorClass: ErrorMalformed}},
		"a change of protocols": {"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n", Evidence{ErrorClass: ErrorMalformed}},
		"a malformed chunk":     {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n", Evidence{Head: true, Status: 200, ErrorClass: ErrorMalformed}},
	} {
		for _, scheme := range []string{"http", "https"} {
			t.Run(name+", "+scheme, func(t *testing.T) {
				t.Parallel()
				cfg := serverTLS("http/1.1")
				if scheme == "http" {
					cfg = nil
				}
				u := serve(t, cfg, func(p *peer) {
					p.request()
					p.say(c.answer)
					p.hold()
				})
				var ours closings
				g := send(t, sender(t, Config{Dial: func(_ context.Context, network, addr string) (_ net.Conn, err error) {
					ours.Conn, err = net.Dial(network, addr)
					return &ours, err
				}}), post(u.url(scheme, "/"), "x"))
				if !ours.closed.Load() {
					t.Error("the connection was left open")
				}
				g.check(t, c.want)
			})
		}
	}
}

func TestClosingAnAnswerEarlyCutsItsBody(t *testing.T) {
	t.Parallel()
	u := serve(t, nil, func(p *peer) {
		p.request()
		p.say("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nok")
		p.wait()
	})
	a := sender(t, Config{}).Send(context.Background(), post(u.url("http", "/"), "x"))
	reading := make(chan error)
	go func() {
		_, err := io.ReadAll(a.Body)
		reading <- err
	}()
	a.Close()
	if err := <-reading; err == nil {
		t.Error("a body that was cut read to its end")
	}
	a.Close()
	ev := a.Evidence()
	if ev.BodyComplete || ev.ErrorClass != ErrorClosed || !ev.Head || ev.Ended.BootID == "" {
		t.Errorf("evidence %s", brief(ev))
	}
}

func TestALargeBodyThatBreaksIsUncertain(t *testing.T) {
	t.Parallel()
	u := serve(t, nil, (*peer).wait)
	r := post(u.url("http", "/"), "")
	r.Body = silent{content: string(make([]byte, 100_000)), length: 100_001}
	send(t, sender(t, Config{}), r).check(t, Evidence{ErrorClass: ErrorBody})
}
