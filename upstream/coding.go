package upstream

import (
	"compress/gzip"
	"compress/zlib"
	"io"
	"net/http"
	"strings"
)

// codings are those of an answer's content, one after another with commas between them, in lower
// case; "" for none. Members of the list that are empty count for nothing (RFC 9110 §5.6.1.2).
func codings(h http.Header) string {
	var out []string
	for coding := range strings.SplitSeq(strings.Join(h["Content-Encoding"], ","), ",") {
		if coding = strings.ToLower(strings.Trim(coding, " \t")); coding != "" {
			out = append(out, coding)
		}
	}
	return strings.Join(out, ",")
}

// Coded reports whether an answer's content has a coding.
func Coded(h http.Header) bool {
	all := codings(h)
	return all != "" && all != "identity"
}

// Uncoded reads an answer's content without its coding (RFC 9110 §8.4.1); false where that
// is one that can't be removed.
func Uncoded(h http.Header, content io.Reader) (io.Reader, bool) {
	var r io.Reader
	var err error
	switch codings(h) {
	case "", "identity":
		r = content
	case "gzip", "x-gzip":
		r, err = gzip.NewReader(content)
	case "deflate":
		r, err = zlib.NewReader(content)
	default:
		return nil, false
	}
	return r, err == nil
}

// Undigested takes the fields out of h that say a digest of an answer's content (RFC 9530), which isn't
// given as it came: a client that looks would refuse what is sound.
func Undigested(h http.Header) {
	for _, name := range []string{"Content-Digest", "Content-Md5", "Digest", "Repr-Digest"} {
		delete(h, name)
	}
}
