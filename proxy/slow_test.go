package proxy

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"keep-proxy/ledger"
)

// Content that doesn't come is answered, and nothing of a mutation is sent. Of what is
// streamed, a beginning may be.
func TestContentThatDoesNotCome(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		created(rw, r)
	}, func(c *Config) { c.RequestTimeout = 50 * time.Millisecond })
	r := w.open("a")
	for _, path := range []string{"/pay", "/telemetry"} {
		c, err := net.Dial("tcp", w.address)
		if err != nil {
			t.Fatal(err)
		}
		_ = c.SetDeadline(time.Now().Add(waitLimit))
		_, _ = fmt.Fprintf(c, "POST %s%s HTTP/1.1\r\nHost: %s\r\n%sContent-Type: application/json\r\nContent-Length: 10\r\n\r\n{",
			w.upstream.URL, path, strings.TrimPrefix(w.upstream.URL, "https://"), w.basic(r.token))
		text, err := io.ReadAll(c)
		_ = c.Close()
		if err != nil {
			t.Fatalf("%s: not closed in order: %v", path, err)
		}
		all := answers(t, text)
		if len(all) != 1 {
			t.Fatalf("%s: %d answers", path, len(all))
		}
		wantProblem(t, all[0], "request-timeout", 408, "proxy.timeouts.request")
	}
	w.wantSends("/pay", 0)
}

// A stop refuses at once who announced content and doesn't send it, and what comes after
// that goes nowhere. A mutation isn't claimed before it is whole.
func TestAStopDoesNotWaitForContent(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		path   string
		length int
		begun  string
	}{
		"streamed, short":          {"/telemetry", 10, ""},
		"streamed, long":           {"/telemetry", 1 << 20, ""},
		"mutation":                 {"/pay", 10, `{"to"`},
		"mutation, unknown length": {"/pay", 0, `{"to"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				lost(rw, r)
			})
			a := w.announce(t, w.open("a"), c.path, c.length, c.begun)
			wantProblem(t, w.open("b").post("/pay", `{"to":"x"}`), "unknown-outcome", 424, "")
			wantProblem(t, a.answer(), "run-aborted", 424, "stop")
			if c.length < 100 {
				w.wantSends("/telemetry", 0)
			}
			w.wantSends("/pay", 1)
		})
	}
}

// Where proxy.hold lets requests wait, one whose content is still coming waits too.
func TestAStopThatMayPassLetsContentCome(t *testing.T) {
	t.Parallel()
	var before atomic.Bool
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if before.Swap(true) {
			created(rw, r)
			return
		}
		lost(rw, r)
	}, func(c *Config) { c.Hold = waitLimit })
	a := w.announce(t, w.open("a"), "/pay", len(`{"to":"y"}`), `{"to"`)
	wantProblem(t, w.open("b").post("/pay", `{"to":"x"}`), "unknown-outcome", 424, "")
	w.proxy.cutStopped()
	m := w.mutation("b")
	if _, err := w.ledger.Resolve(t.Context(), ledger.Resolve{Key: m.Key, Action: ledger.OnSkip, Version: m.Version, Actor: "ann", Reason: "test"}); err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(a.conn, `:"y"}`)
	resp, err := http.ReadResponse(bufio.NewReader(a.conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusCreated {
		t.Errorf("got %s", resp.Status)
	}
	w.wantSends("/pay", 2)
}

// When proxy.hold is over, content that hasn't come is awaited no more: nothing of it is
// sent, and its run is over.
func TestAStopLetsContentComeNoLongerThanTheHold(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		lost(rw, r)
	}, func(c *Config) { c.Hold, c.RequestTimeout, c.Inline = 100*time.Millisecond, 10*waitLimit, 10*waitLimit })
	begun := time.Now()
	a := w.announce(t, w.open("a"), "/pay", len(`{"to":"y"}`), `{"to"`)
	wantProblem(t, w.open("b").post("/pay", `{"to":"x"}`), "unknown-outcome", 424, "")
	g := a.answer()
	wantProblem(t, g, "blocked", 423, "This run is over")
	if took := time.Since(begun); took < 100*time.Millisecond {
		t.Errorf("cut after %s, before the hold was over", took)
	}
	w.wantSends("/pay", 1)
}

// So it is with HTTP/2, where a stream whose content is cut off is not over for its client.
func TestAStopLetsContentOfAStreamComeNoLongerThanTheHold(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lost, func(c *Config) { c.Hold, c.RequestTimeout, c.Inline = 100*time.Millisecond, 10*waitLimit, 10*waitLimit })
	content, more := io.Pipe()
	defer func() { _ = more.Close() }()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.upstream.URL+"/pay", content)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	client := w.newClient(w.open("a").user(), true)
	client.Timeout = waitLimit
	answered := make(chan got, 1)
	go func() {
		resp, err := client.Do(request)
		if err != nil {
			answered <- got{err: err}
			return
		}
		defer func() { _ = resp.Body.Close() }()
		text, err := io.ReadAll(resp.Body)
		answered <- got{resp.StatusCode, resp.Header, string(text), err}
	}()
	w.wantAwaited(t)
	wantProblem(t, w.open("b").post("/pay", `{"to":"x"}`), "unknown-outcome", 424, "")
	wantProblem(t, <-answered, "blocked", 423, "This run is over")
	w.wantSends("/pay", 1)
}

// announced is a request whose content is awaited.
type announced struct {
	t    *testing.T
	conn net.Conn
}

// announce begins a request of r whose content is longer than what comes of it, of
// unknown length where that is 0.
func (w *world) announce(t *testing.T, r *run, path string, length int, begun string) announced {
	t.Helper()
	c, err := net.Dial("tcp", w.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(waitLimit))
	framing := fmt.Sprintf("Content-Length: %d\r\n\r\n%s", length, begun)
	if length == 0 {
		framing = fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n", len(begun), begun)
	}
	_, _ = fmt.Fprintf(c, "POST %s%s HTTP/1.1\r\nHost: %s\r\n%sContent-Type: application/json\r\n%s",
		w.upstream.URL, path, strings.TrimPrefix(w.upstream.URL, "https://"), w.basic(r.token), framing)
	w.wantAwaited(t)
	return announced{t, c}
}

// wantAwaited waits until somebody's content is awaited.
func (w *world) wantAwaited(t *testing.T) {
	t.Helper()
	waiting := func() (n int) {
		for _, s := range w.proxy.open.all() {
			s.mu.Lock()
			if s.asking != nil {
				n++
			}
			s.mu.Unlock()
		}
		return n
	}
	for deadline := time.Now().Add(waitLimit); waiting() == 0; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatal("nobody waits for the content")
		}
	}
}

// answer is the one answer.
func (a announced) answer() got {
	a.t.Helper()
	text, err := io.ReadAll(a.conn)
	if err != nil {
		a.t.Fatalf("the stop waits for the content: %v", err)
	}
	all := answers(a.t, text)
	if len(all) != 1 {
		a.t.Fatalf("%d answers: %s", len(all), text)
	}
	return all[0]
}

func TestConnectionsOverTheLimit(t *testing.T) {
	t.Parallel()
	log, counts := &lines{}, &refusalCounts{}
	w := newWorld(t, created, func(c *Config) { c.MaxConnections, c.Log, c.Metrics = 1, zerolog.New(log), counts })
	first, err := net.Dial("tcp", w.address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = first.Close() }()
	_, _ = io.WriteString(first, "GET / HTTP/1.1\r\nHost: h\r\n\r\n")
	if _, err := io.ReadFull(first, make([]byte, len("HTTP/1.1 400"))); err != nil {
		t.Fatal(err)
	}
	resp, body := w.raw("")
	wantProblem(t, got{resp.StatusCode, resp.Header, body, nil}, "overloaded", 503, "nothing was sent")
	if resp.Header.Get("Retry-After") == "" || !resp.Close {
		t.Errorf("got %v", resp.Header)
	}
	log.await(t, 2)
	if n := log.with(`"status":503,"problem":"overloaded"`); n != 1 || log.with("{") != 2 || counts.of("overloaded") != 1 {
		t.Errorf("%d lines, and counted are %v: %s", n, counts.n, log.all())
	}
	// Who leaves makes room for another.
	_ = first.Close()
	for deadline := time.Now().Add(waitLimit); w.proxy.limit.now.Load() > 0; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatal("a connection that has ended counts")
		}
	}
	if resp, body := w.raw("GET / HTTP/1.1\r\nHost: h\r\n\r\n"); resp.StatusCode != http.StatusBadRequest {
		t.Errorf("after it has ended: %d %s", resp.StatusCode, body)
	}
}

// What is left of the descriptors is for the ledger and upstreams: a connection whose
// descriptor is beyond the highest is turned away.
func TestConnectionsWithTheLastDescriptors(t *testing.T) {
	t.Parallel()
	for highest, status := range map[int]int{1: http.StatusServiceUnavailable, 1 << 20: http.StatusBadRequest} {
		w := newWorld(t, created, func(c *Config) { c.MaxDescriptor = highest })
		resp, body := w.raw("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
		if resp.StatusCode != status {
			t.Errorf("with %d as the highest: %d %s, want %d", highest, resp.StatusCode, body, status)
		}
	}
}

// deadlined is a client of which it is noted how long its content may take.
type deadlined struct {
	*httptest.ResponseRecorder
	until time.Time
}

// SetReadDeadline is what http.ResponseController sets it by.
func (d *deadlined) SetReadDeadline(until time.Time) error {
	d.until = until
	return nil
}

// cutting is content in whose place a stop comes.
type cutting struct {
	awaited, closed bool
	stop            func()
}

func (c *cutting) Close() error {
	c.closed = true
	return nil
}

func (c *cutting) Read([]byte) (int, error) {
	c.awaited = true
	c.stop()
	return 0, os.ErrDeadlineExceeded
}

// A stop is not held up by content that doesn't come, whether it comes between the gate and
// the content or while that is awaited: none of it is read away before the answer.
func TestAStopThatComesBeforeTheContentIsNotWaitedOut(t *testing.T) {
	t.Parallel()
	for name, early := range map[string]bool{"before it is awaited": true, "while it is awaited": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var w *world
			stop := func() { w.proxy.open.sweep(func(_ caller, all streams) { all.cut() }) }
			w = newWorld(t, created, func(c *Config) {
				c.Ledger.Standings = gateSays{c.Ledger.Standings, func([]ledger.Blocker) {
					if early { // What is open asks last.
						stop()
					}
				}}
			})
			r, client, content := w.open("a"), &deadlined{ResponseRecorder: httptest.NewRecorder()}, &cutting{stop: stop}
			request := httptest.NewRequest(http.MethodPost, w.upstream.URL+"/pay", content)
			request.ContentLength = 10
			request.Header.Set("Content-Type", "application/json")
			request.Header.Set("Proxy-Authorization", strings.TrimSpace(strings.TrimPrefix(w.basic(r.token), "Proxy-Authorization:")))
			w.proxy.outer.Handler.ServeHTTP(client, request)
			g := got{client.Code, client.Header(), client.Body.String(), nil}
			wantProblem(t, g, "incomplete-request", 400, "A stop ended the wait for the body; nothing was sent.")
			if content.awaited == early || content.closed != early || client.until.Equal(longOver) == early {
				t.Errorf("the content was awaited: %t, and given up: %t; it may come until %s", content.awaited, content.closed, client.until)
			}
			w.noRecords("a")
			w.wantSends("/pay", 0)
		})
	}
}
