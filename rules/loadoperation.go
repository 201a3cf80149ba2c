package rules

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"keep-proxy/internal/strictyaml"
	"keep-proxy/internal/verdict"
)

// matcher is one way in which a request can be an operation.
type matcher struct {
	at      Where
	methods []string // empty: any
	path    *pathPattern
	when    *expr
	// graphQL is nil unless it takes requests of GraphQL alone.
	graphQL *graphQLMatch
	// rpc are the methods of JSON-RPC that it takes; none for any body.
	rpc []string
	// actions are those of AWS that it takes; none for any request.
	actions []string
	// mail says where the mail is; nil for any body.
	mail *mailFrom
}

// outcomeRule is one entry of an outcome list.
type outcomeRule struct {
	when       *expr
	kind       verdict.OpinionKind
	class      verdict.Class
	retryAfter *expr // how long the API asks to wait, or until when; nil for what its Retry-After says
	// continues says that the API asks for more.
	continues bool
}

// anyOperationKeys are the keys that also say something about operations that are no mutations.
var anyOperationKeys = []string{"name", "match", "before", "effect", "encoded_slash", "empty_segments", "secret", "describe", "upgrade", "accept"}

// operations reads the list of operations.
func (d *decoder) operations(v value, c *Connector, l *loading, blockScope string) {
	for _, item := range d.list(v) {
		op := d.operation(item, c, l, blockScope)
		if op == nil {
			continue
		}
		if other := c.Operation(op.Name); other != nil && op.Name != "" {
			d.Fail("repeated-operation", op.at.Under("name"), "the operation "+op.Name+" is there twice", "give each operation a name of its own")
		}
		c.Operations = append(c.Operations, op)
	}
	d.precedence(c)
	d.earlierNames(c)
}

// operation reads one operation.
func (d *decoder) operation(v value, c *Connector, l *loading, blockScope string) *Operation {
	m, ok := d.Map(v, levelOperation)
	if !ok {
		return nil
	}
	op := &Operation{Connector: c, BlockScope: blockScope, OnAbsent: OnAbsentFail, Repeat: RepeatRefuse, Drift: DriftWarn, at: v.Place()}
	op.Name = d.name(m, "name", operationName)
	known := d.effect(m.At("effect"), op)
	d.matches(m.At("match"), op)
	op.graphQL = d.inEach(m.At("match"), op, "graphql", func(m *matcher) bool { return m.graphQL != nil })
	op.rpc = d.inEach(m.At("match"), op, "jsonrpc", func(m *matcher) bool { return m.rpc != nil })
	op.mails = d.inEach(m.At("match"), op, "mail", func(m *matcher) bool { return m.mail != nil })
	op.Accept = d.accepted(m.At("accept"))
	op.Evidence = d.evidence(m.At("evidence"))
	op.before = d.texts(m.At("before"))
	d.upgrade(m.At("upgrade"), op, known)
	op.encodedSlash = word(d, m.At("encoded_slash"), "", "keep") != ""
	op.emptySegments = word(d, m.At("empty_segments"), "", "keep") != ""
	for _, item := range d.OneOrMore(m.At("secret")) {
		if p, ok := d.place(item, "json", "form", "query", "path", "header", "response"); ok && d.secretPlace(item, p) {
			op.secret = append(op.secret, p)
		}
	}
	if c.AccountRead != nil && c.AccountRead.token != nil {
		op.secret = append(op.secret, *c.AccountRead.token)
	}
	switch {
	case op.Effect == EffectMutation, !known && m.Has("identity"):
		// The file is refused in any case. What is wrong with the mutation that was meant is worth more than that it
		// isn't one.
		d.mutation(m, op, l)
	default:
		d.noMutation(m, op)
		op.Timeout = d.duration(m.At("timeout"))
	}
	d.variables(op)
	op.named = op.fieldsNamed()
	d.credentials(op)
	return op
}

// secretPlace checks a place of an answer: below json or header.
func (d *decoder) secretPlace(v value, p place) bool {
	if p.root != "response" || len(p.steps) > 1 && (p.steps[0].name == "json" || p.steps[0].name == "header" && len(p.steps) == 2) {
		return true
	}
	d.Fail("place", v, "names no place of an answer", "write response.json.name or response.header.name")
	return false
}

// noMutation refuses what only mutations have, where it would say nothing.
func (d *decoder) noMutation(m fields, op *Operation) {
	for _, name := range levelOperation.Known {
		if m.Has(name) && !slices.Contains(anyOperationKeys, name) && (name != "timeout" || op.Effect == EffectDeny) {
			d.Fail("no-effect", m.At(name), name+" says nothing about an operation that is no mutation", "leave it out, or write effect: mutation")
		}
	}
}

// effect reads the effect. One that isn't known denies, and is an error.
func (d *decoder) effect(v value, op *Operation) (known bool) {
	if !v.Given() {
		d.Fail("missing", v, "effect is missing", "add effect: read, mutation, deny or ignore")
	}
	name := word(d, v, "", "read", "mutation", "deny", "ignore")
	for _, e := range []Effect{EffectRead, EffectMutation, EffectIgnore} {
		if e.String() == name {
			op.Effect = e
		}
	}
	return name != ""
}

// matches reads one match or a list of them.
func (d *decoder) matches(v value, op *Operation) {
	if !v.Given() {
		d.Fail("missing", v, "match is missing", "add match: {method: POST, path: /…}")
	}
	for _, item := range d.OneOrMore(v) {
		if m := d.match(item, op); m != nil {
			op.matches = append(op.matches, m)
		}
	}
}

// inEach reports whether the matches say which kind of body they take. All must, or none.
func (d *decoder) inEach(v value, op *Operation, key string, says func(*matcher) bool) bool {
	some := slices.ContainsFunc(op.matches, says)
	if some && slices.ContainsFunc(op.matches, func(m *matcher) bool { return !says(m) }) {
		d.Fail("value", v, "only some of the matches say "+key, "say it in each, or make two operations")
	}
	return some
}

// match reads one match.
func (d *decoder) match(v value, op *Operation) *matcher {
	m, ok := d.Map(v, levelMatch)
	if !ok {
		return nil
	}
	out := &matcher{at: v.Place(), when: d.condition(m.At("when"), inRequest)}
	for i, item := range d.OneOrMore(m.At("method")) {
		s, ok := d.text(item)
		if ok && (!validMethod(s) || s == "TRACE" || s == "CONNECT") {
			item.Key = strictyaml.Index(m.At("method").Key, i)
			d.Fail("value", item, quoted(s)+" is no method that can be matched",
				"write it in upper case, such as POST; TRACE and CONNECT are always denied")
		}
		out.methods = append(out.methods, s) // without it the match would seem to take every method
	}
	if m.Has("path") {
		if out.path = d.pathPattern(m.At("path")); out.path == nil {
			return nil // Without its path it would seem to fit everything.
		}
		if !op.Connector.mayOwn(out.path) {
			d.Fail("path", m.At("path"), quoted(out.path.source)+" is none of the connector's paths", "add it to paths:")
		}
	}
	d.graphQL(m, op, out)
	d.jsonRPC(m, op, out)
	d.mail(m, out)
	d.awsMatch(m, out)
	if !m.Has("method") && !m.Has("when") && (out.path == nil || !out.path.literal()) {
		d.Fail("match-all", v, "matches everything: it has no method, no path with a literal and no condition", "add a method or a path")
	}
	return out
}

// variables checks that every path and host variable that is read is in a
// pattern.
func (d *decoder) variables(op *Operation) {
	d.stepNames(op)
	d.keptNames(op)
	told := map[string]bool{}
	for _, e := range op.exprs() {
		if !op.graphQL && e.readsGraphQL() {
			d.Fail("variable", e.at, quoted(e.source)+" reads graphql, but a match takes other requests too", "add graphql: to each match")
		}
		for _, r := range e.refs {
			if r.root == "mail" && !op.mails && !told["mail"] {
				told["mail"] = true
				d.Fail("variable", e.at, "reads mail, but no match says where the mail is", "add mail: {from: body}, or another place, to each match")
			}
			if len(r.steps) == 0 || r.root != "path" && r.root != "host" {
				continue
			}
			name := r.steps[0].name
			this := e.at.Key + " " + r.root + "." + name
			if told[this] || op.hasVariable(r.root, name) {
				continue
			}
			told[this] = true
			report := d.Fail
			if r.root == "host" { // which settings can take away from a stored version
				report = d.mistaken
				op.Connector.lacks = name
			}
			report("variable", e.at, "reads "+r.root+"."+name+", but no pattern has {"+name+"}", "add {"+name+"} to the pattern, or correct the name")
		}
	}
}

// hasVariable reports whether any pattern of the operation has the variable. An
// operation without a pattern has been reported already.
func (op *Operation) hasVariable(root, name string) bool {
	if root == "host" {
		return slices.ContainsFunc(op.Connector.hosts, func(p *hostPattern) bool {
			return slices.ContainsFunc(p.labels, func(s segmentPattern) bool { return s.name == name })
		})
	}
	return slices.ContainsFunc(op.matches, func(m *matcher) bool { return m.path != nil && m.path.has(name) })
}

// exprs are all expressions of the operation.
func (op *Operation) exprs() []*expr {
	out := []*expr{op.subkey, op.success, op.compare}
	for _, m := range op.matches {
		out = append(out, m.when)
	}
	for _, e := range op.identity {
		out = append(out, e.expr)
	}
	for _, o := range op.outcome {
		out = append(out, o.when, o.retryAfter)
	}
	out = slices.Concat(out, op.describe.exprs(), op.manualCheck.exprs(), op.onSkip.exprs(), op.onNoResult.exprs(),
		op.Watch.exprs(), op.Send.exprs(), op.Undo.exprs())
	for _, mk := range op.markers {
		out = slices.Concat(out, mk.text.exprs(), mk.value.exprs())
	}
	for _, p := range op.probes() {
		out = append(out, p.exprs()...)
	}
	return slices.DeleteFunc(out, func(e *expr) bool { return e == nil })
}

// probes are the probes of the operation, each without its steps.
func (op *Operation) probes() (out []*Probe) {
	for _, s := range op.Strategies {
		if s.Probe != nil {
			out = append(out, s.Probe)
		}
	}
	return out
}

// upgrade reads the protocols to which an operation lets connections change.
func (d *decoder) upgrade(v value, op *Operation, known bool) {
	switch {
	case !v.Given():
		return
	case known && !op.Effect.passes():
		d.Fail("no-effect", v, "what is said after a change of protocols is neither judged nor recorded, so that only what is passed on can have one",
			"leave it out; or, where nothing that is said there changes anything that matters, make it an operation of its own with effect: read or ignore")
		return
	case slices.ContainsFunc(op.matches, func(m *matcher) bool { return !slices.Equal(m.methods, []string{"GET"}) }):
		d.Fail("value", v, "a change of protocols is asked for with GET alone, and a match of this operation takes something else",
			"write method: GET into each match, or give the others an operation of their own")
	}
	items := d.OneOrMore(v)
	if v.Is(yaml.SequenceNode) && len(items) == 0 {
		d.Fail("empty", v, "names no protocol", "name one, such as websocket, or leave the key out")
	}
	for _, item := range items {
		name, ok := d.text(item)
		if !ok {
			continue
		}
		if problem, fix := badProtocol(item, name); problem != "" {
			d.Fail("value", item, problem, fix)
		} else if len(op.Upgrades([]string{name})) > 0 {
			d.Fail("value", item, printable(name)+" is there twice; letters of either case are the same", "keep one of them")
		} else {
			op.Upgrade = append(op.Upgrade, name)
		}
	}
}

// badProtocol says what is wrong with a protocol that a rule names; "" for nothing.
func badProtocol(v value, name string) (problem, fix string) {
	word, _, _ := strings.Cut(strings.ToLower(name), "/")
	switch {
	case v.Tag != "!!str" || !isProtocol(name):
		return printable(name) + " is no protocol", "write a name as in the field Upgrade (RFC 9110 §7.8), such as websocket, or name/version"
	case strings.Contains(name, "*"):
		return printable(name) + " would be every protocol", "name each one, such as websocket"
	case slices.Contains([]string{"http", "https", "h2c", "h2", "h3", "tls"}, word):
		return "after a change to " + printable(name) + " requests would pass unseen, mutations among them",
			"leave it out: clients get HTTP/2 and TLS by CONNECT"
	}
	return "", ""
}

// precedence refuses operations that both fit a request unless one names the other in before. It puts the operations
// into the order in which they are tried.
func (d *decoder) precedence(c *Connector) {
	for i, op := range c.Operations {
		for _, name := range op.before {
			if other := c.Operation(name); other == nil || other == op {
				d.Fail("before", op.at.Under("before"), quoted(name)+" is no other operation of this connector", "name an operation that comes after this one")
			}
		}
		for _, other := range c.Operations[:i] {
			if !op.goesBefore(other) && !other.goesBefore(op) && op.overlaps(other) {
				d.Fail("overlap", op.at.Under("match"), "a request can fit both "+op.Name+" and "+other.Name,
					"narrow one of them, or say before: ["+other.Name+"] in the one that goes first")
			}
		}
	}
	ordered, ok := orderOperations(c.Operations)
	if !ok {
		d.Fail("before", Where{Key: "operations"}, "the operations' before form a circle", "remove one of them")
		return
	}
	c.Operations = ordered
	for _, op := range ordered {
		if other := op.Hidden(); other != nil && other.Effect.passes() && !op.Effect.passes() {
			d.mistaken("unreached", op.at.Under("match"), "nothing ever gets to "+op.Name+": all that fits it fits "+other.Name+
				", which goes first, and lets it pass unrecorded",
				"say before: ["+other.Name+"] in "+op.Name+" and not the other way round, or narrow "+other.Name)
		}
	}
}

// Hidden is the operation that takes every request that fits this one, and goes first; nil for none.
func (op *Operation) Hidden() *Operation {
	for _, other := range op.Connector.Operations {
		switch {
		case other == op:
			return nil
		case other.goesBefore(op) && other.takesAll(op):
			return other
		}
	}
	return nil
}

// passes reports whether what has the effect is sent unrecorded.
func (e Effect) passes() bool { return e == EffectRead || e == EffectIgnore }

// takesAll reports whether every request that fits the other operation surely fits this one.
func (op *Operation) takesAll(other *Operation) bool {
	return len(other.matches) > 0 && !slices.ContainsFunc(other.matches, func(b *matcher) bool {
		return !slices.ContainsFunc(op.matches, func(a *matcher) bool { return a.covers(b) })
	})
}

// covers reports whether every request that fits the other surely fits this.
func (m *matcher) covers(other *matcher) bool {
	beyond := func(method string) bool { return !slices.Contains(m.methods, method) }
	if len(m.methods) > 0 && (len(other.methods) == 0 || slices.ContainsFunc(other.methods, beyond)) {
		return false
	}
	if m.path != nil && (other.path == nil || !m.path.covers(other.path)) {
		return false
	}
	return m.graphQL.covers(other.graphQL) && (m.rpc == nil || other.rpc != nil && !slices.ContainsFunc(other.rpc, func(name string) bool {
		return !slices.Contains(m.rpc, name)
	})) && (m.actions == nil || other.actions != nil && !slices.ContainsFunc(other.actions, func(name string) bool {
		return !slices.Contains(m.actions, name)
	})) &&
		(m.when == nil || other.when != nil && strings.TrimSpace(m.when.source) == strings.TrimSpace(other.when.source))
}

// orderOperations sorts so that each comes before those it names. Otherwise it keeps the order of the file; false for a
// circle.
func orderOperations(ops []*Operation) ([]*Operation, bool) {
	var out []*Operation
	rest := slices.Clone(ops)
	for len(rest) > 0 {
		i := slices.IndexFunc(rest, func(op *Operation) bool {
			return !slices.ContainsFunc(rest, func(other *Operation) bool {
				return other != op && slices.Contains(other.before, op.Name)
			})
		})
		if i < 0 {
			return nil, false
		}
		out = append(out, rest[i])
		rest = slices.Delete(rest, i, i+1)
	}
	return out, true
}

// overlaps reports whether a request could fit both operations.
func (op *Operation) overlaps(other *Operation) bool {
	return slices.ContainsFunc(op.matches, func(a *matcher) bool { return slices.ContainsFunc(other.matches, a.overlaps) })
}

// overlaps reports whether a request could fit both. Conditions only tell two
// apart when their texts show that they exclude each other.
func (m *matcher) overlaps(other *matcher) bool {
	if len(m.methods) > 0 && len(other.methods) > 0 &&
		!slices.ContainsFunc(m.methods, func(s string) bool { return slices.Contains(other.methods, s) }) {
		return false
	}
	if m.path != nil && other.path != nil && !m.path.overlaps(other.path) {
		return false
	}
	for _, names := range [][2][]string{{m.rpc, other.rpc}, {m.actions, other.actions}} {
		if names[0] != nil && names[1] != nil && !slices.ContainsFunc(names[0], func(name string) bool { return slices.Contains(names[1], name) }) {
			return false
		}
	}
	return m.graphQL.overlaps(other.graphQL) && (m.when == nil || other.when == nil || !exclusive(m.when.source, other.when.source))
}

// exclusive recognises two conditions of which at most one is true: X and !X or
// !(X), and the comparison of one value with two different constants.
func exclusive(a, b string) bool {
	a, b = strings.TrimSpace(a), strings.TrimSpace(b)
	if negates(a, b) || negates(b, a) {
		return true
	}
	leftA, constantA, okA := comparison(a)
	leftB, constantB, okB := comparison(b)
	return okA && okB && leftA == leftB && constantA != constantB
}

// negates reports whether a is the negation of b, as texts.
func negates(a, b string) bool {
	inner, ok := strings.CutPrefix(a, "!")
	if !ok {
		return false
	}
	// Without brackets ! binds to the first operand only.
	return inner == "("+b+")" || inner == b && !strings.ContainsAny(b, " &|=<>?+-*/%!")
}

// comparison takes VALUE == 'constant' apart, where that is the whole condition.
func comparison(s string) (left, constant string, ok bool) {
	left, right, found := strings.Cut(s, "==")
	if !found || strings.ContainsAny(left, "&|?!=<>'\"") {
		return "", "", false
	}
	right = strings.TrimSpace(right)
	if len(right) < 2 || right[0] != '\'' && right[0] != '"' || strings.ContainsAny(right, "\\&|?!=<>+") {
		return "", "", false
	}
	inner := right[1 : len(right)-1]
	if right[len(right)-1] != right[0] || strings.ContainsAny(inner, `'"`) {
		return "", "", false
	}
	return strings.TrimSpace(left), inner, true
}
