package proxy

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"runtime/pprof"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/net/http2"

	"keep-proxy/ledger"
)

// ending is a world that is shut down: its goroutines are told from those of others by a label.
type ending struct {
	*world
	name string
	// plain is the upstream's address without TLS.
	plain string
}

func newEnding(t *testing.T, handler http.HandlerFunc, change ...func(*Config)) *ending {
	t.Helper()
	w := &ending{name: t.Name()}
	plain := httptest.NewUnstartedServer(nil)
	plain.Config.ErrorLog = quietLog(zerolog.Nop())
	t.Cleanup(plain.Close)
	marked := func(*Config) {
		pprof.SetGoroutineLabels(pprof.WithLabels(context.Background(), pprof.Labels("world", w.name)))
	}
	w.world = newWorld(t, handler, append(change, marked)...)
	pprof.SetGoroutineLabels(context.Background())
	plain.Config.Handler = w.upstream.Config.Handler
	plain.Start()
	w.plain = strings.TrimPrefix(plain.URL, "http://")
	w.use(strings.Replace(testRules, `["HOST"]`, `["HOST", "`+w.plain+`"]`, 1))
	return w
}

// wantNothing asserts that the proxy has no connection, no stream and no goroutine any more.
func (w *ending) wantNothing() {
	w.t.Helper()
	label := []byte(`"world":"` + w.name + `"`)
	var left []byte
	for deadline := time.Now().Add(waitLimit); time.Now().Before(deadline); runtime.Gosched() {
		var all bytes.Buffer
		if err := pprof.Lookup("goroutine").WriteTo(&all, 1); err != nil {
			w.t.Fatal(err)
		}
		at := bytes.Index(all.Bytes(), label)
		if at < 0 && w.proxy.limit.now.Load() == 0 && w.proxy.open.count() == 0 {
			return
		}
		if left = nil; at >= 0 {
			left, _, _ = bytes.Cut(all.Bytes()[at:], []byte("\n\n"))
		}
	}
	w.t.Errorf("%d connections and %d streams are left, and of goroutines, if any, this one: %s", w.proxy.limit.now.Load(), w.proxy.open.count(), left)
}

// awaited is a context that says when somebody waits for its end.
type awaited struct {
	context.Context
	looked chan struct{}
}

func (w awaited) Done() <-chan struct{} {
	select {
	case w.looked <- struct{}{}:
	default:
	}
	return w.Context.Done()
}

// shutDown shuts the proxy down, and returns when that has waited for a while, as it looks
// again and again while something is under way.
func (w *ending) shutDown() (over <-chan error) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), waitLimit)
	w.t.Cleanup(cancel)
	const looks = 3
	waiting, done := awaited{ctx, make(chan struct{}, looks)}, make(chan error, 1)
	go func() { done <- w.proxy.Shutdown(waiting) }()
	for range looks {
		select {
		case err := <-done:
			w.t.Fatalf("shutting down waited for nothing: %v", err)
		case <-waiting.looked:
		}
	}
	return done
}

// protocols are what a client may speak to the proxy.
var protocols = []string{"plain HTTP", "HTTP/1.1 in a tunnel", "HTTP/2 in a tunnel"}

// by gives a client that speaks one of them, and what goes before a path.
func (w *ending) by(r *run, protocol string) (c *http.Client, upstream string) {
	w.t.Helper()
	switch protocol {
	case protocols[0]:
		return w.newClient(r.user(), false), "http://" + w.plain
	case protocols[1]:
		return w.newClient(r.user(), false), w.upstream.URL
	case protocols[2]:
		return w.newClient(r.user(), true), w.upstream.URL
	}
	w.t.Fatal(protocol)
	return nil, ""
}

// holding is an upstream that keeps its answers back until release is called; arrived holds the
// path of each that waits.
func holding(answer http.HandlerFunc) (handler http.HandlerFunc, arrived chan string, release func()) {
	arrived, may := make(chan string, 8), make(chan struct{})
	return func(rw http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if strings.HasPrefix(r.URL.Path, "/read") {
			_, _ = io.WriteString(rw, "read")
			return
		}
		arrived <- r.URL.Path
		<-may
		answer(rw, r)
	}, arrived, sync.OnceFunc(func() { close(may) })
}

// What is under way when the proxy shuts down is sent, recorded and answered to its end; what
// comes meanwhile is refused, and nothing of the proxy is left after that.
func TestShuttingDownLetsWhatIsUnderWayEnd(t *testing.T) {
	t.Parallel()
	whole := strings.Repeat("0123456789abcdef", 10_000)
	for _, protocol := range protocols {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			handler, arrived, release := holding(func(rw http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(rw, whole) })
			defer release()
			w := newEnding(t, handler)
			r := w.open("a")
			c, upstream := w.by(r, protocol)
			answer := make(chan got, 1)
			others := map[string]func(path string) got{}
			for _, other := range protocols[1:] {
				// Before those in tunnels what is plain is awaited.
				if protocol == protocols[0] {
					c, upstream := w.by(r, other)
					others[other] = func(path string) got { return send(c, http.MethodPost, upstream+path, `{"to":"y"}`) }
					wantAnswer(t, send(c, http.MethodGet, upstream+"/read", ""), 200, "read", false)
				}
			}
			go func() { answer <- send(c, http.MethodPost, upstream+"/again", `{"to":"x"}`) }()
			<-arrived
			over := w.shutDown()
			for name, ask := range others {
				if g := ask("/again"); g.err != nil || g.problem() != "draining" {
					t.Errorf("who asks over %s meanwhile gets %d %s, %v", name, g.status, g.body, g.err)
				}
			}
			select {
			case err := <-over:
				t.Fatalf("it is over before the answer is there: %v", err)
			default:
			}
			release()
			wantAnswer(t, <-answer, 200, whole, false)
			if err := <-over; err != nil {
				t.Errorf("it ended with %v", err)
			}
			if m := w.mutation("a"); m.State != ledger.Applied || m.ResultState != ledger.ResultKnown {
				t.Errorf("the record is %s, its result %s", m.State, m.ResultState)
			}
			w.wantSends("/again", 1)
			w.wantNothing()
		})
	}
}

// A dispatch whose caller has gone is waited for all the same, and recorded: over HTTP/2 no
// server knows of its handler any more.
func TestShuttingDownLetsADispatchEndWhoseCallerHasGone(t *testing.T) {
	t.Parallel()
	for _, protocol := range protocols {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			handler, arrived, release := holding(created)
			defer release()
			w := newEnding(t, handler)
			c, upstream := w.by(w.open("a"), protocol)
			ctx, leave := context.WithCancel(t.Context())
			left := make(chan error, 1)
			go func() {
				r, err := http.NewRequestWithContext(ctx, http.MethodPost, upstream+"/pay", strings.NewReader(`{"to":"x"}`))
				if err == nil {
					_, err = c.Do(r)
				}
				left <- err
			}()
			<-arrived
			leave()
			if err := <-left; err == nil {
				t.Fatal("the caller got an answer")
			}
			w.waitForGoneCaller()
			// Only without a connection does no server wait for the handler.
			for deadline := time.Now().Add(waitLimit); protocol == protocols[2] && w.proxy.limit.now.Load() > 0; runtime.Gosched() {
				if c.CloseIdleConnections(); time.Now().After(deadline) {
					t.Fatal("the client's connection is open")
				}
			}
			state := make(chan ledger.State, 1)
			begun := awaited{t.Context(), make(chan struct{}, 1)}
			go func() {
				if err := w.proxy.Shutdown(begun); err != nil {
					t.Errorf("it ended with %v", err)
				}
				state <- w.mutation("a").State
			}()
			<-begun.looked
			for range 1000 {
				runtime.Gosched() // Who doesn't wait is over by now.
			}
			release()
			if s := <-state; s != ledger.Applied {
				t.Errorf("the record was %s when the proxy had shut down", s)
			}
			w.wantSends("/pay", 1)
			w.wantNothing()
		})
	}
}

// What comes to the claim when nobody waits for its end any more isn't claimed.
func TestNothingIsClaimedThatNobodyWaitsFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t, created)
	r := w.open("a")
	w.proxy.working.Wait()
	wantDraining(t, r.post("/pay", payX))
	w.noRecords("a")
	w.wantSends("/pay", 0)
}

// overOnce is over until somebody has asked why, and never again. Whoever looks whether it is
// over beside something else may come by the something first, and looks again.
type overOnce struct {
	context.Context
	told atomic.Bool
}

var errOverOnce = errors.New("the time for it is over")

func (o *overOnce) Done() <-chan struct{} {
	if o.told.Load() {
		return nil
	}
	over := make(chan struct{})
	close(over)
	return over
}

func (o *overOnce) Err() error {
	o.told.Store(true)
	return errOverOnce
}

// Who shuts down is told by whichever part had to cut something off.
func TestShuttingDownSaysWhatWasCutOff(t *testing.T) {
	t.Parallel()
	for _, protocol := range protocols {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			handler, arrived, release := holding(func(http.ResponseWriter, *http.Request) {})
			defer release()
			w := newEnding(t, handler)
			c, upstream := w.by(w.open("a"), protocol)
			cut := make(chan got, 1)
			go func() { cut <- send(c, http.MethodGet, upstream+"/slow", "") }()
			<-arrived
			if protocol != protocols[0] {
				// The server that has just handed the tunnel over may count its connection still.
				if err := w.proxy.outer.Shutdown(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.proxy.Shutdown(&overOnce{Context: t.Context()}); !errors.Is(err, errOverOnce) {
				t.Errorf("it ended with %v", err)
			}
			if g := <-cut; g.err == nil {
				t.Errorf("what was cut off is answered: %d %s", g.status, g.body)
			}
			w.wantNothing()
		})
	}
}

// Whatever a connection is at, closing the proxy ends it.
func TestClosingLeavesNothing(t *testing.T) {
	t.Parallel()
	beyond := echo(t)
	plain := func(w *ending, text string) net.Conn {
		c, err := net.Dial("tcp", w.address)
		if err != nil {
			w.t.Fatal(err)
		}
		w.t.Cleanup(func() { _ = c.Close() })
		_, _ = io.WriteString(c, text)
		return c
	}
	for name, open := range map[string]func(*ending, *run) net.Conn{
		"a connection that says nothing": func(w *ending, _ *run) net.Conn { return plain(w, "") },
		"a connection with half a head":  func(w *ending, _ *run) net.Conn { return plain(w, "GET http://") },
		"a connection with half a content": func(w *ending, r *run) net.Conn {
			return plain(w, "POST http://"+w.plain+"/pay HTTP/1.1\r\nHost: "+w.plain+"\r\nContent-Length: 9\r\n"+w.basic(r.token)+"\r\n{")
		},
		"a connection whose answer is awaited": func(w *ending, r *run) net.Conn {
			return plain(w, "GET http://"+w.plain+"/slow HTTP/1.1\r\nHost: "+w.plain+"\r\n"+w.basic(r.token)+"\r\n")
		},
		"a tunnel into which nothing is said": func(w *ending, r *run) net.Conn {
			c, _, _ := r.tunnelTo(w.authority)
			return c
		},
		"a tunnel with half a TLS handshake": func(w *ending, r *run) net.Conn {
			c, _, _ := r.tunnelTo(w.authority)
			_, _ = c.Write([]byte{tlsHandshake})
			return c
		},
		"a tunnel with half a head": func(w *ending, r *run) net.Conn {
			c, _, _ := r.tunnelTo(w.plain)
			_, _ = io.WriteString(c, "GET")
			return c
		},
		"an idle tunnel": func(w *ending, r *run) net.Conn {
			c, in, _ := r.tunnelTo(w.plain)
			_, _ = fmt.Fprintf(c, "HEAD /read HTTP/1.1\r\nHost: %s\r\n\r\n", w.plain)
			if resp, err := http.ReadResponse(in, &http.Request{Method: http.MethodHead}); err != nil || resp.StatusCode != http.StatusOK {
				w.t.Fatalf("a read: %v, %v", resp, err)
			}
			return c
		},
		"an idle tunnel with HTTP/2": func(w *ending, r *run) net.Conn {
			c, framer := r.h2tunnel()
			r.ask(framer, "/read")
			if status := outcomeOf(w.t, framer); status != "200" {
				w.t.Fatalf("a read: %s", status)
			}
			return c
		},
		"a tunnel with HTTP/2 whose answer is awaited": func(_ *ending, r *run) net.Conn {
			c, framer := r.h2tunnel()
			r.ask(framer, "/slow")
			return c
		},
		"a blind tunnel": func(w *ending, r *run) net.Conn {
			c, in, _ := r.tunnelTo(beyond)
			_, _ = io.WriteString(c, "hello\n")
			if line, err := in.ReadString('\n'); err != nil {
				w.t.Fatalf("%q, %v", line, err)
			}
			return c
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			handler, arrived, release := holding(func(http.ResponseWriter, *http.Request) {})
			defer release()
			log := &lines{}
			w := newEnding(t, handler, func(c *Config) { c.Passthrough, c.Log = []string{beyond}, zerolog.New(log) })
			c := open(w, w.open("a"))
			_ = c.SetReadDeadline(time.Now().Add(waitLimit))
			if strings.Contains(name, "awaited") {
				<-arrived
			}
			w.proxy.Close()
			said, err := io.ReadAll(c)
			if errors.Is(err, os.ErrDeadlineExceeded) {
				t.Fatal("the client's connection is open")
			}
			if strings.Contains(name, "half a head") && len(said) > 0 {
				t.Errorf("the connection ended by its own time: %q", said)
			}
			w.wantNothing()
			// What waits for a client ends by itself before long, which the log says.
			if log.with("the client asks for nothing in its tunnel")+log.with("deadline exceeded") > 0 {
				t.Error("the tunnel ended by its own time")
			}
			w.wantSends("/pay", 0)
		})
	}
}

// What begins to stream when the proxy has just been closed is cut: nobody sweeps any more.
func TestNothingStreamsAfterClosing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, created)
	r := w.open("a")
	w.proxy.Close()
	s, _ := w.proxy.register(t.Context(), caller{run: r.id, token: TokenDigest(r.token), workflow: "wf", item: "a", attempt: 1}, false)
	defer s.end()
	if s.Err() == nil {
		t.Error("it goes on")
	}
}

// h2tunnel opens HTTP/2 in a tunnel, and gives the connection below it.
func (r *run) h2tunnel() (net.Conn, *http2.Framer) {
	r.t.Helper()
	c, _, _ := r.tunnelTo(r.authority)
	return c, r.h2over(tls.Client(c, &tls.Config{RootCAs: r.roots, ServerName: "127.0.0.1", NextProtos: []string{"h2"}, MinVersion: tls.VersionTLS12}))
}

// ask asks for a read on the first stream.
func (r *run) ask(framer *http2.Framer, path string) {
	r.t.Helper()
	fields := [][2]string{{":method", "GET"}, {":scheme", "https"}, {":authority", r.authority}, {":path", path}}
	if err := framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block(fields), EndHeaders: true, EndStream: true}); err != nil {
		r.t.Fatal(err)
	}
}
