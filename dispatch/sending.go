// Package dispatch makes one sending that the ledger has recorded. It sends once, judges the answer
// by the rule's opinion and keeps it. It records the end until the ledger takes it. The proxy sends
// a script's request by it, the reconcilers what is sent again.
//
// # Failure
//
// What can't be judged is uncertain. A success whose answer can't be kept is committed. If the
// ledger doesn't take an end, what depends on the mutation stops until it does, or the process
// ends. Recovery then finds the record in flight.
package dispatch

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"

	"github.com/rs/zerolog"

	"keep-proxy/internal/clock"
	"keep-proxy/internal/masking"
	"keep-proxy/internal/verdict"
	"keep-proxy/ledger"
	"keep-proxy/rules"
	"keep-proxy/upstream"
)

// Sender sends one dispatch. It is [upstream.Sender].
type Sender interface {
	Send(ctx context.Context, r *upstream.Request) *upstream.Answer
}

// Bodies is where answers are kept. It is a [ledger.Ledger].
type Bodies interface {
	WriteBody(ctx context.Context, content io.Reader) (ledger.Body, error)
}

// Dispatcher sends, judges and keeps. All fields are required.
type Dispatcher struct {
	Sender   Sender
	Bodies   Bodies
	Contents *Contents
	Clock    clock.Clock
	Log      zerolog.Logger
}

// Sending is one recorded dispatch until its end is recorded.
type Sending struct {
	Mutation  *ledger.Mutation
	Dispatch  ledger.Dispatch
	Operation *rules.Operation
	// Method is that of the request whose answer is judged.
	Method string
	// Request is what the rule reads, and Body its content.
	Request *rules.Request
	Body    *Content
	// Opinion is the rule's.
	Opinion func(*rules.Request, *rules.Response) verdict.Opinion
	// Limit is the longest content of an answer that is kept, in bytes.
	Limit int64
	// Streams says that the rest of an answer over the limit has a taker, who ends the dispatch
	// then.
	Streams bool
	// Events takes the events ahead of the one that answers; nil drops them.
	Events Events
	// Secrets were sent, and must not be kept, should the API echo them.
	Secrets masking.Secrets

	// Sent is the request as it was sent.
	Sent *upstream.Request
	// Answer is what came back, Header and Trailer its end-to-end fields as they are kept.
	Answer          *upstream.Answer
	Header, Trailer http.Header
	// Content is the answer's, or how far it was read. TooLarge says that it is over the limit,
	// Lost why what came can't be had any more.
	Content  *Content
	TooLarge bool
	Lost     error
	// answered says that an event of a stream is the content, unanswered why none is.
	answered   bool
	unanswered string
	// follows says that the answer, if it is a success, only accepted the mutation.
	follows bool
	Verdict upstream.Verdict
}

// Request is a request of the rules in the form that is sent, to its own address or, if there is one, to another. It asks
// for no content coding. So the answer can be judged, and replayed to a client that asks for another one. What a signature
// covers stays; Decode takes the coding away then.
func Request(out *rules.Request, body upstream.Body, other string) (*upstream.Request, error) {
	target, err := url.ParseRequestURI(cmp.Or(other, out.URL()))
	if err != nil {
		return nil, fmt.Errorf("its address: %w", err)
	}
	// Fields are put in whole; the values of none are changed.
	header := maps.Clone(out.Header)
	if header == nil {
		header = http.Header{}
	}
	if !signsCoding(header, target.RawQuery) {
		header["Accept-Encoding"] = identity
	}
	return &upstream.Request{Method: out.Method, URL: target, Host: target.Host, Header: header, Body: body}, nil
}

var identity = []string{"identity"}

// Send sends the request, once, and judges the answer.
func (d *Dispatcher) Send(ctx context.Context, s *Sending, r *upstream.Request) {
	s.Sent, s.Answer = r, d.Sender.Send(ctx, r)
	d.Read(ctx, s)
	d.Decode(s)
	d.Judge(s)
}

// Read reads the answer, at most the limit of it.
func (d *Dispatcher) Read(ctx context.Context, s *Sending) {
	if s.Answer.Status == 0 {
		return
	}
	s.Header, s.Secrets = stripped(s.Answer.Header), append(s.Secrets, s.Answer.Secrets...)
	if s.Operation.Stream && isEvents(s.Answer.Header) {
		d.readEvents(ctx, s)
		return
	}
	s.Content, s.TooLarge, s.Lost = d.content(s.Answer, s.Limit)
	s.Trailer = s.Answer.Trailers()
}

// Decode removes a content coding that the upstream used unasked. The answer can then be replayed
// to any client. A coding that can't be removed stays, with its field.
func (d *Dispatcher) Decode(s *Sending) {
	if len(s.Header["Content-Encoding"]) == 0 || s.Lost != nil || s.TooLarge {
		return
	}
	plain, ok := d.uncoded(s.Answer.Header, s.Content, s.Limit)
	if !ok {
		return
	}
	if plain != s.Content {
		s.Content.Close()
	}
	s.Content = plain
	s.Header = maps.Clone(s.Header) // It may be the answer's own.
	s.Header.Del("Content-Encoding")
	s.Header.Del("Content-Length")
	if upstream.Coded(s.Answer.Header) {
		upstream.Undigested(s.Header)
		upstream.Undigested(s.Trailer)
	}
	s.Answer.Header.Del("Content-Encoding")
}

// content reads at most limit bytes; more means too large. What was read then comes first in what
// is still to be streamed. An error in lost means that what was read could neither be put aside nor
// read back.
func (d *Dispatcher) content(a *upstream.Answer, limit int64) (c *Content, tooLarge bool, lost error) {
	if a.ContentLength > limit {
		return nil, true, nil
	}
	rest := a.Body
	if 0 <= a.ContentLength && a.ContentLength <= ledger.InlineBody {
		// A byte more, as its end has to be seen.
		short := make([]byte, a.ContentLength+1)
		if n, _ := io.ReadFull(a.Body, short); n < len(short) {
			return InMemory(short[:n:n]), false, nil // The answer knows whether that is all.
		}
		rest = io.MultiReader(bytes.NewReader(short), a.Body) // Longer than it said.
	}
	c, err := d.Contents.Read(io.LimitReader(rest, limit+1), a.ContentLength, MaySpool)
	if spool := (SpoolError{}); errors.As(err, &spool) {
		// Its end still belongs to the evidence.
		_, _ = io.Copy(io.Discard, io.LimitReader(a.Body, limit))
		return nil, false, spool.Err
	}
	return c, err == nil && c.Len() > limit, nil
}

// uncoded returns the content without its coding (RFC 9110 §8.4.1), if it
// can be decoded within limit bytes.
func (d *Dispatcher) uncoded(h http.Header, c *Content, limit int64) (*Content, bool) {
	if !upstream.Coded(h) {
		return c, true
	}
	coded, err := c.Open()
	if err != nil {
		return nil, false
	}
	r, known := upstream.Uncoded(h, coded)
	if !known {
		return nil, false
	}
	plain, err := d.Contents.Read(io.LimitReader(r, limit+1), -1, MustSpool)
	if err != nil || plain.Len() > limit {
		plain.Close()
		return nil, false
	}
	return plain, true
}

// Judge makes the verdict of what was seen.
func (d *Dispatcher) Judge(s *Sending) {
	evidence, opinion := s.Answer.Evidence(), verdict.Opinion{}
	if s.answered { // The stream was left, and not cut.
		evidence.BodyComplete, evidence.ErrorClass, evidence.Error = true, "", ""
	}
	switch {
	case s.unanswered != "":
		opinion = verdict.Opinion{Kind: verdict.OpinionUncertain, Reason: s.unanswered}
	case evidence.Head:
		opinion = d.opinion(s, evidence)
	}
	now := d.Clock.Now()
	facts := upstream.FactsOf(s.Method, s.Answer, now)
	facts.TooLarge = s.TooLarge
	if wait := cmp.Or(opinion.Wait, opinion.Until.Sub(now)); wait > 0 {
		facts.RetryAfter = min(wait, upstream.MaxRetryAfter)
	}
	s.Verdict = upstream.Judge(evidence, facts, opinion)
	s.Verdict.Reason = s.Secrets.Text(s.Verdict.Reason)
	s.Dispatch = Ended(s.Dispatch, evidence, s.Verdict)
	s.Dispatch.Error = s.Secrets.Text(s.Dispatch.Error)
	s.accepted()
	if !s.Rest() {
		// Nobody gets the rest of an answer over the limit. It ends before that is recorded, since settle
		// counts from there.
		s.Answer.Close()
		s.Dispatch.Ended = ledger.Stamp(s.Answer.Evidence().Ended)
	}
	if s.Dispatch.Ended.BootID == "" || s.unanswered != "" { // A stream was followed beyond its first connection.
		s.Dispatch.Ended = ledger.Stamp(clock.Take(d.Clock))
	}
}

// Rest reports whether the rest of an answer over the limit goes to its taker.
func (s *Sending) Rest() bool {
	return s.Streams && s.TooLarge && (s.Verdict.Kind == upstream.TooLarge || s.Verdict.Kind == upstream.Failed)
}

// opinion is what the rule says of the answer. It is given content only if it may
// read it.
func (d *Dispatcher) opinion(s *Sending, ev upstream.Evidence) verdict.Opinion {
	out := verdict.Opinion{Kind: verdict.OpinionUncertain, Reason: "the bodies can't be read again"}
	coded := upstream.Coded(s.Answer.Header) && !s.TooLarge
	readable := s.Content
	if coded || !s.Operation.JudgesBody() {
		readable = nil
	}
	err := d.Contents.Hold(s.Body, readable, func(request, answer []byte) {
		req, resp := WithBody(s.Request, s.Body, request), &rules.Response{
			Status: s.Answer.Status, Header: s.Answer.Header, Body: answer,
			Complete: ev.BodyComplete && !s.TooLarge && !coded && s.Lost == nil,
		}
		out = s.Opinion(req, resp)
		s.follows = s.Operation.Watch.Follows(rules.Env{Request: req, Account: s.Mutation.Account, Mutation: RuleMutation(s.Mutation)}, resp)
	})
	if err != nil {
		d.Log.Error().Err(err).Str("mutation", s.Mutation.ID).Msg("answer not judged by its rule")
	}
	return out
}

// RuleMutation is what a rule may know of a record.
func RuleMutation(m *ledger.Mutation) rules.Mutation {
	return rules.Mutation{
		ID: m.ID, Marker: m.Marker, VendorKey: m.VendorKey, Generation: m.Generation, ClaimedAt: m.CreatedAt, Kept: m.Kept, Unmarked: m.Unmarked,
	}
}

// Ended is the dispatch with its end, its verdict and what was seen of it.
func Ended(d ledger.Dispatch, ev upstream.Evidence, v upstream.Verdict) ledger.Dispatch {
	d.Ended = ledger.Stamp(ev.Ended)
	d.BytesWritten, d.Head, d.Status, d.BodyComplete = ev.BytesWritten, ev.Head, ev.Status, ev.BodyComplete
	d.ErrorClass, d.Error, d.Protocol, d.Remote = string(ev.ErrorClass), ev.Error, ev.Protocol, ev.Remote
	d.Verdict, d.Class, d.Reason = recorded(ev, v.Kind), v.Class, v.Reason
	return d
}

// recorded is a kind of verdict in the ledger's words; an unknown one is uncertain. What the
// upstream refused unprocessed counts as not sent.
func recorded(ev upstream.Evidence, k upstream.VerdictKind) ledger.Verdict {
	switch k {
	case upstream.Applied, upstream.TooLarge:
		return ledger.VerdictApplied
	case upstream.Committed:
		return ledger.VerdictCommitted
	case upstream.Failed:
		if ev.NotSent || ev.Refused && !ev.Head {
			return ledger.VerdictNotSent
		}
		return ledger.VerdictFailed
	case upstream.Uncertain:
	}
	return ledger.VerdictUncertain
}

// accepted turns the success of a followed answer into accepted, with the answer that says where to
// look. Without that answer the outcome is unknown.
func (s *Sending) accepted() {
	if !s.follows || !s.Verdict.Kind.Success() {
		return
	}
	if s.Verdict.Kind == upstream.Applied {
		s.Dispatch.Verdict = ledger.VerdictAccepted
		return
	}
	s.unfollowed()
}

// unfollowed makes what was accepted unknown: nothing says where to look.
func (s *Sending) unfollowed() {
	s.Verdict = upstream.Verdict{Class: verdict.Indeterminate, Reason: "accepted, but without the whole answer that says where to follow it"}
	s.Dispatch.Verdict, s.Dispatch.Class, s.Dispatch.Reason = ledger.VerdictUncertain, verdict.Indeterminate, s.Verdict.Reason
}

// End keeps the answer of what took effect, and returns what to record of the dispatch.
func (d *Dispatcher) End(ctx context.Context, s *Sending) ledger.EndDispatch {
	f := ledger.EndDispatch{Key: s.Mutation.Key, TooLarge: s.Verdict.Kind == upstream.TooLarge}
	if s.Verdict.Kind == upstream.Applied {
		err := s.Lost
		if err == nil {
			head := &rules.Response{Status: s.Answer.Status, Header: s.Header, Trailer: s.Trailer, Complete: true}
			f.Result, f.Body, err = d.Keep(ctx, s.Operation, s.Secrets, head, s.Content, "answer")
		}
		if err != nil {
			// It happened; only its answer is lost.
			d.Log.Error().Err(err).Str("mutation", s.Mutation.ID).Msg("answer not stored")
			if s.Dispatch.Verdict == ledger.VerdictAccepted {
				s.unfollowed()
			} else {
				s.Verdict.Kind, s.Dispatch.Verdict = upstream.Committed, ledger.VerdictCommitted
			}
		}
	}
	f.Dispatch = s.Dispatch
	if s.Verdict.RetryAfter > 0 {
		f.RetryAfter = d.Clock.Now().Add(s.Verdict.RetryAfter)
	}
	return f
}

// Keep makes an answer the result that a replay gives. Its content goes with it if it is stored
// with the record; longer content is written here. What is secret in it is masked, and what the API
// says of the secrets that were sent.
func (d *Dispatcher) Keep(
	ctx context.Context, op *rules.Operation, secrets masking.Secrets, head *rules.Response, c *Content, source string,
) (result *ledger.Result, body []byte, err error) {
	head.Header, head.Trailer = secrets.Header(stripped(head.Header)), secrets.Header(head.Trailer)
	if !op.SecretAnswer() && len(secrets) == 0 {
		return d.keepContent(ctx, head, c, source)
	}
	asItCame := false
	held := d.Contents.Hold(c, nil, func(whole, _ []byte) {
		head.Body = whole
		stored := op.RedactResponse(head)
		kept := secrets.Bytes(stored.Body)
		if asItCame = Same(kept, whole); asItCame {
			return
		}
		stored.Header, stored.Trailer = maps.Clone(stored.Header), maps.Clone(stored.Trailer)
		delete(stored.Header, "Content-Length")
		upstream.Undigested(stored.Header)
		upstream.Undigested(stored.Trailer)
		result, body, err = d.keepContent(ctx, stored, InMemory(kept), source)
	})
	if held == nil && asItCame {
		head.Body = nil
		return d.keepContent(ctx, op.RedactResponse(head), c, source)
	}
	return result, body, errors.Join(held, err)
}

// keepContent keeps content as it is. Short content the ledger names.
func (d *Dispatcher) keepContent(ctx context.Context, head *rules.Response, c *Content, source string) (*ledger.Result, []byte, error) {
	result := &ledger.Result{Status: head.Status, Header: ledger.Header(head.Header), Trailer: ledger.Header(head.Trailer), Source: source}
	b, whole := c.Whole()
	if whole && len(b) <= ledger.InlineBody {
		return result, b, nil
	}
	var err error
	if whole {
		result.Body, err = d.Bodies.WriteBody(ctx, bytes.NewReader(b))
	} else {
		result.Body, err = c.Keep(ctx)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("store the answer: %w", err)
	}
	return result, nil, nil
}
