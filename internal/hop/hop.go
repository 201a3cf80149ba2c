// Package hop knows the header fields that belong to one connection (RFC 9110 §7.6.1). It also knows those of a proxy's
// authentication (§11.7), the one of an offer of HTTP/2 (RFC 7540 §3.2.1), and those that old proxies use. Whoever has
// more fields to leave out names them beside these.
//
// # Failure
//
// Nothing here fails. A name that isn't in its canonical form is not known.
package hop

import (
	"net/http"
	"net/textproto"
	"strings"
)

// Is reports whether a field of this name, in its canonical form, belongs to one connection.
func Is(name string) bool {
	switch name {
	case "Connection", "Proxy-Connection", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Http2-Settings",
		"Proxy-Authenticate", "Proxy-Authorization", "Proxy-Authentication-Info":
		return true
	}
	return false
}

// Nominated are the other fields that the Connection field says are of this connection.
func Nominated(h http.Header) (names []string) {
	for _, line := range h["Connection"] {
		for name := range strings.SplitSeq(line, ",") {
			name = http.CanonicalHeaderKey(textproto.TrimString(name))
			if name != "" && name != "Close" && !Is(name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// Strip removes all of them from h. It reports whether any was nominated: trailers may hold
// those, too.
func Strip(h http.Header) (nominated bool) {
	for _, name := range Nominated(h) {
		nominated = true
		delete(h, name)
	}
	for name := range h {
		if Is(name) {
			delete(h, name)
		}
	}
	return nominated
}
