package proxy

import (
	"net/http"
	"slices"
	"strings"
)

const headerVia = "Via"

// via is the entry that a message gets on its way through the proxy (RFC 9110 §7.6.3), by
// the protocol in which it was received; empty where none is asked for. The proxy's name
// stands for it, since its address is nobody's business.
func (p *Proxy) via(received string) string {
	if !p.config.Via {
		return ""
	}
	version, ok := strings.CutPrefix(received, "HTTP/")
	if !ok {
		return ""
	}
	if major, whole := strings.CutSuffix(version, ".0"); whole && major != "1" {
		version = major
	}
	return version + " keep-proxy"
}

// addVia adds an entry behind those that are there, without changing values that others
// may share.
func addVia(h http.Header, entry string) {
	if entry != "" {
		h[headerVia] = slices.Concat(h[headerVia], []string{entry})
	}
}
