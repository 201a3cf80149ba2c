package proxy

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// earlyContent shows where some of it is missing, and is more than any server reads away.
var earlyContent = func() string {
	var b strings.Builder
	for i := range 80_000 {
		_, _ = fmt.Fprintf(&b, "%07x\n", i)
	}
	return b.String()
}()

const (
	// earlyFirst is how much of it the upstream reads before it answers.
	earlyFirst = 20 << 10
	earlyPiece = 1 << 10
)

// heard is what an upstream got of a request's content.
type heard struct {
	content string
	whole   bool
}

// impatient answers when it has the first of the content, and tells what it got of it. lasts says
// that its answer ends only once the content has.
type impatient struct {
	lasts    bool
	answered chan struct{}
	heard    chan heard
}

// ServeHTTP implements http.Handler.
func (u *impatient) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	chunked, length := len(r.TransferEncoding) > 0, r.ContentLength
	c, both, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer func() { _ = c.Close() }()
	if r.Header.Get("Expect") != "" {
		_, _ = io.WriteString(c, "HTTP/1.1 100 Continue\r\n\r\n")
	}
	in := io.LimitReader(both, length)
	if chunked {
		in = httputil.NewChunkedReader(both)
	}
	var got strings.Builder
	_, err = io.CopyN(&got, in, earlyFirst)
	if u.lasts {
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nearly\r\n")
	} else {
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nearly")
	}
	close(u.answered)
	if err == nil {
		_, err = io.Copy(&got, in)
	}
	whole := err == nil && (chunked || int64(got.Len()) == length)
	if u.lasts && whole {
		_, _ = io.WriteString(c, "5\r\n late\r\n0\r\n\r\n")
	}
	u.heard <- heard{got.String(), whole}
}

// earlyClient sends a request in pieces by hand.
type earlyClient struct {
	net.Conn
	in      *bufio.Reader
	chunked bool
	// hasty says that it sends on without a look for the answer.
	hasty bool
}

// dialEarly connects to the proxy, by a tunnel or not.
func (r *run) dialEarly(tunnel bool) net.Conn {
	r.t.Helper()
	var c net.Conn
	var err error
	if tunnel {
		c, _, _ = r.tunnelTo(r.authority)
		c = tls.Client(c, &tls.Config{RootCAs: r.roots, ServerName: "127.0.0.1", MinVersion: tls.VersionTLS12})
	} else if c, err = net.Dial("tcp", r.address); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(waitLimit))
	return c
}

// ask writes the head of a request for what is streamed.
func (c *earlyClient) ask(r *run, tunnel bool, version, more string) {
	frame := fmt.Sprintf("Content-Length: %d\r\n", len(earlyContent))
	if c.chunked {
		frame = "Transfer-Encoding: chunked\r\n"
	}
	c.head(r, tunnel, "/telemetry", version, frame+more)
}

// head writes the head of a request for path.
func (c *earlyClient) head(r *run, tunnel bool, path, version, fields string) {
	base, credentials := r.upstream.URL, r.basic(r.token)
	if tunnel {
		base, credentials = "", ""
	}
	_, _ = fmt.Fprintf(c, "POST %s%s HTTP/%s\r\nHost: %s\r\n%s%s\r\n", base, path, version, r.authority, credentials, fields)
}

// write sends content, and its end if it is the last of it.
func (c *earlyClient) write(content string, last bool) (err error) {
	for content != "" && err == nil {
		piece := content[:min(len(content), earlyPiece)]
		content = content[len(piece):]
		if c.chunked {
			piece = fmt.Sprintf("%x\r\n%s\r\n", len(piece), piece)
		}
		_, err = io.WriteString(c, piece)
	}
	if c.chunked && last && err == nil {
		_, err = io.WriteString(c, "0\r\n\r\n")
	}
	return err
}

// answer reads an answer, behind 100 (Continue).
func (c *earlyClient) answer() (*http.Response, string, error) {
	for {
		resp, err := http.ReadResponse(c.in, &http.Request{Method: http.MethodPost})
		if err != nil {
			return nil, "", err
		}
		if resp.StatusCode == http.StatusContinue {
			continue
		}
		text, err := io.ReadAll(resp.Body)
		return resp, string(text), err
	}
}

// An upstream may answer before it has all of a content that is streamed. It gets the rest, or
// sees the request cut off: never content with a hole in it, and none that only looks whole. The
// answer doesn't wait for content, and nobody waits without end.
func TestAnEarlyAnswerLeavesNoHoleInTheContent(t *testing.T) {
	t.Parallel()
	for _, tunnel := range []bool{false, true} {
		for _, lasts := range []bool{false, true} {
			for _, c := range []struct {
				name, version, more string
				chunked, hasty      bool
			}{
				{"of a length", "1.1", "", false, false},
				{"of a length, hasty", "1.1", "", false, true},
				{"chunked", "1.1", "", true, false},
				{"chunked, hasty", "1.1", "", true, true},
				{"of HTTP/1.0", "1.0", "", false, false},
				{"of HTTP/1.0 that is kept", "1.0", "Connection: keep-alive\r\n", false, true},
				{"of a length, awaited", "1.1", "Expect: 100-continue\r\n", false, false},
				{"chunked, awaited", "1.1", "Expect: 100-continue\r\n", true, true},
				{"of a connection that ends", "1.1", "Connection: close\r\n", true, true},
			} {
				t.Run(fmt.Sprintf("%s, tunnel %t, answer lasts %t", c.name, tunnel, lasts), func(t *testing.T) {
					t.Parallel()
					e := &earlyClient{chunked: c.chunked, hasty: c.hasty}
					e.answeredEarly(t, tunnel, lasts, c.version, c.more)
				})
			}
		}
	}
}

func (c *earlyClient) answeredEarly(t *testing.T, tunnel, lasts bool, version, more string) {
	t.Helper()
	u := &impatient{lasts: lasts, answered: make(chan struct{}), heard: make(chan heard, 1)}
	w := newWorld(t, u.ServeHTTP)
	r := w.open("a")
	c.Conn = r.dialEarly(tunnel)
	c.in = bufio.NewReader(c)
	c.ask(r, tunnel, version, more)
	if strings.Contains(more, "Expect") {
		if resp, err := http.ReadResponse(c.in, nil); err != nil || resp.StatusCode != http.StatusContinue {
			t.Fatalf("no 100 (Continue): %v, %v", resp, err)
		}
	}
	if err := c.write(earlyContent[:earlyFirst], false); err != nil {
		t.Fatal(err)
	}
	<-u.answered
	if !c.hasty {
		if _, err := c.in.Peek(1); err != nil {
			t.Fatalf("the answer waits for content: %v", err)
		}
	}
	broke := make(chan error, 1)
	go func() { broke <- c.write(earlyContent[earlyFirst:], true) }()
	wrote := sync.OnceValue(func() error { return <-broke })
	resp, said, err := c.answer()
	if err != nil {
		t.Fatalf("no whole answer: %v, %q", err, said)
	}
	got := <-u.heard
	if !strings.HasPrefix(earlyContent, got.content) {
		t.Errorf("the upstream got %d bytes with a hole, whole %t", len(got.content), got.whole)
	}
	// Chunked content may be cut off behind its last byte, and before its end.
	if all := len(got.content) == len(earlyContent); got.whole && !all || all && !got.whole && !c.chunked {
		t.Errorf("the upstream got %d bytes of %d, whole %t", len(got.content), len(earlyContent), got.whole)
	}
	if lasts && (said != "early late" || !got.whole || wrote() != nil) {
		t.Errorf("the answer is %q, and the upstream got %d bytes", said, len(got.content))
	}
	if !lasts && said != "early" {
		t.Errorf("the answer is %q", said)
	}
	if !resp.Close && c.hasty {
		// All of it was here when the answer began, so that the connection goes on behind it. The
		// upstream may lack some: what isn't written a moment after its answer is cut off.
		if err := wrote(); err != nil {
			t.Fatal(err)
		}
		c.head(r, tunnel, "/never", version, "Content-Length: 0\r\n")
		if resp, _, err := c.answer(); err != nil || resp.StatusCode != http.StatusForbidden {
			t.Errorf("content is left on the connection: %v, %v", resp, err)
		}
		return
	}
	if !resp.Close {
		t.Error("the answer doesn't say that its connection ends")
	}
	if rest, err := io.ReadAll(c.in); len(rest) > 0 || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("behind the answer came %q, %v", rest, err)
	}
}
