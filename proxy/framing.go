package proxy

import (
	"net/http"
	"strings"
)

// checkFraming refuses over HTTP/2 what a strict.Scanner refuses over HTTP/1: fields
// that an upstream, which may speak HTTP/1, could take for framing or routing.
// net/http has held the frames and pseudo-header fields to RFC 9113 before.
func checkFraming(r *http.Request) *refusal {
	if r.ProtoMajor != 2 {
		return nil
	}
	if lengths := r.Header["Content-Length"]; len(lengths) > 1 || len(lengths) == 1 && !digits(lengths[0]) {
		return refuse(problemMalformed, "Content-Length is not one number in digits (RFC 9113 §8.1.1); nothing was sent.")
	}
	for name := range r.Header {
		if !strings.Contains(name, "_") {
			continue
		}
		switch http.CanonicalHeaderKey(strings.ReplaceAll(name, "_", "-")) {
		case "Content-Length", "Transfer-Encoding":
			return refuse(problemMalformed, "A field that frames is spelt with \"_\", which some servers take for \"-\"; nothing was sent.")
		}
	}
	if strings.ContainsFunc(r.Host, func(c rune) bool { return c >= 0x80 || c == '%' || c == '@' }) {
		return refuse(problemMalformed, "The :authority is not host or host:port (RFC 9113 §8.3.1); nothing was sent.")
	}
	return nil
}

func digits(s string) bool {
	return s != "" && len(s) <= 18 && strings.Trim(s, "0123456789") == ""
}
