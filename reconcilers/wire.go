package reconcilers

import (
	"bytes"
	"context"
	"io"
	"net/http"

	"keep-proxy/internal/clock"
	"keep-proxy/upstream"
)

// wire sends requests and reads their whole answers.
type wire struct {
	sender Sender
	clock  clock.Clock
}

// reply is a whole answer, or how far it came.
type reply struct {
	status   int
	header   http.Header
	trailer  http.Header
	body     []byte
	tooLarge bool
	evidence upstream.Evidence
	// facts are what a verdict needs of the head.
	facts upstream.Facts
}

// complete says that the whole answer is here.
func (r reply) complete() bool { return r.evidence.Head && r.evidence.BodyComplete && !r.tooLarge }

// uncoded is the whole answer to a mutation without a content coding that the upstream used although
// none was asked for, as a script's own sending has it: who judges, masks and keeps it reads it plain. One
// that can't be removed within limit bytes stays, with its field.
func (r reply) uncoded(limit int64) reply {
	if len(r.header["Content-Encoding"]) == 0 || !r.complete() {
		return r
	}
	plain, known := upstream.Uncoded(r.header, bytes.NewReader(r.body))
	if !known {
		return r
	}
	var body bytes.Buffer
	if _, err := io.Copy(&body, io.LimitReader(plain, limit+1)); err != nil || int64(body.Len()) > limit {
		return r
	}
	r.header, r.trailer, r.body = r.header.Clone(), r.trailer.Clone(), body.Bytes()
	if upstream.Coded(r.header) {
		upstream.Undigested(r.header)
		upstream.Undigested(r.trailer)
	}
	r.header.Del("Content-Encoding")
	r.header.Del("Content-Length")
	return r
}

// send sends r once and reads at most limit bytes of the answer's body.
func (w wire) send(ctx context.Context, r *upstream.Request, limit int64) reply {
	answer := w.sender.Send(ctx, r)
	var body bytes.Buffer
	// How the body ended is in the evidence.
	_, _ = io.Copy(&body, io.LimitReader(answer.Body, limit+1))
	answer.Close()
	out := reply{status: answer.Status, header: answer.Header, trailer: answer.Trailers(), body: body.Bytes(), evidence: answer.Evidence()}
	if int64(body.Len()) > limit {
		out.tooLarge, out.body = true, nil
	}
	out.facts = upstream.FactsOf(r.Method, answer, w.clock.Now(), "")
	out.facts.TooLarge = out.tooLarge
	return out
}
