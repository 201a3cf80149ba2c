package rules

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
	"golang.org/x/net/http/httpguts"
)

// maxPages is the most pages that a probe may read.
const maxPages = 1000

// probe reads a probe; nil when it has no request.
func (d *decoder) probe(n *yaml.Node, key string, op *Operation) *Probe {
	m := d.object(n, key, levelProbe)
	if n.Kind != yaml.MappingNode {
		return nil
	}
	var p *Probe
	if m["steps"] != nil {
		p = d.steps(n, m, key, op)
	} else {
		p = d.read(n, m, key, &Probe{op: op}, nil)
	}
	d.sinceClaim(n, key, p)
	d.anyones(n, key, op, p)
	return p
}

// read reads one request of a probe and how its answers are judged; nil when it has
// no request. later are the names of the steps that come after this one, nil for a
// probe without steps.
func (d *decoder) read(n *yaml.Node, m map[string]*yaml.Node, key string, p *Probe, later []string) *Probe {
	d.probeRequest(n, m, key, p)
	if m["absence_is_proof"] != nil {
		p.absenceIsProof = d.boolean(m["absence_is_proof"], join(key, "absence_is_proof"))
	}
	if m["expect"] != nil {
		p.expect = d.condition(m["expect"], join(key, "expect"), inAnswer)
		d.answered(p.expect, "response")
	}
	if m["id"] != nil {
		p.id = d.expr(m["id"], join(key, "id"), inFound)
	}
	switch {
	case m["observe"] != nil && m["candidates"] != nil:
		d.fail("value", key, n, "a probe has either observe or candidates", "keep one of them")
	case m["observe"] != nil:
		d.observe(m, key, p, later)
	case m["candidates"] != nil:
		d.candidates(n, m, key, p)
	case len(later) > 0:
		// Its answer is for the steps after it.
	default:
		d.fail("missing", key, n, "the probe says nothing about what it sees", "add observe: or candidates:")
	}
	if m["pages"] != nil {
		p.pages = d.pages(m["pages"], join(key, "pages"))
	}
	if p.absenceIsProof && p.candidates != nil && m["pages"] == nil {
		d.warn("pages", key, n, "absence_is_proof without pages takes one page for the whole listing",
			"add pages:, unless the API gives everything at once")
	}
	if m["result"] != nil {
		p.result = d.result(m["result"], join(key, "result"), p)
	}
	if p.path == nil {
		return nil
	}
	d.fromNothing(n, key, p)
	return p
}

// probeRequest reads what is asked.
func (d *decoder) probeRequest(n *yaml.Node, m map[string]*yaml.Node, key string, p *Probe) {
	switch {
	case m["get"] != nil && m["post"] != nil:
		d.fail("value", key, n, "a probe is either a get or a post", "keep one of them")
	case m["get"] != nil:
		p.method, p.path = http.MethodGet, d.pathText(m["get"], join(key, "get"), inRecord)
	case m["post"] != nil:
		p.method, p.path = http.MethodPost, d.pathText(m["post"], join(key, "post"), inRecord)
	default:
		d.fail("missing", key, n, "the probe asks nothing", "add get: /path")
	}
	if m["query"] != nil {
		p.query = d.mapOf(m["query"], join(key, "query"), inRecord)
	}
	if m["header"] != nil {
		p.header = d.headerMap(m["header"], join(key, "header"), inRecord)
	}
	if m["json"] != nil {
		p.json = d.template(m["json"], join(key, "json"), inRecord)
		if m["get"] != nil {
			d.fail("value", join(key, "json"), m["json"], "a get has no body", "write post:, or put it under query:")
		}
	}
}

// headerMap reads header fields; their names are checked.
func (d *decoder) headerMap(n *yaml.Node, key string, at position) *template {
	t := d.mapOf(n, key, at)
	if t == nil {
		return nil
	}
	for _, name := range t.names {
		lower := strings.ToLower(name)
		if !httpguts.ValidHeaderFieldName(name) || lower == "authorization" || lower == "host" || lower == "content-length" {
			d.fail("value", join(key, name), n, quoted(name)+" is no header that a rule may set", "leave it out; credentials come from the configuration")
		}
	}
	return t
}

// observe reads conditions on a state.
func (d *decoder) observe(m map[string]*yaml.Node, key string, p *Probe, later []string) {
	for i, item := range d.elements(m["observe"], join(key, "observe")) {
		k := index(join(key, "observe"), i)
		e := d.object(item, k, levelObserve)
		if item.Kind != yaml.MappingNode {
			continue
		}
		if e["when"] == nil || (e["is"] == nil) == (e["step"] == nil) {
			d.fail("missing", k, item, "an observation needs when, and is or step",
				"write {when: CONDITION, is: applied|absent|retry}, or in a step {when: CONDITION, step: NAME}")
			continue
		}
		o := observeRule{when: d.condition(e["when"], join(k, "when"), inAnswer)}
		if e["step"] != nil {
			if o.step = d.laterStep(e["step"], join(k, "step"), p, later); o.step > 0 && o.when != nil {
				p.observe = append(p.observe, o)
			}
			continue
		}
		switch d.word(e["is"], join(k, "is"), "applied", "absent", "retry") {
		case "applied":
			o.is = SeenApplied
		case "absent":
			o.is = SeenAbsent
		default:
			o.is = SeenRetry
		}
		if o.is != SeenRetry {
			d.answered(o.when, "response")
		}
		if o.when != nil {
			p.observe = append(p.observe, o)
		}
	}
	if p.expect == nil && m["expect"] == nil {
		d.onlyExpected(key, p)
	}
	p.tie = TieUnique
	for _, name := range []string{"ours", "created", "pages", "tie"} {
		if m[name] != nil {
			d.fail("no-effect", join(key, name), m[name], name+" says nothing with observe", "leave it out, or write candidates")
		}
	}
	if p.id != nil && p.id.readsAny("found") {
		d.fail("value", join(key, "id"), m["id"], "there is no found with observe", "take the id from response")
	}
}

// onlyExpected refuses conditions on a status that is never judged.
func (d *decoder) onlyExpected(key string, p *Probe) {
	var first *expr
	judged := []string{"200"}
	for _, o := range p.observe {
		for _, status := range o.when.statuses {
			if text := strconv.FormatInt(status, 10); !slices.Contains(judged, text) {
				first, judged = cmp.Or(first, o.when), append(judged, text)
			}
		}
	}
	if first != nil {
		d.mistaken("missing", join(key, "expect"), d.at[first].node, "without expect only 200 is judged, and any other status is retry, but "+
			quoted(first.source)+" is about another one", "add expect: response.status in ["+strings.Join(judged, ", ")+"]")
	}
}

// candidates reads how objects of a listing are told apart.
func (d *decoder) candidates(n *yaml.Node, m map[string]*yaml.Node, key string, p *Probe) {
	p.candidates = d.expr(m["candidates"], join(key, "candidates"), inAnswer)
	d.answered(p.candidates, "response")
	if v, ok := d.need(n, m, key, "ours"); ok {
		p.ours = d.condition(v, join(key, "ours"), inFound)
		d.answered(p.ours, "found")
	}
	if v, ok := d.need(n, m, key, "tie"); ok {
		p.tie = Tie(d.word(v, join(key, "tie"), string(TieVendorKey), string(TieMarker), string(TieUnique), string(TieContent)))
	}
	if m["id"] == nil {
		d.fail("missing", join(key, "id"), n, "id is missing: one object is evidence for one mutation", "add id: found.id, or what the API calls it")
	}
	if m["created"] != nil {
		p.created = d.expr(m["created"], join(key, "created"), inFound)
		d.answered(p.created, "found")
	} else if p.tie == TieContent {
		d.fail("missing", join(key, "created"), n, "tie: content needs created: an older object is not this mutation's",
			"add created: timestamp(found.created_at), or another tie")
	}
	switch {
	case p.ours == nil:
	case p.tie == TieMarker && !p.ours.readsName("mutation", "marker"):
		d.fail("tie", join(key, "ours"), m["ours"], "tie: marker, but ours does not look at mutation.marker",
			"compare with mutation.marker, or write tie: content")
	case p.tie == TieVendorKey && !p.ours.readsName("mutation", "vendor_key"):
		d.fail("tie", join(key, "ours"), m["ours"], "tie: vendor_key, but ours does not look at mutation.vendor_key",
			"compare with mutation.vendor_key, or write tie: content")
	}
}

// pages reads how a listing goes on.
func (d *decoder) pages(n *yaml.Node, key string) *pages {
	m := d.object(n, key, levelPages)
	if n.Kind != yaml.MappingNode {
		return nil
	}
	p := &pages{}
	switch {
	case m["next"] != nil && (m["more"] != nil || m["set"] != nil):
		d.fail("value", key, n, "pages go on either by next or by more and set", "keep one of them")
	case m["next"] != nil:
		p.link = d.word(m["next"], join(key, "next"), "link") != ""
	case m["more"] != nil && m["set"] != nil:
		p.more = d.condition(m["more"], join(key, "more"), inAnswer)
		d.answered(p.more, "response")
		p.set = d.mapOf(m["set"], join(key, "set"), inAnswer)
	default:
		d.fail("missing", key, n, "pages does not say how the listing goes on", "add next: link, or more: and set:")
	}
	if m["max"] == nil {
		d.fail("missing", join(key, "max"), n, "max is missing", "add max: with the most pages to read")
	} else {
		p.max = d.number(m["max"], join(key, "max"), 1, maxPages)
	}
	return p
}

// result reads the answer that a script gets for what was found.
func (d *decoder) result(n *yaml.Node, key string, p *Probe) *resultTemplate {
	m := d.object(n, key, levelResult)
	if n.Kind != yaml.MappingNode {
		return nil
	}
	at := inFound
	if p.candidates == nil {
		at = inAnswer
	}
	r := &resultTemplate{status: http.StatusOK}
	if m["status"] != nil {
		r.status = d.number(m["status"], join(key, "status"), 200, 299)
	}
	if m["header"] != nil {
		r.header = d.headerMap(m["header"], join(key, "header"), at)
	}
	if m["json"] != nil {
		d.wholeLiteral(m["json"], join(key, "json"))
		r.json = d.template(m["json"], join(key, "json"), at)
	}
	return r
}
