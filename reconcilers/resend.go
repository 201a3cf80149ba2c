package reconcilers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"

	"keep-proxy/ledger"
	"keep-proxy/rules"
	"keep-proxy/upstream"
)

// resend sends the stored request once more under the same vendor key: an API that
// remembers the key answers as it did, or does now what it never did.
type resend struct{ *Reconciler }

func (s resend) try(ctx context.Context, t *try) (outcome, bool) {
	deadline := s.deadline(ctx, t)
	m := *t.mutation
	m.Policy = m.Policy.Heeding(cautionOf(t.operation))
	switch {
	case t.mutation.Committed:
		return t.pass("it is known to have happened, so that nothing is sent again")
	case len(t.missing) > 0:
		return t.pass("no credential is configured in place of %s", strings.Join(t.missing, ", "))
	}
	check := func() error {
		if !ledger.ResendOpen(&m, s.now(), deadline) {
			return errors.New("the API's window for the vendor key is nearly over")
		}
		return nil
	}
	if t.strategy.Natural {
		if out, open, usable := s.natural(ctx, t); !open {
			return out, usable
		}
		check = func() error { return s.stillNatural(ctx, t) }
	} else if !ledger.ResendOpen(&m, s.now(), deadline) {
		return t.pass("used up, or too late for the time that the API remembers the key")
	}
	if elapsed(t.mutation, s.now(), s.ledger.Process()) >= s.settings.MaxAge {
		// What can't be reached uses no resend up, and would be sent again for ever.
		return t.pass("it was tried for %v", s.settings.MaxAge)
	}
	request, err := s.request(t, deadline, check)
	if err != nil {
		return t.pass("the stored request can't be sent: %v", err)
	}
	if err := s.limits.wait(ctx, t.connector); err != nil {
		return s.observe(ctx, t, sighting{reason: "the try was over before the connector's rate admitted a request"}), true
	}
	id := s.newID()
	moved, d, err := s.ledger.Resend(context.WithoutCancel(ctx), ledger.Resend{
		Key: t.mutation.Key, Version: t.mutation.Version, DispatchID: id, Deadline: deadline,
		Ran: ran(t.mutation, s.now(), s.ledger.Process()), Caution: cautionOf(t.operation),
	})
	if errors.Is(err, ledger.ErrNotAllowed) {
		return t.pass("%v", err)
	}
	if err != nil {
		return s.lost(outcome{err: err, reason: "the resend was not recorded"}), true
	}
	resendRecorded.Pass()
	// From here on the sending is lent its own time: stopping waits for it.
	finish, verdict := s.send(context.WithoutCancel(ctx), t, request, *d)
	resendAnswered.Pass()
	finish.NextTryAt = s.after(moved, t.at, sighting{notBefore: finish.RetryAfter})
	out := outcome{seen: string(finish.Dispatch.Verdict), reason: verdict.Reason}
	out.finished, out.err = s.record(ctx, moved, finish)
	return s.lost(out), true
}

// deadline is how long the sending may take: as the rule says, and within the
// inline try's time.
func (s resend) deadline(ctx context.Context, t *try) time.Duration {
	deadline := t.operation.Timeout
	if until, ok := ctx.Deadline(); ok && t.inline {
		deadline = min(deadline, time.Until(until))
	}
	return deadline
}

// request rebuilds what was sent, with the same vendor key and marker and the
// credentials of now. Immediately before byte one check is asked: a resend's looks at
// the window again, with the record as it was before this resend was counted.
func (r *Reconciler) request(t *try, deadline time.Duration, check func() error) (*upstream.Request, error) {
	if t.operation.Send != nil {
		return nil, errors.New("it is sent in steps, which only a script's request begins")
	}
	judged := t.request
	if t.undo != nil {
		judged = t.outgoing
	}
	outgoing, refusal := t.operation.Outgoing(judged, t.known())
	if refusal != nil {
		return nil, refusal
	}
	target, err := url.ParseRequestURI(outgoing.URL())
	if err != nil {
		return nil, fmt.Errorf("the stored address: %w", err)
	}
	// Stored is what the script's client accepts; the answer is for whoever asks later.
	header := maps.Clone(outgoing.Header)
	if header == nil {
		header = http.Header{}
	}
	header["Accept-Encoding"] = []string{"identity"}
	request := &upstream.Request{
		Method: outgoing.Method, URL: target, Header: header, Total: deadline,
		TrustRefused: t.connector.TrustRefused, Check: check,
	}
	if outgoing.HasBody() {
		request.Body = upstream.Bytes(outgoing.Body())
	}
	return request, nil
}

// send sends and judges. Whatever goes wrong inside, the dispatch gets an end: an
// uncertain one.
func (r *Reconciler) send(ctx context.Context, t *try, request *upstream.Request, d ledger.Dispatch) (finish ledger.Finish, v upstream.Verdict) {
	finish = ledger.Finish{Key: t.mutation.Key, Dispatch: d, Pending: t.inline}
	defer func() {
		if p := recover(); p != nil {
			v = upstream.Verdict{Class: upstream.ClassIndeterminate, Reason: t.broken(p)}
			finish.Dispatch, finish.Result, finish.Body = ended(d, upstream.Evidence{Ended: r.stamp()}, v), nil, nil
		}
	}()
	limit := positive(t.mutation.Policy.ResultLimit, r.settings.MaxAnswer)
	reply := r.wire.send(ctx, request, limit).uncoded(limit)
	v = upstream.Judge(reply.evidence, reply.facts, r.opinion(t, reply))
	v.Reason = t.secrets.Text(v.Reason)
	finish.Dispatch = ended(d, reply.evidence, v)
	v = followed(t, reply, v, &finish.Dispatch)
	finish.Dispatch.Error = t.secrets.Text(finish.Dispatch.Error)
	finish.TooLarge = v.Kind == upstream.TooLarge
	if v.RetryAfter > 0 {
		finish.RetryAfter = r.clock.Now().Add(v.RetryAfter)
	}
	if v.Kind == upstream.Applied {
		answer := &rules.Response{Status: reply.status, Header: reply.header, Trailer: reply.trailer, Body: reply.body, Complete: true}
		var err error
		if finish.Result, finish.Body, err = r.keep(ctx, t, answer, "answer"); err != nil {
			// It committed, or was accepted; only the answer could not be kept.
			if v.Kind = upstream.Committed; finish.Dispatch.Verdict == ledger.VerdictAccepted {
				v = unfollowed
			}
			finish.Dispatch = ended(d, reply.evidence, v)
		}
	}
	return finish, v
}

// judge is what the rule says of an answer.
func (t *try) judge(answer *rules.Response) rules.Opinion {
	if t.undo != nil {
		return t.undo.Judge(t.env(), answer)
	}
	return t.operation.Judge(t.request, t.mutation.Account, t.known(), answer)
}

// opinion asks the rule about the answer.
func (*Reconciler) opinion(t *try, answered reply) upstream.Opinion {
	if !answered.evidence.Head {
		return upstream.Opinion{}
	}
	answer := &rules.Response{
		Status: answered.status, Header: answered.header, Body: answered.body,
		Complete: answered.complete() && !upstream.Coded(answered.header),
	}
	o := t.judge(answer)
	out := upstream.Opinion{Class: upstream.Class(o.Class), Reason: o.Reason}
	switch o.Kind {
	case rules.OpinionNone:
		out.Kind = upstream.OpinionNone
	case rules.OpinionApplied:
		out.Kind = upstream.OpinionApplied
	case rules.OpinionFailed:
		out.Kind = upstream.OpinionFailed
	case rules.OpinionUncertain:
		out.Kind = upstream.OpinionUncertain
	default:
		out.Kind = upstream.OpinionUncertain
	}
	return out
}
