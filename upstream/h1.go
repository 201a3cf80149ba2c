package upstream

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// inlineBody is the size up to which a body is written before the answer is read.
// Sockets buffer at least that much, so an upstream that answers without reading
// can't hold the write up. Larger bodies get a goroutine that writes while the
// answer is awaited.
const inlineBody = 16 << 10

// sendH1 is one exchange over HTTP/1.1.
func (d *dispatch) sendH1() *Answer {
	if d.plan.length > inlineBody {
		d.written = make(chan struct{})
		go d.writeBeside()
	} else if d.writeErr = d.writeH1(); d.writeErr != nil {
		var broken *bodyError
		if errors.As(d.writeErr, &broken) || d.untouched() {
			return d.noAnswer(d.writeErr)
		}
		d.awaitHead()
	}
	resp, err := d.readHeadH1() //nolint:bodyclose // the answer closes it when it ends
	switch {
	case err != nil:
		return d.noAnswer(err)
	case d.untouched():
		// What was said before a byte went out is about something else.
		return d.noAnswer(errMalformed)
	}
	return d.read(resp)
}

// writeBeside writes while the answer is being read. A body that breaks ends the dispatch. A broken
// connection is left to the reader: the upstream may have answered before it stopped reading.
func (d *dispatch) writeBeside() {
	defer close(d.written)
	d.writeErr = d.writeH1()
	var broken *bodyError
	switch {
	case errors.As(d.writeErr, &broken):
		d.watch.end(ErrorBody)
	case d.writeErr != nil:
		d.awaitHead()
	}
}

// writeH1 writes the request (RFC 9112 §3).
func (d *dispatch) writeH1() error {
	w := d.conn.bw
	d.plan.writeHead(w)
	_, _ = w.Write(d.short) // Flush tells what went wrong.
	if d.content != nil {
		if _, err := io.Copy(w, d.content); err != nil {
			return err
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	d.wrote()
	return nil
}

// writeHead writes the head, fields in the order of their names so that a request
// always looks the same. Errors are kept by w.
func (p *plan) writeHead(w *bufio.Writer) {
	writeStrings(w, p.method, " ", p.target, " HTTP/1.1\r\nHost: ", p.host, "\r\n")
	var space [24]string
	names := space[:0]
	for name := range p.header {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if p.skips(name) {
			continue
		}
		for _, v := range p.header[name] {
			writeStrings(w, name, ": ", v, "\r\n")
		}
	}
	if len(p.upgrade) > 0 {
		writeStrings(w, "Connection: Upgrade\r\nUpgrade: ", strings.Join(p.upgrade, ", "), "\r\n")
	}
	if p.upload != nil {
		p.upload.announce(w)
	} else if p.announcesLength() {
		var digits [20]byte
		writeStrings(w, "Content-Length: ")
		_, _ = w.Write(strconv.AppendInt(digits[:0], p.length, 10))
		writeStrings(w, "\r\n")
	}
	writeStrings(w, "\r\n")
}

func writeStrings(w *bufio.Writer, parts ...string) {
	for _, s := range parts {
		_, _ = w.WriteString(s)
	}
}

// readHeadH1 reads the final head. The first interim responses before it are shown to
// whoever asked for them.
func (d *dispatch) readHeadH1() (*http.Response, error) {
	d.conn.plain.left.Store(d.sender.cfg.MaxHead)
	defer d.conn.plain.left.Store(-1)
	resp, err := d.conn.readHead(&http.Request{Method: d.plan.method}, func(resp *http.Response) error {
		d.showInterim(resp.StatusCode, resp.Header)
		return nil
	})
	if err == nil && resp.StatusCode == http.StatusSwitchingProtocols {
		return nil, errMalformed
	}
	return resp, err
}

// readHead reads the head of the final answer to asked, or of a 101. Other interim answers go to
// interim. Who calls it bounds what may be read meanwhile.
func (c *conn) readHead(asked *http.Request, interim func(*http.Response) error) (*http.Response, error) {
	c.plain.head.reset()
	for {
		resp, err := http.ReadResponse(c.br, asked)
		switch {
		case err != nil:
			return nil, err
		case resp.ProtoMajor != 1, resp.StatusCode < 100, c.plain.head.faulty():
			return nil, errMalformed
		case resp.StatusCode >= 200, resp.StatusCode == http.StatusSwitchingProtocols:
			c.plain.head.restore(resp)
			c.heed(resp.Header["Keep-Alive"])
			return resp, nil
		}
		if err := interim(resp); err != nil {
			return nil, err
		}
	}
}

// showInterim shows an interim response, the first MaxInterim of them.
func (d *dispatch) showInterim(status int, h http.Header) {
	if d.interim == nil || d.interims >= MaxInterim {
		return
	}
	d.interims++
	d.interim(status, h)
}

// explainH1 prefers the error of reading, unless it only follows from that of
// writing.
func (d *dispatch) explainH1(err error) *Error {
	why := exchangeError(err)
	if cut := d.conn.plain.readErr; why.Class == ErrorMalformed && cut != nil {
		why = exchangeError(cut)
	}
	if d.writeErr == nil || errors.Is(d.writeErr, net.ErrClosed) {
		return why
	}
	if why.Class != ErrorEOF && why.Class != ErrorReset {
		return why
	}
	wrote := exchangeError(d.writeErr)
	if wrote.Class == ErrorBody || wrote.Class == ErrorReset {
		return wrote
	}
	return &Error{ErrorWrite, reason(d.writeErr)}
}
