package upstream

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"
)

// longContent is more than goes out together with its head, or in one piece.
var longContent = strings.Repeat("0123456789abcdef", 5000)

// uploading is a request whose content is streamed: in chunks, or of a known length.
func uploading(t *testing.T, u *rawUpstream, scheme string, chunked bool, content io.Reader) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, u.url(scheme, "/a").String(), io.NopCloser(content))
	if err != nil {
		t.Fatal(err)
	}
	r.ContentLength = int64(len(longContent))
	if chunked {
		r.ContentLength = -1
	}
	return r
}

// framings tries both, over both schemes.
func framings(t *testing.T, try func(t *testing.T, scheme string, chunked bool)) {
	t.Helper()
	for _, scheme := range []string{"http", "https"} {
		for _, chunked := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, chunked %t", scheme, chunked), func(t *testing.T) {
				t.Parallel()
				try(t, scheme, chunked)
			})
		}
	}
}

// listen starts an upstream of a scheme.
func listen(t *testing.T, scheme string, handle func(*peer)) *rawUpstream {
	t.Helper()
	if scheme == "https" {
		return serve(t, serverTLS("http/1.1"), handle)
	}
	return serve(t, nil, handle)
}

// sent makes each of a test's requests tell when its writer is done with the content.
type sent chan struct{}

func (s sent) after(r *http.Request) *http.Request {
	r.Body = told{r.Body, sync.OnceFunc(func() { s <- struct{}{} })}
	return r
}

// told is content that tells when nobody reads it any more.
type told struct {
	io.ReadCloser
	tell func()
}

func (c told) Close() error {
	defer c.tell()
	return c.ReadCloser.Close()
}

func TestLongContentArrivesWithItsTrailers(t *testing.T) {
	t.Parallel()
	framings(t, func(t *testing.T, scheme string, chunked bool) {
		t.Helper()
		written := make(sent, 1)
		u := listen(t, scheme, func(p *peer) {
			for {
				r, content, read := p.request()
				if !read {
					return
				}
				said := fmt.Sprintf("%t %q %q", string(content) == longContent, r.Trailer["X-Sum"], r.Trailer["X-Other"])
				// A connection whose writer isn't done a moment after the answer isn't kept.
				<-written
				p.say(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(said), said))
			}
		})
		p := passer(t, Config{})
		for range 3 {
			r := written.after(uploading(t, u, scheme, chunked, strings.NewReader(longContent)))
			want := `true [] []`
			if chunked {
				r.Trailer = http.Header{"X-Sum": {"1", "2"}, "X-Other": nil}
				want = `true ["1" "2"] []`
			}
			if status, said, _, err := readAll(p, r); status != 200 || said != want || err != nil {
				t.Errorf("got %d %q, %v", status, said, err)
			}
		}
		if n := u.conns.Load(); n != 1 {
			t.Errorf("three requests over %d connections, want 1", n)
		}
	})
}

// What a Connection field that says close nominates beside that belongs to the connection, too
// (RFC 9110 §7.6.1): whoever passes the answer on has to know.
func TestNamesBesideCloseAreKept(t *testing.T) {
	t.Parallel()
	framings(t, func(t *testing.T, scheme string, chunked bool) {
		t.Helper()
		u := listen(t, scheme, answering("HTTP/1.1 200 OK\r\nConnection: close, X-Foo\r\nX-Foo: 1\r\nContent-Length: 2\r\n\r\nok"))
		for name, cfg := range map[string]Config{"connections of this package": {}, "connections of net/http": {Dial: opaqueDial}} {
			resp, err := passer(t, cfg).RoundTrip(uploading(t, u, scheme, chunked, strings.NewReader(longContent)))
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			if said := strings.Join(resp.Header["Connection"], ", "); said != "close, X-Foo" {
				t.Errorf("%s: the answer's Connection is %q", name, said)
			}
		}
	})
}

// early is an upstream that answers when it has the first byte of the content, and says how the
// rest of it ended, and how much there was.
func early(answer string, ended chan<- error, size chan<- int) func(*peer) {
	return func(p *peer) {
		r, err := http.ReadRequest(p.br)
		if err != nil {
			return
		}
		_, err = io.ReadFull(r.Body, make([]byte, 1))
		p.say(answer)
		n := int64(0)
		if err == nil {
			n, err = io.Copy(io.Discard, r.Body)
		}
		ended <- err
		size <- int(n) + 1
	}
}

// Content of which the upstream answers before it is whole goes on as long as the answer does; then
// it is cut off, so that it never looks whole.
func TestAnAnswerThatEndsBeforeTheContentCutsIt(t *testing.T) {
	t.Parallel()
	framings(t, func(t *testing.T, scheme string, chunked bool) {
		t.Helper()
		ended, size := make(chan error, 1), make(chan int, 1)
		u := listen(t, scheme, early(ok, ended, size))
		from, to := io.Pipe()
		defer func() { _ = to.Close() }()
		go func() { _, _ = io.WriteString(to, longContent[:1]) }()
		p := passer(t, Config{})
		if status, content, _, err := readAll(p, uploading(t, u, scheme, chunked, from)); status != 200 || content != "ok" || err != nil {
			t.Errorf("got %d %q, %v", status, content, err)
		}
		if err := <-ended; err == nil {
			t.Errorf("the upstream took %d bytes for the whole content", <-size)
		}
	})
}

// An answer that goes on leaves the content time to come, and what there is of the answer
// doesn't wait for it.
func TestContentComesWhileItsAnswerGoesOn(t *testing.T) {
	t.Parallel()
	framings(t, func(t *testing.T, scheme string, chunked bool) {
		t.Helper()
		u := listen(t, scheme, func(p *peer) {
			r, err := http.ReadRequest(p.br)
			if err != nil {
				return
			}
			_, _ = io.ReadFull(r.Body, make([]byte, 1))
			p.say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nearly\r\n")
			rest, err := io.ReadAll(r.Body)
			if err == nil && string(rest) == longContent[1:] {
				p.say("5\r\n late\r\n0\r\n\r\n")
			}
		})
		from, to := io.Pipe()
		go func() { _, _ = io.WriteString(to, longContent[:1]) }()
		resp, err := passer(t, Config{}).RoundTrip(uploading(t, u, scheme, chunked, from))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		if _, err := io.ReadFull(resp.Body, make([]byte, len("early"))); err != nil {
			t.Fatal(err)
		}
		go func() {
			_, _ = io.WriteString(to, longContent[1:])
			_ = to.Close()
		}()
		if rest, err := io.ReadAll(resp.Body); string(rest) != " late" || err != nil {
			t.Errorf("the rest is %q, %v", rest, err)
		}
	})
}

// The upstream never sees the end of content that broke off, or that isn't as long as announced.
func TestContentThatBreaksOffIsNeverWhole(t *testing.T) {
	t.Parallel()
	broken := errors.New("the script has gone")
	framings(t, func(t *testing.T, scheme string, chunked bool) {
		t.Helper()
		for name, content := range map[string]func(*io.PipeWriter){
			"broken off": func(w *io.PipeWriter) { _ = w.CloseWithError(broken) },
			"too short":  func(w *io.PipeWriter) { _ = w.Close() },
			"too long":   func(w *io.PipeWriter) { _, _ = io.WriteString(w, longContent) },
		} {
			if chunked && name != "broken off" {
				continue
			}
			whole := make(chan bool, 1)
			u := listen(t, scheme, func(p *peer) {
				_, _, read := p.request()
				whole <- read
				_, _, _ = p.request() // Until the client ends the connection, and not before.
			})
			from, to := io.Pipe()
			go func() {
				_, _ = io.WriteString(to, longContent[:len(longContent)/2])
				content(to)
			}()
			_, _, _, err := readAll(passer(t, Config{}), uploading(t, u, scheme, chunked, from))
			var failed *Error
			if !errors.As(err, &failed) || failed.Class != ErrorBody {
				t.Errorf("%s: got %v, want an error of the content", name, err)
			}
			if read := <-whole; read && name != "too long" {
				t.Errorf("%s: the upstream took it for whole", name)
			}
		}
	})
}

// awaiting is content that notes when it is first asked for, and whether that was within the
// second that an upstream has.
type awaiting struct {
	io.Reader
	begun       time.Time
	asked, soon *atomic.Bool
}

func (a awaiting) Read(p []byte) (int, error) {
	if !a.asked.Swap(true) {
		a.soon.Store(time.Since(a.begun) < time.Second)
	}
	return a.Reader.Read(p)
}

// RFC 9110 §10.1.1: content that waits for 100 (Continue) goes out when the upstream says so, or says
// nothing for a second; in the place of a final answer it isn't even asked for.
func TestContentWaitsForContinue(t *testing.T) {
	t.Parallel()
	framings(t, func(t *testing.T, scheme string, chunked bool) {
		t.Helper()
		for name, c := range map[string]struct {
			first string
			asked bool
		}{
			"wanted":         {"HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n", true},
			"nothing said":   {"", true},
			"refused":        {"HTTP/1.1 417 Expectation Failed\r\nContent-Length: 2\r\n\r\nok", false},
			"not waited for": {ok, false},
		} {
			u := listen(t, scheme, func(p *peer) {
				r, err := http.ReadRequest(p.br)
				if err != nil || r.Header.Get("Expect") != "100-continue" {
					return
				}
				p.say(c.first)
				content, err := io.ReadAll(r.Body)
				if err == nil && string(content) == longContent {
					p.say(ok)
				}
			})
			var asked, soon atomic.Bool
			r := uploading(t, u, scheme, chunked, awaiting{strings.NewReader(longContent), time.Now(), &asked, &soon})
			r.Header.Set("Expect", "100-continue")
			if status, content, _, err := readAll(passer(t, Config{}), r); content != "ok" || err != nil || (status == 417) != (name == "refused") {
				t.Errorf("%s: got %d %q, %v", name, status, content, err)
			}
			// An upstream that didn't come to speak within the second said nothing.
			if asked.Load() != c.asked && (c.asked || soon.Load()) {
				t.Errorf("%s: the content was asked for %t", name, asked.Load())
			}
		}
	})
}

// The second is only for upstreams that say nothing.
func TestContentThatIsWantedWaitsNoLonger(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := uploading(t, &rawUpstream{l: nowhere{}}, "http", true, strings.NewReader(longContent))
		r.Header.Set("Expect", "100-continue")
		u, began := newUpload(r), time.Now()
		u.interim(http.StatusProcessing)
		if !u.wanted() || time.Since(began) != time.Second {
			t.Errorf("102 was waited on for %v", time.Since(began))
		}
		began = time.Now()
		u.interim(http.StatusContinue)
		u.interim(http.StatusContinue)
		if !u.wanted() || time.Since(began) != 0 {
			t.Errorf("100 was waited on for %v", time.Since(began))
		}
	})
}

// nowhere is a listener that has nothing but an address.
type nowhere struct{ net.Listener }

func (nowhere) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

// How long an answer's head takes is for the client to say, however its request is sent.
func TestNothingBoundsTheWaitForAnAnswer(t *testing.T) {
	t.Parallel()
	late := func(p *peer) {
		if _, _, read := p.request(); read {
			<-time.After(50 * time.Millisecond)
			p.say(ok)
		}
	}
	framings(t, func(t *testing.T, scheme string, chunked bool) {
		t.Helper()
		p := passer(t, Config{ResponseTimeout: time.Millisecond})
		for name, r := range map[string]*http.Request{
			"streamed":        uploading(t, listen(t, scheme, late), scheme, chunked, strings.NewReader(longContent)),
			"without content": get(t, listen(t, scheme, late).url(scheme, "/")),
		} {
			if status, _, _, err := readAll(p, r); status != http.StatusOK || err != nil {
				t.Errorf("%s: %d, %v", name, status, err)
			}
		}
	})
}

// Whoever gives up a request ends its connection, also while content is awaited or can't be
// written.
func TestAnUploadEndsWithItsRequest(t *testing.T) {
	t.Parallel()
	gone := errors.New("the script has gone")
	framings(t, func(t *testing.T, scheme string, chunked bool) {
		t.Helper()
		never, end := io.Pipe()
		defer func() { _ = end.Close() }()
		for name, content := range map[string]io.Reader{
			"content is awaited": io.MultiReader(strings.NewReader("0"), never),
			"nobody reads":       io.MultiReader(strings.NewReader("0"), zeroes{}),
		} {
			ctx, cancel := context.WithCancelCause(t.Context())
			u := listen(t, scheme, func(p *peer) {
				r, err := http.ReadRequest(p.br)
				if err == nil {
					_, _ = io.ReadFull(r.Body, make([]byte, 1))
				}
				cancel(gone)
				p.wait()
			})
			r := uploading(t, u, scheme, chunked, content).WithContext(ctx)
			if r.ContentLength > 0 {
				r.ContentLength = 1 << 40
			}
			if _, _, _, err := readAll(passer(t, Config{}), r); !errors.Is(err, gone) {
				t.Errorf("%s: got %v", name, err)
			}
		}
	})
}

// zeroes is content without an end.
type zeroes struct{}

func (zeroes) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// A trailer field that would end its line early goes nowhere, and what it stands behind is not
// whole.
func TestATrailerMustNotEndItsLine(t *testing.T) {
	t.Parallel()
	whole := make(chan bool, 1)
	u := serve(t, nil, func(p *peer) {
		_, _, read := p.request()
		whole <- read
	})
	r := uploading(t, u, "http", true, strings.NewReader(longContent))
	r.Trailer = http.Header{"X-Sum": {"1\r\n\r\nGET / HTTP/1.1"}}
	status, _, _, err := readAll(passer(t, Config{}), r)
	var failed *Error
	if !errors.As(err, &failed) || failed.Class != ErrorBody || <-whole {
		t.Errorf("got %d, %v", status, err)
	}
}

// An answer up to the end of a TLS connection that ends without the closing alert is cut (RFC 9112
// §9.8).
func TestAnAnswerToLongContentThatIsCutIsNotWhole(t *testing.T) {
	t.Parallel()
	framings(t, func(t *testing.T, scheme string, chunked bool) {
		t.Helper()
		u := listen(t, scheme, answering("HTTP/1.1 200 OK\r\n\r\nhalf"))
		_, content, _, err := readAll(passer(t, Config{}), uploading(t, u, scheme, chunked, strings.NewReader(longContent)))
		if content != "half" || (err == nil) != (scheme == "http") {
			t.Errorf("got %q, %v", content, err)
		}
	})
}

// closing notes that a connection was closed.
type closing struct {
	net.Conn
	closed atomic.Bool
}

func (c *closing) Close() error {
	c.closed.Store(true)
	return nil
}

// The connection of content that breaks off ends at once: its upstream would wait for the rest of
// it, and who asked for the answer of that upstream.
func TestContentThatBreaksOffEndsItsConnection(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		content io.Reader
		trailer http.Header
		closed  bool
	}{
		"whole":                             {strings.NewReader("content"), nil, false},
		"broken off":                        {io.MultiReader(strings.NewReader("con"), iotest.ErrReader(errors.New("the script has gone"))), nil, true},
		"with a trailer that ends its line": {strings.NewReader("content"), http.Header{"X-Sum": {"1\r\nX-Other: 2"}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &http.Request{Method: http.MethodPost, URL: mustURL(t, "http://api.example/a"), Body: io.NopCloser(c.content), ContentLength: -1, Trailer: c.trailer}
			plan, err := makePlan(&Request{Method: r.Method, URL: r.URL})
			if err != nil {
				t.Fatal(err)
			}
			plan.upload = newUpload(r)
			below := &closing{}
			plan.upload.run(&conn{raw: newRawConn(below), bw: bufio.NewWriter(io.Discard)}, plan)
			if below.closed.Load() != c.closed {
				t.Errorf("its connection is closed: %t, want %t", below.closed.Load(), c.closed)
			}
			if ended := plan.upload.ended(); !ended || (plan.upload.broke.Load() != nil) != c.closed {
				t.Errorf("it has ended: %t, it broke: %v", ended, plan.upload.broke.Load())
			}
		})
	}
}
