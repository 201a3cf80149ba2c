package upstream

import (
	"net"
	"testing"

	"keep-proxy/internal/fakes/sockets"
)

// What is carried without a limit of silence ends when its peer is gone: the system asks.
func TestConnectionsToUpstreamsAskWhetherThePeerIsThere(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	c, err := newDialer(Config{}).dialTCP(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	sockets.AsksForItsPeer(t, c)
}
