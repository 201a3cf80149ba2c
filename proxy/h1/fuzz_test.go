package h1_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"keep-proxy/proxy/h1"
	"keep-proxy/proxy/strict"
)

// script is a connection that says what it was given, in pieces, and then ends its
// direction. Deadlines mean nothing to it, as it never waits.
type script struct {
	net.Conn
	piece  int
	scan   strict.Scanner
	faulty bool
	told   bool
	// busy says that a handler runs.
	busy atomic.Bool

	mu     sync.Mutex
	text   []byte
	out    bytes.Buffer
	closed chan struct{}
	once   sync.Once
}

func (s *script) Read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p = p[:min(len(p), s.piece, len(s.text))]
	for len(p) > 0 {
		copy(p, s.text)
		skip, pass, f := s.scan.Scan(p)
		s.text = s.text[skip+pass:]
		if f != nil || skip+pass == 0 {
			s.faulty = f != nil
			s.text = nil // What comes now, a handler never sees.
		}
		if copy(p, p[skip:skip+pass]); pass > 0 {
			return pass, nil
		}
		p = p[:min(len(p), len(s.text))]
	}
	if s.faulty || s.scan.Begun() {
		// Whoever guards a connection has answered, unless its handler does.
		s.told = !s.scan.InBody() && !s.busy.Load()
		return 0, &net.OpError{Op: "read", Err: io.ErrUnexpectedEOF}
	}
	return 0, io.EOF
}

func (s *script) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.told {
		return 0, net.ErrClosed
	}
	return s.out.Write(p)
}

func (s *script) Close() error {
	s.once.Do(func() { close(s.closed) })
	return nil
}

// follow is a ConnState hook.
func (s *script) follow(_ net.Conn, state http.ConnState) { s.busy.Store(state == http.StateActive) }

func (*script) CloseWrite() error                { return nil }
func (*script) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (*script) RemoteAddr() net.Addr             { return &net.TCPAddr{Port: 1} }
func (*script) SetDeadline(time.Time) error      { return nil }
func (*script) SetReadDeadline(time.Time) error  { return nil }
func (*script) SetWriteDeadline(time.Time) error { return nil }

// once is a listener of one connection.
type once struct {
	net.Listener
	conns chan net.Conn
}

func (o once) Accept() (net.Conn, error) {
	c, ok := <-o.conns
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}
func (once) Close() error   { return nil }
func (once) Addr() net.Addr { return &net.TCPAddr{} }

// answers is a handler that notes what it is asked, and answers in one of some ways.
func answers(way int, asked *[]string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := []byte("unread"), error(nil)
		if way != 4 {
			body, err = io.ReadAll(r.Body)
		}
		fields := slices.Sorted(maps.Keys(r.Header))
		one := fmt.Sprintf("%s %s %s %+v host %q close %v length %d coding %q body %q err %v trailer %q", r.Method, r.RequestURI, r.Proto, *r.URL, r.Host,
			r.Close, r.ContentLength, r.TransferEncoding, body, err != nil, r.Trailer)
		for _, name := range fields {
			one += fmt.Sprintf(" %s: %q", name, r.Header[name])
		}
		*asked = append(*asked, one)
		h := w.Header()
		h["Date"], h["Content-Type"] = []string{"now"}, nil
		if r.ProtoMinor == 0 || way == 5 {
			h.Set("Connection", "close")
		}
		switch way {
		case 0, 4, 5:
			h.Set("Content-Length", "3")
			_, _ = io.WriteString(w, "yes")
		case 1:
			w.(http.Flusher).Flush()
			_, _ = io.WriteString(w, "some")
			_, _ = io.WriteString(w, " more")
		case 2:
			w.WriteHeader(http.StatusNoContent)
		case 3:
			h.Set("Content-Length", "3")
			h["Content-Type"] = []string{"text/plain"}
			w.WriteHeader(http.StatusNotModified)
		case 6:
			h.Set("Link", "</x>")
			w.WriteHeader(http.StatusEarlyHints)
			h.Set("Trailer", "X, Y")
			w.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(w, "some")
			w.(http.Flusher).Flush()
			h.Set("X", "1\r\n2")
			h.Set(http.TrailerPrefix+"Z", "3")
		case 7:
			h.Set("Content-Length", "5")
			_, _ = io.WriteString(w, "yes")
		}
	}
}

const ways = 8

// told parses answers.
func told(text []byte) (all []string) {
	in := bufio.NewReader(bytes.NewReader(text))
	for {
		if _, err := in.Peek(1); err != nil {
			return all
		}
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			return append(all, "malformed: "+err.Error())
		}
		body, err := io.ReadAll(resp.Body)
		all = append(all, fmt.Sprintf("%s %s %v %d %q %q close %v trailer %q err %v", resp.Proto, resp.Status, resp.Header, resp.ContentLength,
			resp.TransferEncoding, body, resp.Close, resp.Trailer, err))
	}
}

func newScript(text []byte, piece int) *script {
	return &script{text: slices.Clone(text), piece: piece, closed: make(chan struct{})}
}

func byNetHTTP(text []byte, piece, way int) (asked []string, answered []byte) {
	c := newScript(text, piece)
	l := once{conns: make(chan net.Conn, 1)}
	l.conns <- c
	ended := make(chan struct{})
	s := &http.Server{
		Handler: answers(way, &asked), ErrorLog: log.New(io.Discard, "", 0), DisableGeneralOptionsHandler: true,
		ConnState: func(_ net.Conn, state http.ConnState) {
			c.follow(nil, state)
			if state == http.StateClosed {
				close(ended)
			}
		},
	}
	go func() { _ = s.Serve(l) }()
	<-ended
	close(l.conns)
	// It answers HTTP/1.0 in kind, where we say our own version (RFC 9112 §2.3).
	return asked, bytes.ReplaceAll(c.out.Bytes(), []byte("HTTP/1.0 "), []byte("HTTP/1.1 "))
}

func byH1(text []byte, piece, way int) (asked []string, answered []byte) {
	c := newScript(text, piece)
	s := &h1.Server{Handler: answers(way, &asked), HeadTimeout: time.Hour, IdleTimeout: time.Hour, MaxHead: 64 << 10, ConnState: c.follow}
	s.Serve(c)
	return asked, c.out.Bytes()
}

var seeds = []string{
	"GET /a HTTP/1.1\r\nHost: h\r\n\r\nHEAD /%41?q=%&? HTTP/1.1\r\nHost: H\r\nX: \t y \r\nx: z\r\nConnection: x\r\n\r\n",
	"\r\nGET http://h:80/%41?q=% HTTP/1.1\r\nHost: H\r\nX: \t y \r\n\r\nGET / HTTP/1.0\r\n\r\n",
	"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n",
	"GET //a?b? HTTP/1.1\r\nHost: h\r\nConnection: x, Close\r\n\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n",
	"OPTIONS * HTTP/1.1\r\nHost: h\r\nPragma: no-cache\r\n\r\nGET /a;b\"c? HTTP/1.1\r\nHost: h\r\n\r\n",
	"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabcPOST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nTrailer: X, z\r\n\r\n3;a=\"b\"\r\nabc\r\n0A\r\n0123456789\r\n0\r\nx: y\r\nX: z\r\nw: 1\r\n\r\nGET /b HTTP/1.1\r\nHost: h\r\n\r\n",
	"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\nabcGET / HTTP/1.1\r\nHost: h\r\n\r\n",
	"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\nExpect: 100-continue\r\n\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n",
	"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 30\r\n\r\nabc",
	"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nab",
	"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nx: y\r\n",
	"GET / HTTP/1.1\r\nHost: h\r\n\r\nGET / HTTP/1.1\r\nHost",
	"GET http://[fe80::1%25en0]:80/ HTTP/1.1\r\nHost: h\r\n\r\n",
	"GET x:///%00 HTTP/1.1\r\nHost: h\r\n\r\n",
	"CONNECT h:443 HTTP/1.1\r\nHost: h:443\r\n\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n",
	"CONNECT [::1]:443 HTTP/1.0\r\n\r\n\x16\x03\x01",
	"CONNECT h:443 HTTP/1.1\r\nHost: h:443\r\nContent-Length: 3\r\n\r\nabcGET / HTTP/1.1\r\nHost: h\r\n\r\n",
	"GET / HTTP/1.7\r\nHost: h\r\nTrailer: x\r\n\r\nPUT / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nTrailer: ,\r\n\r\n0\r\n\r\n",
}

// badEscape is in a path that net/http refuses, and that is left to the rules here.
var badEscape = regexp.MustCompile(`(?m)^[^ \r\n]+ [^ ?\r\n]*%(?:[^0-9A-Fa-f]|[0-9A-Fa-f][^0-9A-Fa-f])`)

// FuzzServesAsNetHTTPDoes: of what the strict scanner lets through, the handler is asked
// the same as by net/http's server, and clients are told the same.
func FuzzServesAsNetHTTPDoes(f *testing.F) {
	for i, text := range seeds {
		for way := range ways {
			f.Add([]byte(text), 1000, way)
			f.Add([]byte(text), 1+i, way)
		}
	}
	f.Fuzz(func(t *testing.T, text []byte, piece, way int) {
		if badEscape.Match(text) || len(text) > 3<<10 {
			return // net/http bounds extensions and trailers.
		}
		piece, way = max(1, piece&1023), (way%ways+ways)%ways
		asked, answered := byH1(text, piece, way)
		wantAsked, want := byNetHTTP(text, piece, way)
		if a, b := strings.Join(asked, "\n"), strings.Join(wantAsked, "\n"); a != b {
			t.Errorf("way %d, pieces of %d, %q\nasked:\n%s\nby net/http:\n%s", way, piece, text, a, b)
		}
		a, b := strings.Join(told(answered), "\n"), strings.Join(told(want), "\n")
		if strings.Contains(strings.Join(asked, ""), " err true ") {
			// The content was cut, and the connection ends. net/http doesn't say so before.
			a, b = strings.ReplaceAll(a, "close true", "close false"), strings.ReplaceAll(b, "close true", "close false")
		}
		if a != b {
			t.Errorf("way %d, pieces of %d, %q\nanswered:\n%s\nby net/http:\n%s\n%q\n%q", way, piece, text, a, b, answered, want)
		}
	})
}
