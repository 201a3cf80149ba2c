package proxy

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"keep-proxy/proxy/strict"
)

// checkFraming refuses over HTTP/2 what a strict.Scanner refuses over HTTP/1: fields
// that an upstream, which may speak HTTP/1, could take for framing or routing.
// net/http has held the frames and pseudo-header fields to RFC 9113 before.
func checkFraming(r *http.Request) *refusal {
	if r.ProtoMajor != 2 {
		return nil
	}
	if !oneLength(r) {
		return refuse(problemMalformed, "Content-Length is not the length of the content, in digits and once (RFC 9113 §8.1.1); nothing was sent.")
	}
	if !strings.HasPrefix(r.RequestURI, "/") && r.RequestURI != "*" {
		return refuse(problemMalformed, "The :path does not begin with \"/\" (RFC 9113 §8.3.1); nothing was sent.")
	}
	for _, value := range r.Header["Expect"] {
		if !strings.EqualFold(value, "100-continue") {
			return faultRefusal(strict.FaultExpectation)
		}
	}
	for name := range r.Trailer {
		// net/http takes no trailer field that the head doesn't announce.
		if !strict.MayTrail(name) {
			return faultRefusal(strict.FaultTrailer)
		}
	}
	for name, values := range r.Header {
		if slices.ContainsFunc(values, padded) {
			return refuse(problemMalformed, "A field's value begins or ends with whitespace (RFC 9113 §8.2.1); nothing was sent.")
		}
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

// oneLength reports whether a Content-Length, if there is one, says what net/http made of
// it. Frames of another length are net/http's to refuse; a request that ends with its
// head has none.
func oneLength(r *http.Request) bool {
	lengths := r.Header["Content-Length"]
	switch len(lengths) {
	case 0:
		return true
	case 1:
		n, err := strconv.ParseInt(lengths[0], 10, 64)
		return digits(lengths[0]) && err == nil && n == r.ContentLength
	}
	return false
}

// padded reports whitespace around a field's value.
func padded(value string) bool {
	return value != "" && (isBlank(value[0]) || isBlank(value[len(value)-1]))
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' }

func digits(s string) bool {
	return s != "" && len(s) <= 18 && strings.Trim(s, "0123456789") == ""
}
