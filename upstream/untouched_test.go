package upstream

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"keep-proxy/internal/verdict"
)

// TLS reports nothing as written when its record went out in part, and over HTTP/2 others
// write: what reached the wire, or may have, was sent.
func TestWhatMayHaveGoneOutWasTouched(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		h2        bool
		happens   func(*conn)
		untouched bool
	}{
		"nothing":                     {false, func(*conn) {}, true},
		"a byte of the request":       {false, func(c *conn) { c.plain.begun.Add(1); c.plain.written.Add(1) }, false},
		"a part of a record of TLS":   {false, func(c *conn) { c.plain.begun.Add(9); c.raw.written.Add(5) }, false},
		"nothing, over HTTP/2":        {true, func(*conn) {}, true},
		"a write that was begun":      {true, func(c *conn) { c.plain.begun.Add(9) }, false},
		"a write that was begun, raw": {true, func(c *conn) { c.plain.begun.Add(9); c.raw.written.Add(5) }, false},
	} {
		d := &dispatch{conn: &conn{plain: &plainConn{}, raw: &rawConn{}}}
		if c.h2 {
			d.conn.h2 = &http.ClientConn{}
		}
		d.handed = d.conn.count()
		c.happens(d.conn)
		if got := d.untouched(); got != c.untouched {
			t.Errorf("%s: untouched %t", name, got)
		}
	}
}

// deaf is a connection that takes nothing, and on which an answer waits that nobody asked for.
type deaf struct {
	net.Conn
	answer io.Reader
}

func (c *deaf) Read(p []byte) (int, error) { return c.answer.Read(p) }
func (*deaf) Write([]byte) (int, error)    { return 0, syscall.EPIPE }

// unready is content of which nothing comes before it is closed.
type unready struct{}

func (unready) Len() int64 { return 4 * inlineBody }

func (unready) Open() (io.ReadCloser, error) {
	r, _ := io.Pipe()
	return r, nil
}

// An upstream that says something as it closes, such as 408, and be it a success, has not
// answered what never went out.
func TestAnAnswerToNothingIsNoAnswer(t *testing.T) {
	t.Parallel()
	for name, content := range map[string]Body{"content that can't be written": Bytes("x"), "content that doesn't come": unready{}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ours, theirs := net.Pipe()
			t.Cleanup(func() { _, _ = ours.Close(), theirs.Close() })
			s := sender(t, Config{Dial: func(context.Context, string, string) (net.Conn, error) {
				return &deaf{ours, strings.NewReader(ok)}, nil
			}})
			r := post(mustURL(t, "http://127.0.0.1:1/"), "")
			r.Body = content
			g := send(t, s, r)
			if g.ev.Head || !g.ev.NotSent || g.Status != 0 {
				t.Errorf("%s", brief(g.ev))
			}
			if v := Judge(g.ev, Facts{Method: "POST"}, verdict.Opinion{}); v.Kind != Failed || !strings.HasPrefix(v.Reason, ReasonNotSent) {
				t.Errorf("the verdict is %s, %s", v.Kind, v.Reason)
			}
		})
	}
}
