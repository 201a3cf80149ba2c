package rules

import (
	"net/http"

	"go.yaml.in/yaml/v4"
)

// saysNothing is what APIs answer that tell errors with 200.
const saysNothing = `{"ok":false,"success":false,"error":"e","message":"m"}`

// fromNothing warns of a probe that finds absence in an answer that says nothing, as many APIs say
// with 200 that they had too many requests or know no such token. It is read as the rule will read
// it; what can't be told without the script's request isn't.
func (d *decoder) fromNothing(n *yaml.Node, key string, p *Probe) {
	if !p.absenceIsProof {
		return
	}
	req := (&Request{Method: http.MethodGet, Header: http.Header{}}).WithBody(nil)
	s := &scope{req: req, path: map[string]string{}, host: map[string]string{}, mutation: &Mutation{}}
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
