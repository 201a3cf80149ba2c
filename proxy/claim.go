package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"keep-proxy/dispatch"
	"keep-proxy/internal/fault"
	"keep-proxy/ledger"
	"keep-proxy/rules"
)

// Crash points of one mutation in the proxy.
var (
	claimedPoint   = fault.New("proxy.claimed")
	sentPoint      = fault.New("proxy.answer_head_read")
	committedPoint = fault.New("proxy.committed_recorded")
	judgedPoint    = fault.New("proxy.answer_judged")
	recordedPoint  = fault.New("proxy.outcome_recorded")
	deliveredPoint = fault.New("proxy.answer_delivered")
)

// holdTick is how often a held request asks the gate again.
const holdTick = 25 * time.Millisecond

// claimAndSend claims the mutation and does what the ledger decides.
func (p *Proxy) claimAndSend(ctx context.Context, x *exchange, w *work) *reply {
	if f := p.storeBody(ctx, w); f != nil {
		return &reply{refusal: f}
	}
	p.under.mutations.Add(1)
	defer p.under.mutations.Add(-1)
	needsTurn := w.match.Connector.Rate.Bounds()
	var until patience
	for {
		// Much may have happened while the body came in.
		if f := p.gate(x); f != nil {
			return &reply{refusal: f}
		}
		claimed, f := p.ahead(ctx, w, func(ctx context.Context) (ledger.Claimed, *refusal) { return p.tryClaim(ctx, w, needsTurn) })
		if f != nil {
			return &reply{refusal: f}
		}
		if claimed.Decision == ledger.DecideTurn {
			if h := p.halted(); h.Sending {
				return &reply{refusal: h.refusal()}
			}
			if f := p.awaitTurn(x.client, w); f != nil {
				return &reply{refusal: f}
			}
			needsTurn, until = false, patience{}
			continue
		}
		p.knowRepeat(x, w, &claimed)
		again, left := p.awaitOther(x.client, w, claimed, &until)
		if again {
			continue
		}
		if left {
			// Nothing stopped it, and its run has seen nothing: it may ask again.
			return &reply{refusal: refuse(problemIncomplete, "The caller went away before what is being sent had its answer.")}
		}
		return p.decided(ctx, x, w, claimed)
	}
}

// ahead reads what the claim needs, and claims; once more if that is stale by then.
func (p *Proxy) ahead(ctx context.Context, w *work, claim func(context.Context) (ledger.Claimed, *refusal)) (claimed ledger.Claimed, f *refusal) {
	for range 2 {
		if f = p.readAhead(ctx, w); f != nil {
			return claimed, f
		}
		w.claim.DispatchID = p.config.NewID()
		if claimed, f = claim(ctx); f != nil || claimed.Decision != ledger.DecideStale {
			return claimed, f
		}
	}
	return claimed, nil
}

// awaitOther waits for what may change the ledger's decision soon, and reports whether to claim again. Else it
// reports whether the caller left while what it asks for was being sent. Shutting down ends the wait, which the gate
// says.
func (p *Proxy) awaitOther(client context.Context, w *work, c ledger.Claimed, until *patience) (again, left bool) {
	switch {
	case c.Decision == ledger.DecideBlocked:
		return p.await(client, blockersOf(c), until) || p.draining.Load(), false
	case c.Wait > 0:
		for again = p.await(client, nil, until); again && p.held(w); again = p.await(client, nil, until) {
		}
		return again || p.draining.Load(), false
	case redispatched(c):
		again = p.awaitRedispatch(client, c.Mutation.Key)
	case c.Decision == ledger.DecideJoin:
		again = p.awaitCall(client, w, c.Mutation.Key, until)
	default:
		return false, false
	}
	again = again || p.draining.Load()
	return again, !again && client.Err() != nil
}

// held reports, from memory, whether a claim still has to wait for another's retry.
func (p *Proxy) held(w *work) bool {
	run, _, err := p.ledger.Standing(w.claim.Run)
	return err == nil && !ledger.AdmitMutation(&run, w.claim.Key, w.claim.Record.PayloadDigest)
}

// awaitCall waits until the call of another key on the record is answered. The rule was changed between the two, so
// this caller isn't one of that call's. It reports whether to claim again.
func (p *Proxy) awaitCall(client context.Context, w *work, record ledger.Key, until *patience) bool {
	answered := p.calls.other(record, w.callKey)
	if answered == nil {
		// It was answered since the ledger said so, or its claim isn't known here yet.
		if until.missed++; until.missed > maxMissed {
			return false
		}
	}
	return p.pause(client, answered)
}

// pause waits for something, or for nothing in particular a tick. It reports false once the client
// has gone, or shutting down began.
func (p *Proxy) pause(client context.Context, until <-chan struct{}) bool {
	var tick <-chan time.Time
	if until == nil {
		tick = time.After(holdTick)
	}
	select {
	case <-until:
		return true
	case <-tick:
		return true
	case <-client.Done():
	case <-p.admitting.Done():
	}
	return false
}

// maxMissed bounds how often one request asks the ledger again about work that isn't found here.
const maxMissed = 8

// knowRepeat finds a second intent of a run while the first is still being answered. The first has the mutation's key
// by another version of the rule. Those of the same key are found by calls.
func (p *Proxy) knowRepeat(x *exchange, w *work, c *ledger.Claimed) {
	if c.Mutation == nil || c.Decision != ledger.DecideJoin && c.Decision != ledger.DecideReplay {
		return
	}
	if p.calls.repeated(c.Mutation.Key, w.callKey, &keyCaller{run: x.caller.run, clientKey: w.clientKey, replay: w.claim.RepeatReplay}) {
		c.Decision = ledger.DecideRepeated
	}
}

// redispatched reports whether the mutation is being sent again by itself. No caller of this proxy leads that
// sending, so that nobody can wait for its answer.
func redispatched(c ledger.Claimed) bool {
	return c.Decision == ledger.DecideJoin && c.Mutation.Current().Redispatch
}

// awaitRedispatch waits for the end of a sending that bounds itself, and reports
// whether to ask the ledger again.
func (p *Proxy) awaitRedispatch(client context.Context, key ledger.Key) bool {
	for p.pause(client, nil) {
		waiting := false
		if err := p.ledger.View(client, func(v ledger.View) error {
			m, err := v.Mutation(key)
			waiting = err == nil && m.State == ledger.InFlight && m.Current().Redispatch
			return err
		}); err != nil {
			return false
		}
		if !waiting {
			return true
		}
	}
	return false
}

// readAhead gives the claim what only rules can tell. That is the request's keys under earlier versions of its rule,
// and how its payload compares with the stored one. It returns a refusal, or nothing.
func (p *Proxy) readAhead(ctx context.Context, w *work) *refusal {
	ahead, err := p.ledger.Ahead(ctx, &w.claim)
	if err == nil && len(ahead.Rules) > 0 {
		if f := p.keysAhead(ctx, w, ahead.Rules); f != nil {
			return f
		}
		ahead, err = p.ledger.Ahead(ctx, &w.claim)
	}
	if m := ahead.Compare(&w.claim); err == nil && m != nil {
		err = p.contents.Load(w.req, w.body, func(req *rules.Request) {
			compared := ComparePayload(ctx, p.ledger, p.config.Pinned, w.op, req, m)
			w.claim.Compared = &compared
		})
	}
	if err != nil {
		return ledgerRefusal(err)
	}
	return nil
}

// keysAhead adds the keys under these versions. Without one of them it isn't known whether a record
// is the request's.
func (p *Proxy) keysAhead(ctx context.Context, w *work, of []ledger.ItemRule) *refusal {
	past := Past{Pinned: p.config.Pinned, Accounts: p.accountsFor(w), Rules: p.config.Rules()}
	past.Accounts = past.askedAhead(ctx, w.req, w.op.Connector, of)
	var keys []ledger.RuleKey
	var err error
	loading := p.contents.Load(w.req, w.body, func(req *rules.Request) {
		keys, err = past.Keys(ctx, w.claim.Scope, req, w.op, of)
	})
	if err = errors.Join(err, loading); err != nil {
		p.config.Log.Error().Err(err).Str("item", w.claim.Item).Msg("a stored rule can't be held against this request")
		return refuse(problemAmbiguousRecord,
			"This item has mutations under an earlier version of the rule, which can't be read any more, "+
				"so it isn't known whether this one was made; nothing was sent.")
	}
	w.claim.EarlierKeys = append(w.claim.EarlierKeys, keys...)
	return nil
}

// storeBody writes a request body that is too long for its record's transaction
// ahead of it.
func (p *Proxy) storeBody(ctx context.Context, w *work) *refusal {
	if b, short := w.kept.Whole(); short {
		w.claim.Body = b
		return nil
	}
	stored, err := w.kept.Keep(ctx)
	if err != nil {
		return ledgerRefusal(err)
	}
	w.claim.Record.Request.Body = stored
	return nil
}

// tryClaim claims by rules that are in force still.
func (p *Proxy) tryClaim(ctx context.Context, w *work, needsTurn bool) (ledger.Claimed, *refusal) {
	if f := p.outdated(w); f != nil {
		return ledger.Claimed{}, f
	}
	// What would be sent is told, and not recorded, while sending is kept back.
	w.claim.AwaitsTurn = needsTurn || p.halted().Sending
	claimed, err := p.ledger.Claim(ctx, w.claim)
	if err != nil {
		return ledger.Claimed{}, ledgerRefusal(fmt.Errorf("claim: %w", err))
	}
	return claimed, nil
}

// patience bounds the waiting of one request, from the first time that it has to. The
// zero value has not waited yet.
type patience struct {
	since time.Duration
	// asked says that it has asked again about what an inline try was at work on.
	asked bool
	// missed counts how often work that is under way was not found here.
	missed int
}

// await waits for what may lift a stop soon: an inline try that is under way, then
// the configured hold. Without blockers it is for another's retry. It reports whether to ask again.
func (p *Proxy) await(client context.Context, blockers []ledger.Blocker, until *patience) bool {
	now := p.config.Clock.Mono()
	if until.since == 0 {
		until.since = now
	}
	limit := p.config.Hold
	if len(blockers) > 0 {
		limit += p.config.Inline
	}
	if now-until.since >= limit {
		return false
	}
	if p.inline.wait(client, blockers) {
		return client.Err() == nil
	}
	// The try of what was in flight may have ended since the ledger said so.
	if !until.asked && slices.ContainsFunc(blockers, func(b ledger.Blocker) bool { return b.State == ledger.InFlight }) {
		until.asked = true
		return true
	}
	return p.config.Hold > 0 && p.pause(client, nil)
}

// decided turns the ledger's decision into an answer.
func (p *Proxy) decided(ctx context.Context, x *exchange, w *work, c ledger.Claimed) *reply {
	if c.Mutation != nil {
		w.key = c.Mutation.Key
	}
	p.calls.works(w.callKey, w.key)
	switch c.Decision {
	case ledger.DecideDispatch:
		claimedPoint.Pass()
		if c.Drift != "" {
			p.config.Log.Warn().Str("mutation", c.Mutation.ID).Str("run", x.caller.run).Msg("drift: " + c.Drift)
		}
		return p.dispatch(ctx, w, c)
	case ledger.DecideReplay:
		if refused := p.verified(ctx, x, w, c); refused != nil {
			return refused
		}
		return p.replay(ctx, c)
	default:
		return p.undispatched(ctx, x, w, c)
	}
}

// undispatched answers what is neither sent nor replayed. What it doesn't know is refused.
func (p *Proxy) undispatched(ctx context.Context, x *exchange, w *work, c ledger.Claimed) *reply {
	out := &reply{mutation: c.Mutation, decision: c.Decision, shared: true, runRefused: c.RunRefused}
	switch c.Decision {
	case ledger.DecideStandIn:
		return p.standIn(out, w)
	case ledger.DecideStale:
		out.refusal = refuse(problemStale, "The stored mutations of this item changed twice while this request was held against them; "+
			"nothing was sent. Send it again.")
		out.refusal.retryAfter = drainRetryAfter
	case ledger.DecideRepeated:
		out.refusal = repeated(w.derived.Target)
	case ledger.DecideBlocked, ledger.DecideJoin:
		// Joining is for those who wait for a call. A record in flight here without a call waits for its outcome to
		// be recorded.
		out.refusal = p.blockedRefusal(x.caller, blockersOf(c), c.Detail)
		if x.caller.managed() {
			if _, err := p.ledger.RefuseRun(ctx, x.caller.run, "refused because of a stop", causeOf(blockersOf(c))); err != nil {
				out.refusal = ledgerRefusal(err)
			}
		}
		p.cutStopped()
		if c.Mutation != nil && c.Mutation.State == ledger.NeedsReconcile {
			// The claim itself may have made it so; see ledger.Gap.
			p.config.Inliner.Kick()
		}
	case ledger.DecideMismatch:
		out.refusal = claimRefusal(c)
		p.cutStopped()
	case ledger.DecideRefused:
		out.refusal = claimRefusal(c)
	default:
		out.refusal = refuse(problemInternal, "The ledger's decision is unknown; nothing was sent.")
	}
	// A refusal that belongs to one caller's run is not another's answer.
	out.shared = false
	return out
}

// claimRefusal names a refused claim. The class of an ended run is its own.
func claimRefusal(c ledger.Claimed) *refusal {
	f := refuse(problem(c.Problem), unsent(c.Detail))
	f.retryAfter = c.Wait
	if _, known := kinds[f.problem]; !known {
		f.problem = problemInternal
	}
	if c.Run != nil && f.problem == problemRunAborted {
		f.class = c.Run.Class
	}
	f.advise(c.Mutation)
	return f
}

// replay gives the stored answer.
func (p *Proxy) replay(ctx context.Context, c ledger.Claimed) *reply {
	out := &reply{mutation: c.Mutation, decision: c.Decision, shared: true, replayed: true}
	result := c.Mutation.Result
	if result == nil {
		out.refusal = out.noResult("It happened, but its result is not known.")
		return out
	}
	body, err := p.bodyOf(ctx, result.Body)
	switch {
	case errors.Is(err, ledger.ErrBodyDropped):
		out.refusal = out.noResult("It happened, but the stored answer is gone: retention dropped it, or its loss was accepted.")
	case err != nil:
		out.refusal = out.unreadable(err)
	default:
		out.status, out.header, out.body = result.Status, map[string][]string(result.Header), body
		out.trailer = map[string][]string(result.Trailer)
	}
	return out
}

// bodyOf is the content of a stored body. A long one is read twice, first to know that it is whole. Of a damaged one
// nothing must reach a client.
func (p *Proxy) bodyOf(ctx context.Context, b ledger.Body) (*dispatch.Content, error) {
	if b.SHA256 == "" {
		return nil, nil
	}
	if b.Size > ledger.InlineBody {
		c := dispatch.Stored(b.Size, func() (io.ReadCloser, error) { return p.ledger.Body(ctx, b) })
		r, err := c.Open()
		if err != nil {
			return nil, err
		}
		_, err = io.Copy(io.Discard, r)
		return c, errors.Join(err, r.Close())
	}
	short, err := dispatch.StoredBody(ctx, p.ledger, b)
	if err == nil && int64(len(short)) > b.Size {
		err = fmt.Errorf("%w: body %s is longer than its record says", ledger.ErrDamaged, b.SHA256)
	}
	return dispatch.InMemory(short), err
}

// ledgerRefusal says that the ledger couldn't, so nothing was sent.
func ledgerRefusal(err error) *refusal {
	f := refuse(problemLedgerUnavailable, "The ledger can't record this, so nothing was sent: "+err.Error()+".")
	if errors.Is(err, ledger.ErrLowSpace) {
		f.detail = "The disk of the ledger is nearly full, so no new mutation is taken and nothing was sent; free some space."
	}
	f.retryAfter = drainRetryAfter
	return f
}

// blockersOf is what a blocked claim waits for: at least its own record.
func blockersOf(c ledger.Claimed) []ledger.Blocker {
	if len(c.Blockers) > 0 || c.Mutation == nil {
		return c.Blockers
	}
	return []ledger.Blocker{{Key: c.Mutation.Key, ID: c.Mutation.ID, Item: c.Mutation.Item, State: c.Mutation.State}}
}

func causeOf(blockers []ledger.Blocker) string {
	if len(blockers) == 0 {
		return ""
	}
	return blockers[0].ID
}

// standIn answers with what the rule says in the place of a result.
func (p *Proxy) standIn(out *reply, w *work) *reply {
	m := out.mutation
	skipped := m.State == ledger.Skipped
	var result *rules.Result
	var err error
	loading := p.contents.Load(w.req, w.body, func(req *rules.Request) {
		result, err = w.op.StandIn(skipped, rules.Env{Request: req, Account: w.derived.Account, Mutation: dispatch.RuleMutation(m)})
	})
	if err = errors.Join(err, loading); err != nil || result == nil {
		p.config.Log.Error().Err(err).Str("mutation", m.ID).Msg("the rule's own answer can't be made")
		out.refusal = out.noResult("It happened, but its result is not known, " +
			"and the rule's own answer (on_no_result) can't be made of this request.")
		if skipped {
			out.refusal = refuse(problemSkipped, "A person decided to go on without it, and the rule's own answer (on_skip) "+
				"can't be made of this request. Nothing was sent.")
		}
		return out
	}
	out.status, out.header, out.body = result.Status, result.Header, dispatch.InMemory(result.Body)
	out.standIn = "on_no_result"
	if skipped {
		out.standIn = "on_skip"
	}
	return out
}
