package rules

import (
	"net/http"
	"slices"

	"go.yaml.in/yaml/v4"
)

// DefaultUndoTries is how often an undo is sent by itself before a person is asked.
const DefaultUndoTries = 8

// undoMethods are the keys of compensate that say what is sent. The methods of the
// second and the fourth are idempotent (RFC 9110 §9.2.2).
var undoMethods = []struct {
	key, method string
	idempotent  bool
}{
	{"post", http.MethodPost, false},
	{"put", http.MethodPut, true},
	{"patch", http.MethodPatch, false},
	{"delete", http.MethodDelete, true},
}

// compensate reads how an effect is taken back.
func (d *decoder) compensate(n *yaml.Node, key string, op *Operation) {
	if n == nil {
		return
	}
	m := d.object(n, key, levelCompensate)
	if n.Kind != yaml.MappingNode {
		return
	}
	// Everything below may read the object that is taken back.
	d.undoing = true
	defer func() { d.undoing = false }()
	u := &Undo{ask: &Probe{op: op}, Operation: undoOperation(op)}
	if m["auto"] != nil {
		u.Auto = d.boolean(m["auto"], join(key, "auto"))
	}
	if m["max_dispatches"] != nil {
		u.Operation.MaxDispatches = d.number(m["max_dispatches"], join(key, "max_dispatches"), 1, maxDispatches)
	}
	d.undoRequest(n, m, key, u)
	d.nativeKey(m["native_key"], join(key, "native_key"), u.Operation)
	d.outcomes(m["outcome"], join(key, "outcome"), u.Operation)
	d.undoStrategies(n, m["reconcile"], join(key, "reconcile"), u)
	if u.ask.path == nil {
		return // what is wrong was reported
	}
	d.undoes(n, key, op, u)
	op.Undo = u
}

// undoOperation is the undo as an operation, with the numbers of the one whose effect it
// takes back. What absence shows is sent again, as often as it may be.
func undoOperation(op *Operation) *Operation {
	return &Operation{
		Name: op.Name + "/undo", Connector: op.Connector, Effect: EffectMutation, BlockScope: op.BlockScope,
		Settle: op.Settle, Confirmations: op.Confirmations, Spacing: op.Spacing, Bounds: op.Bounds,
		OnAbsent: OnAbsentRedispatch, MaxDispatches: DefaultUndoTries, Repeat: RepeatRefuse, Drift: DriftAllow, Verify: VerifyOff,
		Timeout: op.Timeout, MaxBody: op.MaxBody,
		matches: op.matches, secret: op.secret, encodedSlash: op.encodedSlash, namesJSON: true,
		ignored: &placed{}, minor: &placed{}, insignificant: &placed{}, manualCheck: op.manualCheck,
	}
}

// undoRequest reads what is sent.
func (d *decoder) undoRequest(n *yaml.Node, m map[string]*yaml.Node, key string, u *Undo) {
	for _, one := range undoMethods {
		v := m[one.key]
		if v == nil {
			continue
		}
		if u.ask.method != "" {
			d.fail("value", join(key, one.key), v, "an undo is one request", "keep one of post, put, patch and delete")
			return
		}
		u.ask.method, u.Idempotent = one.method, one.idempotent
		u.ask.path = d.pathText(v, join(key, one.key), inRecord)
	}
	if u.ask.method == "" {
		d.fail("missing", key, n, "the undo sends nothing", "add delete: /path/{object}, or post:, put: or patch:")
	}
	if m["query"] != nil {
		u.ask.query = d.mapOf(m["query"], join(key, "query"), inRecord)
	}
	if m["header"] != nil {
		u.ask.header = d.headerMap(m["header"], join(key, "header"), inRecord)
	}
	if m["json"] != nil {
		u.ask.json = d.template(m["json"], join(key, "json"), inRecord)
	}
}

// undoStrategies reads how a lost undo is found out. What is idempotent is sent again,
// unless the rule says otherwise.
func (d *decoder) undoStrategies(at, n *yaml.Node, key string, u *Undo) {
	op := u.Operation
	if n == nil && u.Idempotent {
		op.Strategies = []Strategy{{Kind: StrategyResend}}
		return
	}
	if n == nil {
		d.fail("no-reconcile", key, at, "nothing says what became of an undo whose answer is lost",
			"add reconcile: with a probe that observes {object}, or - none: \"why it can't be found out\"")
		return
	}
	for i, item := range d.elements(n, key) {
		k := index(key, i)
		s, ok := d.strategy(item, k, op)
		if !ok {
			continue
		}
		switch {
		case len(op.Strategies) > 0 && op.Strategies[len(op.Strategies)-1].Kind == StrategyNone:
			d.fail("value", k, item, "none must be the last strategy", "move it to the end")
		case s.Kind == StrategyExec:
			d.fail("value", k, item, "an undo is not asked about by a program", "write a probe that observes {object}")
		case s.Kind == StrategyProbe:
			d.observesOnly(item, k, op, s.Probe)
		case s.Natural:
			d.fail("undo", k, item, "natural is not for undoing", "write resend: {}: an idempotent undo is sent again as it is")
		case s.Kind == StrategyResend && !u.Idempotent:
			d.resendable(item, k, op, len(d.elements(n, key)) == 1)
		default:
			// A resend of what is idempotent needs no key, and none needs nothing.
		}
		op.Strategies = append(op.Strategies, s)
	}
	if n.Kind == yaml.SequenceNode && len(n.Content) == 0 {
		d.fail("no-reconcile", key, n, "reconcile is empty", "add a probe, or - none: \"why it can't be found out\"")
	}
}

// observesOnly checks that an undo is asked about by looking at the object itself, which
// is evidence for the mutation that made it and not for the undo.
func (d *decoder) observesOnly(n *yaml.Node, key string, op *Operation, p *Probe) {
	for _, one := range append([]*Probe{p}, p.steps...) {
		if one.candidates != nil || one.id != nil {
			d.fail("undo", key, n, "an undo is found out by the state of {object}, not by objects of its own",
				"write get: /path/{object} with observe:, without id")
			return
		}
	}
	d.probable(n, key, op, p)
}

// undoes checks that the undo is about one object, that it can be told which one is the
// oldest, and that it reads nothing that isn't stored.
func (d *decoder) undoes(n *yaml.Node, key string, op *Operation, u *Undo) {
	if !slices.ContainsFunc(u.ask.exprs(), func(e *expr) bool { return e.readsAny("object") }) {
		d.fail("undo", key, n, "the request does not name the object that is taken back", "write {object} into the path, or {cel: object} into query or json")
	}
	for _, e := range u.exprs() {
		if e.readsSecret(op.secret) {
			at := d.standing(e, n, key)
			d.fail("undo-secret", at.key, at.node, quoted(e.source)+" reads a secret place, which is not stored", "undo by something that is not secret")
		}
	}
	for _, s := range op.Strategies {
		if s.Probe == nil {
			continue
		}
		for _, p := range append([]*Probe{s.Probe}, s.Probe.steps...) {
			if p.candidates != nil && p.tie.Strong() && p.created == nil {
				d.fail("undo", key, n, "of several objects the oldest is kept, and the probe does not say when they were created",
					"add created: to the probe, such as timestamp(found.created_at)")
			}
		}
	}
}
