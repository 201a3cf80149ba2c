package rules

import (
	"cmp"
	"net/http"
	"slices"

	"go.yaml.in/yaml/v4"
)

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
		matches: op.matches, secret: op.secret, encodedSlash: op.encodedSlash, namesJSON: true,
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

// observesOnly checks that an undo is asked about by looking at the object itself, which
// is evidence for the mutation that made it and not for the undo.
func (d *decoder) observesOnly(at Where, op *Operation, p *Probe) {
	if slices.ContainsFunc(p.reads(), func(one *Probe) bool { return one.candidates != nil || one.id != nil }) {
		d.Fail("undo", at, "an undo is found out by the state of {object}, not by objects of its own",
			"write get: /path/{object} with observe:, without id")
		return
	}
	d.probable(at, op, p)
}

// undoes checks that the undo is about one object, that it can be told which one is the
// oldest, and that it reads nothing that isn't stored.
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
