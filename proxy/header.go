package proxy

import (
	"maps"
	"net/http"
	"net/textproto"
	"strings"

	"golang.org/x/net/http/httpguts"
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
// Connection field nominates included. It reports whether it nominates any: trailers
// may hold them, too.
func stripHop(h http.Header) (nominated bool) {
	for _, line := range h["Connection"] {
		for name := range strings.SplitSeq(line, ",") {
			name = http.CanonicalHeaderKey(textproto.TrimString(name))
			if name == "" || name == "Close" || hopByHop(name) {
				continue
			}
			nominated = true
			delete(h, name)
		}
	}
	for name := range h {
		if hopByHop(name) {
			delete(h, name)
		}
	}
	return nominated
}

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
	stripHop(h)
	delete(h, headerSubkey)
	delete(h, headerItem)
}

// stripAnswer removes from h what only the proxy may say, and what would lead a client
// past it: to HTTP/3 (RFC 7838), or to other settings of HTTP/2. It reports what
// stripHop does.
func stripAnswer(h http.Header) (nominated bool) {
	nominated = stripHop(h)
	for name := range h {
		if ours(name) {
			delete(h, name)
		}
	}
	return nominated
}

// ours reports whether an upstream may not say this to a client.
func ours(name string) bool {
	switch name {
	case headerMutation, headerState, headerReplayed, headerObserved, headerScope,
		"Alt-Svc", "Http2-Settings":
		return true
	}
	return false
}

// strippedAnswer is h without what stripAnswer removes: h itself where that is nothing.
func strippedAnswer(h http.Header) http.Header {
	for name := range h {
		if hopByHop(name) || ours(name) {
			h = maps.Clone(h)
			stripAnswer(h)
			break
		}
	}
	return h
}

// wantsUpgrade reports whether the request asks for another protocol, which HTTP/1.0
// can't (RFC 9110 §7.8).
func wantsUpgrade(r *http.Request) bool {
	return len(r.Header["Upgrade"]) > 0 && r.ProtoAtLeast(1, 1)
}
