package upstream

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
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

// framed is an HTTP/2 upstream in frames. It answers requests to /warm and calls
// act for every other, which it counts.
func framed(tb testing.TB, act func(*peer, *http2.Framer, uint32)) *rawUpstream {
	tb.Helper()
	return framedMeta(tb, func(p *peer, fr *http2.Framer, f *http2.MetaHeadersFrame) { act(p, fr, f.StreamID) })
}

// framedMeta is framed for an act that looks at the request's head.
func framedMeta(tb testing.TB, act func(*peer, *http2.Framer, *http2.MetaHeadersFrame)) *rawUpstream {
	tb.Helper()
	return serve(tb, serverTLS("h2"), func(p *peer) {
		preface := make([]byte, len(http2.ClientPreface))
		if _, err := io.ReadFull(p.br, preface); err != nil {
			return
		}
		fr := http2.NewFramer(p.Conn, p.br)
		fr.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
		_ = fr.WriteSettings()
		for {
			f, err := fr.ReadFrame()
			if err != nil {
				return
			}
			switch f := f.(type) {
			case *http2.SettingsFrame:
				if !f.IsAck() {
					_ = fr.WriteSettingsAck()
				}
			case *http2.MetaHeadersFrame:
				if f.PseudoValue("path") == "/warm" {
					writeHead(fr, f.StreamID, true, "200")
					continue
				}
				p.up.sends.Add(1)
				act(p, fr, f)
			}
		}
	})
}

func writeHead(fr *http2.Framer, stream uint32, end bool, status string, fields ...string) {
	var block bytes.Buffer
	enc := hpack.NewEncoder(&block)
	_ = enc.WriteField(hpack.HeaderField{Name: ":status", Value: status})
	for i := 0; i < len(fields); i += 2 {
		_ = enc.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
	}
	_ = fr.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: block.Bytes(), EndHeaders: true, EndStream: end})
}

// hangUp ends a TLS connection in order. To close it over what isn't read yet would reset it.
func (p *peer) hangUp() {
	_ = p.Conn.(*countingConn).Conn.(*tls.Conn).CloseWrite()
	p.wait()
}

func TestH2UpstreamThatBreaksOffIsSentToOnce(t *testing.T) {
	t.Parallel()
	refused := Evidence{Refused: true, ErrorClass: ErrorRefused}
	reset := Evidence{ErrorClass: ErrorReset}
	cut := Evidence{Head: true, Status: 200, ErrorClass: ErrorReset}
	resetWith := func(code http2.ErrCode) func(*peer, *http2.Framer, uint32) {
		return func(_ *peer, fr *http2.Framer, id uint32) { _ = fr.WriteRSTStream(id, code) }
	}
	for name, tc := range map[string]struct {
		act  func(*peer, *http2.Framer, uint32)
		want Evidence
	}{
		"REFUSED_STREAM":    {resetWith(http2.ErrCodeRefusedStream), refused},
		"PROTOCOL_ERROR":    {resetWith(http2.ErrCodeProtocol), reset},
		"INTERNAL_ERROR":    {resetWith(http2.ErrCodeInternal), reset},
		"ENHANCE_YOUR_CALM": {resetWith(http2.ErrCodeEnhanceYourCalm), reset},
		"CANCEL":            {resetWith(http2.ErrCodeCancel), reset},
		"NO_ERROR, no head": {resetWith(http2.ErrCodeNo), reset},
		"GOAWAY below it":   {func(_ *peer, fr *http2.Framer, _ uint32) { _ = fr.WriteGoAway(0, http2.ErrCodeNo, nil) }, refused},
		"GOAWAY with error": {func(_ *peer, fr *http2.Framer, _ uint32) { _ = fr.WriteGoAway(0, http2.ErrCodeInternal, nil) }, refused},
		"GOAWAY, then close": {func(p *peer, fr *http2.Framer, id uint32) {
			_ = fr.WriteGoAway(id, http2.ErrCodeNo, nil)
			p.hangUp()
		}, Evidence{ErrorClass: ErrorEOF}},
		"close": {func(p *peer, _ *http2.Framer, _ uint32) { p.hangUp() }, Evidence{ErrorClass: ErrorEOF}},
		"not a frame": {func(p *peer, _ *http2.Framer, _ uint32) {
			p.say("\x00\x00\x04\x08\x00\x00\x00\x00\x00\x00\x00\x00\x00")
		}, Evidence{ErrorClass: ErrorMalformed}},
		"refused after a head": {func(_ *peer, fr *http2.Framer, id uint32) {
			writeHead(fr, id, false, "200")
			_ = fr.WriteRSTStream(id, http2.ErrCodeRefusedStream)
		}, cut},
		"refused after an interim head": {func(_ *peer, fr *http2.Framer, id uint32) {
			writeHead(fr, id, false, "103")
			_ = fr.WriteRSTStream(id, http2.ErrCodeRefusedStream)
		}, reset},
		"GOAWAY below it after an interim head": {func(p *peer, fr *http2.Framer, id uint32) {
			writeHead(fr, id, false, "103")
			_ = fr.WriteGoAway(id-1, http2.ErrCodeNo, nil)
			p.hold() // Its own end, told by ours, would be another reason.
		}, Evidence{ErrorClass: ErrorMalformed}},
		"reset after a head": {func(_ *peer, fr *http2.Framer, id uint32) {
			writeHead(fr, id, false, "200")
			_ = fr.WriteRSTStream(id, http2.ErrCodeInternal)
		}, cut},
		"a window over 2^31-1": {func(_ *peer, fr *http2.Framer, id uint32) {
			writeHead(fr, id, false, "200")
			_ = fr.WriteWindowUpdate(id, 1<<31-1)
		}, Evidence{Head: true, Status: 200, ErrorClass: ErrorMalformed}},
		"interim responses without end": {func(_ *peer, fr *http2.Framer, id uint32) {
			for range 300 {
				writeHead(fr, id, false, "103", "link", "</a>")
			}
		}, Evidence{ErrorClass: ErrorTooBig}},
		"interim responses over the limit": {func(_ *peer, fr *http2.Framer, id uint32) {
			for range 2 {
				writeHead(fr, id, false, "103", "a", strings.Repeat("a", 5000))
			}
		}, Evidence{ErrorClass: ErrorTooBig}},
		"a head over the limit": {func(_ *peer, fr *http2.Framer, id uint32) {
			writeHead(fr, id, true, "200", "a", strings.Repeat("a", 5000), "b", strings.Repeat("b", 5000))
		}, Evidence{ErrorClass: ErrorTooBig}},
		"one field over the limit": {func(_ *peer, fr *http2.Framer, id uint32) {
			writeHead(fr, id, true, "200", "a", strings.Repeat("a", 9000))
		}, Evidence{ErrorClass: ErrorMalformed}},
	} {
		for variant, content := range map[string]string{"no body": "", "a body": "x"} {
			for _, warm := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, %s, reused %v", name, variant, warm), func(t *testing.T) {
					t.Parallel()
					u := framed(t, tc.act)
					s := sender(t, Config{MaxHead: 8192, FreshFor: time.Hour})
					want := tc.want
					if warm {
						send(t, s, post(u.url("https", "/warm"), "")).check(t, whole)
						want.Reused = true
					}
					g := send(t, s, post(u.url("https", "/m"), content))
					g.check(t, want)
					if n := u.sends.Load(); n != 1 {
						t.Errorf("sent %d times, want once", n)
					}
					if n := u.conns.Load(); n != 1 {
						t.Errorf("%d connections, want 1", n)
					}
				})
			}
		}
	}
}

// A read whose upstream breaks HTTP/2 ends, whatever net/http's own would make of it.
func TestAReadFromAnH2UpstreamThatWidensItsWindowTooFarEnds(t *testing.T) {
	t.Parallel()
	u := framed(t, func(_ *peer, fr *http2.Framer, id uint32) {
		writeHead(fr, id, false, "200")
		_ = fr.WriteWindowUpdate(id, 1<<31-1)
	})
	p := passer(t, Config{})
	if _, content, _, err := readAll(p, get(t, u.url("https", "/m"))); err == nil {
		t.Errorf("the content is whole: %q", content)
	}
}

func TestH2RefusalIsBelievedOnlyWhereAllowed(t *testing.T) {
	t.Parallel()
	u := framed(t, func(_ *peer, fr *http2.Framer, id uint32) { _ = fr.WriteRSTStream(id, http2.ErrCodeRefusedStream) })
	r := post(u.url("https", "/m"), "x")
	r.TrustRefused = false
	g := send(t, sender(t, Config{}), r)
	g.check(t, Evidence{ErrorClass: ErrorRefused})
	if v := Judge(g.ev, Facts{Method: "POST"}, verdict.Opinion{}); v.Kind != Uncertain {
		t.Errorf("verdict %+v", v)
	}
}

// h2server is net/http's own HTTP/2 server.
func h2server(t *testing.T, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	srv := httptest.NewUnstartedServer(h)
	srv.TLS = serverTLS("h2")
	srv.EnableHTTP2 = true
	srv.Config.ErrorLog = nil
	srv.StartTLS()
	t.Cleanup(srv.Close)
	return srv
}

func TestH2RequestIsRebuilt(t *testing.T) {
	t.Parallel()
	var sends atomic.Int64
	srv := h2server(t, func(w http.ResponseWriter, r *http.Request) {
		sends.Add(1)
		content, _ := io.ReadAll(r.Body)
		w.Header().Set("Trailer", "X-Sum")
		fmt.Fprintf(w, "%s %s %s %s length %d %q host %s", r.Proto, r.Method, r.RequestURI, content, r.ContentLength, r.Header, r.Host)
		w.Header().Set("X-Sum", "7")
	})
	s := New(Config{Roots: srvRoots(srv)})
	defer s.Close()
	for name, tc := range map[string]struct {
		method string
		header http.Header
		body   Body
		want   string
	}{
		"a body":           {"POST", http.Header{"A": {"1", "2"}, "Te": {"trailers"}, "Connection": {"B"}, "B": {"x"}, "Expect": {"100-continue"}}, Bytes("xy"), `xy length 2 map["A":["1" "2"] "Content-Length":["2"] "Te":["trailers"]]`},
		"no body":          {"POST", http.Header{"Te": {"gzip"}}, nil, ` length 0 map["Content-Length":["0"]]`},
		"DELETE":           {"DELETE", http.Header{"User-Agent": {"mine"}}, nil, ` length 0 map["User-Agent":["mine"]]`},
		"an empty body":    {"PUT", nil, Bytes(""), ` length 0 map["Content-Length":["0"]]`},
		"a call of gRPC":   {"POST", http.Header{"Content-Type": {"Application/GRPC+proto; a=b"}}, Bytes("xy"), `xy length 2 map["Content-Length":["2"] "Content-Type":["Application/GRPC+proto; a=b"] "Te":["trailers"]]`},
		"one of gRPC-Web":  {"POST", http.Header{"Content-Type": {"application/grpc-web"}}, Bytes("xy"), `xy length 2 map["Content-Length":["2"] "Content-Type":["application/grpc-web"]]`},
		"non-canonical Te": {"PUT", http.Header{"transfer-encoding": {"chunked"}}, nil, ` length 0 map["Content-Length":["0"]]`},
	} {
		t.Run(name, func(t *testing.T) {
			before := sends.Load()
			u := mustURL(t, srv.URL+"/p?q=1")
			g := send(t, s, &Request{Method: tc.method, URL: u, Host: "api.example", Header: tc.header, Body: tc.body})
			want := "HTTP/2.0 " + tc.method + " /p?q=1 " + tc.want + " host api.example"
			if g.content != want {
				t.Errorf("\n got %s\nwant %s", g.content, want)
			}
			ev := whole
			ev.Reused = g.ev.Reused
			g.check(t, ev)
			if g.Trailer.Get("X-Sum") != "7" || g.Proto != "HTTP/2.0" || g.ev.Protocol != "HTTP/2.0" {
				t.Errorf("trailer %v, protocol %s, %s", g.Trailer, g.Proto, g.ev.Protocol)
			}
			if n := sends.Load() - before; n != 1 {
				t.Errorf("sent %d times", n)
			}
		})
	}
}

func TestH2ConnectionsCarryOneDispatchAtATime(t *testing.T) {
	t.Parallel()
	inside, release := make(chan string, 1), make(chan struct{})
	var others sync.Map
	srv := h2server(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			inside <- r.RemoteAddr
			<-release
			return
		}
		others.Store(r.RemoteAddr, true)
	})
	s := New(Config{Roots: srvRoots(srv), FreshFor: time.Hour})
	defer s.Close()
	// A connection can be used again a little after its answer is whole: once its stream is given up.
	untilReused := func() {
		t.Helper()
		for range 1000 {
			g := send(t, s, post(mustURL(t, srv.URL+"/"), "x"))
			if g.ev.Reused {
				g.check(t, reused(whole))
				return
			}
			g.check(t, whole)
		}
		t.Error("no connection is used again")
	}
	untilReused()
	slow := make(chan got)
	go func() { slow <- send(t, s, post(mustURL(t, srv.URL+"/slow"), "x")) }()
	its := <-inside
	others.Clear()
	untilReused()
	if _, shared := others.Load(its); shared {
		t.Error("a connection carried another dispatch beside one")
	}
	close(release)
	if g := <-slow; g.ev.Status != http.StatusOK || !g.ev.BodyComplete {
		t.Errorf("the slow one: %s", brief(g.ev))
	}
}

func TestH2CutBodyIsToldFromAWholeOne(t *testing.T) {
	t.Parallel()
	srv := h2server(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, "part")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	s := New(Config{Roots: srvRoots(srv)})
	defer s.Close()
	g := send(t, s, post(mustURL(t, srv.URL), "x"))
	g.check(t, Evidence{Head: true, Status: 201, ErrorClass: ErrorReset})
	if g.content != "part" {
		t.Errorf("content %q", g.content)
	}
}

func TestH2EarlyAnswerIsReadWhileTheBodyIsWritten(t *testing.T) {
	t.Parallel()
	srv := h2server(t, func(w http.ResponseWriter, r *http.Request) { http.Error(w, "no", http.StatusRequestEntityTooLarge) })
	s := New(Config{Roots: srvRoots(srv)})
	defer s.Close()
	r := post(mustURL(t, srv.URL), "")
	r.Body = zeros(64 << 20)
	g := send(t, s, r)
	g.check(t, Evidence{Head: true, Status: 413, BodyComplete: true})
	if g.ev.RequestComplete {
		t.Error("64 MiB were written for an answer that came at once")
	}
}
