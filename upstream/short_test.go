package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
)

// posting is a request with content that comes in these pieces.
func posting(t *testing.T, u *url.URL, pieces ...string) *http.Request {
	t.Helper()
	var length int
	readers := make([]io.Reader, len(pieces))
	for i, piece := range pieces {
		length += len(piece)
		readers[i] = strings.NewReader(piece)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, u.String(), io.MultiReader(readers...))
	if err != nil {
		t.Fatal(err)
	}
	r.ContentLength = int64(length)
	return r
}

// echo answers each request with its content.
func echo(p *peer) { echoAfter(p, func() {}) }

// echoAfter is echo that waits before each answer.
func echoAfter(p *peer, wait func()) {
	for {
		_, content, read := p.request()
		if !read {
			return
		}
		wait()
		p.say(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(content), content))
	}
}

func TestContentArrivesOverAKeptConnection(t *testing.T) {
	t.Parallel()
	for name, pieces := range map[string][]string{
		"short":                {"amount=7"},
		"as long as may be":    {strings.Repeat("x", inlineBody)},
		"longer than that":     {strings.Repeat("x", inlineBody+1)},
		"short, in two pieces": {"amount", "=7"},
	} {
		for _, scheme := range []string{"http", "https"} {
			t.Run(name+", "+scheme, func(t *testing.T) {
				t.Parallel()
				cfg := serverTLS("http/1.1")
				if scheme == "http" {
					cfg = nil
				}
				written := make(sent, 1)
				// A connection whose writer isn't done a moment after the answer isn't kept.
				u := serve(t, cfg, func(p *peer) { echoAfter(p, func() { <-written }) })
				p := passer(t, Config{})
				for range 3 {
					status, content, _, err := readAll(p, written.after(posting(t, u.url(scheme, "/a"), pieces...)))
					if status != 200 || content != strings.Join(pieces, "") || err != nil {
						t.Errorf("got %d, %d bytes, %v", status, len(content), err)
					}
				}
				if n, sends := u.conns.Load(), u.sends.Load(); n != 1 || sends != 3 {
					t.Errorf("%d requests over %d connections, want 3 over 1", sends, n)
				}
			})
		}
	}
}

// An upstream that closed a kept connection may have done what it was asked.
func TestARequestWithContentIsNeverSentAgain(t *testing.T) {
	t.Parallel()
	for name, second := range map[string]func(*peer){"closed": func(*peer) {}, "reset": (*peer).reset} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := serve(t, serverTLS("http/1.1"), func(p *peer) {
				for n := 1; ; n++ {
					if _, _, read := p.request(); !read {
						return
					}
					if n == 2 {
						second(p)
						return
					}
					p.say(ok)
				}
			})
			p := passer(t, Config{})
			if _, _, _, err := readAll(p, posting(t, u.url("https", "/"), "a")); err != nil {
				t.Fatal(err)
			}
			_, _, _, err := readAll(p, posting(t, u.url("https", "/"), "b"))
			var failed *Error
			if !errors.As(err, &failed) || u.sends.Load() != 2 {
				t.Errorf("got %v after %d sends, want a failure after 2", err, u.sends.Load())
			}
		})
	}
}

func TestAnAnswerToContentThatWasNotReadArrives(t *testing.T) {
	t.Parallel()
	u := serve(t, nil, func(p *peer) {
		if _, err := http.ReadRequest(p.br); err == nil {
			p.say("HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
			p.wait()
		}
	})
	p := passer(t, Config{})
	status, _, _, err := readAll(p, posting(t, u.url("http", "/"), strings.Repeat("x", inlineBody)))
	if status != http.StatusRequestEntityTooLarge || err != nil {
		t.Errorf("got %d, %v", status, err)
	}
}

// The upstream answers between the pieces, so who collects them waits for ever.
func TestContentThatComesInPiecesStreams(t *testing.T) {
	t.Parallel()
	first := make(chan struct{})
	u := serve(t, nil, func(p *peer) {
		r, err := http.ReadRequest(p.br)
		if err != nil {
			return
		}
		if _, err := io.ReadFull(r.Body, make([]byte, 1)); err != nil {
			return
		}
		close(first)
		if rest, err := io.ReadAll(r.Body); err == nil && string(rest) == "b" {
			p.say(ok)
		}
	})
	from, to := io.Pipe()
	r := posting(t, u.url("http", "/"), "ab")
	r.Body = from
	go func() {
		_, _ = to.Write([]byte("a"))
		<-first
		_, _ = to.Write([]byte("b"))
		_ = to.Close()
	}()
	if status, _, _, err := readAll(passer(t, Config{}), r); status != 200 || err != nil {
		t.Errorf("got %d, %v", status, err)
	}
}

func TestNothingGoesOutOfContentThatBreaks(t *testing.T) {
	t.Parallel()
	u := serve(t, nil, echo)
	broken := errors.New("the script has gone")
	from, to := io.Pipe()
	_ = to.CloseWithError(broken)
	r := posting(t, u.url("http", "/"), "ab")
	r.Body = from
	resp, err := passer(t, Config{}).RoundTrip(r)
	if err == nil {
		_ = resp.Body.Close()
	}
	var failed *Error
	if !errors.As(err, &failed) || failed.Class != ErrorBody || u.conns.Load() != 0 {
		t.Errorf("got %v over %d connections, want an error of the content over none", err, u.conns.Load())
	}
}

// endsWith ends a request when its content comes, as a stop may.
type endsWith struct {
	io.Reader
	end func()
}

func (e endsWith) Read(p []byte) (int, error) {
	e.end()
	return e.Reader.Read(p)
}

func TestContentThatComesAfterItsRequestEndedStaysHere(t *testing.T) {
	t.Parallel()
	u := serve(t, nil, echo)
	p := passer(t, Config{})
	for range 20 {
		if status, _, _, err := readAll(p, posting(t, u.url("http", "/"), "kept")); status != 200 || err != nil {
			t.Fatalf("got %d, %v", status, err)
		}
		ctx, end := context.WithCancel(t.Context())
		r := posting(t, u.url("http", "/"), "late").WithContext(ctx)
		r.Body = io.NopCloser(endsWith{r.Body, end})
		if _, _, _, err := readAll(p, r); !errors.Is(err, context.Canceled) {
			t.Fatalf("got %v, want the end of the request", err)
		}
	}
	if n := u.sends.Load(); n != 20 {
		t.Errorf("the upstream read %d requests, want the 20 that had not ended", n)
	}
}

func TestContentGoesToAnUpstreamThatChoosesHTTP2(t *testing.T) {
	t.Parallel()
	var sends atomic.Int64
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sends.Add(1)
		_, _ = io.WriteString(w, r.Proto+" ")
		_, _ = io.Copy(w, r.Body)
	}))
	srv.EnableHTTP2 = true
	srv.StartTLS()
	defer srv.Close()
	p := NewPassthrough(Config{Roots: srvRoots(srv)})
	defer p.CloseIdle()
	for n := range int64(3) {
		_, content, _, err := readAll(p, posting(t, mustURL(t, srv.URL), "ab"))
		if content != "HTTP/2.0 ab" || err != nil || sends.Load() != n+1 {
			t.Fatalf("got %q, %v after %d sends", content, err, sends.Load())
		}
	}
}
