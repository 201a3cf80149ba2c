package upstream

import (
	"errors"
	"io"
	"net/http"
)

// body is an answer's content; reading it to its end ends the dispatch.
type body struct {
	d      *dispatch
	answer *Answer
	resp   *http.Response
	err    error
}

// Read returns io.EOF if and only if the content was whole.
func (b *body) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	n, err := b.resp.Body.Read(p)
	b.d.got.Add(int64(n))
	if b.d.conn.longTrailer(err) {
		b.resp.Trailer, err = nil, io.EOF
	}
	switch {
	case errors.Is(err, io.EOF) && n > 0 && b.d.writing():
		return n, nil // what is there must not wait for the rest of the request
	case errors.Is(err, io.EOF):
		b.err = b.finish()
	case err != nil:
		b.err = b.d.fail(err)
	}
	return n, b.err
}

// finish ends the dispatch when the content seems to have come to its end.
func (b *body) finish() error {
	b.answer.Trailer = b.resp.Trailer
	if b.cutSilently() {
		return b.d.fail(errTruncated)
	}
	b.d.complete(b)
	if ev := b.d.evidence(); !ev.BodyComplete {
		return &Error{ev.ErrorClass, ev.Error}
	}
	return io.EOF
}

// cutSilently reports whether content that ends with the connection looks cut.
func (b *body) cutSilently() bool {
	return b.d.conn.h2 == nil && b.resp.Body != http.NoBody && b.d.conn.endsUnmarked(b.resp)
}

// leavesNothing gives the content up and reports whether the connection is as it
// was before the exchange.
func (b *body) leavesNothing() bool {
	_ = b.resp.Body.Close()
	c := b.d.conn
	if c.h2 != nil {
		c.plain.frames.forget()
		return c.h2.Err() == nil
	}
	return c.unspoilt(b.resp)
}
