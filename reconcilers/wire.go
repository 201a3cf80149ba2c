package reconcilers

import (
	"bytes"
	"context"
	"io"
	"net/http"

	"keep-proxy/dispatch"
	"keep-proxy/internal/clock"
	"keep-proxy/upstream"
)

// wire sends requests and reads their whole answers.
type wire struct {
	sender dispatch.Sender
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
	out.facts = upstream.FactsOf(r.Method, answer, w.clock.Now())
	out.facts.TooLarge = out.tooLarge
	return out
}
