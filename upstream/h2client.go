package upstream

import (
	"net/http"

	"golang.org/x/net/http2"
)

// useH2 makes a transport speak HTTP/2 by golang.org/x/net: the copy that net/http of Go
// 1.26 brings locks up for ever when an upstream widens a stream's window too far, in its
// reader with the connection's lock in its hand, and then neither a deadline nor the end
// of the connection ends what waits for the answer.
func useH2(t *http.Transport) error {
	return http2.ConfigureTransport(t) //nolint:staticcheck // net/http's own is the way for those whose Go has it mended.
}
