package upstream

import (
	"bufio"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
)

// endedConn notes the end of the connection below TLS, which comes to TLS only where no
// alert came before.
type endedConn struct {
	net.Conn
	eof atomic.Bool
}

func (c *endedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if errors.Is(err, io.EOF) {
		c.eof.Store(true)
	}
	return n, err
}

// RFC 9112 §9.8: a client says so before it closes.
func TestAnIdleConnectionEndsWithTheClosingAlert(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	alerts := make(chan bool, 2)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			below := &endedConn{Conn: c}
			session := tls.Server(below, serverTLS("http/1.1"))
			in := bufio.NewReader(session)
			if r, err := http.ReadRequest(in); err == nil {
				_, _ = io.Copy(io.Discard, r.Body)
			}
			_, _ = io.WriteString(session, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
			_, err = in.ReadByte()
			alerts <- errors.Is(err, io.EOF) && !below.eof.Load()
			_ = c.Close()
		}
	}()
	target := mustURL(t, "https://"+l.Addr().String()+"/")
	p := passer(t, Config{})
	if _, content, _, err := readAll(p, get(t, target)); content != "ok" || err != nil {
		t.Fatalf("got %q, %v", content, err)
	}
	p.CloseIdle()
	s := sender(t, Config{})
	send(t, s, post(target, "x")).check(t, whole)
	s.Close()
	for range 2 {
		if !<-alerts {
			t.Error("a connection ended without the closing alert")
		}
	}
}
