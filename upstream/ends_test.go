package upstream

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// An answer that never comes is waited for as long as the configuration says, from when the
// request was written.
func TestAnAnswerThatNeverComesIsNotAwaitedForEver(t *testing.T) {
	t.Parallel()
	for name, content := range map[string]string{"no content": "", "short content": "x", "long content": strings.Repeat("x", 2*inlineBody)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := serve(t, nil, (*peer).wait)
			s := sender(t, Config{ResponseTimeout: 20 * time.Millisecond})
			// That it is cancelled is how it ends where nothing else ends it.
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			a := s.Send(ctx, post(u.url("http", "/"), content))
			defer a.Close()
			if ev := a.Evidence(); ev.ErrorClass != ErrorTimeout || ev.NotSent || !ev.RequestComplete {
				t.Errorf("%s, request complete %v", brief(ev), ev.RequestComplete)
			}
		})
	}
}

// What is seen of a dispatch is its own, also on a connection that carried others, and is there
// before its end.
func TestEvidenceIsOfOneDispatch(t *testing.T) {
	t.Parallel()
	u := serve(t, nil, answeringAll(ok))
	s := sender(t, Config{FreshFor: time.Hour})
	var first int64
	for i := range 3 {
		a := s.Send(t.Context(), post(u.url("http", "/"), "x"))
		began := a.Evidence()
		if _, err := io.ReadAll(a.Body); err != nil {
			t.Fatal(err)
		}
		ended := a.Evidence()
		if began.Ended.BootID != "" || !began.RequestComplete || began.BytesWritten == 0 || began.BytesWritten != ended.BytesWritten {
			t.Errorf("before its end %+v, after it %+v", began, ended)
		}
		if first == 0 {
			first = ended.BytesWritten
		}
		if ended.BytesWritten != first || ended.Reused != (i > 0) {
			t.Errorf("dispatch %d wrote %d bytes, the first one %d; reused: %t", i, ended.BytesWritten, first, ended.Reused)
		}
	}
}

// An answer without content is over with its head.
func TestADispatchWithoutContentEndsWithItsHead(t *testing.T) {
	t.Parallel()
	u := serve(t, nil, answeringAll("HTTP/1.1 204 No Content\r\n\r\n"))
	a := sender(t, Config{}).Send(t.Context(), post(u.url("http", "/"), "x"))
	if ev := a.Evidence(); !ev.BodyComplete || ev.Ended.BootID == "" {
		t.Errorf("%s, ended %+v", brief(ev), ev.Ended)
	}
	a.Close()
	if ev := a.Evidence(); !ev.BodyComplete || ev.ErrorClass != "" {
		t.Errorf("after its end: %s", brief(ev))
	}
}

// counted is a body that counts how often it is opened and closed.
type counted struct {
	opened, closed atomic.Int32
	openErr        error
}

func (c *counted) Len() int64 { return 1 }

func (c *counted) Open() (io.ReadCloser, error) {
	if c.openErr != nil {
		return nil, c.openErr
	}
	c.opened.Add(1)
	return struct {
		io.Reader
		io.Closer
	}{strings.NewReader("x"), closer(func() { c.closed.Add(1) })}, nil
}

type closer func()

func (c closer) Close() error {
	c()
	return nil
}

// However a dispatch ends, and also where it never began, nothing of it is left: neither its
// content, nor its deadlines, nor a connection that nobody may use.
func TestADispatchLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		edit func(*Request, context.CancelFunc)
		// keeps says that its connection may be used again.
		keeps bool
	}{
		"answered":                      {func(*Request, context.CancelFunc) {}, true},
		"refused by its caller's check": {func(r *Request, _ context.CancelFunc) { r.Check = func() error { return errors.New("over") } }, false},
		"content that can't be opened":  {func(r *Request, _ context.CancelFunc) { r.Body.(*counted).openErr = io.ErrNoProgress }, false},
		"cancelled before byte one":     {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ended := make(chan struct{}, 1)
			u := serve(t, nil, func(p *peer) {
				for {
					if _, _, read := p.request(); !read {
						break
					}
					p.say(ok)
				}
				ended <- struct{}{}
			})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			s := sender(t, Config{FreshFor: time.Hour, Dial: func(_ context.Context, network, addr string) (net.Conn, error) {
				c, err := net.Dial(network, addr)
				if tc.edit == nil {
					cancel()
				}
				return c, err
			}})
			content := &counted{}
			r := post(u.url("http", "/"), "")
			r.Body = content
			if tc.edit != nil {
				tc.edit(r, cancel)
			}
			a := s.Send(ctx, r)
			_, _ = io.Copy(io.Discard, a.Body)
			a.Close()
			if opened, closed := content.opened.Load(), content.closed.Load(); opened != closed {
				t.Errorf("its content was opened %d times, and closed %d times", opened, closed)
			}
			if tc.keeps {
				return
			}
			select {
			case <-ended:
			case <-time.After(time.Minute):
				t.Error("its connection is open")
			}
		})
	}
}

// Connecting takes no longer than the whole dispatch may.
func TestConnectingIsWithinTheTotal(t *testing.T) {
	t.Parallel()
	const total = time.Minute
	begun := time.Now()
	s := sender(t, Config{DialTimeout: time.Hour, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		if by, bounded := ctx.Deadline(); !bounded || by.Sub(begun) > total+time.Since(begun) {
			t.Errorf("it may take until %v, begun at %v", by, begun)
		}
		return nil, errors.New("no")
	}})
	r := post(mustURL(t, "http://127.0.0.1:1/"), "x")
	r.Total = total
	send(t, s, r).check(t, unsent(ErrorDial))
}

// torn is a connection that takes some of what is written and then fails.
type torn struct{ net.Conn }

func (torn) Write([]byte) (int, error) { return 3, io.ErrClosedPipe }

// A record of TLS that went out in part is nothing of what it holds, and all the same no proof
// that nothing was sent.
func TestWhatWentOutBelowTLSWasSent(t *testing.T) {
	t.Parallel()
	c := &conn{raw: newRawConn(torn{})}
	// TLS reports nothing of what it could not write whole.
	c.plain = &plainConn{Conn: failingConn{c.raw}}
	d := &dispatch{conn: c, handed: c.count()}
	if !d.untouched() {
		t.Error("touched before anything was written")
	}
	if n, err := c.plain.Write([]byte("POST")); n != 0 || err == nil {
		t.Fatalf("%d, %v", n, err)
	}
	if d.untouched() {
		t.Error("three bytes that went out are no proof of anything")
	}
}

// failingConn writes, and reports nothing as written.
type failingConn struct{ net.Conn }

func (c failingConn) Write(p []byte) (int, error) {
	_, err := c.Conn.Write(p)
	return 0, err
}

// The upstream is told of the host of the URL where no other is given.
func TestTheHostIsThatOfTheURL(t *testing.T) {
	t.Parallel()
	hosts := make(chan string, 1)
	u := serve(t, nil, func(p *peer) {
		if r, _, read := p.request(); read {
			hosts <- r.Host
			p.say(ok)
		}
	})
	send(t, sender(t, Config{}), post(u.url("http", "/"), "x"))
	if got := <-hosts; got != u.l.Addr().String() {
		t.Errorf("Host %q", got)
	}
}

// A kept connection that ends instead of answering proves nothing about what isn't a mere read.
func TestWhatIsNoReadGoesOutOnce(t *testing.T) {
	t.Parallel()
	for _, method := range []string{http.MethodDelete, http.MethodPost, http.MethodPut, http.MethodPatch} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			u := serve(t, nil, func(p *peer) {
				if _, _, read := p.request(); read {
					p.say(ok)
					p.request()
				}
			})
			p := passer(t, Config{})
			if status, _, _, err := readAll(p, get(t, u.url("http", "/"))); status != http.StatusOK || err != nil {
				t.Fatalf("%d, %v", status, err)
			}
			r := get(t, u.url("http", "/"))
			r.Method = method
			before := u.sends.Load()
			status, _, _, err := readAll(p, r)
			if n := u.sends.Load() - before; n != 1 {
				t.Errorf("the upstream read it %d times", n)
			}
			// Over another connection it is answered.
			if (err == nil) != (status == http.StatusOK) {
				t.Errorf("%d, %v", status, err)
			}
		})
	}
}

// OPTIONS * is asked of the server as a whole.
func TestOptionsOfTheServerArePassedAsTheyAre(t *testing.T) {
	t.Parallel()
	targets := make(chan string, 1)
	u := serve(t, nil, func(p *peer) {
		if r, _, read := p.request(); read {
			targets <- r.RequestURI
			p.say(ok)
		}
	})
	r := get(t, u.url("http", "/"))
	r.URL.Path = "*"
	r.Method = http.MethodOptions
	if status, _, _, err := readAll(passer(t, Config{}), r); status != http.StatusOK || err != nil {
		t.Fatalf("%d, %v", status, err)
	}
	if got := <-targets; got != "*" {
		t.Errorf("asked for %q", got)
	}
}
