package proxy

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"keep-proxy/rules"
	"keep-proxy/upstream"
)

// collect reads the answer's body, at most the operation's limit. Where the
// verdict can't depend on the body, a success is recorded as committed as soon as
// the body is late.
func (p *Proxy) collect(ctx context.Context, s *sending) {
	if s.answer.Status == 0 {
		return
	}
	s.wire = s.answer.Header.Clone()
	stripAnswer(s.wire)
	late := p.whenLate(ctx, s)
	s.body, s.tooLarge = readAnswer(s.answer, s.w.op.MaxBody)
	late()
	if !s.tooLarge {
		s.decode()
	}
}

// whenLate arms the early record of a success; the returned function disarms it,
// or waits for it.
func (p *Proxy) whenLate(ctx context.Context, s *sending) (disarm func()) {
	if s.w.op.JudgesBody() {
		return func() {}
	}
	recorded := make(chan struct{})
	timer := time.AfterFunc(earlyCommit, func() {
		defer close(recorded)
		if !p.succeeded(s) {
			return
		}
		if _, err := p.ledger.MarkCommitted(ctx, s.w.key, s.dispatch.ID, s.answer.Status); err != nil {
			// Not fatal: the outcome is recorded as a whole below, or as unknown.
			p.config.Log.Warn().Err(err).Str("mutation", s.mutation.ID).Msg("early commit not recorded")
			return
		}
		committedPoint.Pass()
	})
	return func() {
		if !timer.Stop() {
			<-recorded
		}
	}
}

// succeeded reports whether the head alone says success. The body is being read
// meanwhile.
func (p *Proxy) succeeded(s *sending) bool {
	ev := s.answer.Evidence()
	head := &rules.Response{Status: s.answer.Status, Header: s.answer.Header}
	opinion := convertOpinion(s.w.op.Judge(s.w.req, s.w.derived.Account, s.rule, head))
	ev.BodyComplete = false
	return upstream.Judge(ev, upstream.FactsOf(s.w.req.Method, s.answer, p.config.Clock.Now(), ""), opinion).Kind.Success()
}

// readAnswer reads at most limit bytes; more means too large, and what was read
// comes first in what is still to be streamed.
func readAnswer(a *upstream.Answer, limit int64) (body []byte, tooLarge bool) {
	if a.ContentLength > limit {
		return nil, true
	}
	var buffer bytes.Buffer
	if a.ContentLength > 0 {
		buffer.Grow(int(a.ContentLength) + bytes.MinRead)
	}
	n, err := buffer.ReadFrom(io.LimitReader(a.Body, limit+1))
	return buffer.Bytes(), err == nil && n > limit
}

// decode removes a content coding that the upstream used although none was asked
// for, so that the answer can be replayed to any client. One that can't be removed
// stays, with its field.
func (s *sending) decode() {
	if s.wire.Get("Content-Encoding") == "" {
		return
	}
	body, ok := decodeContent(s.answer.Header, s.body, s.w.op.MaxBody)
	if !ok {
		return
	}
	s.body = body
	s.wire.Del("Content-Encoding")
	s.wire.Del("Content-Length")
	s.answer.Header.Del("Content-Encoding")
}

var errCoding = errors.New("unknown content coding")

// decodeContent returns the content without its coding (RFC 9110 §8.4.1), if it
// can be decoded within limit bytes.
func decodeContent(h http.Header, body []byte, limit int64) ([]byte, bool) {
	var r io.Reader
	var err error
	switch strings.ToLower(strings.TrimSpace(strings.Join(h.Values("Content-Encoding"), ","))) {
	case "", "identity":
		return body, true
	case "gzip", "x-gzip":
		r, err = gzip.NewReader(bytes.NewReader(body))
	case "deflate":
		r, err = zlib.NewReader(bytes.NewReader(body))
	default:
		err = errCoding
	}
	if err != nil {
		return nil, false
	}
	decoded, err := io.ReadAll(io.LimitReader(r, limit+1))
	return decoded, err == nil && int64(len(decoded)) <= limit
}
