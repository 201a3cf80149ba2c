package upstream

import (
	"errors"
	"io"
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
	if resp.ContentLength > 0 && (resp.StatusCode == http.StatusNoContent || resp.StatusCode == http.StatusNotModified) {
		resp.Body, resp.ContentLength = headOnly{resp.Body}, 0
	}
	return true
}

// headOnly is what there is of content in an answer that never has any, although it may say how
// long it would be (RFC 9110 §6.4.1, RFC 9113 §8.1.1): golang.org/x/net takes that for content which
// was cut.
type headOnly struct{ io.ReadCloser }

// Read implements io.Reader.
func (h headOnly) Read(p []byte) (int, error) {
	n, err := h.ReadCloser.Read(p)
	if n == 0 && errors.Is(err, io.ErrUnexpectedEOF) {
		err = io.EOF
	}
	return n, err
}

// isLength reports whether text is a length in digits (RFC 9110 §8.6) that is no longer than
// any content can be.
func isLength(text string) bool { return len(text) <= 18 && isDigits(text) }

func isDigits(text string) bool { return text != "" && strings.Trim(text, "0123456789") == "" }
