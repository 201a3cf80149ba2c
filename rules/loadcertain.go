package rules

import (
	"net/http"
	"strconv"

	"go.yaml.in/yaml/v4"
)

// ofGateways warns of an outcome that is sure of what a gateway answers when the API's own answer
// didn't come: the request may have been passed on.
func (d *decoder) ofGateways(n *yaml.Node, key string, op *Operation) {
	for _, status := range []int{http.StatusBadGateway, http.StatusGatewayTimeout} {
		s := emptyScope()
		s.resp = newAnswer(&Response{
			Status: status, Header: http.Header{"Content-Type": {"text/html"}}, Body: []byte("<html></html>"), Complete: true,
		})
		for _, o := range op.outcome {
			holds, err := o.when.test(s)
			if err == nil && !holds {
				continue
			}
			if err == nil && o.kind != OpinionUncertain {
				at := d.standing(o.when, n, key)
				d.warn("gateway", at.key, at.node, "is true of a gateway's own "+strconv.Itoa(status)+", which says nothing of what the API did with the request: it would be "+
					o.kind.String(), "name the statuses that the API answers itself, such as response.status == 400; leave 502 and 504 to the default table")
				return
			}
			break
		}
	}
}

// emptyScope is that of a request that says nothing: what depends on it is an error.
func emptyScope() *scope {
	req := (&Request{Method: http.MethodGet, Header: http.Header{}}).WithBody(nil)
	return &scope{req: req, path: map[string]string{}, host: map[string]string{}, mutation: &Mutation{}}
}

// saysNothing is what APIs answer that tell errors with 200.
const saysNothing = `{"ok":false,"success":false,"error":"e","message":"m"}`

// fromNothing warns of a probe that finds absence in an answer that says nothing, as many APIs say
// with 200 that they had too many requests or know no such token. It is read as the rule will read
// it; what can't be told without the script's request isn't.
func (d *decoder) fromNothing(n *yaml.Node, key string, p *Probe) {
	if !p.absenceIsProof {
		return
	}
	s := emptyScope()
	s.resp = askedAnswer(&Response{
		Status: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: []byte(saysNothing), Complete: true,
	})
	if p.expect != nil {
		if holds, err := p.expect.test(s); err != nil || !holds {
			return
		}
	}
	decides := p.absentIn(s)
	if decides == nil {
		return
	}
	at := d.standing(decides, n, key)
	d.warn("absence", at.key, at.node, "finds absence in an answer of 200 that says nothing of it, such as {\"ok\":false} or {\"error\":…}, and absence_is_proof believes it",
		"read what must be there without a default, or add expect: with what only such an answer has, such as response.status == 200 && has(response.json.kind)")
}

// absentIn is the expression that makes an answer an absence; nil where none does.
func (p *Probe) absentIn(s *scope) *expr {
	for _, o := range p.observe {
		holds, err := o.when.test(s)
		if err != nil {
			return nil
		}
		if holds && o.step == 0 && o.is == SeenAbsent {
			return o.when
		}
		if holds {
			return nil
		}
	}
	if p.candidates == nil {
		return nil
	}
	if list, err := required(p.candidates, s); err != nil || list.kind != jsonArray || len(list.items) > 0 {
		return nil
	}
	if p.pages != nil && p.pages.more != nil {
		if more, err := p.pages.more.test(s); err != nil || more {
			return nil
		}
	}
	return p.candidates
}
