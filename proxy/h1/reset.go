package h1

import "net"

// Reset ends a connection in a way that nobody takes for its end in good order: without a
// closing alert of TLS, and by a reset where what it lies on has one. What was written and hasn't
// arrived yet may be lost.
func Reset(c net.Conn) {
	below := c
	for {
		wrapped, ok := below.(interface{ NetConn() net.Conn })
		if !ok {
			break
		}
		below = wrapped.NetConn()
	}
	if tcp, ok := below.(interface{ SetLinger(sec int) error }); ok {
		_ = tcp.SetLinger(0)
	}
	_ = below.Close()
	_ = c.Close() // Who counts connections, or waits for their end, is told.
}
