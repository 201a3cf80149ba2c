package upstream

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"sync/atomic"
)

// readable reports whether a request is a safe read (RFC 9110 §9.2.1) without content. Sending it
// twice does no harm.
func readable(r *http.Request) bool {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
	default:
		return false
	}
	return (r.Body == nil || r.Body == http.NoBody) && r.ContentLength == 0 && len(r.TransferEncoding) == 0 && ownForm(r.URL)
}

// reading is one exchange over HTTP/1.1. It is the answer's body, too.
type reading struct {
	ctx  context.Context
	conn *conn
	pool *pool
	// content is the request's, nil for none, and where upload streams it.
	content Bytes
	upload  *upload
	resp    *http.Response
	// inner is the answer's content as it was parsed.
	inner io.ReadCloser
	// release ends the watch over ctx; it reports whether the connection lives.
	release func() bool
	// over is set by whoever ends the exchange.
	over atomic.Bool
}

// readOn sends a request on a connection and reads the head of its answer. If again is set, a read
// without content got no byte of an answer on a kept connection.
func (p *Passthrough) readOn(
	ctx context.Context, c *conn, plan *plan, r *http.Request, content Bytes,
) (_ *http.Response, again bool, _ error) {
	e := &reading{ctx: ctx, conn: c, pool: p.pool, content: content, upload: plan.upload, release: context.AfterFunc(ctx, c.kill)}
	most := p.cfg.MaxHead
	c.plain.left.Store(most)
	resp, err := e.head(plan, r)
	if err != nil {
		untouched := c.plain.left.Load() == most
		if cut := c.plain.readErr; cut != nil && isMalformed(err) {
			err = cut
		}
		e.end(false)
		return nil, content == nil && e.upload == nil && c.link.Reused && untouched && ctx.Err() == nil, err
	}
	c.plain.left.Store(-1)
	resp.Close = resp.Close || len(plan.upgrade) > 0 // See upgrade.
	e.resp, e.inner = resp, resp.Body
	switch {
	case resp.StatusCode == http.StatusSwitchingProtocols && len(plan.upgrade) > 0:
		resp, err = e.switched(plan)
		return resp, false, err
	case resp.StatusCode == http.StatusSwitchingProtocols:
		resp.Body = http.NoBody
		e.end(false)
	case resp.Body == http.NoBody:
		e.end(true)
	default:
		resp.Body = e
	}
	return resp, false, nil
}

// head writes the request and reads the answer's head. How long that takes is for the client to say.
func (e *reading) head(plan *plan, r *http.Request) (*http.Response, error) {
	if e.upload != nil {
		return e.headBeside(plan, r)
	}
	plan.writeHead(e.conn.bw)
	_, _ = e.conn.bw.Write(e.content)
	wrote := e.conn.bw.Flush()
	if wrote != nil && e.content == nil {
		return nil, wrote
	}
	// Who didn't want the content may have answered before it stopped reading.
	resp, err := e.conn.readHead(r, e.interim)
	if err != nil {
		return nil, cmp.Or(wrote, err)
	}
	resp.Close = resp.Close || wrote != nil
	return resp, nil
}

// headBeside reads the answer's head while the request is written.
func (e *reading) headBeside(plan *plan, r *http.Request) (*http.Response, error) {
	go e.upload.run(e.conn, plan)
	resp, err := e.conn.readHead(r, e.interim)
	close(e.upload.answered)
	if broken := e.upload.broke.Load(); broken != nil && err != nil {
		return nil, broken
	}
	return resp, err
}

// interim shows an interim answer to who wants them. The bound of the head counts them,
// too.
func (e *reading) interim(resp *http.Response) error {
	if e.upload != nil {
		e.upload.interim(resp.StatusCode)
	}
	if to := interimsOf(e.ctx); to != nil {
		to.Show(resp.StatusCode, resp.Header)
	}
	return nil
}

// Read implements io.Reader. It returns io.EOF if and only if the content was whole.
func (e *reading) Read(p []byte) (int, error) {
	n, err := e.inner.Read(p)
	if e.conn.longTrailer(err) {
		e.resp.Trailer, err = nil, io.EOF
	}
	switch {
	case err == nil:
		return n, nil
	case errors.Is(err, io.EOF) && n > 0 && e.upload != nil && !e.upload.ended():
		return n, nil // What is there must not wait for the rest of the request.
	case errors.Is(err, io.EOF) && !e.conn.endsUnmarked(e.resp):
		e.end(true)
		return n, io.EOF
	case errors.Is(err, io.EOF):
		err = errTruncated
	}
	e.end(false)
	if cause := context.Cause(e.ctx); cause != nil {
		return n, cause
	}
	return n, passError(err)
}

// Close implements io.Closer. A connection whose answer was not read to its end is of
// no use any more.
func (e *reading) Close() error {
	e.end(false)
	return nil
}

// end gives the connection back after a whole exchange with nothing left over, and
// closes it otherwise; once.
func (e *reading) end(whole bool) {
	if e.over.Swap(true) {
		return
	}
	lives := e.release()
	switch {
	case !lives || !whole || e.upload != nil && !e.upload.whole():
		e.conn.kill()
	case !e.conn.unspoilt(e.resp):
		e.conn.close()
	default:
		e.pool.put(e.conn, e.pool.now())
	}
}

// unspoilt reports whether a whole answer left the connection as it was. The next answer there then
// belongs to the next request.
func (c *conn) unspoilt(resp *http.Response) bool {
	return !resp.Close && c.br.Buffered() == 0 && !c.plain.head.loose() && !c.announcesMore(resp)
}

// announcesMore reports a 204 that says that content follows (RFC 9110 §8.6, RFC 9112 §6.1
// forbid it). There is none to read, and who says so may send it all the same.
func (c *conn) announcesMore(resp *http.Response) bool {
	return resp.StatusCode == http.StatusNoContent &&
		(c.plain.head.coding || slices.ContainsFunc(resp.Header["Content-Length"], func(length string) bool { return length != "0" }))
}

// endsUnmarked reports whether content that ends with the connection came without TLS's closing
// alert. A cut looks like that (RFC 9112 §8, §9.8).
func (c *conn) endsUnmarked(resp *http.Response) bool {
	toTheEnd := resp.ContentLength < 0 && len(resp.TransferEncoding) == 0
	return toTheEnd && c.secure && c.raw.eof.Load()
}

// isMalformed reports an error that may only hide how reading ended.
func isMalformed(err error) bool { return exchangeError(err).Class == ErrorMalformed }
