package proxy

import (
	"context"
	"net/http"
	"slices"

	"keep-proxy/ledger"
	"keep-proxy/rules"
)

// location is where a 307 or 308 says that a mutation is done, "" if a request there isn't taken for it. It is on the
// connector's hosts, under the same credential. As it is stored, it holds nothing secret.
func (p *Proxy) location(s *sending) string {
	own, op := s.w.req, s.w.op
	to, err := s.w.asked.Parse(s.Answer.Header.Get("Location"))
	if err != nil || !s.passedOn() || s.Dispatch.Verdict != ledger.VerdictFailed || op.OwnAddress() || s.Mutation.Request.URL != own.URL() {
		return ""
	}
	to.Fragment = ""
	req, problem := rules.Rebuild(own.Method, to.String(), nil, nil)
	if problem != nil || op.Redact(req).URL() != req.URL() {
		return ""
	}
	c := p.config.Rules().Match(req).Connector
	here, _ := p.credentialOf(op.Connector.Name, own)
	there, _ := p.credentialOf(op.Connector.Name, req)
	if c == nil || c.Name != op.Connector.Name || here == nil || there == nil || *here != *there {
		return ""
	}
	return req.URL()
}

// second answers a request to the second address of a mutation, if it is that mutation again: judged as at the
// mutation's own address, key and payload are the same. Any other request has no answer here, nor has one that a
// rule calls read or ignored. A ledger that can't be read takes no claim either.
func (p *Proxy) second(x *exchange, r *http.Request, req *rules.Request, m rules.Match) *http.Response {
	var of []*ledger.Mutation
	to := req.URL()
	passes := m.Refusal == nil && (m.Effect == rules.EffectRead || m.Effect == rules.EffectIgnore)
	if safe(req.Method) || m.Connector == nil || passes || m.Refusal != nil && m.Refusal.Problem != rules.ProblemUnmatched ||
		p.ledger.View(context.WithoutCancel(x.client), func(v ledger.View) error {
			item, err := v.Item(x.caller.workflow, x.caller.item)
			for i := 0; err == nil && i < len(item.Redirected); i++ {
				if m, err := v.Mutation(item.Redirected[i]); err == nil && (m.MovedTo == to || m.SentTo == to) {
					of = append(of, m)
				}
			}
			return err
		}) != nil || len(of) == 0 {
		return nil
	}
	if _, f := p.whole(x, r, req, p.config.MaxBody); f != nil {
		return p.refused(x, r, f)
	}
	body, _ := x.body.Plain()
	for _, one := range slices.CompactFunc(slices.Clone(of), func(a, b *ledger.Mutation) bool { return a.Request.URL == b.Request.URL }) {
		own, problem := rules.Rebuild(req.Method, one.Request.URL, req.Header, body)
		if problem == nil && p.contents.Load(own, x.body, func(whole *rules.Request) { m = p.config.Rules().Match(whole) }) == nil &&
			m.Refusal == nil && m.Effect == rules.EffectMutation && m.Operation != nil && !m.Operation.OwnAddress() {
			if resp := p.mutate(x, r, own, m, to, of...); resp != nil {
				return resp
			}
		}
	}
	return nil
}
