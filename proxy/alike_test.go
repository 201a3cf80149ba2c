package proxy

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// taught is an upstream without TLS that answers each whole request with the same bytes, and keeps
// what it got.
type taught struct {
	authority, answer string
	mu                sync.Mutex
	got               []string
}

func teach(t *testing.T, answer string) *taught {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	u := &taught{authority: l.Addr().String(), answer: answer}
	var all sync.WaitGroup
	t.Cleanup(all.Wait)
	t.Cleanup(func() { _ = l.Close() })
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = c.Close() })
			all.Go(func() { u.serve(c) })
		}
	})
	return u
}

// serve answers, and ends the connection where the answer says {CLOSE}: only after what can't be
// kept open for another request, which could go out just before the end is noticed and be reset.
func (u *taught) serve(c net.Conn) {
	defer func() { _ = c.Close() }()
	in := bufio.NewReader(c)
	for {
		r, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		content, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		u.mu.Lock()
		u.got = append(u.got, fmt.Sprintf("%s %s %s %s %s %q %s", r.Method, r.RequestURI, r.Host, fieldLines(r.Header), r.TransferEncoding, content, fieldLines(r.Trailer)))
		u.mu.Unlock()
		text, ends := strings.CutSuffix(u.answer, "{CLOSE}")
		if _, err := io.WriteString(c, text); err != nil || ends {
			return
		}
	}
}

// take gives what it got since it was asked last.
func (u *taught) take() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	all := strings.Join(u.got, "\n")
	u.got = nil
	return all
}

func fieldLines(h http.Header) string {
	lines := make([]string, 0, len(h))
	for _, name := range slices.Sorted(maps.Keys(h)) {
		if name != "Date" {
			lines = append(lines, fmt.Sprintf("%s: %q", name, h[name]))
		}
	}
	return strings.Join(lines, ", ")
}

// heardOf is all that a client is told on a connection.
func heardOf(c net.Conn, methods []string) string {
	var b strings.Builder
	in := bufio.NewReader(c)
	for _, method := range methods {
		for {
			resp, err := http.ReadResponse(in, &http.Request{Method: method})
			if errors.Is(err, syscall.ECONNRESET) {
				err = io.ErrUnexpectedEOF
			}
			if err != nil {
				_, _ = fmt.Fprintf(&b, "no answer: %v\n", err)
				return b.String()
			}
			text, err := io.ReadAll(resp.Body)
			if errors.Is(err, syscall.ECONNRESET) {
				// What ends an answer that is cut is a reset once the next request has come, unread.
				err = io.ErrUnexpectedEOF
			}
			_, _ = fmt.Fprintf(&b, "%s %s %s close %t, %s %q %s, %v\n", resp.Proto, resp.Status, fieldLines(resp.Header), resp.Close, resp.TransferEncoding,
				text, fieldLines(resp.Trailer), err)
			if resp.StatusCode >= 200 {
				break
			}
		}
	}
	closeWrite(c)
	rest, _ := io.ReadAll(in)
	_, _ = fmt.Fprintf(&b, "and then %q", rest)
	return b.String()
}

// told is one way of asking, in which {X} goes before a path and {C} into a head.
type told struct {
	said    string
	methods []string
	// fin says that the client ends its direction.
	fin bool
}

// What comes in absolute form is sent and answered as what comes through a tunnel.
func TestPlainRequestsAreServedAsTunnelledOnes(t *testing.T) {
	t.Parallel()
	const head = " HTTP/1.1\r\nHost: {H}\r\n{C}"
	asked := map[string]told{
		"a read":                  {said: "GET {X}/read" + head + "\r\n", methods: []string{"GET"}},
		"HEAD":                    {said: "HEAD {X}/read" + head + "\r\n", methods: []string{"HEAD"}},
		"a read that closes":      {said: "GET {X}/read" + head + "Connection: close, X-Foo\r\nX-Foo: 1\r\n\r\n", methods: []string{"GET"}},
		"one that takes trailers": {said: "GET {X}/read" + head + "Connection: keep-alive, te\r\nTE: trailers\r\n\r\n", methods: []string{"GET"}},
		"of HTTP/1.0":             {said: "GET {X}/read HTTP/1.0\r\nHost: {H}\r\n{C}Connection: keep-alive\r\n\r\n", methods: []string{"GET"}},
		"HEAD of HTTP/1.0":        {said: "HEAD {X}/read HTTP/1.0\r\nHost: {H}\r\n{C}\r\n", methods: []string{"HEAD"}},
		"two reads at once":       {said: "GET {X}/read" + head + "\r\nHEAD {X}/read" + head + "\r\n", methods: []string{"GET", "HEAD"}},
		"content": {
			said:    "POST {X}/telemetry" + head + "Content-Length: 3\r\n\r\none" + "GET {X}/read" + head + "\r\n",
			methods: []string{"POST", "GET"},
		},
		"chunked content with a trailer": {
			said: "POST {X}/telemetry" + head + "Transfer-Encoding: chunked\r\nTrailer: Sum\r\n\r\n3\r\none\r\n3;a=b\r\ntwo\r\n0\r\nSum: 6\r\n\r\n" +
				"GET {X}/read" + head + "\r\n",
			methods: []string{"POST", "GET"},
		},
		"content of a read": {said: "GET {X}/read" + head + "Content-Length: 3\r\n\r\none", methods: []string{"GET"}},
		"long content": {
			said:    "POST {X}/telemetry" + head + "Content-Length: 100000\r\n\r\n" + strings.Repeat("x", 100_000) + "HEAD {X}/read" + head + "\r\n",
			methods: []string{"POST", "HEAD"},
		},
		"content that asks first": {
			said:    "POST {X}/telemetry" + head + "Expect: 100-continue\r\nContent-Length: 3\r\n\r\none" + "GET {X}/read" + head + "\r\n",
			methods: []string{"POST", "GET"},
		},
		"content that is cut": {said: "POST {X}/telemetry" + head + "Content-Length: 4\r\n\r\none", methods: []string{"POST"}, fin: true},
		"a refused upgrade":   {said: "GET {X}/read" + head + "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n", methods: []string{"GET"}},
		"what is denied":      {said: "POST {X}/never" + head + "Content-Length: 3\r\n\r\none" + "GET {X}/read" + head + "\r\n", methods: []string{"POST", "GET"}},
	}
	for name, answer := range map[string]string{
		"a length":                       "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
		"a type and cookies":             "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nSet-Cookie: a\r\nSet-Cookie: b\r\nContent-Length: 2\r\n\r\nok",
		"chunks":                         "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
		"chunks and a trailer":           "HTTP/1.1 200 OK\r\nTrailer: Sum\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nSum: 2\r\n\r\n",
		"chunks and one unforeseen":      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nSum: 2\r\nKeep-State: x\r\n\r\n",
		"a nominated trailer":            "HTTP/1.1 200 OK\r\nConnection: Sum\r\nTrailer: Sum\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nSum: 2\r\n\r\n",
		"events":                         "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n{CLOSE}",
		"to the end":                     "HTTP/1.1 200 OK\r\n\r\nok{CLOSE}",
		"of HTTP/1.0":                    "HTTP/1.0 200 OK\r\n\r\nok{CLOSE}",
		"closing, and more":              "HTTP/1.1 200 OK\r\nConnection: close, X-Foo\r\nX-Foo: 1\r\nContent-Length: 2\r\n\r\nok{CLOSE}",
		"nothing":                        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
		"no content":                     "HTTP/1.1 204 No Content\r\n\r\n",
		"no content, yet some":           "HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\nok{CLOSE}",
		"not modified":                   "HTTP/1.1 304 Not Modified\r\nContent-Length: 2\r\nETag: \"a\"\r\n\r\n",
		"not modified, yet some":         "HTTP/1.1 304 Not Modified\r\nContent-Type: a/b\r\nContent-Length: 2\r\n\r\nok{CLOSE}",
		"reset content":                  "HTTP/1.1 205 Reset Content\r\nContent-Length: 0\r\n\r\n",
		"hints":                          "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
		"a length that is a lie":         "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok{CLOSE}",
		"chunks that are cut":            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nok{CLOSE}",
		"the last chunk is missing":      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n{CLOSE}",
		"a socket that nobody asked for": "HTTP/1.1 200 OK\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 2\r\n\r\nok",
		"another protocol":               "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nok{CLOSE}",
		"its own challenge":              "HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic\r\nContent-Length: 2\r\n\r\nno",
		"not HTTP":                       "220 hello\r\n{CLOSE}",
		"no answer":                      "{CLOSE}",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, created)
			w.ids.Store(1000) // All have names of the same length.
			u := teach(t, answer)
			w.use(strings.Replace(testRules, `["HOST"]`, `["`+u.authority+`"]`, 1))
			for request, asked := range asked {
				plain, gotPlain := w.tells(u, asked, false)
				tunnelled, gotTunnelled := w.tells(u, asked, true)
				if plain != tunnelled {
					t.Errorf("%s: a plain request is answered\n%s\nand one in a tunnel\n%s", request, plain, tunnelled)
				}
				if gotPlain != gotTunnelled {
					t.Errorf("%s: of a plain request the upstream got\n%s\nof one in a tunnel\n%s", request, gotPlain, gotTunnelled)
				}
			}
		})
	}
}

// tells says what was told of a new run, and gives what client and upstream heard.
func (w *world) tells(u *taught, asked told, tunnel bool) (client, upstream string) {
	w.t.Helper()
	item := fmt.Sprintf("item-%d", w.ids.Add(1))
	r := w.open(item)
	before, credentials := "http://"+u.authority, w.basic(r.token)
	var c net.Conn
	var err error
	if tunnel {
		c, _, _ = r.tunnelTo(u.authority)
		before, credentials = "", ""
	} else if c, err = net.Dial("tcp", w.address); err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(waitLimit))
	_, _ = io.WriteString(c, strings.NewReplacer("{X}", before, "{C}", credentials, "{H}", u.authority).Replace(asked.said))
	if asked.fin {
		closeWrite(c)
	}
	heard := heardOf(c, asked.methods)
	return strings.NewReplacer(r.id, "RUN", item, "ITEM").Replace(heard), u.take()
}
