package isolate

import (
	"bytes"
	"errors"
	"net"
)

// tunnelled is a connection of a client that knows no proxy. Read gives a CONNECT request before what the client says. The
// proxy's answer to it is kept from the client.
type tunnelled struct {
	net.Conn

	// ahead is the CONNECT request, and what the client has said.
	ahead []byte
	// tls says that the client speaks TLS: it couldn't read a refusal.
	tls bool
	// answer is the answer's head, as far as it has come.
	answer  []byte
	entered bool
}

// Read gives what is ahead first.
func (t *tunnelled) Read(p []byte) (int, error) {
	if len(t.ahead) > 0 {
		n := copy(p, t.ahead)
		t.ahead = t.ahead[n:]
		return n, nil
	}
	return t.Conn.Read(p)
}

var errNoTunnel = errors.New("the proxy opened no tunnel")

// Write keeps the head of the answer to CONNECT back. A refusal reaches a client that reads HTTP. Any other connection is
// reset.
func (t *tunnelled) Write(p []byte) (int, error) {
	if t.entered {
		return t.Conn.Write(p)
	}
	t.answer = append(t.answer, p...)
	head, rest, whole := bytes.Cut(t.answer, []byte("\r\n\r\n"))
	_, status, _ := bytes.Cut(head, []byte(" "))
	opened := bytes.HasPrefix(status, []byte("2"))
	switch {
	case !whole && len(t.answer) < maxHead:
		return len(p), nil
	case !opened && t.tls:
		reset(t.Conn)
		return 0, errNoTunnel
	case !opened:
		rest = t.answer
	}
	t.entered, t.answer = true, nil
	if len(rest) > 0 {
		if _, err := t.Conn.Write(rest); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

// NetConn returns the client's connection.
func (t *tunnelled) NetConn() net.Conn { return t.Conn }

// CloseWrite ends the sending direction.
func (t *tunnelled) CloseWrite() error { return closeWrite(t.Conn) }
