package proxy

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"
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
// that goes nowhere.
func TestAStopDoesNotWaitForContent(t *testing.T) {
	t.Parallel()
	for name, length := range map[string]int{"short": 10, "long": 1 << 20} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				lost(rw, r)
			})
			r := w.open("a")
			c, err := net.Dial("tcp", w.address)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = c.Close() }()
			_ = c.SetDeadline(time.Now().Add(waitLimit))
			_, _ = fmt.Fprintf(c, "POST %s/telemetry HTTP/1.1\r\nHost: %s\r\n%sContent-Type: application/json\r\nContent-Length: %d\r\n\r\n",
				w.upstream.URL, strings.TrimPrefix(w.upstream.URL, "https://"), w.basic(r.token), length)
			waiting := func() (n int) {
				w.proxy.open.mu.Lock()
				defer w.proxy.open.mu.Unlock()
				for s := range w.proxy.open.streams {
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
			wantProblem(t, w.open("b").post("/pay", `{"to":"x"}`), "unknown-outcome", 424, "")
			text, err := io.ReadAll(c)
			if err != nil {
				t.Fatalf("the stop waits for the content: %v", err)
			}
			all := answers(t, text)
			if len(all) != 1 {
				t.Fatalf("%d answers: %s", len(all), text)
			}
			wantProblem(t, all[0], "run-aborted", 424, "stop")
			if length < 100 {
				w.wantSends("/telemetry", 0)
			}
		})
	}
}

func TestConnectionsOverTheLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, created, func(c *Config) { c.MaxConnections = 1 })
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
