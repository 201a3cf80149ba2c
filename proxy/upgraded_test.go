package proxy

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"testing"
	"time"

	"keep-proxy/internal/verdict"
	"keep-proxy/ledger"
)

func TestAStopCutsAConnectionThatChangedProtocols(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		stop  func(t *testing.T, w *liveWorld, r *run)
		ended string
	}{
		"an unknown outcome": {func(t *testing.T, w *liveWorld, _ *run) {
			t.Helper()
			wantProblem(t, w.open("b").post("/pay", `{"to":"x"}`), "unknown-outcome", 424, "")
		}, "stop"},
		"the run's end": {func(t *testing.T, w *liveWorld, r *run) {
			t.Helper()
			if _, err := w.ledger.EndRun(t.Context(), r.id, verdict.Transient, "test", "test"); err != nil {
				t.Error(err)
			}
		}, "stop"},
		"a shutdown": {func(t *testing.T, w *liveWorld, _ *run) {
			t.Helper()
			if err := w.proxy.Shutdown(t.Context()); err != nil {
				t.Error(err)
			}
			if w.log.with(`"ended":"shutdown"`) != 1 {
				t.Error("its log line comes after the proxy's end, or never")
			}
		}, "shutdown"},
	} {
		for _, way := range ways {
			t.Run(name+" "+way, func(t *testing.T) {
				t.Parallel()
				w := newLive(t, changes)
				r := w.open("a")
				u := w.request(r, way, "GET", "/live", ask, "")
				u.says(t, "hello")
				c.stop(t, w, r)
				if line, err := u.in.ReadString('\n'); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
					t.Errorf("after it the client reads %q, %v", line, err)
				}
				<-w.ends
				fields := w.ended()
				if fields["ended"] != c.ended || fields["delivered"] != false {
					t.Errorf("the log says %v", fields)
				}
				if name != "a shutdown" {
					if u := w.request(w.open("c", func(o *ledger.OpenRun) { o.Workflow = "another" }), way, "GET", "/live", ask, ""); u.resp.StatusCode != http.StatusSwitchingProtocols {
						t.Errorf("another workflow gets %d", u.resp.StatusCode)
					}
				}
			})
		}
	}
}

// It is gated when it begins, as every request is.
func TestAnUpgradeOfAStoppedScopeIsRefused(t *testing.T) {
	t.Parallel()
	w := newLive(t, changes)
	r := w.open("a")
	wantProblem(t, w.open("b").post("/pay", `{"to":"x"}`), "unknown-outcome", 424, "")
	for _, way := range ways[:2] {
		c, host, before, head := w.way(r, way)
		_, _ = fmt.Fprintf(c, "GET %s/live HTTP/1.1\r\nHost: %s\r\n%s%s\r\n", before, host, head, ask)
		if u := w.answered(c, http.MethodGet); u.resp.StatusCode == http.StatusSwitchingProtocols {
			t.Errorf("%s: %d", way, u.resp.StatusCode)
		}
	}
	if len(w.asked) != 0 {
		t.Error("the upstream was sent something")
	}
}

// A client that leaves while the upstream thinks leaves nothing behind.
func TestAClientThatLeavesBeforeTheChangeEndsItsRequest(t *testing.T) {
	t.Parallel()
	for _, way := range ways {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			w := newLive(t, "")
			c, host, before, head := w.way(w.open("a"), way)
			_, _ = fmt.Fprintf(c, "GET %s/live HTTP/1.1\r\nHost: %s\r\n%s%s\r\n", before, host, head, ask)
			select {
			case <-w.asked:
			case <-time.After(waitLimit):
				t.Fatal("the upstream was sent nothing")
			}
			_ = c.Close()
			select {
			case <-w.ends:
			case <-time.After(waitLimit):
				t.Error("the upstream's connection is open")
			}
		})
	}
}

// How an upstream ends is how it ends for the client.
func TestACutUpstreamCutsTheClient(t *testing.T) {
	t.Parallel()
	w := newLive(t, changes+"half\n")
	u := w.request(w.open("a"), ways[2], "GET", "/live", ask+"X-Cut: 1\r\n", "")
	u.hears(t, "half")
	if _, err := u.in.ReadByte(); err == nil {
		t.Error("more came")
	}
	_ = u.Close()
	if fields := w.ended(); fields["ended"] != "upstream" || fields["delivered"] != false {
		t.Errorf("the log says %v", fields)
	}
}

func TestAnUpgradedConnectionCounts(t *testing.T) {
	t.Parallel()
	counts := &counted{}
	w := newLive(t, changes, func(c *Config) { c.MaxConnections, c.Metrics = 1, counts })
	u := w.request(w.open("a"), ways[1], "GET", "/live", ask, "")
	u.says(t, "hello")
	c, err := net.Dial("tcp", w.address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if u := w.answered(c, http.MethodGet); u.resp.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("a connection beyond the limit gets %d", u.resp.StatusCode)
	}
	if n := counts.of("open"); n != 1 {
		t.Errorf("%d are counted as open", n)
	}
	_ = u.Close()
	<-w.ends
	w.ended()
	if got := fmt.Sprint(counts.of("open"), counts.of("client"), counts.of("upstream")); got != "0 6 6" {
		t.Errorf("counted %s", got)
	}
}

// counted are the metrics of changes of protocols.
type counted struct {
	noMetrics
	counter
}

func (c *counted) Upgraded(delta int, fromClient, fromUpstream int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = map[string]int{}
	}
	c.n["open"] += delta
	c.n["client"] += int(fromClient)
	c.n["upstream"] += int(fromUpstream)
}

// lineOfAChange is the log line of a connection that changed protocols: that of a read, with
// three fields more.
func lineOfAChange(t *testing.T) map[string]any {
	t.Helper()
	w := newLive(t, changes)
	r := w.open("a")
	u := w.request(r, ways[1], "GET", "/live", ask, "")
	_ = u.Close()
	fields := w.ended()
	for name, want := range map[string]any{
		"level": "info", "method": "GET", "host": w.plain, "path": "/live", "status": 101.0, "body_bytes": 0.0, "delivered": true,
		"effect": "read", "workflow": "wf", "item": "a", "run": r.id, "connector": "api", "operation": "live",
		"upgrade": "WebSocket", "received_bytes": 0.0, "ended": "client", "message": "request",
	} {
		if fields[name] != want {
			t.Errorf("of a change of protocols: %s is %v, want %v", name, fields[name], want)
		}
	}
	delete(fields, "message")
	return fields
}
