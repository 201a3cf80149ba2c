package proxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"time"

	"keep-proxy/ledger"
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
	s.wire = strippedAnswer(s.answer.Header)
	late := p.whenLate(ctx, s)
	s.body, s.tooLarge, s.lost = p.readAnswer(s.answer, s.w.op.MaxBody)
	late()
	s.trailer = s.answer.Trailers()
	if !s.tooLarge {
		p.decode(s)
	}
}

// whenLate arms the early record of a success; the returned function disarms it,
// or waits for it.
func (p *Proxy) whenLate(ctx context.Context, s *sending) (disarm func()) {
	if s.answer.AtHand {
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

// succeeded reports whether the head alone says success, and no body can say otherwise. The body is being read
// meanwhile.
func (p *Proxy) succeeded(s *sending) bool {
	head := &rules.Response{Status: s.answer.Status, Header: s.answer.Header}
	opinion := upstream.Opinion{Kind: upstream.OpinionUncertain}
	if p.loaded(s.w.req, s.w.body, func(req *rules.Request) {
		if !s.w.op.BodyDecides(req, s.w.derived.Account, s.rule, head) {
			opinion = convertOpinion(s.w.op.Judge(req, s.w.derived.Account, s.rule, head))
		}
	}) != nil {
		return false
	}
	return upstream.Judge(s.answer.Evidence(), upstream.FactsOf(s.method(), s.answer, p.config.Clock.Now(), ""), opinion).Kind.Success()
}

// readAnswer reads at most limit bytes; more means too large, and what was read
// comes first in what is still to be streamed. lost says that what was read could
// neither be put aside nor be read back.
func (p *Proxy) readAnswer(a *upstream.Answer, limit int64) (body *content, tooLarge bool, lost error) {
	if a.ContentLength > limit {
		return nil, true, nil
	}
	var rest io.Reader
	if 0 <= a.ContentLength && a.ContentLength <= ledger.InlineBody {
		// A byte more, as its end has to be seen.
		short := make([]byte, a.ContentLength+1)
		if n, _ := io.ReadFull(a.Body, short); n < len(short) {
			return inMemory(short[:n:n]), false, nil // The answer knows whether that is all.
		}
		rest = io.MultiReader(bytes.NewReader(short), a.Body) // Longer than it said.
	} else {
		rest = a.Body
	}
	body, err := p.spoolAll(io.LimitReader(rest, limit+1), a.ContentLength, maySpool)
	if spool := (spoolError{}); errors.As(err, &spool) {
		// Its end still belongs to the evidence.
		_, _ = io.Copy(io.Discard, io.LimitReader(a.Body, limit))
		return nil, false, spool.error
	}
	return body, err == nil && body.size() > limit, nil
}

// decode removes a content coding that the upstream used although none was asked
// for, so that the answer can be replayed to any client. One that can't be removed
// stays, with its field.
func (p *Proxy) decode(s *sending) {
	if len(s.wire["Content-Encoding"]) == 0 || s.lost != nil {
		return
	}
	body, ok := p.decodeContent(s.answer.Header, s.body, s.w.op.MaxBody)
	if !ok {
		return
	}
	if body != s.body {
		s.body.close(p)
	}
	s.body = body
	s.wire = maps.Clone(s.wire) // It may be the answer's own.
	s.wire.Del("Content-Encoding")
	s.wire.Del("Content-Length")
	if upstream.Coded(s.answer.Header) {
		upstream.Undigested(s.wire)
		upstream.Undigested(s.trailer)
	}
	s.answer.Header.Del("Content-Encoding")
}

// decodeContent returns the content without its coding (RFC 9110 §8.4.1), if it
// can be decoded within limit bytes.
func (p *Proxy) decodeContent(h http.Header, body *content, limit int64) (*content, bool) {
	if !upstream.Coded(h) {
		return body, true
	}
	coded, err := body.open()
	if err != nil {
		return nil, false
	}
	r, known := upstream.Uncoded(h, coded)
	if !known {
		return nil, false
	}
	decoded, err := p.spoolAll(io.LimitReader(r, limit+1), -1, mustSpool)
	if err != nil || decoded.size() > limit {
		decoded.close(p)
		return nil, false
	}
	return decoded, true
}
