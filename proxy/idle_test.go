package proxy

import (
	"context"
	"crypto/x509"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"keep-proxy/upstream"
)

// How long the head of what isn't recorded takes is for its client to say, however it is sent.
func TestNothingBoundsTheWaitForAnAnswerOfARead(t *testing.T) {
	t.Parallel()
	shown := httptest.NewTLSServer(http.NotFoundHandler()) // All show the same certificate.
	shown.Close()
	roots := x509.NewCertPool()
	roots.AddCert(shown.Certificate())
	for name, ask := range map[string]func(r *run) got{
		"a read":             func(r *run) got { return r.get("/read") },
		"with content":       func(r *run) got { return r.post("/telemetry", "{}") },
		"sent once":          func(r *run) got { return send(r.client, http.MethodPost, r.upstream.URL+"/telemetry", "") },
		"with long content":  func(r *run) got { return r.post("/telemetry", strings.Repeat("x", 100_000)) },
		"content in pieces":  func(r *run) got { return r.upload("/telemetry", strings.Repeat("x", 100_000), false) },
		"a read over HTTP/2": func(r *run) got { return send(r.newClient(r.user(), true), http.MethodGet, r.upstream.URL+"/read", "") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := upstream.Config{Roots: roots, ResponseTimeout: time.Millisecond, LookEvery: time.Millisecond}
			w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				<-time.After(50 * time.Millisecond)
				_, _ = io.WriteString(rw, "late")
			}, func(c *Config) { c.Sender, c.Reads = upstream.New(cfg), upstream.NewPassthrough(cfg) })
			wantAnswer(t, ask(w.open("a")), http.StatusOK, "late", false)
		})
	}
}

// An answer that stands still is given up, and the upstream sees that. A rule may give it more.
func TestAnAnswerThatStandsStillIsCut(t *testing.T) {
	t.Parallel()
	const patient = `
  - name: events
    match: {method: GET, path: /events}
    effect: read
    timeout: 1h
`
	for path, cut := range map[string]bool{"/read": true, "/events": false} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			ended := make(chan bool, 1)
			w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
				_, _ = io.WriteString(rw, "some")
				_ = http.NewResponseController(rw).Flush()
				select {
				case <-r.Context().Done():
					ended <- true
				case <-time.After(200 * time.Millisecond):
					_, _ = io.WriteString(rw, " more")
					ended <- false
				}
			}, func(c *Config) { c.IdleTimeout = 20 * time.Millisecond })
			w.use(testRules + patient[1:])
			g := w.open("a").get(path)
			if seen := <-ended; seen != cut {
				t.Errorf("the upstream sees that nobody waits: %t", seen)
			}
			if g.body != map[bool]string{true: "some", false: "some more"}[cut] || (g.err != nil) != cut {
				t.Errorf("got %q, %v", g.body, g.err)
			}
		})
	}
}

func TestAnAnswerGoesOnForAsLongAsBytesCome(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		from, to := io.Pipe()
		ctx, cut := context.WithCancel(t.Context())
		context.AfterFunc(ctx, func() { _ = to.CloseWithError(errors.New("cut")) })
		body := &idling{from, 5 * time.Minute, cut}
		go func() {
			for range 100 {
				<-time.After(5*time.Minute - time.Second)
				_, _ = io.WriteString(to, "x")
			}
		}()
		got := make([]byte, 100)
		for i := range got {
			if _, err := body.Read(got[i : i+1]); err != nil {
				t.Fatalf("after %d bytes: %v", i, err)
			}
			<-time.After(time.Hour) // The client takes its time.
		}
		began := time.Now()
		if _, err := body.Read(got); err == nil || time.Since(began) != 5*time.Minute {
			t.Errorf("it stood still for %v: %v", time.Since(began), err)
		}
	})
}
