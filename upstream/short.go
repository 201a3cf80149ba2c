package upstream

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// ownForm reports whether a request's target can be written by this package.
func ownForm(u *url.URL) bool {
	return u != nil && u.Opaque == "" && (u.Path == "" || strings.HasPrefix(u.Path, "/"))
}

// short reports whether a request brings content that is short, of a length that is
// known, and that nobody asked to wait with. Sockets buffer as much, so that it can be
// written before the answer is read.
func short(r *http.Request) bool {
	return 0 < r.ContentLength && r.ContentLength <= inlineBody && r.Body != nil && r.Body != http.NoBody &&
		len(r.TransferEncoding) == 0 && len(r.Trailer) == 0 && len(r.Header["Expect"]) == 0 && ownForm(r.URL)
}

// passShort sends a request with short content, if all of it comes at once: together
// with its head, and never a second time. Content that comes in pieces is streamed, since
// an upstream may answer in between.
func (p *Passthrough) passShort(r *http.Request) (*http.Response, error) {
	content := make([]byte, r.ContentLength)
	n, err := r.Body.Read(content)
	if err != nil && !errors.Is(err, io.EOF) {
		_ = r.Body.Close()
		return nil, &bodyError{err}
	}
	if n < len(content) {
		return p.passLong(withContent(r, pieces{io.MultiReader(Bytes(content[:n]).reader(), r.Body), r.Body}))
	}
	_ = r.Body.Close() // All that was announced is here.
	return p.own(r, content)
}

// pieces is content of which some was read already.
type pieces struct {
	io.Reader
	io.Closer
}

// withContent is r with its content in another reader.
func withContent(r *http.Request, content io.ReadCloser) *http.Request {
	out := r.WithContext(r.Context())
	out.Body, out.GetBody = content, nil
	return out
}
