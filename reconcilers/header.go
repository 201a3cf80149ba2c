package reconcilers

import (
	"net/http"
	"strings"
)

// hopByHop are the fields that speak of one connection (RFC 9110 §7.6.1) or of a
// proxy's authentication (§11.7); a stored answer has none of them.
var hopByHop = []string{
	"Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authentication-Info", "Proxy-Connection",
	"Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

// endToEnd returns the fields of an answer that a replay gives again.
func endToEnd(h http.Header) http.Header {
	kept := h.Clone()
	for _, line := range h.Values("Connection") {
		for name := range strings.SplitSeq(line, ",") {
			kept.Del(strings.TrimSpace(name))
		}
	}
	for _, name := range hopByHop {
		kept.Del(name)
	}
	return kept
}
