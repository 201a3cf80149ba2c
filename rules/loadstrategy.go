package rules

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// strategies reads the ordered list of ways to find out.
func (d *decoder) strategies(at, n *yaml.Node, key string, op *Operation) {
	if n == nil {
		d.fail("no-reconcile", key, at, "the mutation has no way to find out what happened",
			"add reconcile: with resend or probe, or - none: \"why it can't be found out\"")
		return
	}
	seen := map[StrategyKind]bool{}
	for i, item := range d.elements(n, key) {
		k := index(key, i)
		s, ok := d.strategy(item, k, op)
		if !ok {
			continue
		}
		if seen[StrategyNone] {
			d.fail("value", k, item, "none must be the last strategy", "move it to the end")
		}
		if seen[s.Kind] && s.Kind != StrategyProbe && s.Kind != StrategyExec {
			d.fail("value", k, item, string(s.Kind)+" is there twice", "keep one of them")
		}
		seen[s.Kind] = true
		op.Strategies = append(op.Strategies, s)
	}
	if n.Kind == yaml.SequenceNode && len(n.Content) == 0 {
		d.fail("no-reconcile", key, n, "reconcile is empty", "add resend or probe, or - none: \"why it can't be found out\"")
	}
	d.usable(n, key, op)
	if seen[StrategyNone] && op.manualCheck == nil {
		d.warn("manual-check", key, n, "a person will have to find out, and no manual_check says how", "add manual_check: \"where to look for what\"")
	}
}

// strategyFix is how a strategy is written that stands there as a word alone.
var strategyFix = map[string]string{
	"resend": "resend: {}",
	"probe":  "probe: with get: or post: and what its answers mean below it",
	"exec":   "exec: with command: below it",
	"none":   `none: "why it can't be found out"`,
}

// strategy reads one entry.
func (d *decoder) strategy(n *yaml.Node, key string, op *Operation) (Strategy, bool) {
	if fix := strategyFix[n.Value]; n.Kind == yaml.ScalarNode && fix != "" {
		d.fail("type", key, n, n.Value+" stands alone", "write "+fix)
		return Strategy{}, false
	}
	if d.besides(n, key) {
		return Strategy{}, false
	}
	m := d.object(n, key, levelStrategy)
	if n.Kind != yaml.MappingNode {
		return Strategy{}, false
	}
	if len(m) != 1 {
		if len(n.Content) <= 2 && len(m) == 0 {
			return Strategy{}, false // the one key was reported already
		}
		d.fail("value", key, n, "a strategy is exactly one of resend, probe, exec and none", "write each as an entry of its own")
		return Strategy{}, false
	}
	switch {
	case m["resend"] != nil:
		r := d.object(m["resend"], join(key, "resend"), levelResend)
		return Strategy{Kind: StrategyResend, Natural: r["natural"] != nil && d.boolean(r["natural"], join(key, "resend.natural"))}, true
	case m["probe"] != nil:
		p := d.probe(m["probe"], join(key, "probe"), op)
		return Strategy{Kind: StrategyProbe, Probe: p}, p != nil
	case m["exec"] != nil:
		e := d.exec(m["exec"], join(key, "exec"))
		return Strategy{Kind: StrategyExec, Exec: e}, e != nil
	default:
		why, ok := d.text(m["none"], join(key, "none"))
		return Strategy{Kind: StrategyNone, Why: why}, ok
	}
}

// besides reports, as one mistake, the keys of a strategy that stand beside its name
// instead of below it.
func (d *decoder) besides(n *yaml.Node, key string) bool {
	if n.Kind != yaml.MappingNode || len(n.Content) < 4 || n.Content[1].Tag != "!!null" || strategyFix[n.Content[0].Value] == "" {
		return false
	}
	name := n.Content[0].Value
	d.fail("type", join(key, name), n.Content[0], "the keys of "+name+" stand beside it", "indent them further than "+name)
	return true
}

// usable checks that what resends can resend, and that what needs a value that is
// not stored isn't there.
func (d *decoder) usable(n *yaml.Node, key string, op *Operation) {
	for i, s := range op.Strategies {
		k := index(key, i)
		switch s.Kind {
		case StrategyResend:
			if s.Natural {
				d.naturallyResendable(n, k, op)
				continue
			}
			d.resendable(n, k, op, len(op.Strategies) == 1)
		case StrategyProbe:
			d.probable(n, k, op, s.Probe)
		case StrategyExec:
			d.tied(n, k, op, &Probe{tie: s.Exec.Tie})
		case StrategyNone:
		}
	}
	if op.OnAbsent == OnAbsentRedispatch {
		d.redispatchable(n, strings.TrimSuffix(key, "reconcile")+"on_absent", op)
	}
}

// redispatchable checks that what is to be sent again by itself is stored whole, and
// that its absence can be believed at all.
func (d *decoder) redispatchable(n *yaml.Node, key string, op *Operation) {
	if d.pinned && (op.Send != nil || slices.ContainsFunc(op.secret, place.isOfRequest)) {
		// Only an override says it, which is for the version in force.
		op.OnAbsent = OnAbsentFail
		return
	}
	if op.Send != nil {
		d.fail("redispatch", key, n, "what is sent in steps is not sent again by itself", "write on_absent: fail: the next request begins with the first step")
	}
	d.storedWhole(n, key, "redispatch", op)
	if !slices.ContainsFunc(op.Strategies, Strategy.provesAbsence) {
		d.warn("redispatch", key, n, "no strategy takes absence as proof, so that nothing is ever sent again by itself",
			"add a probe with absence_is_proof: true, or write on_absent: fail")
	}
}

// storedWhole checks that the request can be made again from what is stored.
func (d *decoder) storedWhole(n *yaml.Node, key, what string, op *Operation) {
	for _, p := range op.secret {
		if p.isOfRequest() {
			d.fail(what+"-secret", key, n, what+" needs the whole request, but "+p.source+" is secret and is not stored",
				"remove "+what+", or the secret place")
		}
	}
}

// isOfRequest reports whether a secret place is left out of what is stored to be sent again.
func (p place) isOfRequest() bool {
	return slices.Contains([]string{"json", "form", "query", "path"}, p.root)
}

// resendable checks a resend: it needs a native key with a window in which
// resending is safe for some time, and a request that is stored whole.
func (d *decoder) resendable(n *yaml.Node, key string, op *Operation, only bool) {
	switch {
	case op.Send != nil:
		d.fail("resend", key, n, "what is sent in steps can't be sent again as one request", "add a probe, which may read mutation.kept, or none:")
	case op.NativeKey == nil:
		d.fail("resend", key, n, "resend needs a native_key: nothing else keeps the second request from taking effect", "add native_key, or remove resend")
	case op.NativeKey.Window == 0:
		d.fail("resend", key, n, "resend needs native_key.window: nothing says how long the API remembers a key", "add window, or remove resend")
	case sum(op.Timeout, op.Settle) >= op.NativeKey.usable():
		problem := fmt.Sprintf("the window of %v is too short for a resend: timeout (%v) and settle (%v) leave no time in 0.9 of it",
			op.NativeKey.Window, op.Timeout, op.Settle)
		if only {
			// Of a stored version no resend is tried then.
			d.mistaken("resend", key, n, problem, "add a probe or none:, or give the operation a shorter timeout")
		} else {
			d.warn("resend", key, n, problem, "remove resend, or give the operation a shorter timeout")
		}
	}
	d.storedWhole(n, key, "resend", op)
}

// naturallyResendable checks a resend without a key: of a request that sets the state of
// something that it names, and is stored whole.
func (d *decoder) naturallyResendable(n *yaml.Node, key string, op *Operation) {
	settable := []string{http.MethodPut, http.MethodDelete, http.MethodPatch}
	if slices.ContainsFunc(op.matches, func(m *matcher) bool {
		return len(m.methods) == 0 || slices.ContainsFunc(m.methods, func(method string) bool { return !slices.Contains(settable, method) })
	}) {
		d.fail("resend", key, n, "natural is for requests that set a state, and not all that match are PUT, DELETE or PATCH",
			"split the operation, or remove resend")
	}
	if op.NoIdentity {
		d.fail("resend", key, n, "natural needs an identity: nothing says whose state is set", "name what is changed under identity:, or remove resend")
	}
	if op.NativeKey != nil {
		d.fail("resend", key, n, "natural is for requests without a native_key", "write resend: {}, or remove native_key")
	}
	if op.Send != nil {
		d.fail("resend", key, n, "what is sent in steps can't be sent again as one request", "add a probe, which may read mutation.kept, or none:")
	}
	if op.BlockScope == "item" || op.BlockScope == "mutation" {
		d.warn("resend", key, n, "with block_scope "+op.BlockScope+" others may set the same meanwhile, and natural would undo what they set",
			"leave block_scope at workflow, or let natural be only where nothing else sets the same")
	}
	d.storedWhole(n, key, "resend", op)
}

// probable checks that a probe reads nothing that is not stored, and that its tie
// exists.
func (d *decoder) probable(n *yaml.Node, key string, op *Operation, p *Probe) {
	for _, e := range p.exprs() {
		if e.readsSecret(op.secret) {
			at := d.standing(e, n, key)
			d.fail("probe-secret", at.key, at.node, quoted(e.source)+" reads a secret place, which is not stored", "probe by something that is not secret")
		}
	}
	for _, step := range p.steps {
		d.tied(n, key, op, step)
	}
	d.tied(n, key, op, p)
}

// tied checks that what the tie rests on is sent.
func (d *decoder) tied(n *yaml.Node, key string, op *Operation, p *Probe) {
	switch {
	case p.tie == TieMarker && op.marker == nil && !op.Send.marks():
		d.fail("tie", key, n, "tie: marker needs a marker in what is sent", "add marker:, or another tie")
	case p.tie == TieMarker && op.marker == nil:
		// A step writes it wherever its template says.
	case p.tie == TieMarker && p.ours != nil && !op.marker.append && !strings.Contains(p.ours.source, op.marker.lastName()):
		d.warn("tie", key, n, "ours does not look at "+quoted(op.marker.lastName())+", where the marker is written",
			"compare what the API calls that place with mutation.marker; if the API gives it another name, a case for a hit shows that it is found")
	case p.tie == TieVendorKey && op.NativeKey == nil:
		d.fail("tie", key, n, "tie: vendor_key needs a native_key", "add native_key:, or another tie")
	}
}
