package proxy

import (
	"context"
	"errors"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"keep-proxy/ledger"
)

// wantDraining asserts the refusal of a proxy that shuts down.
func wantDraining(t *testing.T, g got) {
	t.Helper()
	wantProblem(t, g, "draining", http.StatusServiceUnavailable, "shutting down; nothing was sent")
	if wait := g.header.Get("Retry-After"); wait != "1" {
		t.Errorf("Retry-After %q", wait)
	}
}

// A request that a stop holds is told when the proxy shuts down: it is neither sent, should
// the stop be lifted just then, nor is its run over, which was refused nothing.
func TestShuttingDownEndsTheHold(t *testing.T) {
	t.Parallel()
	for name, ask := range map[string]func(*run) got{
		"a read":     func(r *run) got { return r.get("/read") },
		"a mutation": func(r *run) got { return r.post("/pay", `{"to":"y"}`) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int32
			w := newWorld(t, lost, func(c *Config) {
				c.Hold = waitLimit
				c.Ledger.Standings = gateSays{c.Ledger.Standings, func(stopping []ledger.Blocker) {
					if len(stopping) > 0 {
						asked.Add(1)
					}
				}}
			})
			first, other := w.open("a"), w.open("b")
			wantProblem(t, first.post("/pay", payX), "unknown-outcome", 424, "")
			asked.Store(0)
			answer := make(chan got, 1)
			go func() { answer <- ask(other) }()
			// Its credentials are asked about once, and the gate once before it waits.
			for deadline := time.Now().Add(waitLimit); asked.Load() < 4; runtime.Gosched() {
				if time.Now().After(deadline) {
					t.Fatal("it isn't held")
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
			defer cancel()
			if err := w.proxy.Shutdown(ctx); err != nil {
				t.Errorf("shutdown: %v", err)
			}
			wantDraining(t, <-answer)
			if got := other.state(); got.State != ledger.RunRunning {
				t.Errorf("the run is %s: %s", got.State, got.Reason)
			}
			w.wantSends("/read", 0)
			w.wantSends("/pay", 1)
		})
	}
}

// So it is with a claim that finds what the gate did not see yet.
func TestAClaimThatIsStoppedWhileShuttingDownEndsNoRun(t *testing.T) {
	t.Parallel()
	for name, hold := range map[string]time.Duration{"held": waitLimit, "not held": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var w *world
			var first *run
			var armed atomic.Bool
			w = newWorld(t, lost, func(c *Config) {
				c.Hold = hold
				newID := c.NewID
				c.NewID = func() string {
					if armed.CompareAndSwap(true, false) {
						if g := first.post("/pay", payX); g.problem() != "unknown-outcome" {
							t.Errorf("what was lost: %d %s, %v", g.status, g.body, g.err)
						}
						w.proxy.draining.Store(true)
						w.proxy.drain()
					}
					return newID()
				}
			})
			first = w.open("a")
			second := w.open("b")
			armed.Store(true)
			wantDraining(t, second.post("/pay", `{"to":"y"}`))
			if got := second.state(); got.State != ledger.RunRunning {
				t.Errorf("the run is %s: %s", got.State, got.Reason)
			}
			w.noRecords("b")
			w.wantSends("/pay", 1)
		})
	}
}

// Whoever comes to a listener while the proxy shuts down is told, and that the connection ends
// there; no tunnel is opened any more.
func TestAListenerOfAProxyThatShutsDownRefuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t, created)
	r := w.open("a")
	w.proxy.draining.Store(true)
	plain := strings.Replace(w.upstream.URL, "https://", "http://", 1)
	for _, line := range []string{"GET " + plain + "/read", "POST " + plain + "/pay", "CONNECT " + w.authority, "GET /"} {
		resp, body := w.raw(line + " HTTP/1.1\r\nHost: " + w.authority + "\r\n" + w.basic(r.token) + "\r\n")
		wantDraining(t, got{resp.StatusCode, resp.Header, body, nil})
		if !resp.Close {
			t.Errorf("%s: the connection stays open", line)
		}
	}
	if n := w.sends.total(); n != 0 {
		t.Errorf("the upstream saw %d requests", n)
	}
}

// A connection that would change protocols when nobody waits for its end any more doesn't.
func TestNoConnectionChangesProtocolsAfterShuttingDown(t *testing.T) {
	t.Parallel()
	for _, way := range ways {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			w := newLive(t, changes)
			r := w.open("a")
			w.proxy.switched.Wait()
			u := w.request(r, way, http.MethodGet, "/live", ask, "")
			wantProblem(t, got{u.resp.StatusCode, u.resp.Header, u.body, nil}, "draining", http.StatusServiceUnavailable, "the request was cut off")
			<-w.ends
		})
	}
}

// brokenListener fails for another reason than that it was closed.
type brokenListener struct{ net.Listener }

var errListener = errors.New("the listener fails")

// Accept implements net.Listener.
func (brokenListener) Accept() (net.Conn, error) { return nil, errListener }

// One listener that fails ends the proxy, which says why: it would look served and not be.
func TestAListenerThatFailsEndsTheProxy(t *testing.T) {
	t.Parallel()
	w := newLookout(t)
	var l [2]net.Listener
	for i := range l {
		var err error
		if l[i], err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			t.Fatal(err)
		}
	}
	ended := make(chan error, 1)
	go func() { ended <- w.Serve(l[0], brokenListener{l[1]}) }()
	select {
	case err := <-ended:
		if !errors.Is(err, errListener) {
			t.Errorf("it ended with %v", err)
		}
	case <-time.After(waitLimit):
		t.Fatal("it serves on")
	}
	if _, err := l[0].Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the other listener is open: %v", err)
	}
}
