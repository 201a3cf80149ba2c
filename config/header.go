package config

import (
	"net/textproto"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// readHeaderName reads the name of a field that a credential may set, and gives
// it back in canonical form.
func readHeaderName(_ reading, s string) (string, *fault) {
	if !httpguts.ValidHeaderFieldName(s) {
		return "", &fault{"not a header's name", "write the name alone, such as Authorization, without a colon"}
	}
	name := textproto.CanonicalMIMEHeaderKey(s)
	if isProxysOwn(name) {
		return "", &fault{"the proxy sets or removes this header itself", "use the header in which the API expects its credential"}
	}
	return name, nil
}

// isProxysOwn reports whether a canonical name belongs to message framing,
// routing, a single connection (RFC 9110 §7.6.1), or to keep-proxy.
func isProxysOwn(name string) bool {
	switch name {
	case "Host", "Content-Length", "Transfer-Encoding", "Connection", "Te", "Trailer", "Upgrade", "Expect":
		return true
	default:
		return strings.HasPrefix(name, "Proxy-") || strings.HasPrefix(name, "Keep-")
	}
}
