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
				d.warn("gateway", at.key, at.node, "is true of a gateway's own "+strconv.Itoa(status)+
					", which says nothing of what the API did with the request: it would be "+o.kind.String(),
					"name the statuses that the API answers itself, such as response.status == 400; leave 502 and 504 to the default table")
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

// saysNothingWith are statuses with which nothing is told of the object that is asked for: a 403 may
// hide it, and the rest are about the asking.
var saysNothingWith = []int{http.StatusOK, http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests, http.StatusBadGateway}

// fromNothing warns of a probe that finds absence, or the effect, in an answer that says nothing, as many APIs say
// with 200 that they had too many requests or know no such token. It is read as the rule will read
// it; what can't be told without the script's request isn't.
func (d *decoder) fromNothing(n *yaml.Node, key string, p *Probe) {
	for _, status := range saysNothingWith {
		s := emptyScope()
		s.resp = askedAnswer(&Response{
			Status: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: []byte(saysNothing), Complete: true,
		})
		if p.expect == nil && status != http.StatusOK {
			continue
		}
		if p.expect != nil {
			if holds, err := p.expect.test(s); err != nil || !holds {
				continue
			}
		}
		decides, seen := p.seenIn(s)
		var what string
		switch {
		case status == http.StatusOK && decides != nil && !decides.readsAnswerBody():
			continue // that the object is there may be all that is asked
		case seen == SeenAbsent && p.absenceIsProof:
			what = "absence"
		case seen == SeenApplied && status != http.StatusOK:
			what = "the effect"
		default:
			continue
		}
		at := d.standing(decides, n, key)
		d.warn("absence", at.key, at.node, "finds "+what+" in an answer of "+strconv.Itoa(status)+
			" that says nothing of it, such as {\"ok\":false} or {\"error\":…}, which would be believed",
			"read what must be there without a default, or add expect: with what only such an answer has, "+
				"such as response.status == 200 && has(response.json.kind)")
		return
	}
}

// endedByNothing warns of a watch that finds an end in an answer that says nothing of what was accepted, as probes
// are warned of. An error that comes with 200 may be that of what was accepted, and so a failure.
func (d *decoder) endedByNothing(n *yaml.Node, key string, w *Watch) {
	for _, status := range saysNothingWith {
		s := emptyScope()
		resp := &Response{Status: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: []byte(saysNothing), Complete: true}
		s.resp = askedAnswer(resp)
		seen, _ := w.judge(s, resp)
		fix := "name in expect: the statuses with which the API tells of what it accepted, such as response.status in [200, 404]"
		if status == http.StatusOK {
			if seen == WatchFailed || !w.until.readsAnswerBody() {
				continue
			}
			fix = "read what must be there without a default, such as response.json.state == 'done'"
		}
		decides, what := w.until, "the effect"
		switch seen {
		case WatchPending:
			continue
		case WatchFailed:
			decides, what = w.failed, "a failure"
		case WatchDone:
		}
		at := d.standing(decides, n, key)
		d.warn("absence", at.key, at.node, "finds "+what+" in an answer of "+strconv.Itoa(status)+
			" that says nothing of it, such as {\"ok\":false} or {\"error\":…}, which would be believed", fix)
		return
	}
}

// seenIn is what is seen in an answer, and the expression that decides so; retry where that is nothing.
func (p *Probe) seenIn(s *scope) (*expr, Seen) {
	for _, o := range p.observe {
		holds, err := o.when.test(s)
		switch {
		case err != nil || holds && o.step != 0:
			return nil, SeenRetry
		case holds:
			return o.when, o.is
		}
	}
	if p.candidates == nil {
		return nil, SeenRetry
	}
	if list, err := required(p.candidates, s); err != nil || list.kind != jsonArray || len(list.items) > 0 {
		return nil, SeenRetry
	}
	if p.pages != nil && p.pages.more != nil {
		if more, err := p.pages.more.test(s); err != nil || more {
			return nil, SeenRetry
		}
	}
	return p.candidates, SeenAbsent
}
