// Package hello reads ahead what a client of TLS says first: its ClientHello, and the server name in it.
//
// # Failure
//
// What begins no record of TLS is no error: there is no name then. A hello that can't be read is one.
package hello

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
)

// Hello reads ahead on a connection. Whoever goes on with it takes Said first.
type Hello struct {
	net.Conn
	// Said is what was read.
	Said []byte
	// failed is why no more was, beside a hello.
	failed error
}

var (
	errNoTLS = errors.New("no TLS")
	errHeard = errors.New("the hello was heard")
)

// Read implements io.Reader. It ends with the first bytes that don't begin a record of TLS (RFC 8446 §5.1).
func (h *Hello) Read(b []byte) (int, error) {
	n, err := h.Conn.Read(b)
	h.Said = append(h.Said, b[:n]...)
	if err == nil && !h.IsTLS() {
		err = errNoTLS
	}
	h.failed = err
	return n, err
}

// IsTLS reports whether what was said so far may begin a record of TLS: a type of content, and version 3.
func (h *Hello) IsTLS() bool {
	return len(h.Said) == 0 || h.Said[0] >= 20 && h.Said[0] <= 24 && (len(h.Said) == 1 || h.Said[1] == 3)
}

// Write drops what is written: an alert. The upstream alone answers the client.
func (*Hello) Write(b []byte) (int, error) { return len(b), nil }

// ServerName waits for the hello, and is the name in it. It is empty where there is no name, or no hello. The error
// says why a hello can't be read: a server may read a name there.
func (h *Hello) ServerName(ctx context.Context) (name string, err error) {
	heard := func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		name = hello.ServerName
		return nil, errHeard
	}
	err = tls.Server(h, &tls.Config{MinVersion: tls.VersionTLS12, GetConfigForClient: heard}).HandshakeContext(ctx)
	if errors.Is(err, errHeard) || h.failed != nil {
		err = nil
	}
	return name, err
}
