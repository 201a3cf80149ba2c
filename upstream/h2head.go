package upstream

import (
	"net/http"
	"slices"
	"strings"
)

// soundH2 reports whether the final head of an answer over HTTP/2 can be believed, as headWatch
// does over HTTP/1: golang.org/x/net reads any number as the status, and passes over lengths that
// it doesn't understand, which a client of ours would frame its answer by. A head with such
// ones is malformed (RFC 9113 §8.1.1, §8.3.2). Equal lengths that are there twice are taken out:
// where the content ends the frames say.
func soundH2(resp *http.Response) bool {
	status, _, _ := strings.Cut(resp.Status, " ") // As it came, with a text behind it.
	if len(status) != 3 || !isDigits(status) || resp.StatusCode < http.StatusOK {
		return false
	}
	lengths := resp.Header["Content-Length"]
	if slices.ContainsFunc(lengths, func(l string) bool { return !isLength(l) || l != lengths[0] }) {
		return false
	}
	if len(lengths) > 1 {
		delete(resp.Header, "Content-Length")
	}
	return true
}

// isLength reports whether text is a length in digits (RFC 9110 §8.6) that is no longer than
// any content can be.
func isLength(text string) bool { return len(text) <= 18 && isDigits(text) }

func isDigits(text string) bool { return text != "" && strings.Trim(text, "0123456789") == "" }
