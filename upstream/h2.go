package upstream

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"slices"
	"strings"

	"golang.org/x/net/http2"
)

// sendH2 is one exchange over HTTP/2, on the only stream of its connection.
func (d *dispatch) sendH2(ctx context.Context) *Answer {
	d.conn.streams++
	req := &http.Request{
		Method: d.plan.method, URL: d.plan.url, Host: d.plan.host,
		Header: d.plan.headerH2(), ContentLength: d.plan.length,
		Proto: "HTTP/2.0", ProtoMajor: 2,
	}
	switch {
	case d.content == nil:
	case d.plan.length > 0:
		req.Body = d.content
	default: // net/http takes a Body of length 0 as one of unknown length
		if err := d.content.atEnd(); !errors.Is(err, io.EOF) {
			return d.noAnswer(err)
		}
		d.content.close()
	}
	// The watch ends the dispatch; ctx carries no cancellation to net/http.
	traced := httptrace.WithClientTrace(context.WithoutCancel(ctx), d.traceH2())
	resp, err := d.conn.h2.RoundTrip(req.WithContext(traced))
	if err != nil {
		return d.noAnswer(err)
	}
	if !soundH2(resp) {
		answer := d.noAnswer(errMalformed)
		_ = resp.Body.Close()
		return answer
	}
	return d.read(resp)
}

// headerH2 returns the fields to send. An empty User-Agent keeps net/http from
// adding its own.
func (p *plan) headerH2() http.Header {
	h := make(http.Header, len(p.header)+1)
	h["User-Agent"] = nil
	for name, values := range p.header {
		name = http.CanonicalHeaderKey(name)
		if !p.skips(name) {
			h[name] = append(h[name], values...)
		}
	}
	if strings.EqualFold(p.header.Get("TE"), "trailers") || p.calls() {
		h["Te"] = []string{"trailers"} // RFC 9113 §8.2.2 allows just this value
	}
	return h
}

// traceH2 bounds interim responses and learns when the request was written.
func (d *dispatch) traceH2() *httptrace.ClientTrace {
	size := int64(0)
	refuse := func(err error) error {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.interimErr = err // net/http hides it in an error of the stream
		return err
	}
	return &httptrace.ClientTrace{
		WroteRequest: func(info httptrace.WroteRequestInfo) {
			if info.Err == nil {
				d.wrote()
			}
		},
		Got1xxResponse: func(status int, h textproto.MIMEHeader) error {
			size += fieldOverhead // its :status
			for name, values := range h {
				for _, v := range values {
					size += int64(len(name) + len(v) + fieldOverhead)
				}
			}
			if size > d.sender.cfg.MaxHead {
				return refuse(errHeadTooBig)
			}
			d.showInterim(status, http.Header(h))
			return nil
		},
	}
}

// fieldOverhead is what RFC 9113 §6.5.2 counts for a field besides its text.
const fieldOverhead = 32

// stream is the id of this dispatch's stream (RFC 9113 §5.1.1).
func (d *dispatch) stream() uint32 { return 2*d.conn.streams - 1 }

// refused reports whether the upstream declared that it did not process the
// request.
func (d *dispatch) refused() bool {
	return d.conn.h2 != nil && d.conn.plain.frames.refused(d.stream())
}

// explainH2 prefers what the upstream said in frames to what net/http made of it.
func (d *dispatch) explainH2(err error) *Error {
	if d.refused() {
		return &Error{ErrorRefused, "the upstream refused the stream"}
	}
	if code, ok := d.conn.plain.frames.reset(d.stream()); ok {
		if code == http2.ErrCodeHTTP11Required {
			d.sender.cfg.HTTP1.require(d.plan.addr)
		}
		return &Error{ErrorReset, "the upstream reset the stream: " + code.String()}
	}
	d.mu.Lock()
	interimErr := d.interimErr
	d.mu.Unlock()
	if interimErr != nil {
		return exchangeError(interimErr)
	}
	why := exchangeError(err)
	switch {
	case why.Class != ErrorMalformed:
		return why
	case err != nil && strings.Contains(err.Error(), "header list larger"):
		return exchangeError(errHeadTooBig)
	case d.conn.plain.ended.Load():
		return exchangeError(io.EOF)
	}
	return &Error{ErrorMalformed, "the HTTP/2 exchange failed"}
}

// useH2 makes a transport speak HTTP/2 by golang.org/x/net. The copy in net/http of Go 1.26 locks
// up when an upstream widens a stream's window too far. Then neither a deadline nor the end of the
// connection ends the wait for the answer.
func useH2(t *http.Transport) error {
	return http2.ConfigureTransport(t) //nolint:staticcheck // net/http's own is the way for those whose Go has it mended.
}

// soundH2 reports whether the final head of an HTTP/2 answer can be believed, as headWatch does for
// HTTP/1. The client of golang.org/x/net takes any number as the status, and ignores lengths it
// can't read. A client would frame its answer by those. A head with such ones is malformed (RFC
// 9113 §8.1.1, §8.3.2). Equal lengths that are there twice are taken out: where the content ends
// the frames say.
func soundH2(resp *http.Response) bool {
	status, _, _ := strings.Cut(resp.Status, " ") // As it came, with a text behind it.
	if len(status) != 3 || !isDigits(status) || resp.StatusCode < http.StatusOK {
		return false
	}
	lengths := resp.Header["Content-Length"]
	if slices.ContainsFunc(lengths, func(l string) bool { return !isLength(l) || l != lengths[0] }) {
		return false
	}
	if len(lengths) > 1 {
		delete(resp.Header, "Content-Length")
	}
	if resp.ContentLength > 0 && (resp.StatusCode == http.StatusNoContent || resp.StatusCode == http.StatusNotModified) {
		resp.Body, resp.ContentLength = headOnly{resp.Body}, 0
	}
	return true
}

// headOnly is the body of an answer that never has content, though it may state a length. For
// golang.org/x/net such content was cut (RFC 9110 §6.4.1, RFC 9113 §8.1.1).
type headOnly struct{ io.ReadCloser }

// Read implements io.Reader.
func (h headOnly) Read(p []byte) (int, error) {
	n, err := h.ReadCloser.Read(p)
	if n == 0 && errors.Is(err, io.ErrUnexpectedEOF) {
		err = io.EOF
	}
	return n, err
}

// isLength reports whether text is a length in digits (RFC 9110 §8.6), no longer than content can
// be.
func isLength(text string) bool { return len(text) <= 18 && isDigits(text) }

func isDigits(text string) bool { return text != "" && strings.Trim(text, "0123456789") == "" }
