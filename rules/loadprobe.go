package rules

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
	"golang.org/x/net/http/httpguts"

	"keep-proxy/internal/verdict"
)

// maxPages is the most pages that a probe may read, maxSteps the most steps.
const (
	maxPages = 1000
	maxSteps = 10
)

// maxResolution is the coarsest that times of creation may be.
const maxResolution = 24 * time.Hour

// probe reads a probe; nil when it has no request.
func (d *decoder) probe(v value, op *Operation) *Probe {
	m, ok := d.Map(v, levelProbe)
	switch {
	case !ok:
		return nil
	case m.Has("steps"):
		return d.steps(m, op)
	}
	return d.read(m, &Probe{op: op, at: v.Place()}, nil)
}

// read reads one request of a probe and how its answers are judged; nil when it has no request. The names of the steps
// that come after this one are later, nil for a probe without steps.
func (d *decoder) read(m fields, p *Probe, later []string) *Probe {
	d.asks(m, p, "probe", inRecord, "get", "head", "post")
	if (p.method == http.MethodGet || p.method == http.MethodHead) && m.Has("json") {
		d.Fail("value", m.At("json"), "a get has no body, nor has a head", "write post:, or put it under query:")
	}
	p.absenceIsProof = d.boolean(m.At("absence_is_proof"))
	p.expect = d.judging(m.At("expect"))
	p.id = d.expr(m.At("id"), inFound)
	switch {
	case m.Has("observe") && m.Has("candidates"):
		d.Fail("value", m, "a probe has either observe or candidates", "keep one of them")
	case m.Has("observe"):
		d.observe(m, p, later)
	case m.Has("candidates"):
		d.candidates(m, p)
	case len(later) > 0:
		// Its answer is for the steps after it.
	default:
		d.Fail("missing", m, "the probe says nothing about what it sees", "add observe: or candidates:")
	}
	p.pages = d.pages(m.At("pages"))
	of := inFound
	if p.candidates == nil {
		of = inAnswer
	}
	p.result = d.result(m.At("result"), of, 299)
	if p.path == nil {
		return nil
	}
	return p
}

// methods are the keys that say what is sent, with the methods that they stand for.
var methods = map[string]string{
	"get": http.MethodGet, "head": http.MethodHead,
	"post": http.MethodPost, "put": http.MethodPut, "patch": http.MethodPatch, "delete": http.MethodDelete,
}

// asks reads a request that keep-proxy makes: its path under one of the keys, query, header and JSON.
func (d *decoder) asks(m fields, p *Probe, what string, at position, keys ...string) {
	for _, key := range keys {
		switch {
		case !m.Has(key):
		case p.method != "":
			d.Fail("value", m.At(key), "the "+what+" is one request", "keep one of "+orWords(keys))
		default:
			p.method, p.path = methods[key], d.pathText(m.At(key), at)
		}
	}
	if p.method == "" {
		d.Fail("missing", m, "the "+what+" makes no request", "add "+keys[0]+": /path")
	}
	p.query, p.header, p.json = d.mapOf(m.At("query"), at), d.headerMap(m.At("header"), at), d.template(m.At("json"), at)
}

// headerMap reads header fields; their names are checked.
func (d *decoder) headerMap(v value, at position) *template {
	t := d.mapOf(v, at)
	if t == nil {
		return nil
	}
	for _, name := range t.names {
		lower := strings.ToLower(name)
		if !httpguts.ValidHeaderFieldName(name) || lower == "authorization" || lower == "host" || lower == "content-length" {
			d.Fail("value", v.Place().Under(name), quoted(name)+" is no header that a rule may set", "leave it out; credentials come from the configuration")
		}
	}
	return t
}

// observe reads conditions on a state.
func (d *decoder) observe(m fields, p *Probe, later []string) {
	for _, item := range d.list(m.At("observe")) {
		e, ok := d.Map(item, levelObserve)
		if !ok {
			continue
		}
		if !e.Has("when") || e.Has("is") == e.Has("step") {
			d.Fail("missing", item, "an observation needs when, and is or step",
				"write {when: CONDITION, is: applied|absent|retry}, or in a step {when: CONDITION, step: NAME}")
			continue
		}
		o := observeRule{when: d.condition(e.At("when"), inAnswer)}
		if e.Has("step") {
			if o.step = d.laterStep(e.At("step"), p, later); o.step == 0 {
				continue
			}
		} else if o.is = d.seen(e.At("is")); o.is != SeenRetry {
			d.answered(o.when, "response")
		}
		if o.when != nil {
			p.observe = append(p.observe, o)
		}
	}
	if !m.Has("expect") {
		d.onlyExpected(m.At("expect"), p)
	}
	for _, name := range []string{"ours", "created", "resolution", "pages", "tie"} {
		if m.Has(name) {
			d.Fail("no-effect", m.At(name), name+" says nothing with observe", "leave it out, or write candidates")
		}
	}
	if p.id != nil && p.id.readsAny("found") {
		d.Fail("value", m.At("id"), "there is no found with observe", "take the id from response")
	}
}

// seen reads what a condition says.
func (d *decoder) seen(v value) Seen {
	name := word(d, v, "", "applied", "absent", "retry")
	for _, s := range []Seen{SeenApplied, SeenAbsent} {
		if s.String() == name {
			return s
		}
	}
	return SeenRetry
}

// onlyExpected refuses conditions on a status that is never judged.
func (d *decoder) onlyExpected(v value, p *Probe) {
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
		at := first.at
		at.Key = v.Key
		d.mistaken("missing", at, "without expect only 200 is judged, and any other status is retry, but "+
			quoted(first.source)+" is about another one", "add expect: response.status in ["+strings.Join(judged, ", ")+"]")
	}
}

// candidates reads how objects of a listing are told apart.
func (d *decoder) candidates(m fields, p *Probe) {
	p.candidates = d.expr(m.At("candidates"), inAnswer)
	d.answered(p.candidates, "response")
	ours := d.need(m, "ours")
	p.ours = d.condition(ours, inFound)
	d.answered(p.ours, "found")
	p.tie = word(d, d.need(m, "tie"), "", TieVendorKey, TieMarker, TieUnique, TieContent)
	if !m.Has("id") {
		d.Fail("missing", m.At("id"), "id is missing: one object is evidence for one mutation", "add id: found.id, or what the API calls it")
	}
	p.created = d.expr(m.At("created"), inFound)
	d.answered(p.created, "found")
	p.resolution = d.atMost(m.At("resolution"), maxResolution, "is longer than a day", "write at most 24h, or another created")
	if m.Has("resolution") && !m.Has("created") {
		d.Fail("no-effect", m.At("resolution"), "resolution is that of created, which isn't there", "add created:, or leave it out")
	}
	if !m.Has("created") && p.tie.Weak() && !d.pinned {
		d.Fail("missing", m.At("created"), "tie: "+string(p.tie)+" needs created: an older object is not this mutation's",
			"add created: timestamp(found.created_at), or another tie")
	}
	for tie, name := range map[Tie]string{TieMarker: "marker", TieVendorKey: "vendor_key"} {
		if p.ours != nil && p.tie == tie && !p.ours.readsName("mutation", name) {
			d.Fail("tie", ours, "tie: "+name+", but ours does not look at mutation."+name, "compare with mutation."+name+", or write tie: content")
		}
	}
}

// pages reads how a listing goes on.
func (d *decoder) pages(v value) *pages {
	m, ok := d.Map(v, levelPages)
	if !ok {
		return nil
	}
	p := &pages{}
	switch {
	case m.Has("next") && (m.Has("more") || m.Has("set")):
		d.Fail("value", v, "pages go on either by next or by more and set", "keep one of them")
	case m.Has("next"):
		p.link = word(d, m.At("next"), "", "link") != ""
	case m.Has("more") && m.Has("set"):
		p.more, p.set = d.judging(m.At("more")), d.mapOf(m.At("set"), inAnswer)
	default:
		d.Fail("missing", v, "pages does not say how the listing goes on", "add next: link, or more: and set:")
	}
	if !m.Has("max") {
		d.Fail("missing", m.At("max"), "max is missing", "add max: with the most pages to read")
	}
	p.max = d.number(m.At("max"), 1, maxPages)
	return p
}

// result reads an answer that a script gets; nil for none.
func (d *decoder) result(v value, at position, most int) *resultTemplate {
	m, ok := d.Map(v, levelResult)
	if !ok {
		return nil
	}
	if at != inRecord {
		d.wholeLiteral(m.At("json"))
		d.wholeLiteral(m.At("graphql"))
	}
	if m.Has("json") && m.Has("graphql") {
		d.Fail("value", m.At("graphql"), "the answer has json already", "keep one of json and graphql")
	}
	return &resultTemplate{
		status: cmp.Or(d.number(m.At("status"), 200, most), http.StatusOK),
		header: d.headerMap(m.At("header"), at), json: d.template(m.At("json"), at), graphQL: d.template(m.At("graphql"), at),
	}
}

// exprs are the expressions of the template.
func (r *resultTemplate) exprs() []*expr {
	if r == nil {
		return nil
	}
	return slices.Concat(r.header.exprs(), r.json.exprs(), r.graphQL.exprs())
}

// steps reads a probe that is a chain of reads; nil when it has none.
func (d *decoder) steps(m fields, op *Operation) *Probe {
	for _, name := range levelProbe.Known {
		if m.Has(name) && name != "steps" {
			d.Fail("value", m.At(name), name+" belongs into a step", "write it below the step that it is about")
		}
	}
	v := m.At("steps")
	items := d.list(v)
	switch {
	case v.Is(yaml.SequenceNode) && len(items) == 0:
		d.Fail("missing", v, "steps is empty", "add a step, or write the probe without steps")
		return nil
	case len(items) > maxSteps:
		d.Fail("value", v, "has more steps than a probe may have", "leave some out; ten are the most")
		return nil
	}
	names, read := make([]string, len(items)), make([]fields, len(items))
	for i, item := range items {
		read[i], _ = d.Map(item, levelStep)
		names[i] = d.stepName(read[i].At("name"), names[:i])
	}
	p := &Probe{op: op, at: m.Place()}
	for i, item := range items {
		step := &Probe{op: op, at: item.Place(), name: names[i], index: i}
		if d.read(read[i], step, names[i+1:]) != nil {
			p.steps = append(p.steps, step)
		}
	}
	if len(p.steps) != len(items) {
		return nil // what is wrong with the others was reported
	}
	return p
}

// stepName reads the name of a step.
func (d *decoder) stepName(v value, earlier []string) string {
	if !v.Given() {
		d.Fail("missing", v, "the step has no name", "add name: with letters, digits and _")
		return ""
	}
	name, ok := d.text(v)
	switch {
	case !ok:
	case !isName(name):
		d.Fail("value", v, quoted(name)+" is no name of a step", "write letters, digits and _, beginning with a letter")
	case slices.Contains(earlier, name):
		d.Fail("value", v, quoted(name)+" is the name of an earlier step", "give each step a name of its own")
	}
	return name
}

// laterStep is the index of the step that goes on; 0 if there is none of this name
// after p.
func (d *decoder) laterStep(v value, p *Probe, later []string) int {
	name, ok := d.text(v)
	i := slices.Index(later, name)
	if !ok || i < 0 {
		d.Fail("value", v, quoted(name)+" is no step after this one", "name a step further down; a probe goes forward only")
		return 0
	}
	return p.index + 1 + i
}

// stepNames checks that an answer to a step is read in the steps after it only.
func (d *decoder) stepNames(op *Operation) {
	known := map[*expr][]string{}
	for _, p := range slices.Concat(op.probes(), op.undoing().probes()) {
		var names []string
		for _, step := range p.steps {
			for _, e := range step.exprs() {
				known[e] = slices.Clone(names)
			}
			names = append(names, step.name)
		}
	}
	for _, e := range op.exprs() {
		for _, r := range e.refs {
			if r.root == "steps" && (len(r.steps) == 0 || !slices.Contains(known[e], r.steps[0].name)) {
				d.Fail("variable", e.at, quoted(e.source)+" reads an answer that isn't there yet",
					"read steps.NAME of an earlier step of the same probe, in a later one")
			}
		}
	}
}

// Bounds and default of the time between two looks.
const (
	defaultWatchEvery = 30 * time.Second
	minWatchEvery     = time.Second
	maxWatch          = 30 * 24 * time.Hour
)

// watch reads how a 202 is followed.
func (d *decoder) watch(v value, op *Operation) {
	m, ok := d.Map(v, levelWatch)
	if !ok {
		return
	}
	w := &Watch{ask: &Probe{op: op, at: v.Place()}}
	d.need(m, "get")
	if m.Has("get") {
		d.asks(m, w.ask, "look", inAnswer, "get")
	}
	if w.ask.path != nil && w.ask.path.whole() && m.Has("query") {
		d.Fail("value", m.At("query"), "get is a whole URL, with a query of its own", "leave query out")
	}
	w.ask.expect = d.judging(m.At("expect"))
	w.until, w.failed = d.judging(d.need(m, "until")), d.judging(m.At("failed_when"))
	w.Class = word(d, m.At("class"), verdict.Precondition, classes...)
	if w.Every = cmp.Or(d.duration(m.At("every")), defaultWatchEvery); w.Every < minWatchEvery {
		d.Fail("value", m.At("every"), "is less than a second", "write at least 1s")
	}
	w.Max = d.atMost(d.need(m, "max"), maxWatch, "is longer than a month", "write at most 720h")
	d.notSecret("watch-secret", "look", w.exprs(), op)
	if w.ask.path != nil && w.until != nil {
		op.Watch = w
		// What may still be under way for so long can't be believed absent before.
		op.Settle = max(op.Settle, w.Max)
	}
}
