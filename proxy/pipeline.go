package proxy

import (
	"fmt"
	"net/http"
	"runtime/debug"
	"strings"

	"keep-proxy/dispatch"
	"keep-proxy/internal/hop"
	"keep-proxy/rules"
)

// pipeline answers one request, plain or out of a tunnel. It always answers: an
// error inside it is a refusal, and nothing was sent on it.
//
//nolint:bodyclose // Who carries the answer closes its body.
func (p *Proxy) pipeline(x *exchange, r *http.Request) (resp *http.Response) {
	if x == nil {
		resp = refuse(problemInternal, "The request has no caller; nothing was sent.").response(r, nil, p.config.Help)
		return resp
	}
	defer func() {
		resp.Body = source{resp.Body, &x.answer.cut}
	}()
	defer func() {
		if v := recover(); v != nil {
			resp = p.refused(x, r, p.panicked(v))
		}
	}()
	if f := nameItem(x, r.Header[headerItem]); f != nil {
		return p.refused(x, r, f)
	}
	if f := p.gate(x); f != nil {
		return p.refused(x, r, f)
	}
	asked, f := askedProtocols(r)
	if x.asked = asked; f != nil {
		return p.refused(x, r, f)
	}
	if lastHop(r) {
		return newResponse(r, http.StatusOK, http.Header{"Cache-Control": {"no-store"}}, nil)
	}
	x.trailers = takesTrailers(r.Header)
	x.sought = true
	req, problem := p.config.Rules().Normalise(rawRequest(r))
	if problem != nil {
		return p.refused(x, r, fromRules(problem))
	}
	resp = p.route(x, r, req)
	p.through(x, r, resp)
	return resp
}

// panicked logs a panic, and says what the client is told.
func (p *Proxy) panicked(v any) *refusal {
	// The value may quote the request; its type may not.
	p.config.Log.Error().Str("panic", fmt.Sprintf("%T", v)).Bytes("stack", debug.Stack()).Msg("handler")
	return refuse(problemInternal, "The proxy failed on this request. If it was a mutation that had been claimed, its outcome is unknown.")
}

// route finds the rule for a request and does what its effect says.
func (p *Proxy) route(x *exchange, r *http.Request, req *rules.Request) *http.Response {
	m := p.config.Rules().Match(req)
	if m.NeedsBody && m.Refusal == nil {
		var f *refusal
		if req, f = p.whole(x, r, req, p.config.MaxBody); f != nil {
			return p.refused(x, r, f)
		}
		if err := p.contents.Load(req, x.body, func(req *rules.Request) { m = p.config.Rules().Match(req) }); err != nil {
			return p.refused(x, r, bodyRefusal(dispatch.SpoolError{Err: err}, p.config.MaxBody))
		}
		if m.NeedsBody && m.Refusal == nil {
			return p.refused(x, r, refuse(problemInternal, "The rules ask for a body that was given; nothing was sent."))
		}
	}
	if resp := p.second(x, r, req, m); resp != nil {
		return resp
	}
	if m.Connector != nil {
		x.connector = m.Connector.Name
	}
	if m.Operation != nil {
		x.operation = m.Operation.Name
		x.rule, x.request = m.Operation, req
	}
	if _, denied := m.Upgrade(x.asked); denied != nil && !rules.IsHandshake(r.Header) {
		x.asked = nil // An offer, which any server may ignore (RFC 9110 §7.8).
	}
	x.matched, x.reads = true, m.Refusal == nil && (m.Effect == rules.EffectRead || m.Effect == rules.EffectIgnore)
	switch {
	case len(x.asked) > 0:
		return p.upgrade(x, r, req, &m)
	case m.Refusal != nil:
		return p.refused(x, r, fromRules(m.Refusal))
	case m.Unmatched:
		return p.unmatched(x, r, req)
	case x.reads:
		if f := p.readStart(x, r, req, &m); f != nil {
			x.reads = false
			return p.refused(x, r, f)
		}
		x.effect = m.Effect.String()
		if resp := p.rest(x, r, req.Authority()); resp != nil {
			return resp
		}
		return p.pass(x, r, req, x.connector)
	case m.Effect == rules.EffectMutation && m.Operation != nil:
		return p.mutate(x, r, req, m, "")
	}
	return p.refused(x, r, refuse(problemDenied, "The rule for this request denies it; nothing was sent."))
}

// unmatched applies the policy for hosts of no connector: safe methods
// (RFC 9110 §9.2.1) pass, the rest as configured.
func (p *Proxy) unmatched(x *exchange, r *http.Request, req *rules.Request) *http.Response {
	if safe(req.Method) {
		x.effect = "read"
		return p.pass(x, r, req, "")
	}
	passes := p.config.Unmatched == PolicyAllow || p.config.Unmatched == PolicyObserve
	if passes {
		p.under.mutations.Add(1)
		x.after = append(x.after, func(bool) { p.under.mutations.Add(-1) })
	}
	if h := p.halted(); passes && h.Sending {
		return p.refused(x, r, h.refusal())
	}
	if passes && p.readsOnly(x.caller) {
		return p.refused(x, r, refuse(problemReadOnlyRun,
			"This run may read only, and nothing says that "+r.Method+" to "+req.Authority()+" changes nothing; nothing was sent."))
	}
	switch p.config.Unmatched {
	case PolicyAllow:
		x.effect = "allow"
		return p.pass(x, r, req, "")
	case PolicyObserve:
		x.effect = "observe"
		if f := p.observe(x, r, req); f != nil {
			return p.refused(x, r, f)
		}
		resp := p.pass(x, r, req, "")
		resp.Header.Set(dispatch.FieldObserved, "true")
		return resp
	case PolicyDeny:
	}
	return p.refused(x, r, refuse(problemUnmatched, req.Method+" to "+req.Authority()+" is declared by no connector, "+
		"so it can't be made safe to repeat; nothing was sent. Write a connector for it (keep-proxy explain shows how it is read), "+
		"or set proxy.unmatched.mutation."))
}

// refused makes the answer of a refusal and notes it on the exchange.
func (p *Proxy) refused(x *exchange, r *http.Request, f *refusal) *http.Response {
	x.problem = f.problem
	if f.mutation != nil {
		x.mutation = f.mutation
	}
	f.run, f.item = x.caller.run, x.caller.item
	p.audit(x, r, f)
	resp := p.refusing(x, r, f)
	if x.caller.unmanaged {
		resp.Header.Set(dispatch.FieldScope, "unmanaged")
	}
	return resp
}

// fromRules turns a refusal of the rules into one of the proxy.
func fromRules(f *rules.Refusal) *refusal {
	out := refuse(problem(f.Problem), unsent(f.Detail))
	if _, known := kinds[out.problem]; !known {
		out.problem = problemDenied
	}
	out.status = f.Problem.Status()
	return out
}

// rawRequest is the request as it came in, as rules read it. It takes the fields of
// one connection out of r.
func rawRequest(r *http.Request) rules.Raw {
	target := r.RequestURI
	if _, rest, absolute := strings.Cut(target, "://"); absolute && target[0] != '/' {
		// In absolute-form; net/url would spell the path anew.
		target = "/"
		if i := strings.IndexAny(rest, "/?"); i >= 0 && rest[i] == '?' {
			target += rest[i:]
		} else if i >= 0 {
			target = rest[i:]
		} else if r.Method == http.MethodOptions {
			target = "*" // RFC 9112 §3.2.4
		}
	}
	if hop.Strip(r.Header) {
		r.Trailer = nil
	}
	if !r.ProtoAtLeast(1, 1) {
		delete(r.Header, "Expect") // RFC 9110 §10.1.1
	}
	return rules.Raw{
		Method: r.Method, Scheme: r.URL.Scheme, Authority: r.URL.Host, Target: target, Header: r.Header,
		HasBody: r.ContentLength != 0 && r.Body != nil && r.Body != http.NoBody,
	}
}
