package rules

import (
	"cmp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// matcher is one way in which a request can be an operation.
type matcher struct {
	methods []string // empty: any
	path    *pathPattern
	when    *expr
}

// outcomeRule is one entry of an outcome list.
type outcomeRule struct {
	when  *expr
	kind  OpinionKind
	class Class
}

// marker is where and how a mutation leaves its mark in what is sent.
type marker struct {
	at     place
	text   *text // nil: the marker alone
	append bool
}

// lastName is the innermost name of the place: keep_id of metadata.keep_id and of
// metadata[keep_id].
func (m *marker) lastName() string {
	if len(m.at.steps) == 0 {
		return ""
	}
	name := m.at.steps[len(m.at.steps)-1].name
	if i := strings.LastIndexByte(name, '['); i >= 0 && strings.HasSuffix(name, "]") {
		return name[i+1 : len(name)-1]
	}
	return name
}

// mutationKeys are the keys that say something about mutations only.
var mutationKeys = []string{
	"identity", "subkey", "payload", "native_key", "marker", "outcome", "success", "reconcile", "on_absent",
	"manual_check", "max_body", "repeat", "settle", "absent_confirmations", "absent_spacing", "block_scope",
	"bounds", "timeout", "describe", "subkey_header", "drift", "was", "on_skip", "on_no_result", "max_dispatches", "watch",
	"verify_on_replay", "send", "compensate",
}

// operations reads the list of operations.
func (d *decoder) operations(root, n *yaml.Node, c *Connector, l *loading, blockScope string) {
	if n == nil || n.Kind == yaml.SequenceNode && len(n.Content) == 0 {
		d.warn("no-operations", "operations", cmp.Or(n, root), "there are none, so that every request but the reads is denied",
			"add an operation for each request that changes something")
		return
	}
	at := map[*Operation]*yaml.Node{}
	for i, item := range d.elements(n, "operations") {
		op := d.operation(item, index("operations", i), c, l, blockScope)
		if op == nil {
			continue
		}
		if other := c.Operation(op.Name); other != nil && op.Name != "" {
			d.fail("repeated-operation", index("operations", i)+".name", item, "the operation "+op.Name+" is there twice",
				"give each operation a name of its own")
		}
		c.Operations = append(c.Operations, op)
		at[op] = item
	}
	d.precedence(c, at)
	d.earlierNames(c, at)
}

// operation reads one operation.
func (d *decoder) operation(n *yaml.Node, key string, c *Connector, l *loading, blockScope string) *Operation {
	m := d.object(n, key, levelOperation)
	if n.Kind != yaml.MappingNode {
		return nil
	}
	op := &Operation{Connector: c, BlockScope: blockScope, OnAbsent: OnAbsentFail, Repeat: RepeatRefuse, Drift: DriftWarn}
	op.Name = d.name(n, m["name"], join(key, "name"), operationName)
	var known bool
	op.Effect, known = d.effect(n, m["effect"], join(key, "effect"))
	d.matches(n, m["match"], join(key, "match"), op)
	d.oneThing(m["match"], join(key, "match"), op)
	d.allBut(m["match"], join(key, "match"), op)
	if m["upgrade"] == nil { // which has a finding of its own for this
		d.anyMethod(m["match"], join(key, "match"), op)
	}
	if m["before"] != nil {
		op.before = d.texts(m["before"], join(key, "before"))
	}
	if m["upgrade"] != nil {
		d.upgrade(m["upgrade"], join(key, "upgrade"), op, known)
	}
	if m["encoded_slash"] != nil {
		op.encodedSlash = d.word(m["encoded_slash"], join(key, "encoded_slash"), "keep") != ""
	}
	for i, item := range d.optional(m["secret"], join(key, "secret")) {
		k := index(join(key, "secret"), i)
		if p, ok := d.place(item, k, "json", "form", "query", "path", "header", "response"); ok && d.secretPlace(item, k, p) {
			op.secret = append(op.secret, p)
		}
	}
	switch {
	case op.Effect == EffectMutation, !known && m["identity"] != nil:
		// The file is refused in any case; what is wrong with the mutation that was
		// meant is worth more than that it isn't one.
		d.mutation(n, m, key, op, l)
	default:
		d.noMutation(m, key)
	}
	d.variables(n, key, op)
	op.named = op.fieldsNamed()
	d.credentials(n, key, op)
	return op
}

// optional are the elements of a list that may be missing.
func (d *decoder) optional(n *yaml.Node, key string) []*yaml.Node {
	if n == nil {
		return nil
	}
	return d.oneOrMore(n, key)
}

// secretPlace checks a place of an answer: below json or header.
func (d *decoder) secretPlace(n *yaml.Node, key string, p place) bool {
	if p.root != "response" {
		return true
	}
	if len(p.steps) > 1 && (p.steps[0].name == "json" || p.steps[0].name == "header" && len(p.steps) == 2) {
		return true
	}
	d.fail("place", key, n, "names no place of an answer", "write response.json.name or response.header.name")
	return false
}

// noMutation refuses what only mutations have, where it would say nothing.
func (d *decoder) noMutation(m map[string]*yaml.Node, key string) {
	for _, name := range mutationKeys {
		if name != "describe" && m[name] != nil {
			d.fail("no-effect", join(key, name), m[name], name+" says nothing about an operation that is no mutation",
				"leave it out, or write effect: mutation")
		}
	}
}

// effect reads the effect. One that isn't known denies, and is an error.
func (d *decoder) effect(at, n *yaml.Node, key string) (_ Effect, known bool) {
	if n == nil {
		d.fail("missing", key, at, "effect is missing", "add effect: read, mutation, deny or ignore")
		return EffectDeny, false
	}
	switch d.word(n, key, "read", "mutation", "deny", "ignore") {
	case "read":
		return EffectRead, true
	case "mutation":
		return EffectMutation, true
	case "ignore":
		return EffectIgnore, true
	case "deny":
		return EffectDeny, true
	}
	return EffectDeny, false
}

// matches reads one match or a list of them.
func (d *decoder) matches(at, n *yaml.Node, key string, op *Operation) {
	if n == nil {
		d.fail("missing", key, at, "match is missing", "add match: {method: POST, path: /…}")
		return
	}
	for i, item := range d.oneOrMore(n, key) {
		k := key
		if n.Kind == yaml.SequenceNode {
			k = index(key, i)
		}
		if m := d.match(item, k); m != nil {
			op.matches = append(op.matches, m)
		}
	}
}

// anyMethod warns of a match that takes every method, where that is hardly meant: a read
// of the path would be recorded as a mutation, and a DELETE of it would pass as a read.
func (d *decoder) anyMethod(n *yaml.Node, key string, op *Operation) {
	if !slices.ContainsFunc(op.matches, func(m *matcher) bool { return len(m.methods) == 0 && (m.when == nil || !m.when.readsAny("method")) }) {
		return
	}
	switch op.Effect {
	case EffectMutation:
		d.warn("any-method", key, n, "has no method, and so takes GET, HEAD and OPTIONS for mutations, too",
			"add method: POST, or a list of those that change something")
	case EffectRead, EffectIgnore:
		d.warn("any-method", key, n, "has no method, and so lets every one pass unrecorded, DELETE among them",
			"add method: with those that are meant, such as [GET, HEAD] or POST")
	case EffectDeny:
	}
}

// oneThing warns of matches that hardly are spellings of one thing: which of them fits is no part
// of a mutation's key, nor of its payload.
func (d *decoder) oneThing(n *yaml.Node, key string, op *Operation) {
	if op.Effect != EffectMutation {
		return
	}
	first := ""
	for i, m := range op.matches {
		word := m.path.lastWord()
		switch {
		case word == "":
		case first == "":
			first = word
		case word != first:
			d.warn("spelling", index(key, i), n, "the paths end in "+quoted(first)+" and "+quoted(word)+
				", and are spellings of one thing here: a request of one is answered with what a request of another did, and not sent",
				"make an operation for each, unless they are two names of the same")
			return
		}
	}
}

// match reads one match.
func (d *decoder) match(n *yaml.Node, key string) *matcher {
	m := d.object(n, key, levelMatch)
	if n.Kind != yaml.MappingNode {
		return nil
	}
	out := &matcher{}
	for i, item := range d.optional(m["method"], join(key, "method")) {
		s, ok := d.text(item, join(key, "method"))
		if ok && (!validMethod(s) || s == "TRACE" || s == "CONNECT") {
			d.fail("value", index(join(key, "method"), i), item, quoted(s)+" is no method that can be matched",
				"write it in upper case, such as POST; TRACE and CONNECT are always denied")
		}
		out.methods = append(out.methods, s) // without it the match would seem to take every method
	}
	if m["path"] != nil {
		out.path = d.pathPattern(m["path"], join(key, "path"))
	}
	if m["when"] != nil {
		out.when = d.condition(m["when"], join(key, "when"), inRequest)
	}
	literal := out.path != nil && out.path.literal()
	if m["path"] != nil && out.path == nil {
		return nil // Without its path it would seem to fit everything.
	}
	if m["method"] == nil && m["when"] == nil && !literal {
		d.fail("match-all", key, n, "matches everything: it has no method, no path with a literal and no condition", "add a method or a path")
	}
	return out
}

// variables checks that every path and host variable that is read is in a
// pattern.
func (d *decoder) variables(n *yaml.Node, key string, op *Operation) {
	d.stepNames(n, key, op)
	d.keptNames(n, key, op)
	told := map[string]bool{}
	for _, e := range op.exprs() {
		at := d.standing(e, n, key)
		for _, r := range e.refs {
			if len(r.steps) == 0 || r.root != "path" && r.root != "host" {
				continue
			}
			name := r.steps[0].name
			if told[at.key+" "+r.root+"."+name] || op.hasVariable(r.root, name) {
				continue
			}
			told[at.key+" "+r.root+"."+name] = true
			report := d.fail
			if r.root == "host" { // which settings can take away from a stored version
				report = d.mistaken
				op.Connector.lacks = name
			}
			report("variable", at.key, at.node, "reads "+r.root+"."+name+", but no pattern has {"+name+"}",
				"add {"+name+"} to the pattern, or correct the name")
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
	var out []*expr
	for _, m := range op.matches {
		out = append(out, m.when)
	}
	for _, e := range op.identity {
		out = append(out, e.expr)
	}
	out = append(out, op.subkey, op.success, op.compare)
	for _, o := range op.outcome {
		out = append(out, o.when)
	}
	out = append(out, op.describe.exprs()...)
	out = append(out, op.manualCheck.exprs()...)
	out = append(out, op.onSkip.exprs()...)
	out = append(out, op.onNoResult.exprs()...)
	if op.marker != nil {
		out = append(out, op.marker.text.exprs()...)
	}
	out = append(out, op.Watch.exprs()...)
	out = append(out, op.Send.exprs()...)
	out = append(out, op.Undo.exprs()...)
	for _, s := range op.Strategies {
		if s.Probe != nil {
			out = append(out, s.Probe.exprs()...)
		}
	}
	return slices.DeleteFunc(out, func(e *expr) bool { return e == nil })
}

// readsSecret reports whether an expression reads a secret place of a request.
func (e *expr) readsSecret(secret []place) bool {
	return slices.ContainsFunc(secret, e.reads)
}
