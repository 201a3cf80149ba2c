package proxy

import (
	"context"
	"io"
	"maps"
	"net/http"
	"strconv"
	"time"

	"keep-proxy/dispatch"
	"keep-proxy/internal/verdict"
	"keep-proxy/ledger"
	"keep-proxy/rules"
	"keep-proxy/upstream"
)

// reply is what one piece of work came to: the upstream's or a stored one, or a refusal.
type reply struct {
	// refusal is set when the proxy answers itself.
	refusal *refusal
	// mutation is the record as it is now; nil if there is none.
	mutation *ledger.Mutation
	decision ledger.Decision

	status int
	header http.Header
	// trailer comes behind the body, for those who take it.
	trailer http.Header
	body    *dispatch.Content
	// rest follows body: an answer over the limit, which only its leader gets. Its trailer fields come
	// from behind once it has ended.
	rest     io.ReadCloser
	behind   func() http.Header
	replayed bool
	// standIn names what of the rule was given in the place of a result.
	standIn string

	// shared says that joiners get the same.
	shared bool
	// failure is set for a definite failure, which joiners' runs share.
	failure *ledger.Failure
	// runRefused says that the ledger ended the run with the refusal.
	runRefused bool
	// stops says that joiners' runs are refused as stopped.
	stops bool
}

// repeatable reports whether asking again while this is being delivered is a second intent. After a
// failure or a refusal it isn't. A client may ask again once it has read the answer, before the
// proxy knows that it has.
func (s *reply) repeatable() bool {
	return s.refusal == nil && (s.mutation.State == ledger.Applied || s.mutation.State == ledger.Skipped || s.mutation.Watching)
}

// unnoted reports a refusal that left no event behind: those which change a record
// or a run do.
func (s *reply) unnoted() bool {
	return s.decision == ledger.DecideRepeated || s.decision == ledger.DecideStale || s.decision == ledger.DecideRefused && !s.runRefused
}

// failureOf is the definite failure of a record.
func failureOf(m *ledger.Mutation, unauthorized bool) *ledger.Failure {
	return &ledger.Failure{Key: m.Key, Class: m.Class, Reason: m.Reason, Unauthorized: unauthorized, RetryAfter: m.RetryAfter}
}

// answered makes the response of x from the work's result. It notes the delivery once the client
// has it whole.
func (p *Proxy) answered(x *exchange, r *http.Request, w *work, s *reply) *http.Response {
	x.mutation, x.decision = s.mutation, s.decision
	state := ""
	if s.mutation != nil {
		state = string(s.mutation.State)
	}
	p.config.Metrics.Mutation(string(s.decision), state)
	if s.refusal != nil {
		f := *s.refusal
		if s.mutation != nil && f.mutation == nil {
			f.mutation = s.mutation
		}
		if f.mutation != nil && s.unnoted() {
			p.ledger.Refuse(ledger.Event{
				Actor: ledger.ActorProxy, What: string(f.problem), Why: f.detail, Mutation: f.mutation.ID,
				Run: x.caller.run, Workflow: x.caller.workflow, Item: x.caller.item,
			})
		}
		f.noted = f.mutation != nil || !s.unnoted()
		return p.refused(x, r, &f)
	}
	others := x.caller.managed() && s.mutation.Run != x.caller.run
	if others {
		// What the run asks for next comes after this, whenever its delivery is noted.
		p.ledger.Answering(x.caller.run, s.mutation.Key)
	}
	s, err := p.readdressed(w, s)
	var resp *http.Response
	if err == nil {
		resp, err = s.response(r)
	}
	if err == nil && x.trailers {
		s.trail(r, resp)
	}
	if err != nil {
		// What the client gets now is a refusal, and not its answer.
		if others {
			p.ledger.Undelivered(x.caller.run, s.mutation.Key)
		}
		return p.refused(x, r, s.unreadable(err))
	}
	if s.rest != nil {
		open := p.openStream(r.Context(), x)
		context.AfterFunc(open, func() { _ = s.rest.Close() })
		resp.Body = open.content(x.answer, resp.Body)
	}
	addVia(resp.Header, p.via(answeredBy(s.mutation)))
	x.after = append(x.after, func(delivered bool) { p.noteAnswer(x, w, s, delivered, others) })
	if x.caller.unmanaged {
		resp.Header.Set(dispatch.FieldScope, "unmanaged")
	}
	return resp
}

// answeredBy is the protocol in which the upstream answered last; empty if it didn't.
func answeredBy(m *ledger.Mutation) string {
	if d := m.Current(); d != nil {
		return d.Protocol
	}
	return ""
}

// noteAnswer notes what became of an answer; others says that it was announced, as the
// answer of another run's mutation.
func (p *Proxy) noteAnswer(x *exchange, w *work, s *reply, delivered, others bool) {
	delivered = delivered && x.caller.managed()
	if others && !delivered {
		p.ledger.Undelivered(x.caller.run, s.mutation.Key)
	}
	switch {
	case s.replayed:
		p.ledger.Replayed(x.caller.run, s.mutation, w.clientKey, delivered)
	case delivered:
		p.ledger.Deliver(x.caller.run, s.mutation, w.clientKey)
	}
	if delivered {
		deliveredPoint.Pass()
	}
}

// joined answers a caller that waited for another's work. Its run may not have what
// the leader's may, and it shares what the answer means for a run.
func (p *Proxy) joined(x *exchange, r *http.Request, w *work, call *call) *http.Response {
	s := call.answer
	if !x.caller.managed() || call.run == x.caller.run || s.mutation == nil {
		return p.answered(x, r, w, s)
	}
	// The client may have gone, but not what its run has learned.
	ctx := context.WithoutCancel(r.Context())
	if s.stops {
		// Whether or not the ledger can say so, the answer is that the outcome is unknown, and
		// the run over.
		if _, err := p.ledger.RefuseRun(ctx, x.caller.run, "the outcome of a mutation it waited for is unknown", s.mutation.ID); err != nil {
			p.config.Log.Error().Err(err).Str("run", x.caller.run).Msg("run not ended; trying on")
			p.endLater(x.caller.run, dispatch.NotRecorded(s.mutation.ID))
		}
		return p.answered(x, r, w, s)
	}
	joined, f := p.ahead(ctx, w, func(ctx context.Context) (ledger.Claimed, *refusal) {
		joined, err := p.ledger.Join(ctx, w.claim)
		if err != nil {
			return ledger.Claimed{}, ledgerRefusal(err)
		}
		return joined, nil
	})
	if f != nil {
		return p.refused(x, r, f)
	}
	if joined.Decision != ledger.DecideJoin {
		return p.answered(x, r, w, p.decided(ctx, x, w, joined))
	}
	if s.failure != nil {
		met := *s.failure
		met.Digest = w.derived.PayloadDigest
		if _, err := p.ledger.FailRun(ctx, x.caller.run, met); err != nil {
			return p.refused(x, r, ledgerRefusal(err))
		}
	}
	return p.answered(x, r, w, s)
}

// sessionField names the session of MCP in which a call was answered. Clients take it for their own, which may be another.
const sessionField = "Mcp-Session-Id"

// readdressed is the reply with the id of the caller's own call of JSON-RPC, whoever's call was sent.
func (p *Proxy) readdressed(w *work, s *reply) (*reply, error) {
	if w.callID == nil || s.rest != nil {
		return s, nil
	}
	own := *s // It may be shared with joiners.
	own.header = maps.Clone(s.header)
	own.header.Del(sessionField)
	err := p.contents.Hold(s.body, nil, func(body, _ []byte) {
		if changed := rules.Readdress(body, w.callID); changed != nil {
			own.body = dispatch.InMemory(changed)
			upstream.Undigested(own.header)
		}
	})
	return &own, err
}

// response is the answer as the script sees it.
func (s *reply) response(r *http.Request) (*http.Response, error) {
	// The values are the record's, or shared with joiners: none is changed in place.
	header := maps.Clone(s.header)
	if header == nil {
		header = make(http.Header)
	}
	dispatch.StripAnswer(header)
	own := []string{s.mutation.ID, string(s.mutation.State), "true"}
	header[dispatch.FieldMutation], header[dispatch.FieldState] = own[:1:1], own[1:2:2]
	if s.replayed {
		header[dispatch.FieldReplayed] = own[2:]
	}
	if s.standIn != "" {
		header.Set("Proxy-Status", `keep-proxy; details="`+s.standIn+`"`)
	}
	if body, short := s.body.Whole(); short && s.rest == nil {
		return newResponse(r, s.status, header, body), nil
	}
	body, err := s.body.Open()
	if err != nil {
		return nil, err
	}
	if s.rest == nil {
		return newStreamed(r, s.status, header, body, s.body.Len()), nil
	}
	resp := newResponse(r, s.status, header, nil)
	delete(resp.Header, "Content-Length")
	if length := s.header.Get("Content-Length"); length != "" {
		resp.Header.Set("Content-Length", length)
	}
	resp.Body = &content{Reader: io.MultiReader(body, s.rest), close: func() { _ = s.rest.Close() }}
	resp.ContentLength, _ = strconv.ParseInt(resp.Header.Get("Content-Length"), 10, 64)
	return resp, nil
}

// trail puts the trailer fields behind the content of resp, whose client takes them. In
// HTTP/1.1 they have a place only behind chunks, and an answer without content has none.
func (s *reply) trail(r *http.Request, resp *http.Response) {
	if !r.ProtoAtLeast(1, 1) || s.status == http.StatusNoContent || s.status == http.StatusNotModified {
		return
	}
	if s.rest != nil {
		resp.Body.(*content).atEnd = func() { resp.Trailer = s.behind() } //nolint:errcheck,forcetypeassert // See response.
	}
	if len(s.trailer) > 0 {
		delete(resp.Header, "Content-Length")
		resp.ContentLength, resp.Trailer = -1, s.trailer
	}
}

// verifyTime bounds the asking before a replay where no inline try is configured.
const verifyTime = 10 * time.Second

// verified asks the API, where the rule wants it, whether it still agrees with a stored result.
// That comes before the result is given; a refusal if it may not be given.
func (p *Proxy) verified(ctx context.Context, x *exchange, w *work, c ledger.Claimed) *reply {
	mode := verifyMode(w.op.Verify)
	m := c.Mutation
	if mode == ledger.VerifyOff || m.State != ledger.Applied || m.Verification != nil && m.Verification.Acknowledged {
		return nil
	}
	limit := p.config.Inline
	if limit <= 0 {
		limit = verifyTime
	}
	asking, cancel := context.WithTimeout(ctx, limit)
	v := p.config.Inliner.Verify(asking, m)
	cancel()
	if v.Said == ledger.SaidAgrees {
		return nil
	}
	v.Key, v.Run, v.Mode = m.Key, x.caller.run, mode
	replay, now, err := p.ledger.Verified(ctx, v)
	switch {
	case err != nil:
		return &reply{refusal: ledgerRefusal(err)}
	case replay:
		return nil
	}
	p.cutStopped()
	return &reply{refusal: unverified(now, &v, x.caller), mutation: now, decision: ledger.DecideRefused, runRefused: x.caller.managed()}
}

// unverified says why the stored result isn't given.
func unverified(m *ledger.Mutation, v *ledger.Verified, c caller) *refusal {
	shows := "no longer shows it"
	if len(v.Objects) > 1 {
		shows = "shows it more than once"
	}
	f := refuse(problemVerifyFailed, quoted(m.Target)+" was applied before, but the API "+shows+" ("+v.Reason+
		"); nothing was sent, and the stored answer is not given. Look at keep-proxy mutations show "+m.ID+".")
	if v.Said != ledger.SaidDisagrees {
		f.class = verdict.Transient
		again := "Ask again"
		if c.managed() {
			again = "Start the run again"
		}
		f.detail = "Whether " + quoted(m.Target) + ", which was applied before, is still there can't be told (" + v.Reason +
			"); nothing was sent, and the stored answer is not given. " + again + " later."
	}
	if m.Escalated() {
		f.actions = []string{"keep-proxy resolve " + m.ID}
	}
	return f
}

// verifyMode speaks the rule's mode in the ledger's words; an unknown one is strict.
func verifyMode(v rules.Verify) ledger.VerifyMode {
	switch v {
	case rules.VerifyOff, "":
		return ledger.VerifyOff
	case rules.VerifyWarn:
		return ledger.VerifyWarn
	case rules.VerifyHuman:
		return ledger.VerifyHuman
	case rules.VerifyStrict:
	}
	return ledger.VerifyStrict
}
