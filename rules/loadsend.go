package rules

import (
	"cmp"
	"net/http"
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
	if op.graphQL {
		d.Fail("send", v, "the answer to a step isn't the one that a script of GraphQL waits for", "leave send out")
	}
	if len(op.markers) > 0 {
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

// readsSecretAnswer reports whether an expression may read a secret place of an answer. The text of an answer holds all
// places of its body.
func (e *expr) readsSecretAnswer(secret []place) bool {
	return slices.ContainsFunc(secret, func(p place) bool {
		return p.root == "response" && (slices.ContainsFunc(e.refs, func(r place) bool { return p.covers(r.root, r.steps) }) ||
			p.steps[0].name == "json" && (e.readsName("response", "text") || e.readsName("response", "graphql")))
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

// DefaultUndoTries is how often an undo is sent by itself before a person is asked.
const DefaultUndoTries = 8

// compensate reads how an effect is taken back.
func (d *decoder) compensate(v value, op *Operation) {
	m, ok := d.Map(v, levelCompensate)
	if !ok {
		return
	}
	// Everything below may read the object that is taken back.
	d.undoing = true
	defer func() { d.undoing = false }()
	u := &Undo{ask: &Probe{op: op, at: v.Place()}, Operation: undoOperation(op), Auto: d.boolean(m.At("auto"))}
	u.Operation.at = v.Place()
	u.Operation.MaxDispatches = cmp.Or(d.number(m.At("max_dispatches"), 1, maxDispatches), DefaultUndoTries)
	d.asks(m, u.ask, "undo", inRecord, "delete", "post", "put", "patch")
	// Their methods are idempotent (RFC 9110 §9.2.2).
	u.Idempotent = u.ask.method == http.MethodPut || u.ask.method == http.MethodDelete
	d.nativeKey(m.At("native_key"), u.Operation)
	d.outcomes(m.At("outcome"), u.Operation)
	d.undoStrategies(m.At("reconcile"), u)
	if u.ask.path == nil {
		return // what is wrong was reported
	}
	if op.graphQL && !u.Operation.otherwise {
		d.Fail("undo", v, "an answer of GraphQL with status 200 may hold errors",
			"add outcome: with what shows that it is undone, and at last - otherwise: uncertain")
	}
	d.undoes(v, op, u)
	op.Undo = u
}

// undoOperation is the undo as an operation, with the numbers of the one whose effect it
// takes back. What absence shows is sent again, as often as it may be.
func undoOperation(op *Operation) *Operation {
	return &Operation{
		Name: op.Name + "/undo", Connector: op.Connector, Effect: EffectMutation, BlockScope: op.BlockScope,
		Settle: op.Settle, Confirmations: op.Confirmations, Spacing: op.Spacing, Bounds: op.Bounds,
		OnAbsent: OnAbsentRedispatch, Repeat: RepeatRefuse, Drift: DriftAllow, Verify: VerifyOff,
		Timeout: op.Timeout, MaxBody: op.MaxBody,
		matches: op.matches, secret: op.secret, encodedSlash: op.encodedSlash, emptySegments: op.emptySegments, namesJSON: true,
		ignored: &placed{}, minor: &placed{}, insignificant: &placed{}, manualCheck: op.manualCheck,
	}
}

// undoStrategies reads how a lost undo is found out. What is idempotent is sent again,
// unless the rule says otherwise.
func (d *decoder) undoStrategies(v value, u *Undo) {
	op := u.Operation
	switch {
	case !v.Given() && u.Idempotent:
		op.Strategies = []Strategy{{Kind: StrategyResend}}
		return
	case !v.Given():
		d.Fail("no-reconcile", v, "nothing says what became of an undo whose answer is lost",
			"add reconcile: with a probe that observes {object}, or - none: \"why it can't be found out\"")
		return
	}
	items := d.list(v)
	for _, item := range items {
		s, ok := d.strategy(item, op)
		if !ok {
			continue
		}
		at := item.Place()
		switch {
		case len(op.Strategies) > 0 && op.Strategies[len(op.Strategies)-1].Kind == StrategyNone:
			d.Fail("value", at, "none must be the last strategy", "move it to the end")
		case s.Kind == StrategyExec:
			d.Fail("value", at, "an undo is not asked about by a program", "write a probe that observes {object}")
		case s.Kind == StrategyProbe:
			d.observesOnly(at, op, s.Probe)
		case s.Natural:
			d.Fail("undo", at, "natural is not for undoing", "write resend: {}: an idempotent undo is sent again as it is")
		case s.Kind == StrategyResend && !u.Idempotent:
			d.resendable(at, op, len(items) == 1)
		default:
			// A resend of what is idempotent needs no key, and none needs nothing.
		}
		op.Strategies = append(op.Strategies, s)
	}
	if v.Is(yaml.SequenceNode) && len(items) == 0 {
		d.Fail("no-reconcile", v, "reconcile is empty", "add a probe, or - none: \"why it can't be found out\"")
	}
}

// observesOnly checks that an undo is asked about by looking at the object itself. An object that is found is evidence
// for the mutation that made it and not for the undo.
func (d *decoder) observesOnly(at Where, op *Operation, p *Probe) {
	if slices.ContainsFunc(p.reads(), func(one *Probe) bool { return one.candidates != nil || one.id != nil }) {
		d.Fail("undo", at, "an undo is found out by the state of {object}, not by objects of its own",
			"write get: /path/{object} with observe:, without id")
		return
	}
	d.probable(at, op, p)
}

// undoes checks that the undo is about one object, and reads nothing that isn't stored. The rule must tell which object
// is the oldest.
func (d *decoder) undoes(v value, op *Operation, u *Undo) {
	if !slices.ContainsFunc(u.ask.exprs(), func(e *expr) bool { return e.readsAny("object") }) {
		d.Fail("undo", v, "the request does not name the object that is taken back", "write {object} into the path, or {cel: object} into query or json")
	}
	d.notSecret("undo-secret", "undo", u.exprs(), op)
	for _, whole := range op.probes() {
		for _, p := range whole.reads() {
			if p.candidates != nil && p.tie.Strong() && p.created == nil {
				d.Fail("undo", v, "of several objects the oldest is kept, and the probe does not say when they were created",
					"add created: to the probe, such as timestamp(found.created_at)")
			}
		}
	}
}
