package config

import (
	"net/textproto"
	"strings"
	"time"

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

// readScheme reads an authentication scheme, a token (RFC 9110 §11.1), or nothing.
func readScheme(_ reading, s string) (string, *fault) {
	if s != "" && !httpguts.ValidHeaderFieldName(s) {
		return "", &fault{"not an authentication scheme", "write one word such as Bearer, or \"\" for none"}
	}
	return s, nil
}

// defaultCredentialCache is shorter than tokens usually live.
const defaultCredentialCache = 5 * time.Minute

// fill sets what a credential of a program has by default; cached says that cache was given,
// perhaps as zero, which is no default.
func (c *Credentials) fill(cached bool) {
	if len(c.Exec) == 0 {
		return
	}
	if c.Header == "" {
		c.Header = "Authorization"
	}
	if c.Scheme == nil {
		scheme := ""
		if c.Header == "Authorization" {
			scheme = "Bearer"
		}
		c.Scheme = &scheme
	}
	if !cached {
		c.Cache = defaultCredentialCache
	}
}
