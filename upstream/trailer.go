package upstream

import (
	"io"
	"net/http"
	"slices"
	"strings"

	"keep-proxy/internal/coding"
	"keep-proxy/internal/hop"
)

// maxTrailer bounds the kept trailer fields of an answer: they have to fit into a record beside the
// head.
const maxTrailer = 16 << 10

// notInTrailer lists fields that never count in a trailer section (RFC 9110 §6.5.1, §7.6.1), beside
// those of one connection. They frame, authenticate, control, say how to read content or lead a
// client elsewhere, or aren't the upstream's to say.
var notInTrailer = []string{
	"Age", "Alt-Svc", "Authorization", "Cache-Control", "Content-Encoding", "Content-Length", "Content-Range",
	"Content-Type", "Cookie", "Date", "Expect", "Expires", "Host", "Http2-Settings", "Location", "Max-Forwards",
	"Pragma", "Range", "Retry-After", "Set-Cookie", "Vary", "Www-Authenticate",
}

// MayTrail reports whether a field may stand in the trailer section of a client's answer. The name
// is in canonical form.
func MayTrail(name string) bool {
	return !hop.Is(name) && !slices.Contains(notInTrailer, name) && !strings.HasPrefix(name, "Keep-")
}

// Trailers returns the trailer fields that may be kept and passed on with a whole answer; nil for
// none. It is asked once Body has ended. It returns none if Connection names fields, as it may name
// these. If they are too long to keep it returns none, so that everybody gets the same.
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

// longTrailer reports that the content was whole, but its trailer section is longer than the
// reader's buffer. The section is dropped, as a recipient may (RFC 9110 §6.5.1). The connection,
// which still holds it, is dropped too.
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

// Coded reports whether an answer's content has a coding.
func Coded(h http.Header) bool {
	names := coding.Names(h["Content-Encoding"])
	return len(names) > 0 && !slices.Equal(names, []string{"identity"})
}

// Uncoded reads an answer's content without its codings; false where one of them can't be removed.
func Uncoded(h http.Header, content io.Reader) (io.Reader, bool) {
	if !Coded(h) {
		return content, true
	}
	r, err := coding.Reader(content, coding.Names(h["Content-Encoding"]))
	return r, err == nil
}

// Undigested removes the fields of h that hold a digest of the content (RFC 9530, and DynamoDB's own). The
// content is passed on changed, so a client that checks would refuse it.
func Undigested(h http.Header) {
	for _, name := range []string{"Content-Digest", "Content-Md5", "Digest", "Repr-Digest", "X-Amz-Crc32"} {
		delete(h, name)
	}
}
