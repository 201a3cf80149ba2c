package rules

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Probe finds out by reads whether a mutation happened.
type Probe struct {
	op *Operation
	at Where
	// name is a step's.
	name string
	// index is where a step stands among the steps.
	index int
	// steps are read one after the other; the rest of a probe with steps is empty.
	steps      []*Probe
	method     string
	path       *text
	query      *template
	header     *template
	json       *template
	expect     *expr
	observe    []observeRule
	candidates *expr
	ours       *expr
	tie        Tie
	id         *expr
	created    *expr
	// resolution is how fine created is; 0 for as fine as it is written.
	resolution     time.Duration
	pages          *pages
	result         *resultTemplate
	absenceIsProof bool
}

// observeRule is one condition on a state.
type observeRule struct {
	when *expr
	is   Seen
	// step is the index of the step that goes on, 0 for none: nothing leads back to
	// the first.
	step int
}

// pages says how a listing goes on.
type pages struct {
	// link follows Link rel="next" (RFC 8288); else more and set.
	link bool
	more *expr
	set  *template
	max  int
}

// resultTemplate makes the answer for a script.
type resultTemplate struct {
	status int
	header *template
	json   *template
	// graphQL is put under the alias of the request's field.
	graphQL *template
}

// exprs are all expressions of the probe.
func (p *Probe) exprs() []*expr {
	out := append([]*expr{p.expect, p.candidates, p.ours, p.id, p.created}, p.path.exprs()...)
	for _, t := range []*template{p.query, p.header, p.json} {
		out = append(out, t.exprs()...)
	}
	for _, o := range p.observe {
		out = append(out, o.when)
	}
	for _, step := range p.steps {
		out = append(out, step.exprs()...)
	}
	if p.pages != nil {
		out = append(append(out, p.pages.more), p.pages.set.exprs()...)
	}
	if p.result != nil {
		out = append(out, p.result.exprs()...)
	}
	return slices.DeleteFunc(out, func(e *expr) bool { return e == nil })
}

// reads are the probe itself and its steps: all that ask.
func (p *Probe) reads() []*Probe { return append([]*Probe{p}, p.steps...) }

// judgesByClaim reports whether what an answer means depends on when the mutation was
// claimed. Times of creation are not among it, see [Asking.Observation].
func (p *Probe) judgesByClaim() bool {
	judging := []*expr{p.expect, p.candidates, p.ours, p.id, p.created}
	for _, o := range p.observe {
		judging = append(judging, o.when)
	}
	if p.pages != nil {
		judging = append(judging, p.pages.more)
	}
	return slices.ContainsFunc(judging, (*expr).readsClaim) || slices.ContainsFunc(p.steps, (*Probe).judgesByClaim)
}

// asksByClaim reports whether what is asked for depends on it.
func (p *Probe) asksByClaim() bool {
	asking := p.path.exprs()
	for _, t := range []*template{p.query, p.header, p.json} {
		asking = append(asking, t.exprs()...)
	}
	if p.pages != nil {
		asking = append(asking, p.pages.set.exprs()...)
	}
	return slices.ContainsFunc(asking, (*expr).readsClaim) || slices.ContainsFunc(p.steps, (*Probe).asksByClaim)
}

// Asking is one try of a probe: call Next, send, call Answer, until Next says
// false; then Observation. It is not safe for concurrent use.
type Asking struct {
	// whole is the probe, and probe what is read now: all of it, or one of its steps.
	whole *Probe
	probe *Probe
	steps []*Probe
	step  int
	env   Env
	scope *scope
	// next is the request to send; nil when the try is over.
	next *Ask
	// query is the query of the last request, for pages that change it.
	query []pair
	read  int
	// cut says that an answer that is read as it is, without pages, goes on elsewhere.
	cut bool
	// stopped says why the try ended without an observation.
	stopped string
	done    bool
	found   []object
	seen    Seen
	reason  string
	result  *Result
	ids     []string
	sent    map[string]bool
}

// Begin starts one try. It fails when the first request can't be made from env; a
// try that can't begin is a retry.
func (p *Probe) Begin(env Env) (*Asking, error) {
	if env.Request == nil {
		return nil, errors.New("probe: no request")
	}
	a := &Asking{whole: p, probe: p, steps: p.steps, env: env, scope: p.op.scope(env), sent: map[string]bool{}}
	if len(p.steps) > 0 {
		a.probe = p.steps[0]
	}
	ask, err := a.first()
	if err != nil {
		return nil, fmt.Errorf("probe of %s: %w", p.op.Name, err)
	}
	a.next = ask
	return a, nil
}

// first makes the first request.
func (a *Asking) first() (*Ask, error) {
	p := a.probe
	to, target := a.env.Request, ""
	var err error
	if p.path.whole() {
		if to, err = a.led(); err == nil {
			target = to.Target()
		}
	} else if target, err = p.path.path(a.scope); err == nil {
		if _, refusal := normalPath(p.method, target); refusal != nil {
			return nil, refusal
		}
	}
	if err != nil {
		return nil, err
	}
	if a.query, err = p.query.namedValues(a.scope); err != nil {
		return nil, err
	}
	header, err := p.header.headers(a.scope)
	if err != nil {
		return nil, err
	}
	if header.Get("Accept") == "" {
		header.Set("Accept", "application/json")
	}
	ask := &Ask{
		Method: p.method, Scheme: to.Scheme, Authority: to.Authority(),
		Target: withQuery(target, a.query), Shown: p.shown(a.scope, a.query), Header: header,
		Told: func(name string) bool { return p.header != nil && header.Get(name) != "" && p.header.answered(name) },
	}
	if p.json != nil {
		v, _, err := p.json.build(a.scope)
		if err != nil {
			return nil, err
		}
		ask.Body = appendMasked(nil, &v, nil)
		if header.Get("Content-Type") == "" {
			header.Set("Content-Type", "application/json")
		}
	}
	if strings.Contains(ask.Target, maskedPair) || strings.Contains(fmt.Sprint(header)+string(ask.Body), secretShown) {
		return nil, errors.New("it would ask by a value that is masked where it is stored")
	}
	return ask, nil
}

// led is where an answer leads by a URL, as it is: to a host of the connector that differs from the request's in no
// variable. What the rules record or deny is never asked for.
func (a *Asking) led() (*Request, error) {
	given, err := single(a.probe.path.parts[0].expr, a.scope)
	if err != nil {
		return nil, err
	}
	to, err := url.Parse(a.env.Request.URL())
	if err == nil {
		to, err = to.Parse(given)
	}
	if err != nil || strings.Contains(given, secretShown) || to.User != nil || to.Scheme != "https" && to.Scheme != a.env.Request.Scheme {
		return nil, errors.New("the answer gives no URL that can be asked for")
	}
	req, refusal := Normalise(Raw{Method: http.MethodGet, Scheme: to.Scheme, Authority: to.Host, Target: to.RequestURI()})
	if refusal != nil {
		return nil, refusal
	}
	c := a.probe.op.Connector
	own, _ := matchHost(c.hosts, a.env.Request)
	m := c.Match(req)
	switch undeclared := m.Operation == nil && c.resembling(req, m.Host, nil) == nil; {
	case m.Unmatched, !maps.Equal(m.Host, own):
		return nil, errors.New("the answer leads to another host")
	case m.NeedsBody, !m.Effect.passes() && !undeclared, m.Refusal != nil && m.Refusal.Problem != ProblemUnmatched:
		return nil, errors.New("the answer leads to what is no read by the rules")
	}
	return req, nil
}

// headers computes header fields.
func (t *template) headers(s *scope) (http.Header, error) {
	values, err := t.namedValues(s)
	if err != nil {
		return nil, err
	}
	raw := http.Header{}
	for _, one := range values {
		raw.Add(one.name, one.value)
	}
	out, refusal := normalHeader(raw)
	if refusal != nil {
		return nil, refusal
	}
	return out, nil
}

// withQuery appends a query to a path.
func withQuery(target string, query []pair) string {
	if len(query) == 0 {
		return target
	}
	spelt := make([]string, len(query))
	for i, one := range query {
		// %20, as some servers read + as itself.
		spelt[i] = escapeSegment(one.name) + "=" + escapeSegment(one.value)
	}
	return target + "?" + strings.Join(spelt, "&")
}

// Next returns the next request to send; false when the try is over. Asking twice
// without an answer between gives the same request.
func (a *Asking) Next() (*Ask, bool) { return a.next, a.next != nil }

// Answer takes the answer to the last Ask; nil for a request that got no whole answer. An answer that can't be used
// ends the try with retry.
func (a *Asking) Answer(resp *Response) {
	ask := a.next
	a.next = nil
	if ask == nil {
		a.stop("an answer came to no question")
		return
	}
	if resp == nil || !resp.Complete {
		a.stop("the probe got no whole answer")
		return
	}
	a.read++
	a.sent[ask.Target] = true
	a.scope.resp = askedAnswer(resp.ofCall(ask))
	a.scope.remember(a.probe.name)
	if !a.expected(resp) {
		return
	}
	if _, more, err := nextLink(resp.Header); a.probe.candidates == nil && (more || err != nil) {
		a.cut = true
	}
	switch {
	case len(a.probe.observe) > 0:
		a.observeState()
		return
	case a.probe.candidates == nil:
		a.goOn(a.step + 1)
		return
	}
	if err := a.collect(); err != nil {
		a.fail("the listing can't be read", err)
		return
	}
	next, err := a.following(ask)
	if err != nil {
		a.fail("the next page can't be asked for", err)
		return
	}
	a.next, a.done = next, next == nil
}

// goOn begins a later step.
func (a *Asking) goOn(step int) {
	if step <= a.step || step >= len(a.steps) {
		a.stop("the probe has no step that goes on")
		return
	}
	a.step, a.probe, a.read, a.query = step, a.steps[step], 0, nil
	clear(a.sent)
	a.scope.resp = nil
	ask, err := a.first()
	if err != nil {
		a.fail("the step "+a.probe.name+" can't be asked for", err)
		return
	}
	a.next = ask
}

// stop ends the try with retry.
func (a *Asking) stop(why string) { a.next, a.done, a.stopped = nil, false, printable(why) }

// fail ends the try with retry for an error.
func (a *Asking) fail(what string, err error) { a.stop(what + a.probe.op.because(err)) }

// expected checks the answer: 200, unless the rule says otherwise. A 404 is never taken for
// an absence by accident, nor a 401 or 503 for anything.
func (a *Asking) expected(resp *Response) bool {
	e := a.probe.expect
	if e == nil {
		if resp.Status != http.StatusOK {
			a.stop(fmt.Sprintf("the probe was answered %d instead of 200", resp.Status))
		}
		return resp.Status == http.StatusOK
	}
	holds, err := e.test(a.scope)
	switch {
	case err != nil:
		a.fail("expect can't be evaluated", err)
	case !holds:
		a.stop(fmt.Sprintf("the probe was answered %d, which is not what the rule expects: %s", resp.Status, e.source))
	}
	return err == nil && holds
}

// observeState judges a state by the conditions; none that holds is retry.
func (a *Asking) observeState() {
	for _, o := range a.probe.observe {
		holds, err := o.when.test(a.scope)
		if err != nil {
			a.fail("the condition "+o.when.source+" can't be evaluated", err)
			return
		}
		if !holds {
			continue
		}
		if o.step > 0 {
			a.goOn(o.step)
			return
		}
		a.done, a.seen, a.reason = true, o.is, "the probe's condition holds: "+o.when.source
		if o.is != SeenApplied {
			return
		}
		if err := a.observed(); err != nil {
			a.fail("what was observed can't be read", err)
		}
		return
	}
	a.stop("no condition of the probe holds")
}

// observed takes id and result of an applied state.
func (a *Asking) observed() error {
	if a.probe.id != nil {
		id, err := objectID(a.probe.id, a.scope)
		if err != nil {
			return err
		}
		a.ids = []string{id}
	}
	result, err := a.probe.result.build(a.scope)
	a.result = result
	return err
}

// build makes the answer for a script; nil without a template.
func (r *resultTemplate) build(s *scope) (*Result, error) {
	if r == nil {
		return nil, nil //nolint:nilnil // no template is no result, and no failure
	}
	header, err := r.header.headers(s)
	if err != nil {
		return nil, fmt.Errorf("result: %w", err)
	}
	out := &Result{Status: r.status, Header: header}
	from := cmp.Or(r.json, r.graphQL)
	if from == nil {
		return out, nil
	}
	s.copies = true
	v, present, err := from.build(s)
	s.copies = false
	if err == nil && present && r.graphQL != nil {
		v, err = s.req.read().graphQL().wrap(&v)
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("result: %w", err)
	case !present:
		return nil, errors.New("result: its content has no value")
	}
	out.Body = appendMasked(nil, &v, nil)
	if out.Header.Get("Content-Type") == "" {
		out.Header = maps.Clone(out.Header)
		out.Header.Set("Content-Type", "application/json")
	}
	return out, nil
}

// leftOut replaces, where a request is shown, what an answer of the API said. That may be a secret of the API's own.
const leftOut = "…"

// shown is the target of the probe's request as people may see it. Values of the rule and the record are whole, since a
// probe reads no secret place. Values of an answer are left out.
func (p *Probe) shown(s *scope, query []pair) string {
	target, err := p.path.pathWithout(s, (*expr).readsAnswer)
	if err != nil {
		return ""
	}
	for i, one := range query {
		value := escapeSegment(one.value)
		if p.query.answered(one.name) {
			value = leftOut
		}
		sep := "&"
		if i == 0 {
			sep = "?"
		}
		target += sep + escapeSegment(one.name) + "=" + value
	}
	return printable(strings.ToValidUTF8(target, leftOut))
}

// readsAnswer reports whether the value can depend on an answer of the API.
func (e *expr) readsAnswer() bool { return e.readsAny("response", "steps", "found") }

// answered reports whether the value of a name can depend on an answer.
func (t *template) answered(name string) bool {
	if t.expr != nil {
		return t.expr.readsAnswer()
	}
	for i, n := range t.names {
		if strings.EqualFold(n, name) && slices.ContainsFunc(t.items[i].exprs(), (*expr).readsAnswer) {
			return true
		}
	}
	return false
}
