package rules

import (
	"net/http"
	"slices"

	"go.yaml.in/yaml/v4"
)

// maxPrepares is the most steps that a sending may have before its commit.
const maxPrepares = 5

// send reads a sending in steps.
func (d *decoder) send(n *yaml.Node, key string, op *Operation) {
	if n == nil {
		return
	}
	s := &Send{}
	items := d.elements(n, key)
	for i, item := range items {
		k := index(key, i)
		m := d.object(item, k, levelSend)
		if item.Kind != yaml.MappingNode {
			continue
		}
		step, commits := d.sendStep(item, m, k, op)
		switch {
		case step == nil:
		case commits && i != len(items)-1:
			d.fail("value", k, item, "the commit is not the last step", "move it to the end: nothing is sent after what takes effect")
		case commits:
			s.commit = step
		default:
			s.prepares = append(s.prepares, step)
		}
	}
	if n.Kind == yaml.SequenceNode && (len(items) < 2 || len(items) > maxPrepares+1) {
		d.fail("value", key, n, "a sending in steps has at least one preparing step, at most five, and one commit",
			"write - prepare: NAME … and then - commit: …, or leave send out")
		return
	}
	if s.commit == nil || len(s.prepares) != len(items)-1 {
		if n.Kind == yaml.SequenceNode && s.commit == nil {
			d.fail("missing", key, n, "no step is the commit", "begin the last one with commit:")
		}
		return
	}
	op.Send = s
	d.sendable(n, key, op)
}

// sendStep reads one step; commits says that it is the one that takes effect.
func (d *decoder) sendStep(n *yaml.Node, m map[string]*yaml.Node, key string, op *Operation) (step *sendStep, commits bool) {
	step = &sendStep{ask: &Probe{op: op}}
	switch prepare, commit := m["prepare"], m["commit"]; {
	case (prepare == nil) == (commit == nil):
		d.fail("missing", key, n, "a step is either a prepare or the commit", "begin it with prepare: NAME, or with commit:")
		return nil, false
	case commit != nil:
		commits, step.ask.name = true, "commit"
		if commit.Kind != yaml.ScalarNode || commit.Tag != "!!null" {
			d.fail("value", join(key, "commit"), commit, "says something", "leave it empty; what is sent stands beside it")
		}
		for _, name := range []string{"expect", "keep"} {
			if m[name] != nil {
				d.fail("no-effect", join(key, name), m[name], name+" says nothing about the commit", "judge its answer by outcome: and success:")
			}
		}
	default:
		name, ok := d.text(prepare, join(key, "prepare"))
		if ok && !isName(name) {
			d.fail("value", join(key, "prepare"), prepare, quoted(name)+" is no name of a step", "write letters, digits and _, beginning with a letter")
		}
		step.ask.name = name
		d.kept(n, m, key, step)
	}
	d.sendRequest(n, m, key, step)
	if step.ask.path == nil {
		return nil, commits
	}
	return step, commits
}

// kept reads what is taken from the answer of a preparing step.
func (d *decoder) kept(n *yaml.Node, m map[string]*yaml.Node, key string, step *sendStep) {
	if m["expect"] != nil {
		step.expect = d.condition(m["expect"], join(key, "expect"), inAnswer)
		d.answered(step.expect, "response")
	}
	v, ok := d.need(n, m, key, "keep")
	if !ok {
		return
	}
	d.members(v, join(key, "keep"), "keep", func(name string, at, v *yaml.Node) {
		if !isName(name) {
			d.fail("value", join(join(key, "keep"), name), at, quoted(name)+" is no name", "write letters, digits and _, beginning with a letter")
			return
		}
		if e := d.expr(v, join(join(key, "keep"), name), inAnswer); e != nil {
			step.keep = append(step.keep, namedExpr{name, e})
		}
	})
	if v.Kind == yaml.MappingNode && len(v.Content) == 0 {
		d.fail("missing", join(key, "keep"), v, "keep is empty: nothing would tell that the step was done", "keep the id of what it made")
	}
}

// sendRequest reads what a step sends.
func (d *decoder) sendRequest(n *yaml.Node, m map[string]*yaml.Node, key string, step *sendStep) {
	ask := step.ask
	for _, verb := range []struct{ name, method string }{
		{"post", http.MethodPost}, {"put", http.MethodPut}, {"patch", http.MethodPatch},
	} {
		if v := m[verb.name]; v != nil {
			if ask.method != "" {
				d.fail("value", key, n, "a step sends one request", "keep one of post, put and patch")
				return
			}
			ask.method, ask.path = verb.method, d.pathText(v, join(key, verb.name), inRecord)
		}
	}
	if ask.method == "" {
		d.fail("missing", key, n, "the step sends nothing", "add post: /path")
	}
	if m["query"] != nil {
		ask.query = d.mapOf(m["query"], join(key, "query"), inRecord)
	}
	if m["header"] != nil {
		ask.header = d.headerMap(m["header"], join(key, "header"), inRecord)
	}
	if m["json"] != nil {
		ask.json = d.template(m["json"], join(key, "json"), inRecord)
	}
	if m["form"] != nil {
		if m["json"] != nil {
			d.fail("value", join(key, "form"), m["form"], "the step has json already", "keep one of json and form")
		}
		step.form = d.mapOf(m["form"], join(key, "form"), inRecord)
	}
}

// sendable checks what doesn't go together with steps.
func (d *decoder) sendable(n *yaml.Node, key string, op *Operation) {
	if op.NativeKey != nil {
		d.fail("send", key, n, "native_key is written into the script's request, which is not sent in steps",
			"leave native_key out: the commit can name only what its own preparing step made")
	}
	if op.marker != nil {
		d.fail("send", key, n, "marker is written into the script's request, which is not sent in steps",
			"leave marker out, and write mutation.marker into the step that makes the object")
	}
	for _, step := range op.Send.steps() {
		for _, e := range step.keep {
			if e.readsSecret(op.secret) || e.readsSecretAnswer(op.secret) {
				at := d.standing(e.expr, n, key)
				d.fail("send-secret", at.key, at.node, quoted(e.source)+" is secret, and what is kept is stored", "keep something that is not secret")
			}
		}
	}
	if !slices.ContainsFunc(op.Send.commit.exprs(), func(e *expr) bool { return e.readsName("mutation", "kept") }) {
		d.warn("send", key, n, "the commit uses nothing of what its preparing steps gave", "name what they made, as mutation.kept.NAME")
	}
}

// readsSecretAnswer reports whether an expression may read a secret place of an answer;
// its text holds all places of its body.
func (e *expr) readsSecretAnswer(secret []place) bool {
	return slices.ContainsFunc(secret, func(p place) bool {
		return p.root == "response" && (slices.ContainsFunc(e.refs, func(r place) bool { return p.covers(r.root, r.steps) }) ||
			p.steps[0].name == "json" && e.readsName("response", "text"))
	})
}

// keptNames checks that what is read of mutation.kept was kept before.
func (d *decoder) keptNames(n *yaml.Node, key string, op *Operation) {
	before := map[*expr]int{}
	for i, step := range op.Send.steps() {
		for _, e := range step.exprs() {
			before[e] = i
		}
	}
	all := len(op.Send.steps())
	for _, e := range op.exprs() {
		until, inStep := before[e]
		if !inStep {
			until = all
		}
		for _, r := range e.refs {
			if r.root != "mutation" || len(r.steps) == 0 || r.steps[0].name != "kept" {
				continue
			}
			if len(r.steps) < 2 || !op.Send.keeps(r.steps[1].name, until) {
				at := d.standing(e, n, key)
				d.fail("variable", at.key, at.node, quoted(e.source)+" reads what no step before it keeps",
					"read mutation.kept.NAME of a name under keep: in an earlier step of send")
			}
		}
	}
}
