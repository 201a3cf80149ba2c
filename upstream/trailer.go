package upstream

import (
	"compress/gzip"
	"compress/zlib"
	"io"
	"net/http"
	"slices"
	"strings"

	"keep-proxy/internal/hop"
)

// maxTrailer bounds the trailer fields that an answer can be kept with: it has to fit
// into a record beside the head.
const maxTrailer = 16 << 10

// notInTrailer are, beside those of one connection, the fields that frame a message, authenticate,
// control what is done with the answer, say how content is to be read, or lead a client
// elsewhere, and mean nothing in a trailer section or aren't the upstream's to say (RFC 9110
// §6.5.1, §7.6.1).
var notInTrailer = []string{
	"Age", "Alt-Svc", "Authorization", "Cache-Control", "Content-Encoding", "Content-Length", "Content-Range",
	"Content-Type", "Cookie", "Date", "Expect", "Expires", "Host", "Http2-Settings", "Location", "Max-Forwards",
	"Pragma", "Range", "Retry-After", "Set-Cookie", "Vary", "Www-Authenticate",
}

// MayTrail reports whether a field of this name, in its canonical form, may stand in the trailer
// section of an answer that a client gets.
func MayTrail(name string) bool {
	return !hop.Is(name) && !slices.Contains(notInTrailer, name) && !strings.HasPrefix(name, "Keep-")
}

// Trailers returns the trailer fields that may be kept with a whole answer and given to
// whoever gets it; nil if there are none. It is asked once Body has ended. Where
// Connection names fields none are, as it may speak of these, and where they are longer
// than can be kept none are, so that everybody gets the same.
func (a *Answer) Trailers() http.Header {
	if len(a.Trailer) == 0 || !a.Evidence().BodyComplete || len(hop.Nominated(a.Header)) > 0 {
		return nil
	}
	kept, size := make(http.Header, len(a.Trailer)), 0
	for name, values := range a.Trailer {
		// Where a trailer was announced and didn't come it has no values.
		if len(values) == 0 || !MayTrail(name) {
			continue
		}
		for _, v := range values {
			size += len(name) + len(v) + fieldOverhead
		}
		kept[name] = values
	}
	if size > maxTrailer || len(kept) == 0 {
		return nil
	}
	return kept
}

// longTrailer reports that the content was whole, and that behind its last chunk came more than
// is looked through for the end of a trailer section: one reader's buffer. What it says is let go
// of, as a recipient may (RFC 9110 §6.5.1), and the connection with it, in which it lies still.
func (c *conn) longTrailer(err error) bool {
	// net/http tells it by its text alone, and says the same of a section that is cut.
	return err != nil && err.Error() == "http: suspiciously long trailer after chunked body" && c.br.Buffered() == c.br.Size()
}

// calls reports whether the request is one of gRPC, whose servers refuse what doesn't
// say that it takes trailers.
func (p *plan) calls() bool {
	media := mediaType(p.header)
	return media == "application/grpc" || strings.HasPrefix(media, "application/grpc+")
}

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
