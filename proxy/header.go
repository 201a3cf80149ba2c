package proxy

import (
	"net/http"
	"net/textproto"
	"strings"
)

// Fields that keep-proxy reads from a request and never forwards, and sets on
// answers.
const (
	headerSubkey   = "Keep-Subkey"
	headerItem     = "Keep-Item"
	headerMutation = "Keep-Mutation"
	headerState    = "Keep-State"
	headerReplayed = "Keep-Replayed"
	headerObserved = "Keep-Observed"
	headerScope    = "Keep-Scope"
)

// hopByHop knows the fields that belong to one connection (RFC 9110 §7.6.1), with
// those that old proxies use.
func hopByHop(name string) bool {
	switch name {
	case "Connection", "Proxy-Connection", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
		"Proxy-Authenticate", "Proxy-Authorization", "Proxy-Authentication-Info":
		return true
	}
	return false
}

// stripHop removes the fields of one connection from h, those which its
// Connection field nominates included.
func stripHop(h http.Header) {
	for _, line := range h["Connection"] {
		for name := range strings.SplitSeq(line, ",") {
			if name = textproto.TrimString(name); name != "" {
				h.Del(name)
			}
		}
	}
	for name := range h {
		if hopByHop(name) {
			delete(h, name)
		}
	}
}

// stripRequest removes from h what must not leave the proxy.
func stripRequest(h http.Header) {
	stripHop(h)
	delete(h, headerSubkey)
	delete(h, headerItem)
}

// stripAnswer removes from h what only the proxy may say, and what would lead a client
// past it: to HTTP/3 (RFC 7838), or to other settings of HTTP/2.
func stripAnswer(h http.Header) {
	stripHop(h)
	for name := range h {
		switch name {
		case headerMutation, headerState, headerReplayed, headerObserved, headerScope,
			"Alt-Svc", "Http2-Settings":
			delete(h, name)
		}
	}
}

// wantsUpgrade reports whether the request asks for another protocol
// (RFC 9110 §7.8).
func wantsUpgrade(h http.Header) bool {
	return len(h["Upgrade"]) > 0
}
