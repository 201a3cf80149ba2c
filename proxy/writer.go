package proxy

import (
	"context"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// answerWriter passes an answer to the client and knows how far that went.
type answerWriter struct {
	http.ResponseWriter
	// length is the answer's Content-Length, -1 without one. Each
	// write is flushed: the next bytes may be far away, and after the last ones the
	// client may leave.
	length int64
	// old says that the client speaks HTTP/1.0: its connection is not kept
	// (RFC 9112 §9.3).
	old    bool
	status int
	bytes  int64
	// offers are protocols that the client may change to; empty for none.
	offers string
	// cut says that the answer's source ended early; see source.
	cut bool
	// lost says that the client didn't take all of it.
	lost bool
	// client ends when the client leaves. If whole is set, it was there when the last of the answer
	// was to be written. One that leaves after that may have read it all.
	client context.Context
	whole  atomic.Bool
	// looks says that nobody follows the client: whether it is there has to be looked at.
	looks bool
	// severed says that the client gets no more.
	severed atomic.Bool
}

// answerTo is where the answer to r goes.
func answerTo(w http.ResponseWriter, r *http.Request) *answerWriter {
	return &answerWriter{ResponseWriter: w, client: r.Context(), old: !r.ProtoAtLeast(1, 1)}
}

// copyBuffers hold 32 KiB each, the size that io.Copy takes.
var copyBuffers = sync.Pool{New: func() any { return new([32 << 10]byte) }}

func takeBuffer() *[32 << 10]byte {
	if buffer, ok := copyBuffers.Get().(*[32 << 10]byte); ok {
		return buffer
	}
	return new([32 << 10]byte)
}

// Unwrap serves http.ResponseController.
func (w *answerWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Flush implements http.Flusher.
func (w *answerWriter) Flush() { w.flush() }

func (w *answerWriter) flush() {
	if http.NewResponseController(w.ResponseWriter).Flush() != nil {
		w.lose()
	}
}

// WriteHeader implements http.ResponseWriter.
func (w *answerWriter) WriteHeader(status int) {
	w.status, w.length = status, -1
	if w.old {
		w.Header().Set("Connection", "close")
	}
	if w.offers != "" {
		h := w.Header()
		h["Connection"], h["Upgrade"] = []string{"Upgrade"}, []string{w.offers}
	}
	if _, said := w.Header()["Content-Type"]; !said {
		w.Header()["Content-Type"] = nil // net/http, which serves HTTP/2, would guess one.
	}
	if status == http.StatusNoContent || status == http.StatusNotModified {
		// It has no content, and clients of HTTP/2 wait for as much as is announced (RFC 9110 §8.6).
		delete(w.Header(), "Content-Length")
	} else if text := w.Header().Get("Content-Length"); text != "" {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			w.length = n
		}
	}
	w.ResponseWriter.WriteHeader(status)
	if w.length < 0 && status != http.StatusNoContent && status != http.StatusNotModified {
		// A stream's head says that it is there; its first bytes may come later.
		w.flush()
	}
}

// Write implements io.Writer.
func (w *answerWriter) Write(p []byte) (int, error) {
	if w.bytes+int64(len(p)) == w.length {
		w.ends()
	}
	n, err := w.ResponseWriter.Write(p)
	w.bytes += int64(n)
	if err != nil {
		w.lose()
		return n, err
	}
	w.flush()
	return n, nil
}

// ReadFrom implements io.ReaderFrom with a buffer that is used again, unless a write failed. After
// a reset of an HTTP/2 stream net/http may still read the buffer. It would then send what another
// exchange has put there.
func (w *answerWriter) ReadFrom(src io.Reader) (int64, error) {
	buffer, reusable := takeBuffer(), true
	defer func() {
		if reusable {
			copyBuffers.Put(buffer)
		}
	}()
	var total int64
	for {
		n, err := src.Read(buffer[:])
		if n > 0 {
			written, writeErr := w.Write(buffer[:n])
			total += int64(written)
			if writeErr != nil {
				reusable = false
				return total, writeErr
			}
		}
		if err == io.EOF {
			return total, nil
		}
		if err != nil {
			return total, err
		}
	}
}

// source is an answer's content on its way to the client. It notes an early end
// where the content is read, since whoever copies it may not tell.
type source struct {
	io.ReadCloser
	cut *bool
}

// Read implements io.Reader.
func (s source) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		*s.cut = true
	}
	return n, err
}

// sever makes every write fail from now on, also one that waits for the client. The
// handler must not have ended.
func (w *answerWriter) sever() {
	w.severed.Store(true)
	// Where there is no such deadline the content's end has to do.
	_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(longOver)
}

// carry writes an answer, trailers included, and closes its content.
func (w *answerWriter) carry(resp *http.Response) {
	defer func() { _ = resp.Body.Close() }()
	if to, ok := w.ResponseWriter.(interface{ TakeHeader(h http.Header) bool }); !ok || !to.TakeHeader(resp.Header) {
		maps.Copy(w.Header(), resp.Header)
	}
	h := w.Header()
	announced := len(resp.Trailer)
	if announced > 0 {
		h["Trailer"] = []string{strings.Join(slices.Sorted(maps.Keys(resp.Trailer)), ", ")}
	}
	w.WriteHeader(resp.StatusCode)
	_, _ = w.ReadFrom(resp.Body) // What went wrong is noted by w and by the content.
	if len(resp.Trailer) == 0 {
		return
	}
	// Content so short that it still has a length would have no place for trailers.
	w.flush()
	prefix := ""
	if len(resp.Trailer) != announced {
		prefix = http.TrailerPrefix
	}
	for name, values := range resp.Trailer {
		h[prefix+name] = values
	}
}

// finish flushes and reports whether the client got the whole answer, as far as is known here. The
// client was there when the last of it was written.
func (w *answerWriter) finish() bool {
	if w.status == 0 || w.cut || w.lost {
		return false
	}
	if w.length <= 0 || w.bytes != w.length {
		w.ends()
		w.flush()
	}
	return !w.lost && w.whole.Load()
}

// lose notes that the client doesn't get all of it, so that it may ask again.
func (w *answerWriter) lose() {
	w.lost = true
	w.whole.Store(false)
}

// ends notes whether somebody is there to take the last of the answer. It comes before that is
// written. A client that has it may leave, and ask again, before we go on.
func (w *answerWriter) ends() {
	if w.looks {
		w.whole.Store(!hasGone(w.client))
		return
	}
	w.whole.Store(w.client.Err() == nil)
}

// looker is the context of a client that can be seen to have gone without being told (package h1).
// That spares a goroutine which reads beside the handler to follow it.
type looker interface {
	// CanLook reports whether Look tells anything.
	CanLook() bool
	// Look ends the context if the client has gone.
	Look()
}

// follow makes sure that it is known, when asked, whether the client of a mutation has gone. That
// decides what is a repeat, and what was delivered, whatever the method. One that can be looked at
// is looked at then; any other is followed from now on.
func (x *exchange) follow() {
	if l, ok := x.client.(looker); ok && l.CanLook() {
		if x.answer != nil {
			x.answer.looks = true
		}
		return
	}
	x.client.Done()
}

// hasGone reports whether a client has gone.
func hasGone(client context.Context) bool {
	if l, ok := client.(looker); ok {
		l.Look()
	}
	return client.Err() != nil
}
