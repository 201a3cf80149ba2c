package upstream

import (
	"crypto/tls"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"keep-proxy/internal/verdict"
)

// insisting is an upstream that chooses HTTP/2 where it is offered, and then asks for HTTP/1.1, over
// which it answers. It counts what it was asked over HTTP/2.
func insisting(t *testing.T) (*httptest.Server, *atomic.Int64) {
	t.Helper()
	over2 := new(atomic.Int64)
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		content, _ := io.ReadAll(r.Body)
		_, _ = io.WriteString(w, r.Proto+string(content))
	}))
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.TLS = &tls.Config{NextProtos: []string{"h2", "http/1.1"}, MinVersion: tls.VersionTLS12}
	srv.Config.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){"h2": func(_ *http.Server, c *tls.Conn, _ http.Handler) {
		if _, err := io.ReadFull(c, make([]byte, len(http2.ClientPreface))); err != nil {
			return
		}
		framer := http2.NewFramer(c, c)
		framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
		_ = framer.WriteSettings()
		for {
			f, err := framer.ReadFrame()
			if err != nil {
				return
			}
			if asked, ok := f.(*http2.MetaHeadersFrame); ok {
				over2.Add(1)
				_ = framer.WriteRSTStream(asked.StreamID, http2.ErrCodeHTTP11Required)
			}
		}
	}}
	srv.StartTLS()
	t.Cleanup(srv.Close)
	return srv, over2
}

// An upstream that asks for HTTP/1.1 gets it: a read at once, and everything from then on, also what
// is sent by the other one that shares what is known.
func TestAnUpstreamThatAsksForHTTP1GetsIt(t *testing.T) {
	t.Parallel()
	reads := func(t *testing.T, p *Passthrough, r *http.Request) {
		t.Helper()
		if _, content, _, err := readAll(p, r); err != nil || content != "HTTP/1.1" {
			t.Errorf("a read got %q, %v", content, err)
		}
	}
	uploads := func(t *testing.T, srv *httptest.Server) *http.Request {
		t.Helper()
		r := get(t, mustURL(t, srv.URL))
		r.Method, r.Body, r.ContentLength = http.MethodPost, io.NopCloser(strings.NewReader("x")), 1
		return r
	}
	for name, tc := range map[string]struct {
		first func(t *testing.T, srv *httptest.Server, p *Passthrough, s *Sender)
		asked int64
	}{
		"a read": {func(t *testing.T, srv *httptest.Server, p *Passthrough, _ *Sender) {
			t.Helper()
			reads(t, p, get(t, mustURL(t, srv.URL)))
		}, 1},
		"many reads": {func(t *testing.T, srv *httptest.Server, p *Passthrough, _ *Sender) {
			t.Helper()
			var all sync.WaitGroup
			for range 8 {
				all.Go(func() { reads(t, p, get(t, mustURL(t, srv.URL))) })
			}
			all.Wait()
		}, 8},
		"content": {func(t *testing.T, srv *httptest.Server, p *Passthrough, _ *Sender) {
			t.Helper()
			if status, content, _, err := readAll(p, uploads(t, srv)); err == nil {
				t.Errorf("content got %d %q, though it may have been taken", status, content)
			}
		}, 1},
		"a mutation": {func(t *testing.T, srv *httptest.Server, _ *Passthrough, s *Sender) {
			t.Helper()
			g := send(t, s, post(mustURL(t, srv.URL), "x"))
			g.check(t, Evidence{ErrorClass: ErrorReset})
			if v := Judge(g.ev, Facts{Method: "POST"}, verdict.Opinion{}); v.Kind != Uncertain {
				t.Errorf("verdict %+v, though it may have been processed", v)
			}
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv, over2 := insisting(t)
			known := &HTTP1{}
			p, s := NewPassthrough(Config{Roots: srvRoots(srv), HTTP1: known}), New(Config{Roots: srvRoots(srv), HTTP1: known, FreshFor: time.Hour})
			defer p.CloseIdle()
			defer s.Close()
			tc.first(t, srv, p, s)
			for range 2 {
				reads(t, p, get(t, mustURL(t, srv.URL)))
				if _, content, _, err := readAll(p, uploads(t, srv)); err != nil || content != "HTTP/1.1x" {
					t.Errorf("content got %q, %v", content, err)
				}
				if g := send(t, s, post(mustURL(t, srv.URL), "x")); g.ev.Protocol != "HTTP/1.1" || !g.ev.BodyComplete || g.content != "HTTP/1.1x" {
					t.Errorf("a mutation: %s, %q", brief(g.ev), g.content)
				}
			}
			if n := over2.Load(); n < 1 || n > tc.asked {
				t.Errorf("it was asked %d times over HTTP/2, want %d", n, tc.asked)
			}
		})
	}
}
