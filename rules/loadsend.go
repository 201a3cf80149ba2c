package rules

import (
	"slices"

	"go.yaml.in/yaml/v4"
)

// maxPrepares is the most steps that a sending may have before its commit.
const maxPrepares = 5

// send reads a sending in steps.
func (d *decoder) send(v value, op *Operation) {
	if !v.Given() {
		return
	}
	s := &Send{}
	items := d.list(v)
	for i, item := range items {
		m, ok := d.Map(item, levelSend)
		if !ok {
			continue
		}
		step, commits := d.sendStep(m, op)
		switch {
		case step == nil:
		case commits && i != len(items)-1:
			d.Fail("value", item, "the commit is not the last step", "move it to the end: nothing is sent after what takes effect")
		case commits:
			s.commit = step
		default:
			s.prepares = append(s.prepares, step)
		}
	}
	switch {
	case !v.Is(yaml.SequenceNode):
	case len(items) < 2 || len(items) > maxPrepares+1:
		d.Fail("value", v, "a sending in steps has at least one preparing step, at most five, and one commit",
			"write - prepare: NAME … and then - commit: …, or leave send out")
	case s.commit == nil:
		d.Fail("missing", v, "no step is the commit", "begin the last one with commit:")
	case len(s.prepares) == len(items)-1:
		op.Send = s
		d.sendable(v, op)
	}
}

// sendStep reads one step; commits says that it is the one that takes effect.
func (d *decoder) sendStep(m fields, op *Operation) (step *sendStep, commits bool) {
	step = &sendStep{ask: &Probe{op: op, at: m.Place()}}
	prepare, commit := m.At("prepare"), m.At("commit")
	switch {
	case prepare.Given() == commit.Given():
		d.Fail("missing", m, "a step is either a prepare or the commit", "begin it with prepare: NAME, or with commit:")
		return nil, false
	case commit.Given():
		commits, step.ask.name = true, "commit"
		if !commit.IsNull() {
			d.Fail("value", commit, "says something", "leave it empty; what is sent stands beside it")
		}
		for _, name := range []string{"expect", "keep"} {
			if m.Has(name) {
				d.Fail("no-effect", m.At(name), name+" says nothing about the commit", "judge its answer by outcome: and success:")
			}
		}
	default:
		step.ask.name = d.stepName(prepare, nil)
		step.expect = d.judging(m.At("expect"))
		d.kept(d.need(m, "keep"), step)
	}
	d.asks(m, step.ask, "step", inRecord, "post", "put", "patch")
	if m.Has("json") && m.Has("form") {
		d.Fail("value", m.At("form"), "the step has json already", "keep one of json and form")
	}
	step.form = d.mapOf(m.At("form"), inRecord)
	if step.ask.path == nil {
		return nil, commits
	}
	return step, commits
}

// kept reads what is taken from the answer of a preparing step.
func (d *decoder) kept(v value, step *sendStep) {
	d.Members(v, func(name string, at, member value) {
		if !isName(name) {
			d.Fail("value", at, quoted(name)+" is no name", "write letters, digits and _, beginning with a letter")
			return
		}
		if e := d.expr(member, inAnswer); e != nil {
			step.keep = append(step.keep, namedExpr{name, e})
		}
	})
	if v.Is(yaml.MappingNode) && len(v.Content) == 0 {
		d.Fail("missing", v, "keep is empty: nothing would tell that the step was done", "keep the id of what it made")
	}
}

// sendable checks what doesn't go together with steps.
func (d *decoder) sendable(v value, op *Operation) {
	if op.NativeKey != nil {
		d.Fail("send", v, "native_key is written into the script's request, which is not sent in steps",
			"leave native_key out: the commit can name only what its own preparing step made")
	}
	if op.marker != nil {
		d.Fail("send", v, "marker is written into the script's request, which is not sent in steps",
			"leave marker out, and write mutation.marker into the step that makes the object")
	}
	for _, step := range op.Send.steps() {
		for _, e := range step.keep {
			if e.readsSecret(op.secret) || e.readsSecretAnswer(op.secret) {
				d.Fail("send-secret", e.at, quoted(e.source)+" is secret, and what is kept is stored", "keep something that is not secret")
			}
		}
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
func (d *decoder) keptNames(op *Operation) {
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
				d.Fail("variable", e.at, quoted(e.source)+" reads what no step before it keeps",
					"read mutation.kept.NAME of a name under keep: in an earlier step of send")
			}
		}
	}
}
