package h1

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/textproto"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/net/http/httpguts"
)

// What became of 100 (Continue), which the client may wait for. Nothing yet, it was written, or the
// final answer began.
const (
	mayAsk = iota + 1
	asked
	unasked
)

var errOver = errors.New("h1: the handler has returned")

// answer is the http.ResponseWriter of a request.
type answer struct {
	conn *conn
	x    *exchange

	header http.Header
	// status is 0 before the head of the final answer was written.
	status int
	// length is its Content-Length, -1 without one; written is how much there was.
	length, written int64
	chunked         bool
	// trailers are the names of those that were announced.
	trailers []string
	// closing says that the connection ends with this answer.
	closing, fullDuplex bool
	// over says that the handler has returned: nothing more is written for it.
	over atomic.Bool
	// asking is what became of 100 (Continue).
	asking atomic.Int32
	// deadline says that one for writing was set.
	deadline atomic.Bool
}

func (a *answer) init(c *conn, x *exchange) {
	a.conn, a.x, a.length = c, x, -1
	// Connections of HTTP/1.0 aren't kept.
	a.closing = x.req.Close || x.req.ProtoMinor == 0 || closeSaid(x.req.Header["Connection"])
}

// Header implements http.ResponseWriter.
func (a *answer) Header() http.Header {
	if a.header == nil {
		a.header = make(http.Header, 8)
	}
	return a.header
}

// TakeHeader makes h the fields of the answer, unless there are some. Who gave it changes it
// through Header only from now on.
func (a *answer) TakeHeader(h http.Header) (taken bool) {
	if taken = len(a.header) == 0 && h != nil; taken {
		a.header = h
	}
	return taken
}

// WriteHeader implements http.ResponseWriter. It writes the head, into the buffer.
func (a *answer) WriteHeader(status int) {
	if a.conn.hijacked.Load() || a.status != 0 {
		a.conn.server.logf("h1: superfluous status %d", status)
		return
	}
	if status < 100 || status > 999 {
		panic(fmt.Sprintf("h1: invalid status %d", status))
	}
	if status <= 199 && status != http.StatusSwitchingProtocols {
		a.interim(status)
		return
	}
	a.asking.CompareAndSwap(mayAsk, unasked)
	a.status = status
	a.unread()
	a.conn.writes.Lock()
	defer a.conn.writes.Unlock()
	a.head()
}

// interim writes an interim response.
func (a *answer) interim(status int) {
	c := a.conn
	c.writes.Lock()
	defer c.writes.Unlock()
	if a.over.Load() {
		return
	}
	if status == http.StatusContinue {
		a.asking.CompareAndSwap(mayAsk, asked)
	}
	b := statusLine(c.out.AvailableBuffer(), status)
	var space [manyFields]string
	for _, name := range a.names(space[:0]) {
		if name != "Content-Length" && name != "Transfer-Encoding" {
			b = appendField(b, name, a.header[name])
		}
	}
	_, _ = c.out.Write(append(b, "\r\n"...))
	_ = c.out.Flush()
}

// sayContinue asks for the content, unless the final answer has begun. It reports whether
// the client was asked.
func (a *answer) sayContinue() bool {
	c := a.conn
	c.writes.Lock()
	defer c.writes.Unlock()
	if !a.over.Load() && a.asking.CompareAndSwap(mayAsk, asked) {
		_, _ = c.out.WriteString("HTTP/1.1 100 Continue\r\n\r\n")
		_ = c.out.Flush()
	}
	return a.asking.Load() == asked
}

// unread decides what happens to content that the handler left.
func (a *answer) unread() {
	b := a.x.body
	if b == nil || a.closing {
		return
	}
	// In full duplex somebody else reads on, and gets all of it.
	if a.fullDuplex && !b.whole.Load() || !b.drain() {
		a.closing = true
	}
}

// bodyless reports whether an answer with this status has no content, nor fields that
// tell its length (RFC 9110 §6.4.1).
func bodyless(status int) bool {
	return status < 200 || status == http.StatusNoContent || status == http.StatusNotModified
}

// head writes the head of the final answer.
func (a *answer) head() {
	h := a.header
	a.closing = a.closing || a.conn.server.stopping.Load() || httpguts.HeaderValuesContainsToken(h["Connection"], "close")
	if text := h["Content-Length"]; len(text) > 0 {
		if n, err := strconv.ParseInt(text[0], 10, 64); err == nil && n >= 0 {
			a.length = n
		}
	}
	switch none := bodyless(a.status); {
	case none:
		a.length = -1
	case a.x.req.Method == http.MethodHead, a.length >= 0:
	case a.x.req.ProtoMinor > 0:
		a.chunked = true
	default:
		a.closing = true
	}
	b := statusLine(a.conn.out.AvailableBuffer(), a.status)
	var space [manyFields]string
	for _, name := range a.names(space[:0]) {
		switch name {
		case "Transfer-Encoding", "Content-Length":
		case "Connection":
			if !a.closing || a.status == http.StatusSwitchingProtocols {
				b = appendField(b, name, h[name])
			}
		case "Trailer":
			a.announce(h[name])
			b = appendField(b, name, h[name])
		default:
			if !strings.HasPrefix(name, http.TrailerPrefix) && (name != "Content-Type" || a.status != http.StatusNotModified) {
				b = appendField(b, name, h[name])
			}
		}
	}
	b = a.framing(b)
	_, _ = a.conn.out.Write(append(b, "\r\n"...))
}

// unmarked reports whether the end of the content is that of the connection, as it is for HTTP/1.0.
func (a *answer) unmarked() bool {
	return a.status != 0 && !bodyless(a.status) && !a.chunked && a.length < 0 && a.x.req.Method != http.MethodHead
}

// framing appends the fields that the server says of itself.
func (a *answer) framing(b []byte) []byte {
	if _, given := a.header["Date"]; !given {
		b = append(b, "Date: "...)
		b = time.Now().UTC().AppendFormat(b, http.TimeFormat)
		b = append(b, "\r\n"...)
	}
	switch {
	case a.chunked:
		b = append(b, "Transfer-Encoding: chunked\r\n"...)
	case a.length >= 0:
		b = append(b, "Content-Length: "...)
		b = strconv.AppendInt(b, a.length, 10)
		b = append(b, "\r\n"...)
	}
	switch {
	case !a.closing, a.status == http.StatusSwitchingProtocols:
	case len(a.header["Upgrade"]) > 0:
		b = append(b, "Connection: close, Upgrade\r\n"...) // RFC 9110 §7.8
	default:
		b = append(b, "Connection: close\r\n"...)
	}
	return b
}

// announce notes the trailers that will come.
func (a *answer) announce(lines []string) {
	for _, line := range lines {
		for name := range strings.SplitSeq(line, ",") {
			if name = http.CanonicalHeaderKey(textproto.TrimString(name)); httpguts.ValidTrailerHeader(name) {
				a.trailers = append(a.trailers, name)
			}
		}
	}
}

func statusLine(b []byte, status int) []byte {
	b = append(b, "HTTP/1.1 "...) // Our own version, whatever the client's (RFC 9112 §2.3).
	b = strconv.AppendInt(b, int64(status), 10)
	b = append(b, ' ')
	if text := http.StatusText(status); text != "" {
		b = append(b, text...)
	} else {
		b = append(b, "status code "...)
		b = strconv.AppendInt(b, int64(status), 10)
	}
	return append(b, "\r\n"...)
}

// manyFields is more than most answers have.
const manyFields = 24

// names appends those of the fields to names, in order.
func (a *answer) names(names []string) []string {
	for name := range a.header {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

var noLines = strings.NewReplacer("\r", " ", "\n", " ")

// appendField appends the lines of a field.
func appendField(b []byte, name string, values []string) []byte {
	if !httpguts.ValidHeaderFieldName(name) {
		return b
	}
	for _, v := range values {
		b = append(b, name...)
		b = append(b, ": "...)
		if strings.ContainsAny(v, "\r\n") {
			v = noLines.Replace(v)
		}
		b = append(b, textproto.TrimString(v)...)
		b = append(b, "\r\n"...)
	}
	return b
}

// Write implements io.Writer.
func (a *answer) Write(p []byte) (int, error) {
	c := a.conn
	if c.hijacked.Load() {
		return 0, http.ErrHijacked
	}
	if a.status == 0 {
		a.WriteHeader(http.StatusOK)
	}
	switch {
	case len(p) == 0:
		return 0, nil
	case bodyless(a.status):
		return 0, http.ErrBodyNotAllowed
	}
	c.writes.Lock()
	defer c.writes.Unlock()
	if a.over.Load() {
		return 0, errOver // And not counted: whether its length was a lie is judged already.
	}
	a.written += int64(len(p))
	switch {
	case a.length >= 0 && a.written > a.length:
		return 0, http.ErrContentLength
	case a.x.req.Method == http.MethodHead:
		return len(p), nil
	}
	if a.chunked {
		b := strconv.AppendInt(c.out.AvailableBuffer(), int64(len(p)), 16)
		_, _ = c.out.Write(append(b, "\r\n"...))
	}
	n, err := c.out.Write(p)
	if a.chunked && err == nil {
		_, err = c.out.WriteString("\r\n")
	}
	if err != nil {
		_ = c.rwc.Close()
	}
	return n, err
}

// WriteString implements io.StringWriter.
func (a *answer) WriteString(s string) (int, error) { return a.Write([]byte(s)) }

// FlushError serves http.ResponseController.
func (a *answer) FlushError() error {
	if a.status == 0 {
		a.WriteHeader(http.StatusOK)
	}
	a.conn.writes.Lock()
	defer a.conn.writes.Unlock()
	if a.over.Load() {
		return errOver
	}
	return a.conn.out.Flush()
}

// Flush implements http.Flusher.
func (a *answer) Flush() { _ = a.FlushError() }

// SetReadDeadline serves http.ResponseController.
func (a *answer) SetReadDeadline(t time.Time) error {
	if a.over.Load() {
		return errOver
	}
	return a.conn.setReadDeadline(t)
}

// SetWriteDeadline serves http.ResponseController.
func (a *answer) SetWriteDeadline(t time.Time) error {
	if a.over.Load() {
		return errOver
	}
	a.deadline.Store(true)
	return a.conn.rwc.SetWriteDeadline(t)
}

// EnableFullDuplex serves http.ResponseController: no content is read away before the
// answer, with which the connection ends if there is more.
func (a *answer) EnableFullDuplex() error {
	a.fullDuplex = true
	return nil
}

// Hijack implements http.Hijacker.
func (a *answer) Hijack() (net.Conn, *bufio.ReadWriter, error) { return a.conn.hijack() }

// finish ends the answer, and reports whether it was written.
func (a *answer) finish() bool {
	c := a.conn
	if a.status == 0 {
		if _, given := a.header["Content-Length"]; !given && a.x.req.Method != http.MethodHead {
			a.Header()["Content-Length"] = []string{"0"}
		}
		a.WriteHeader(http.StatusOK)
	}
	c.writes.Lock()
	defer c.writes.Unlock()
	if a.chunked {
		b := append(c.out.AvailableBuffer(), "0\r\n"...)
		for name, values := range a.final() {
			b = appendField(b, name, values)
		}
		_, _ = c.out.Write(append(b, "\r\n"...))
	}
	a.over.Store(true)
	if a.length >= 0 && a.written != a.length && a.x.req.Method != http.MethodHead && !bodyless(a.status) {
		a.closing = true // Its length was a lie.
	}
	return c.out.Flush() == nil
}

// final are the trailers, nil where there are none.
func (a *answer) final() http.Header {
	var all http.Header
	add := func(name string, values []string) {
		if all == nil {
			all = make(http.Header)
		}
		all[name] = append(slices.Clip(all[name]), values...)
	}
	for name, values := range a.header {
		if kept, found := strings.CutPrefix(name, http.TrailerPrefix); found {
			add(kept, values)
		}
	}
	for _, name := range a.trailers {
		if values := a.header[name]; len(values) > 0 {
			add(name, values)
		}
	}
	return all
}
