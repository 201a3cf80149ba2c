package proxy

import (
	"net/http"

	"golang.org/x/net/http/httpguts"

	"keep-proxy/internal/hop"
)

// Fields that keep-proxy reads from a request and never forwards.
const (
	headerSubkey = "Keep-Subkey"
	headerItem   = "Keep-Item"
)

// trailersTaken is TE of what is streamed for a client that takes trailers.
var trailersTaken = []string{"trailers"}

// takesTrailers reports whether TE says so (RFC 9110 §10.1.4). The field is of one
// connection, but what it says of trailers holds for those of the answer that is passed on,
// and servers of gRPC refuse requests without it.
func takesTrailers(h http.Header) bool {
	return httpguts.HeaderValuesContainsToken(h["Te"], "trailers")
}

// stripRequest removes from h what must not leave the proxy.
func stripRequest(h http.Header) {
	hop.Strip(h)
	delete(h, headerSubkey)
	delete(h, headerItem)
}

// wantsUpgrade reports whether the request asks for another protocol, which HTTP/1.0
// can't (RFC 9110 §7.8).
func wantsUpgrade(r *http.Request) bool {
	return len(r.Header["Upgrade"]) > 0 && r.ProtoAtLeast(1, 1)
}
