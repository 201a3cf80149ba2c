package proxy

import (
	"crypto/tls"
	"errors"
	"net"
	"net/http"

	"keep-proxy/proxy/strict"
)

// Connections that begin in another language than HTTP, by their first byte.
var (
	faultTLS = &strict.Fault{Status: http.StatusBadRequest, Section: "RFC 8446 §5.1",
		Detail: "The client speaks TLS to a listener that speaks HTTP; the proxy's address begins with http://, for https targets too"}
	faultSocks4 = &strict.Fault{Status: http.StatusBadRequest, Section: "SOCKS 4",
		Detail: "The client speaks SOCKS; this is an HTTP proxy"}
	faultSocks5 = &strict.Fault{Status: http.StatusBadRequest, Section: "RFC 1928 §3",
		Detail: "The client speaks SOCKS; this is an HTTP proxy"}
)

// problemTLS is what the log calls bytes that are no TLS where it is spoken. They are
// answered by an alert, and so with no problem.
const problemTLS problem = "tls"

// faultRecord is what ends a connection on which TLS was spoken before.
var faultRecord = &strict.Fault{Status: http.StatusBadRequest, Section: "RFC 8446 §5", Detail: "What the client sends is no record of its TLS session"}

// isNoTLS reports whether err is one of TLS about what the other side sent, which it was
// told by an alert.
func isNoTLS(err error) bool {
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return true
	}
	alert, ok := errors.AsType[*net.OpError](err)
	return ok && alert.Op == "local error"
}

// hints answer such clients in their own language.
var hints = map[*strict.Fault]string{
	// A fatal alert, handshake_failure (RFC 8446 §6).
	faultTLS: "\x15\x03\x03\x00\x02\x02\x28",
	// "Request rejected or failed".
	faultSocks4: "\x00\x5b\x00\x00\x00\x00\x00\x00",
	// "No acceptable methods".
	faultSocks5: "\x05\xff",
}

// foreign knows the first bytes of what is no HTTP.
func foreign(first byte) *strict.Fault {
	switch first {
	case tlsHandshake:
		return faultTLS
	case 4:
		return faultSocks4
	case 5:
		return faultSocks5
	}
	return nil
}
