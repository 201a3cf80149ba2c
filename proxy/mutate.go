package proxy

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"keep-proxy/dispatch"
	"keep-proxy/internal/masking"
	"keep-proxy/ledger"
	"keep-proxy/rules"
)

// work is one request for a mutation, derived and ready to be claimed.
type work struct {
	req *rules.Request
	// asked is the address that the client asked.
	asked   *url.URL
	match   rules.Match
	op      *rules.Operation
	derived *rules.Derived
	// key is the record's, which an older version of the rule may have made. By the rule of now the
	// key is callKey.
	key       ledger.Key
	callKey   ledger.Key
	clientKey string
	// body is the request's content, kept as it may be stored: redacted.
	body, kept *dispatch.Content
	claim      ledger.Claim
	// credentials are the script's own, which must not be kept.
	credentials masking.Secrets
	// as is the credential that the account was asked for with; nil if nobody was asked.
	as *credential
	// interim is where interim responses go: to the caller that does the work.
	interim *interims
	// events is where the events ahead of the answer go; nil where none can come.
	events *events
	// caller is the one of the key's callers that this is.
	caller *keyCaller
	// via is the entry that the request gets on its way; empty for none.
	via string
	// trailers says that the client takes them; see takesTrailers.
	trailers bool
	// callID is the id of its call of JSON-RPC, which each answer to it has; nil for none.
	callID []byte
}

// mutate answers a request that changes the outside world. One to a second address has no answer if it is none of the
// mutations that have that address.
func (p *Proxy) mutate(x *exchange, r *http.Request, req *rules.Request, m rules.Match, second string, of ...*ledger.Mutation) *http.Response {
	req, f := p.whole(x, r, req, m.Operation.MaxBody)
	if f != nil {
		return p.refused(x, r, f)
	}
	if x.body.Len() > m.Operation.MaxBody {
		return p.refused(x, r, bodyRefusal(errBodyTooLarge, m.Operation.MaxBody))
	}
	req, as, f := p.withAccount(x, req, m.Connector)
	if f != nil {
		return p.refused(x, r, f)
	}
	var w *work
	err := p.contents.Load(req, x.body, func(whole *rules.Request) { w, f = p.prepare(x, whole, m) })
	switch {
	case err != nil:
		return p.refused(x, r, bodyRefusal(dispatch.SpoolError{Err: err}, m.Operation.MaxBody))
	case second != "" && (f != nil || !slices.ContainsFunc(of, func(m *ledger.Mutation) bool {
		return m.Key == w.key && m.PayloadDigest == w.derived.PayloadDigest
	})):
		return nil
	case f != nil:
		return p.refused(x, r, f)
	}
	x.matched, x.connector, x.operation, x.effect = true, m.Connector.Name, m.Operation.Name, m.Effect.String()
	x.rule, x.request, w.asked, w.claim.SentTo = m.Operation, req, r.URL, second
	// What was loaded goes: the slow part is still to come.
	w.req, w.body, w.as, x.key = req, x.body, as, &w.key
	w.interim, w.via, w.trailers = x.interimsFor(r).queued(), p.via(r.Proto), x.trailers
	defer w.interim.passed()
	x.target = w.derived.Target
	return p.do(x, r, w)
}

// prepare derives identity, payload and key, and what the ledger would store.
func (p *Proxy) prepare(x *exchange, req *rules.Request, m rules.Match) (*work, *refusal) {
	// It was matched before its content was there.
	if problem := m.Judge(req); problem != nil {
		return nil, fromRules(problem)
	}
	derived, problem := m.Operation.Derive(req, m)
	if problem != nil {
		return nil, fromRules(problem)
	}
	scope, f := p.scope(x)
	if f != nil {
		return nil, f
	}
	identity := identityOf(derived)
	key, err := keyOf(scope, m.Operation, derived, identity)
	if err != nil {
		return nil, refuse(problemIdentity, "The identity can't be brought into canonical form; nothing was sent: "+err.Error()+".")
	}
	slim(derived)
	w := &work{match: m, op: m.Operation, derived: derived, key: key, callKey: key, clientKey: clientKey(req, m.Operation),
		callID: m.Operation.CallID(req)}
	stored := m.Operation.Redact(req)
	if w.kept, err = p.keptBody(x, req, stored); err != nil {
		return nil, bodyRefusal(err, m.Operation.MaxBody)
	}
	w.credentials = m.Operation.Credentials(req)
	w.claim = ledger.Claim{
		Scope: scope, Key: key, Record: p.record(x, w, req, stored, scope, identity),
		Connector: m.Connector.Content, ClientKey: w.clientKey, RepeatReplay: m.Operation.Repeat == rules.RepeatReplay,
		// Repeats among connected callers are told apart before the claim, by calls. A
		// blocked request is refused by the gate's own words.
		Redelivery: true, Hold: true, Was: m.Operation.Was, Elsewhere: elsewhere(p.config.Rules(), m.Connector), Drift: driftOf(m.Operation),
		OnSkip: m.Operation.StandsInForSkipped(), OnNoResult: m.Operation.StandsInForResult(),
	}
	return w, nil
}

// slim takes the identity out of what was derived, and copies the rest. A value may be a part of
// the body's text and keep all of it in memory.
func slim(d *rules.Derived) {
	d.Identity = nil
	d.Account, d.Subkey, d.Target = strings.Clone(d.Account), strings.Clone(d.Subkey), strings.Clone(d.Target)
}

// scope is the ledger's scope of the caller. An unmanaged one, and a run of many items,
// works on the item's current attempt.
func (p *Proxy) scope(x *exchange) (ledger.Scope, *refusal) {
	c := x.caller
	if c.item == "" {
		return ledger.Scope{}, refuse(problemIdentity, "This run works on many items, and this request names none; nothing was sent. "+
			"Name it in percent-encoding as the user of the proxy's address, or in Keep-Item.")
	}
	if c.managed() && !c.many {
		return ledger.Scope{Workflow: c.workflow, Item: c.item, Attempt: c.attempt, Run: c.run}, nil
	}
	attempt, err := p.currentAttempt(x.client, c.workflow, c.item)
	if err != nil {
		return ledger.Scope{}, ledgerRefusal(err)
	}
	return ledger.Scope{Workflow: c.workflow, Item: c.item, Attempt: attempt, Run: c.run}, nil
}

// record is the mutation as it would be stored at its first claim.
func (p *Proxy) record(x *exchange, w *work, req, stored *rules.Request, scope ledger.Scope, identity map[string]string) ledger.Mutation {
	op, c := w.op, w.match.Connector
	m := ledger.Mutation{
		Intent: ledger.Intent{
			Connector: c.Name, ConnectorVersion: c.Version, ConnectorHash: c.Hash, ConnectorHosts: c.HostsInForce, Operation: op.Name,
			Target: w.derived.Target, Account: w.derived.Account, HostGroup: w.derived.HostGroup,
			Identity: identity, Subkey: w.derived.Subkey, Scope: scope,
		},
		Payload: ledger.Payload{
			PayloadDigest: w.derived.PayloadDigest, SignificantDigest: w.derived.SignificantDigest,
			Policy:  p.policy(x, w),
			Request: storedRequest(stored), Unmarked: op.Unmarked(req),
		},
	}
	if k := op.NativeKey; k != nil && k.WhenPresent == rules.PresentKeepFirst {
		m.VendorKey, _ = op.ClientKey(req)
	}
	return m
}

// policy is what the rule says, with the proxy's own defaults, kept with the
// record.
func (p *Proxy) policy(x *exchange, w *work) ledger.Policy {
	op := w.op
	out := ledger.Policy{
		Reconciler: op.Reconciles(), OnAbsent: ledger.OnAbsent(op.OnAbsent),
		Settle: op.Settle, Confirmations: op.Confirmations, Spacing: op.Spacing, ResultLimit: op.MaxBody,
		MaxDispatches: op.MaxDispatches, Prepares: op.Send != nil,
	}
	if w := op.Watch; w != nil {
		out.WatchEvery, out.WatchMax, out.WatchClass = w.Every, w.Max, w.Class
	}
	// Operation and connector come before the run, the run before the proxy.
	out.BlockScope = or(ledger.BlockScope(op.BlockScope), or(x.caller.scope, p.config.BlockScope))
	for _, s := range op.Strategies {
		out.Resend = out.Resend || s.Kind == rules.StrategyResend
		out.Natural = out.Natural || s.Natural
	}
	if k := op.NativeKey; k != nil {
		out.NativeKey, out.KeyFormat, out.KeyMaxLength, out.KeyWindow = true, k.Format, k.MaxLength, k.Window
	}
	return out
}

// storedRequest is what the ledger keeps of a request, without its body, which is named
// where it is stored. It is taken from the redacted form: no credentials, secret places
// masked.
func storedRequest(req *rules.Request) ledger.Request {
	header := req.Header
	if _, given := header[rules.SubkeyField]; given {
		header = maps.Clone(header)
		delete(header, rules.SubkeyField)
	}
	return ledger.Request{Method: req.Method, URL: req.URL(), Header: ledger.Header(header)}
}

// keptBody is the content to store: the request's own unless it holds secrets.
func (p *Proxy) keptBody(x *exchange, req, stored *rules.Request) (*dispatch.Content, error) {
	if dispatch.Same(stored.Body(), req.Body()) {
		return x.body, nil
	}
	c, err := p.contents.Aside(stored.Body())
	x.after = append(x.after, func(bool) { c.Close() })
	return c, err
}

// driftOf is the rule's word on drift; an unknown one refuses.
func driftOf(op *rules.Operation) ledger.Drift {
	switch op.Drift {
	case rules.DriftWarn:
		return ledger.DriftWarn
	case rules.DriftAllow:
		return ledger.DriftAllow
	case rules.DriftRefuse:
	}
	return ledger.DriftRefuse
}

// clientKey is the digest of the client's own idempotency key: the one the rule
// knows, else the standard field.
func clientKey(req *rules.Request, op *rules.Operation) string {
	key, ok := op.ClientKey(req)
	if !ok {
		key = req.Header.Get("Idempotency-Key")
	}
	if key == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}

// do lets one caller of the key do the work and the others have its answer.
func (p *Proxy) do(x *exchange, r *http.Request, w *work) *http.Response {
	c := &keyCaller{
		run: x.caller.run, clientKey: w.clientKey, replay: w.claim.RepeatReplay,
		payload: w.derived.PayloadDigest, client: x.client, answer: x.answer,
	}
	w.caller = c
	leave := func(bool) { p.calls.leave(w.callKey, c) }
	x.follow()
	for {
		role, call := p.calls.enter(w.callKey, c)
		if call != nil {
			x.after = append(x.after, func(bool) { p.calls.done(call).Close() })
		}
		switch role {
		case roleLead:
			x.after = append(x.after, leave)
			s, resp := p.leads(x, r, w, call)
			if resp != nil {
				return resp
			}
			if !s.repeatable() {
				leave(false)
			}
			return p.answered(x, r, w, s)
		case roleWait:
			select {
			case <-call.answered:
			case <-x.client.Done():
				leave(false)
				return p.refused(x, r, refuse(problemIncomplete, "The caller went away."))
			}
			if call.answer.shared && call.payload == c.payload {
				x.after = append(x.after, leave)
				if !call.answer.repeatable() {
					leave(false)
				}
				return p.joined(x, r, w, call)
			}
			// Another payload, or an answer for its leader only: the ledger judges anew.
			leave(false)
		case roleRepeated:
			return p.refused(x, r, repeated(w.derived.Target))
		default:
			return p.refused(x, r, refuse(problemInternal, "Nothing was sent."))
		}
	}
}

func repeated(target string) *refusal {
	return refuse(problemRepeated, "This run has already asked for "+quoted(target)+" and got its answer, so asking again is a second intent; "+
		"nothing was sent. If two are meant, give the rule a subkey that tells them apart; if the same one is meant, use the answer, "+
		"or send the same Idempotency-Key again.")
}

// leads is lead, or the beginning of its answer where that is a stream of events.
func (p *Proxy) leads(x *exchange, r *http.Request, w *work, call *call) (*reply, *http.Response) {
	if w.op.Stream {
		return p.leadEvents(x, r, w, call)
	}
	return p.lead(x, w, call), nil
}

// lead does the work and answers the call, whatever happens.
func (p *Proxy) lead(x *exchange, w *work, call *call) (out *reply) {
	defer func() {
		if out == nil {
			out = &reply{refusal: refuse(problemInternal, "The proxy failed on this request; if it was claimed, its outcome is unknown.")}
		}
		p.calls.answer(w.callKey, call, out)
	}()
	if !p.working.Begin() {
		return &reply{refusal: draining()}
	}
	defer p.working.End()
	// The script going away cancels nothing that was claimed.
	return p.claimAndSend(context.WithoutCancel(x.client), x, w)
}

// credential is the operator's own for a connector; its name is empty for none.
type credential struct{ name, value string }

// withAccount makes known whose data a request changes, where the connector says that the API must
// be asked. Without an answer nothing is derived, and nothing is sent. The credential that was
// asked with is as, nil if nobody was asked. The request must go out with it, whatever is
// configured by then: its key says whose data it is about.
func (p *Proxy) withAccount(x *exchange, req *rules.Request, c *rules.Connector) (told *rules.Request, as *credential, f *refusal) {
	if c == nil || c.AccountRead == nil {
		return req, nil, nil
	}
	as, err := p.credentialOf(c.Name, req)
	account := ""
	if err == nil {
		account, err = p.accountAs(x.client, as, c, req)
	}
	if err != nil {
		return nil, nil, refuse(problemAccount, "Whose data this request changes could not be asked of "+req.Authority()+
			", so nothing was sent: "+err.Error()+".").because(err)
	}
	return req.WithAccount(c, account), as, nil
}

// credentialOf is what is configured for a connector's requests to that host now.
func (p *Proxy) credentialOf(connector string, to *rules.Request) (*credential, error) {
	name, value, ok, err := p.credentials(connector, to)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the configured credentials can't be had: %w", err)
	case !ok:
		return &credential{}, nil
	}
	return &credential{name, value}, nil
}

// accountsFor asks whose data a request changes with the credential that it will be sent with. If
// nobody was asked before, it is the one used now.
func (p *Proxy) accountsFor(w *work) AccountOf {
	return func(ctx context.Context, c *rules.Connector, req *rules.Request) (string, error) {
		if w.as == nil {
			as, err := p.credentialOf(c.Name, req)
			if err != nil {
				return "", err
			}
			w.as = as
		}
		return p.accountAs(ctx, w.as, c, req)
	}
}

// accountAs asks with this credential, and with the request's own where it is none.
func (p *Proxy) accountAs(ctx context.Context, as *credential, c *rules.Connector, req *rules.Request) (string, error) {
	if p.config.Accounts == nil {
		return "", errors.New("nobody can be asked for it here")
	}
	if as.name != "" {
		header := req.Header.Clone()
		header.Set(as.name, as.value)
		bare, refusal := rules.Rebuild(req.Method, req.URL(), header, nil)
		if refusal != nil {
			return "", errors.New("the configured credential is no valid header field")
		}
		req = bare
	}
	return p.config.Accounts(ctx, c, req)
}
