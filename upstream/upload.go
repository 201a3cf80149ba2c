package upstream

import (
	"bufio"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http/httpguts"
)

const (
	// uploadMost is the most content written at once. The buffer has room for the chunk's size before
	// it and its end behind it.
	uploadMost = 32 << 10
	sizeRoom   = len("8000\r\n")
	// uploadEnds is how long a complete answer waits for the request's end. An upstream that answers
	// has mostly read all of it.
	uploadEnds = 50 * time.Millisecond
)

type uploadBuffer [sizeRoom + uploadMost + len("\r\n")]byte

var uploadBuffers = sync.Pool{New: func() any { return new(uploadBuffer) }}

var (
	errUnwanted = errors.New("the answer came in the place of 100 (Continue)")
	errTrailer  = errors.New("a trailer field is malformed")
)

// upload is content that is written while the answer is read. It is long, comes in pieces, or waits
// for 100 (Continue). What was written is never sent again. If it breaks off the connection ends,
// so the upstream never takes it for whole.
type upload struct {
	body io.ReadCloser
	// length is -1 where it isn't known: then it goes out in chunks, with the trailer behind them.
	length  int64
	trailer http.Header
	// expect says that the upstream is asked whether it wants the content.
	expect bool

	// wants holds one when the upstream does. answered is closed when the answer's head is there, or
	// never will be.
	wants, answered chan struct{}
	// done is closed when nothing is written any more; err then says why not all of it was.
	done chan struct{}
	err  error
	// broke says why the content itself did.
	broke atomic.Pointer[bodyError]
}

// uploads reports whether a request's content can be streamed over connections of this package.
func uploads(r *http.Request) bool {
	return r.ContentLength != 0 && r.Body != nil && r.Body != http.NoBody && len(r.TransferEncoding) == 0 && ownForm(r.URL)
}

func newUpload(r *http.Request) *upload {
	u := &upload{
		body: r.Body, length: r.ContentLength, expect: len(r.Header["Expect"]) > 0,
		wants: make(chan struct{}, 1), answered: make(chan struct{}), done: make(chan struct{}),
	}
	if u.length > 0 {
		u.body = newContent(r.Body, u.length)
	} else {
		u.trailer = r.Trailer
	}
	return u
}

// passLong streams a request's content. Where the upstream speaks HTTP/2, or its connections
// can't be looked at, net/http's transport does.
func (p *Passthrough) passLong(r *http.Request) (*http.Response, error) {
	plan, err := makePlan(&Request{Method: r.Method, URL: r.URL, Host: r.Host, Header: r.Header, asIs: true})
	if err != nil {
		_ = r.Body.Close()
		return nil, &Error{ErrorRequest, err.Error()}
	}
	plan.upload = newUpload(r)
	return p.over(r, plan, nil)
}

// announce writes the fields that frame the content.
func (u *upload) announce(w *bufio.Writer) {
	if u.expect {
		writeStrings(w, "Expect: 100-continue\r\n")
	}
	if u.length >= 0 {
		writeStrings(w, "Content-Length: ", strconv.FormatInt(u.length, 10), "\r\n")
		return
	}
	writeStrings(w, "Transfer-Encoding: chunked\r\n")
	if names := u.trailers(); len(names) > 0 {
		writeStrings(w, "Trailer: ", strings.Join(names, ", "), "\r\n")
	}
}

// trailers are the names of the trailer fields, in order. Those that frame a message can't be.
func (u *upload) trailers() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(u.trailer)), func(name string) bool {
		return !httpguts.ValidHeaderFieldName(name) || name == "Transfer-Encoding" || name == "Content-Length" || name == "Trailer"
	})
}

// run writes the request. Nobody else writes to the connection.
func (u *upload) run(c *conn, plan *plan) {
	defer close(u.done)
	u.err = u.write(c.bw, plan)
	_ = u.body.Close()
	if broken, ok := errors.AsType[*bodyError](u.err); ok {
		u.broke.Store(broken)
		c.kill()
	}
}

// write writes head and content. What there is doesn't wait for what is still to come.
func (u *upload) write(w *bufio.Writer, plan *plan) error {
	plan.writeHead(w)
	if err := w.Flush(); err != nil {
		return err
	}
	if u.expect && !u.wanted() {
		return errUnwanted
	}
	buffer := uploadBuffers.Get().(*uploadBuffer) //nolint:errcheck // There is nothing else in it.
	defer uploadBuffers.Put(buffer)
	for {
		n, err := u.body.Read(buffer[sizeRoom : sizeRoom+uploadMost])
		if n > 0 {
			_, _ = w.Write(u.framed(buffer, n))
			if err := w.Flush(); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return u.finish(w)
		case err != nil:
			return &bodyError{err}
		}
	}
}

// framed is what n bytes of content in a buffer go out as.
func (u *upload) framed(buffer *uploadBuffer, n int) []byte {
	if u.length >= 0 {
		return buffer[sizeRoom : sizeRoom+n]
	}
	var space [sizeRoom]byte
	size := append(strconv.AppendInt(space[:0], int64(n), 16), "\r\n"...)
	from := sizeRoom - len(size)
	copy(buffer[from:], size)
	copy(buffer[sizeRoom+n:], "\r\n")
	return buffer[from : sizeRoom+n+len("\r\n")]
}

// finish writes what ends the content.
func (u *upload) finish(w *bufio.Writer) error {
	if u.length >= 0 {
		return nil
	}
	writeStrings(w, "0\r\n")
	for _, name := range u.trailers() {
		for _, value := range u.trailer[name] {
			if !httpguts.ValidHeaderFieldValue(value) {
				return &bodyError{errTrailer}
			}
			writeStrings(w, name, ": ", value, "\r\n")
		}
	}
	writeStrings(w, "\r\n")
	return w.Flush()
}

// wanted waits for 100 (Continue), for a while, and reports whether the content is to be sent.
func (u *upload) wanted() bool {
	t := time.NewTimer(expectTimeout)
	defer t.Stop()
	select {
	case <-u.wants:
		return true
	case <-t.C:
		return true
	case <-u.answered:
		return false
	}
}

// interim notes an interim answer.
func (u *upload) interim(status int) {
	if status == http.StatusContinue {
		select {
		case u.wants <- struct{}{}:
		default:
		}
	}
}

// ended reports whether nothing is written any more.
func (u *upload) ended() bool {
	select {
	case <-u.done:
		return true
	default:
		return false
	}
}

// whole reports whether all of it was written. Where that isn't known yet it waits a moment.
func (u *upload) whole() bool {
	if !u.ended() {
		t := time.NewTimer(uploadEnds)
		defer t.Stop()
		select {
		case <-u.done:
		case <-t.C:
			return false
		}
	}
	return u.err == nil
}

// ownForm reports whether a request's target can be written by this package.
func ownForm(u *url.URL) bool {
	return u != nil && (u.Opaque == "" || u.Opaque[0] == '/') && (u.Path == "" || strings.HasPrefix(u.Path, "/"))
}

// short reports whether a request has short content of known length that doesn't wait for 100
// (Continue). Sockets buffer as much, so that it can be written before the answer is read.
func short(r *http.Request) bool {
	return 0 < r.ContentLength && r.ContentLength <= inlineBody && r.Body != nil && r.Body != http.NoBody &&
		len(r.TransferEncoding) == 0 && len(r.Trailer) == 0 && len(r.Header["Expect"]) == 0 && ownForm(r.URL)
}

// passShort sends a request with short content together with its head, never twice, if all of it
// comes at once. Content that comes in pieces is streamed, since an upstream may answer in between.
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
