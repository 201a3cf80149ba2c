package proxy

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

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

// takesTrailers reports whether TE says so (RFC 9110 §10.1.4). The field is of one connection, but
// what it says of trailers holds for those that are passed on. Servers of gRPC refuse requests
// without it.
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

const headerVia = "Via"

// via is the Via entry that a message gets here (RFC 9110 §7.6.3), by the protocol that it came
// in. It is empty where none is wanted. The proxy's name stands for it, since its address is
// nobody's business.
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

const headerMaxForwards = "Max-Forwards"

// lastHop counts Max-Forwards of an OPTIONS request down (RFC 9110 §7.6.2) and reports
// whether it ends here. Other methods may carry the field, and it means nothing there;
// nor does what is no number.
func lastHop(r *http.Request) bool {
	if r.Method != http.MethodOptions || len(r.Header[headerMaxForwards]) != 1 {
		return false
	}
	text := r.Header.Get(headerMaxForwards)
	left, err := strconv.ParseUint(text, 10, 31)
	if err != nil || !digits(text) {
		return false
	}
	if left == 0 {
		return true
	}
	r.Header.Set(headerMaxForwards, strconv.FormatUint(left-1, 10))
	return false
}
