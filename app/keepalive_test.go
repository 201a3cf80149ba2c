package app

import (
	"net"
	"testing"

	"keep-proxy/internal/fakes/sockets"
)

// What is carried without a limit of silence ends when its client is gone: the system asks.
func TestConnectionsOfClientsAskWhetherThePeerIsThere(t *testing.T) {
	t.Parallel()
	l, err := listenAt(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	sockets.AsksForItsPeer(t, c)
}
