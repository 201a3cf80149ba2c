package upstream

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

// passer returns a Passthrough that trusts the test certificate.
func passer(tb testing.TB, cfg Config) *Passthrough {
	tb.Helper()
	cfg.Roots = roots()
	p := NewPassthrough(cfg)
	tb.Cleanup(p.CloseIdle)
	return p
}

// readAll sends a read and drains its answer.
func readAll(p *Passthrough, r *http.Request) (status int, content string, trailer http.Header, err error) {
	resp, err := p.RoundTrip(r)
	if err != nil {
		return 0, "", nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text), resp.Trailer, err
}

func TestReadsKeepAConnectionThatIsAsItWas(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		method, answer string
		status         int
		content        string
		kept           bool
	}{
		"content of known length": {"GET", ok, 200, "ok", true},
		"chunks":                  {"GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", 200, "ok", true},
		"no content":              {"GET", "HTTP/1.1 204 No Content\r\n\r\n", 204, "", true},
		"no content, of length 0": {"GET", "HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n", 204, "", true},
		"no content, of a length": {"GET", "HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\n", 204, "", false},
		"no content, in chunks":   {"GET", "HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n", 204, "", false},
		"not modified":            {"GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 2\r\n\r\n", 304, "", true},
		"HEAD":                    {"HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n", 200, "", true},
		"interim answers":         {"GET", "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n" + ok, 200, "ok", true},
		"asked to close":          {"GET", "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok", 200, "ok", false},
		"HTTP/1.0":                {"GET", "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", 200, "ok", false},
		"a length beside chunked": {"GET", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", 200, "ok", false},
		"stray bytes":             {"GET", ok + "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfake", 200, "ok", false},
		"another protocol":        {"GET", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", 101, "", false},
	} {
		for _, scheme := range []string{"http", "https"} {
			t.Run(name+", "+scheme, func(t *testing.T) {
				t.Parallel()
				cfg := serverTLS("http/1.1")
				if scheme == "http" {
					cfg = nil
				}
				u := serve(t, cfg, answeringAll(tc.answer))
				p := passer(t, Config{})
				for range 3 {
					r := get(t, u.url(scheme, "/a"))
					r.Method = tc.method
					status, content, _, err := readAll(p, r)
					if status != tc.status || content != tc.content || err != nil {
						t.Errorf("got %d %q %v", status, content, err)
					}
				}
				if conns, want := u.conns.Load(), int64(1); (conns == want) != tc.kept {
					t.Errorf("%d connections", conns)
				}
				if n := u.sends.Load(); n != 3 {
					t.Errorf("the upstream read %d requests, want 3", n)
				}
			})
		}
	}
}

func TestAnAnswerNobodyAskedForIsNeverAReadsAnswer(t *testing.T) {
	t.Parallel()
	said := make(chan struct{})
	u := serve(t, serverTLS("http/1.1"), func(p *peer) {
		for {
			if _, _, read := p.request(); !read {
				return
			}
			p.say(ok)
			<-said
			p.say("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfake")
			said <- struct{}{}
		}
	})
	p := passer(t, Config{})
	for range 3 {
		status, content, _, err := readAll(p, get(t, u.url("https", "/")))
		if status != 200 || content != "ok" || err != nil {
			t.Fatalf("got %d %q %v", status, content, err)
		}
		said <- struct{}{}
		<-said
	}
}

func TestAReadGoesOutAgainOnlyWhenAKeptConnectionEndedWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		// second is what the upstream does with the second request of its first
		// connection.
		second func(*peer)
		sends  int64
		fails  bool
	}{
		"closed":               {func(*peer) {}, 3, false},
		"reset":                {(*peer).reset, 3, false},
		"some bytes of a head": {func(p *peer) { p.say("HTTP/1.1 2") }, 2, true},
		"an interim answer":    {func(p *peer) { p.say("HTTP/1.1 103 Early Hints\r\n\r\n") }, 2, true},
		"a cut body":           {func(p *peer) { p.say("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nok") }, 2, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var conns atomic.Int64
			u := serve(t, serverTLS("http/1.1"), func(p *peer) {
				first := conns.Add(1) == 1
				for n := 1; ; n++ {
					if _, _, read := p.request(); !read {
						return
					}
					if first && n == 2 {
						tc.second(p)
						return
					}
					p.say(ok)
				}
			})
			p := passer(t, Config{})
			if _, _, _, err := readAll(p, get(t, u.url("https", "/"))); err != nil {
				t.Fatal(err)
			}
			_, content, _, err := readAll(p, get(t, u.url("https", "/")))
			if (err != nil) != tc.fails || !tc.fails && content != "ok" {
				t.Errorf("got %q, %v", content, err)
			}
			if n := u.sends.Load(); n != tc.sends {
				t.Errorf("the upstream read %d requests, want %d", n, tc.sends)
			}
		})
	}
}

func TestAReadIsNotSentAgainOverANewConnection(t *testing.T) {
	t.Parallel()
	u := serve(t, nil, func(p *peer) { p.request() })
	status, _, _, err := readAll(passer(t, Config{}), get(t, u.url("http", "/")))
	var failed *Error
	if !errors.As(err, &failed) || failed.Class != ErrorEOF || u.sends.Load() != 1 {
		t.Errorf("got %d, %v after %d sends, want one that ended early", status, err, u.sends.Load())
	}
}

func TestAReadThatIsCutIsNotWhole(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]string{
		"known length":            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nok",
		"chunks":                  "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nok",
		"to the end, unannounced": "HTTP/1.1 200 OK\r\n\r\nok",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := serve(t, serverTLS("http/1.1"), func(p *peer) {
				p.request()
				p.say(answer)
				// Without TLS's closing alert.
				_ = p.Conn.(*countingConn).Conn.(interface{ NetConn() net.Conn }).NetConn().Close()
			})
			_, content, _, err := readAll(passer(t, Config{}), get(t, u.url("https", "/")))
			var failed *Error
			if !errors.As(err, &failed) || failed.Class != ErrorEOF {
				t.Errorf("got %q, %v; want an early end", content, err)
			}
		})
	}
}

// seen are the interim responses to one request.
type seen []string

// Show implements Interims.
func (s *seen) Show(status int, h http.Header) {
	*s = append(*s, http.StatusText(status)+" "+h.Get("Link"))
}

func TestAReadsTrailersAndInterimAnswersArrive(t *testing.T) {
	t.Parallel()
	u := serve(t, serverTLS("http/1.1"), answeringAll("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"+
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: Sum\r\n\r\n2\r\nok\r\n0\r\nSum: 7\r\n\r\n"))
	var shown seen
	ctx := context.WithValue(t.Context(), InterimsKey{}, &shown)
	_, content, trailer, err := readAll(passer(t, Config{}), get(t, u.url("https", "/")).WithContext(ctx))
	if content != "ok" || trailer.Get("Sum") != "7" || err != nil {
		t.Errorf("got %q, trailers %v, %v", content, trailer, err)
	}
	if !slices.Equal(shown, []string{"Early Hints </a>"}) {
		t.Errorf("interim answers %q", shown)
	}
}

func TestHeadsOfReadsAreBounded(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]string{
		"a long head":          "HTTP/1.1 200 OK\r\nA: " + strings.Repeat("x", 1<<16) + "\r\n\r\n",
		"many interim answers": strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", 200) + ok,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := serve(t, nil, answeringAll(answer))
			_, _, _, err := readAll(passer(t, Config{MaxHead: 1 << 12}), get(t, u.url("http", "/")))
			var failed *Error
			if !errors.As(err, &failed) || failed.Class != ErrorTooBig {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestAReadThatIsGivenUpClosesItsConnection(t *testing.T) {
	t.Parallel()
	gone := errors.New("cut")
	for name, giveUp := range map[string]func(resp *http.Response, cancel context.CancelCauseFunc){
		"closed":    func(resp *http.Response, _ context.CancelCauseFunc) { _ = resp.Body.Close() },
		"cancelled": func(_ *http.Response, cancel context.CancelCauseFunc) { cancel(gone) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			closed := make(chan struct{})
			u := serve(t, serverTLS("http/1.1"), func(p *peer) {
				p.request()
				p.say("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nok")
				p.wait()
				close(closed)
			})
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			resp, err := passer(t, Config{}).RoundTrip(get(t, u.url("https", "/")).WithContext(ctx))
			if err != nil {
				t.Fatal(err)
			}
			giveUp(resp, cancel)
			<-closed
			_, err = io.ReadAll(resp.Body)
			if err == nil || name == "cancelled" && !errors.Is(err, gone) {
				t.Errorf("reading on gave %v", err)
			}
			_ = resp.Body.Close()
		})
	}
}

func TestReadsFromAnUpstreamThatGivesHTTP2Up(t *testing.T) {
	t.Parallel()
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Proto) }))
	srv.EnableHTTP2 = true
	var only1 atomic.Pointer[tls.Config]
	srv.TLS = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return only1.Load(), nil }}
	srv.StartTLS()
	defer srv.Close()
	p := NewPassthrough(Config{Roots: srvRoots(srv)})
	defer p.CloseIdle()
	for range 3 {
		if _, content, _, err := readAll(p, get(t, mustURL(t, srv.URL))); content != "HTTP/2.0" || err != nil {
			t.Fatalf("got %q, %v", content, err)
		}
	}
	p.CloseIdle()
	only1.Store(&tls.Config{Certificates: srv.TLS.Certificates, NextProtos: []string{"http/1.1"}})
	for range 3 {
		if _, content, _, err := readAll(p, get(t, mustURL(t, srv.URL))); content != "HTTP/1.1" || err != nil {
			t.Fatalf("got %q, %v", content, err)
		}
	}
	if len(p.others) != 0 {
		t.Errorf("it is still taken for one that speaks HTTP/2: %v", p.others)
	}
}

func TestReadsOverConnectionsThatCantBeLookedAt(t *testing.T) {
	t.Parallel()
	for _, scheme := range []string{"http", "https"} {
		cfg := serverTLS("http/1.1")
		if scheme == "http" {
			cfg = nil
		}
		u := serve(t, cfg, answeringAll(ok))
		p := passer(t, Config{Dial: opaqueDial})
		for range 3 {
			if _, content, _, err := readAll(p, get(t, u.url(scheme, "/"))); content != "ok" || err != nil {
				t.Errorf("%s: got %q, %v", scheme, content, err)
			}
		}
		if n := u.conns.Load(); n != 1 {
			t.Errorf("%s: %d connections, want 1", scheme, n)
		}
	}
}
