package upstream

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"keep-proxy/internal/clock"
	"keep-proxy/internal/verdict"
)

// FuzzAnswer feeds arbitrary bytes as an HTTP/1.1 answer. Whatever they are, the
// dispatch ends, the evidence agrees with the answer, and nothing is proven that
// the bytes don't say.
func FuzzAnswer(f *testing.F) {
	for _, seed := range []string{
		ok, "", "HTTP/1.1 200 OK\r\n\r\n", "HTTP/1.1 204 No Content\r\n\r\nstray",
		"HTTP/1.1 100 Continue\r\n\r\n" + ok,
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nA: b\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n",
		"HTTP/1.0 301 X\nContent-Length: 0\n\n", "HTTP/1.1 101 Switching\r\n\r\n", "HTTP/1.1 999 X\r\nConnection: close\r\n\r\nx",
	} {
		f.Add([]byte(seed), true)
	}
	fake := clock.NewFake(time.Now())
	s := New(Config{Clock: fake, MaxHead: 4096})
	f.Fuzz(func(t *testing.T, answer []byte, post bool) {
		c := canned(answer)
		d := cannedDispatch(t, s, c, post)
		a := d.sendH1()
		content, err := io.ReadAll(a.Body)
		a.Close()
		ev := a.Evidence()
		switch {
		case ev.NotSent || ev.Refused || ev.BytesWritten == 0:
			t.Errorf("bytes of an answer can't prove %s", brief(ev))
		case ev.Head != (a.Status != 0), ev.Status != a.Status, ev.Head && a.Status < 200:
			t.Errorf("status %d, evidence %s", a.Status, brief(ev))
		case ev.BodyComplete != (err == nil), ev.BodyComplete && !ev.Head:
			t.Errorf("body ended with %v, evidence %s", err, brief(ev))
		case ev.BodyBytes != int64(len(content)), len(content) > len(answer):
			t.Errorf("%d bytes of content, evidence says %d", len(content), ev.BodyBytes)
		case (ev.ErrorClass == "") != ev.BodyComplete:
			t.Errorf("error class %q, evidence %s", ev.ErrorClass, brief(ev))
		}
		if v := Judge(ev, FactsOf(d.plan.method, a, fake.Now()), verdict.Opinion{}); !ev.Head && v.Kind != Uncertain {
			t.Errorf("verdict %+v without a head", v)
		}
		if !bytes.HasPrefix(answer, []byte("HTTP/")) && ev.Head {
			t.Errorf("a head was made out in %q", answer)
		}
	})
}

// cannedConn takes every write and answers with bytes that are there already.
type cannedConn struct {
	net.Conn
	io.Reader
}

func (c cannedConn) Read(p []byte) (int, error)  { return c.Reader.Read(p) }
func (c cannedConn) Write(p []byte) (int, error) { return len(p), nil }
func (c cannedConn) Close() error                { return nil }

func canned(answer []byte) *conn {
	c := &conn{key: endpoint{addr: "k"}, raw: newRawConn(cannedConn{Reader: bytes.NewReader(answer)})}
	c.plain = &plainConn{Conn: c.raw}
	c.plain.left.Store(-1)
	c.br, c.bw = bufio.NewReaderSize(c.plain, bufferSize), bufio.NewWriterSize(c.plain, bufferSize)
	return c
}

func cannedDispatch(t *testing.T, s *Sender, c *conn, post bool) *dispatch {
	t.Helper()
	r := &Request{Method: http.MethodHead, URL: mustURL(t, "http://api.example/")}
	if post {
		r.Method = http.MethodPost
	}
	p, err := makePlan(r)
	if err != nil {
		t.Fatal(err)
	}
	d := newDispatch(s, p, c, clock.Take(s.cfg.Clock))
	d.watch.start(t.Context(), d.ev.Started.Boot, d.ev.Started.Boot+p.total)
	return d
}
