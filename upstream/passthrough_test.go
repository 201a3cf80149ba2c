package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
)

func get(t *testing.T, u *url.URL) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, u.String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestPassthroughStreamsAndKeepsConnections(t *testing.T) {
	t.Parallel()
	for _, proto := range []string{"HTTP/1.1", "HTTP/2.0"} {
		t.Run(proto, func(t *testing.T) {
			t.Parallel()
			next := make(chan struct{})
			remotes := map[string]bool{}
			srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				remotes[r.RemoteAddr] = true
				_, _ = fmt.Fprintf(w, "%s encoding %q", r.Proto, r.Header.Get("Accept-Encoding"))
				_ = http.NewResponseController(w).Flush()
				<-next
				_, _ = io.WriteString(w, " end")
			}))
			srv.EnableHTTP2 = proto == "HTTP/2.0"
			srv.StartTLS()
			defer srv.Close()
			p := NewPassthrough(Config{Roots: srvRoots(srv)})
			defer p.CloseIdle()
			for range 3 {
				resp, err := p.RoundTrip(get(t, mustURL(t, srv.URL)))
				if err != nil {
					t.Fatal(err)
				}
				want := proto + ` encoding ""`
				start := make([]byte, len(want))
				if _, err := io.ReadFull(resp.Body, start); err != nil || string(start) != want {
					t.Errorf("first part %q, %v; want %q before the upstream goes on", start, err, want)
				}
				next <- struct{}{}
				if rest, err := io.ReadAll(resp.Body); err != nil || string(rest) != " end" {
					t.Errorf("rest %q, %v", rest, err)
				}
				_ = resp.Body.Close()
			}
			if len(remotes) != 1 {
				t.Errorf("three requests over %d connections, want 1", len(remotes))
			}
		})
	}
}

func TestPassthroughErrorsAreClassified(t *testing.T) {
	t.Parallel()
	good := serve(t, serverTLS("http/1.1"), answering(ok))
	plain := serve(t, nil, func(p *peer) { p.say("HTTP/1.1 400 Bad Request\r\n\r\n") })
	closing := serve(t, nil, func(p *peer) { p.request() })
	babbling := serve(t, nil, answering("220 secret greeting\r\n\r\n"))
	for name, tc := range map[string]struct {
		cfg  Config
		url  *url.URL
		want Error
	}{
		"egress": {Config{Egress: func(netip.AddrPort) error { return errors.New("private") }}, plain.url("http", "/"), Error{ErrorEgress, "private"}},
		"host not found": {Config{Dial: func(context.Context, string, string) (net.Conn, error) {
			return nil, &net.DNSError{Err: "no such host", Name: "api.example"}
		}}, plain.url("http", "/"), Error{ErrorDNS, "looking up api.example: no such host"}},
		"no TLS":     {Config{}, plain.url("https", "/"), Error{ErrorTLS, "the upstream does not speak TLS"}},
		"closed":     {Config{}, closing.url("http", "/"), Error{ErrorEOF, "the connection ended early"}},
		"not HTTP":   {Config{}, babbling.url("http", "/"), Error{ErrorMalformed, "the answer is not HTTP"}},
		"cert":       {Config{}, good.url("https", "/"), Error{}},
		"no connect": {Config{Dial: func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("x") }}, plain.url("http", "/"), Error{ErrorDial, "connecting: the connection failed"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := NewPassthrough(tc.cfg)
			defer p.CloseIdle()
			resp, err := p.RoundTrip(get(t, tc.url))
			var got *Error
			if resp != nil || !errors.As(err, &got) {
				t.Fatalf("got %v, %v; want an *Error", resp, err)
			}
			if name == "cert" {
				if got.Class != ErrorCertificate {
					t.Errorf("got %+v, want class certificate", *got)
				}
				return
			}
			if *got != tc.want {
				t.Errorf("got %+v, want %+v", *got, tc.want)
			}
		})
	}
}

func TestPassthroughReturnsTheContextsOwnError(t *testing.T) {
	t.Parallel()
	gone := errors.New("the script has gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	u := serve(t, nil, func(p *peer) {
		p.request()
		cancel(gone)
		p.wait()
	})
	p := NewPassthrough(Config{})
	defer p.CloseIdle()
	if _, err := p.RoundTrip(get(t, u.url("http", "/")).WithContext(ctx)); !errors.Is(err, gone) {
		t.Errorf("got %v, want the cause of the cancellation", err)
	}
}

// TE says to upstreams of HTTP/2 that trailers are taken. In HTTP/1.1 it would have to be
// named in Connection, too (RFC 9110 §10.1.4): there it isn't sent.
func TestTrailersAreAskedForOverHTTP2(t *testing.T) {
	t.Parallel()
	for _, h2 := range []bool{true, false} {
		for name, body := range map[string]func() io.Reader{
			"no content": func() io.Reader { return nil }, "short content": func() io.Reader { return strings.NewReader("x") },
			"streamed content": func() io.Reader { return io.MultiReader(strings.NewReader("x")) },
		} {
			t.Run(fmt.Sprintf("HTTP/2 %t, %s", h2, name), func(t *testing.T) {
				t.Parallel()
				srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					_, _ = fmt.Fprintf(w, "%q %q", r.Header["Te"], r.Header["Connection"])
				}))
				srv.EnableHTTP2 = h2
				srv.StartTLS()
				defer srv.Close()
				p := NewPassthrough(Config{Roots: srvRoots(srv)})
				defer p.CloseIdle()
				for range 2 { // Over a new connection, and over one that is kept.
					method := http.MethodPost
					if body() == nil {
						method = http.MethodGet
					}
					r, err := http.NewRequestWithContext(t.Context(), method, srv.URL, body())
					if err != nil {
						t.Fatal(err)
					}
					r.Header.Set("TE", "trailers")
					want := `[] []`
					if h2 {
						want = `["trailers"] []`
					}
					if _, got, _, err := readAll(p, r); err != nil || got != want {
						t.Errorf("the upstream saw %s, %v; want %s", got, err, want)
					}
					if r.Header.Get("TE") != "trailers" {
						t.Error("the caller's own fields were changed")
					}
				}
			})
		}
	}
}
