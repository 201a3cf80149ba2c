package rules

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
)

// mutation reads what only mutations have.
func (d *decoder) mutation(n *yaml.Node, m map[string]*yaml.Node, key string, op *Operation, l *loading) {
	d.identity(n, m["identity"], join(key, "identity"), op)
	if m["subkey"] != nil {
		op.subkey = d.expr(m["subkey"], join(key, "subkey"), inRequest)
	}
	if m["describe"] != nil {
		op.describe = d.textWith(m["describe"], join(key, "describe"), inRecord)
	}
	if m["manual_check"] != nil {
		op.manualCheck = d.textWith(m["manual_check"], join(key, "manual_check"), inRecord)
	}
	d.replaying(m, key, op)
	if m["verify_on_replay"] != nil {
		op.Verify = d.verify(m["verify_on_replay"], join(key, "verify_on_replay"))
	}
	if m["on_absent"] != nil {
		op.OnAbsent = OnAbsent(d.word(m["on_absent"], join(key, "on_absent"),
			string(OnAbsentFail), string(OnAbsentRedispatch), string(OnAbsentEscalate)))
	}
	op.BlockScope = d.blockScope(m["block_scope"], join(key, "block_scope"), op.BlockScope)
	d.payload(m["payload"], join(key, "payload"), op)
	d.nativeKey(m["native_key"], join(key, "native_key"), op)
	d.markerOf(m["marker"], join(key, "marker"), op)
	op.insignificant = op.ignored.with(op.minor)
	d.outcomes(m["outcome"], join(key, "outcome"), op)
	if m["success"] != nil {
		op.success = d.condition(m["success"], join(key, "success"), inAnswer)
		d.answered(op.success, "response")
	}
	d.numbers(m, key, op, l)
	d.watch(m["watch"], join(key, "watch"), op)
	d.send(m["send"], join(key, "send"), op)
	d.strategies(n, m["reconcile"], join(key, "reconcile"), op)
	d.verifiable(cmp.Or(m["verify_on_replay"], n), key, op, l)
	d.compensate(m["compensate"], join(key, "compensate"), op)
	d.replaced(m, key, op)
	d.volatile(m["identity"], join(key, "identity"), op)
	d.toldByHeader(m["match"], join(key, "match"), op)
	op.namesJSON = op.readsJSON()
}

// readsJSON reports whether the rule reads, or names a place of, the request's JSON.
func (op *Operation) readsJSON() bool {
	at := func(p place) bool { return p.root == "json" }
	return op.ignored.tree() != nil || op.minor.tree() != nil || op.normal.tree() != nil || slices.ContainsFunc(op.secret, at) ||
		op.NativeKey != nil && at(op.NativeKey.at) || op.marker != nil && at(op.marker.at) ||
		op.Connector.account.readsJSONAt() || slices.ContainsFunc(op.exprs(), (*expr).readsJSONAt)
}

func (e *expr) readsJSONAt() bool { return e != nil && e.readsAny("json") }

// identity reads the map of names to expressions, or the word none.
func (d *decoder) identity(at, n *yaml.Node, key string, op *Operation) {
	switch {
	case n == nil:
		d.fail("missing", key, at, "identity is missing: nothing says what the mutation changes",
			"add identity: {name: expression}, or identity: none for one mutation per item and subkey")
		return
	case n.Kind == yaml.ScalarNode && n.Value != "none":
		d.fail("type", key, n, "identity must be a map of names to expressions, or none", "write name: EXPRESSION lines below it")
		return
	case n.Kind == yaml.ScalarNode:
		op.NoIdentity = d.word(n, key, "none") != ""
		return
	}
	d.members(n, key, "identity", func(name string, _, v *yaml.Node) {
		e := d.expr(v, join(key, name), inRequest)
		if e == nil {
			return
		}
		if e.chain != nil && e.chain.constant == nil && len(e.chain.steps) == 0 && slices.Contains([]string{"json", "method"}, e.chain.root) {
			d.warn("identity", join(key, name), v, "takes "+e.chain.root+" as a whole", "name the fields that say what is changed")
		}
		op.identity = append(op.identity, namedExpr{name, e})
	})
	if n.Kind == yaml.MappingNode && len(n.Content) == 0 {
		d.fail("missing", key, n, "identity is empty", "name what the mutation changes, or write identity: none")
	}
	if len(op.identity) > 0 && !slices.ContainsFunc(op.identity, func(e namedExpr) bool { return len(e.refs) > 0 }) {
		d.fail("identity", key, n, "identity derives nothing from the request", "read at least one value of the request, or write identity: none")
	}
}

// Formats of a native key.
var keyFormats = []string{"uuid", "uuid4", "hex", "token"}

// minKeyLength is the shortest native key that is still unlikely to collide.
const minKeyLength = 20

// nativeKey reads the API's own idempotency key.
func (d *decoder) nativeKey(n *yaml.Node, key string, op *Operation) {
	if n == nil {
		return
	}
	m := d.object(n, key, levelNativeKey)
	k := &NativeKey{Format: "uuid", WhenPresent: PresentReplace}
	d.keyPlace(n, m, key, k)
	if m["format"] != nil {
		k.Format = d.word(m["format"], join(key, "format"), keyFormats...)
	}
	if m["max_length"] != nil {
		k.MaxLength = d.number(m["max_length"], join(key, "max_length"), minKeyLength, 1<<16)
		if strings.HasPrefix(k.Format, "uuid") && k.MaxLength > 0 && k.MaxLength < 36 {
			d.fail("value", join(key, "max_length"), m["max_length"], "a UUID has 36 characters", "write format: hex or token, which may be cut")
		}
	}
	if m["window"] != nil {
		k.Window = d.duration(m["window"], join(key, "window"))
	}
	if m["when_present"] != nil {
		k.WhenPresent = WhenPresent(d.word(m["when_present"], join(key, "when_present"),
			string(PresentReplace), string(PresentKeepFirst), string(PresentRefuse)))
	}
	if k.In != "" {
		op.NativeKey = k
		op.ignored.add(k.at)
	}
}

// keyPlace reads the one place of a native key.
func (d *decoder) keyPlace(n *yaml.Node, m map[string]*yaml.Node, key string, k *NativeKey) {
	for _, in := range []string{"header", "json", "form", "query"} {
		v := m[in]
		if v == nil {
			continue
		}
		if k.In != "" {
			d.fail("value", join(key, in), v, "the key is already in "+k.In, "name one place")
			return
		}
		if in == "header" {
			name, ok := d.headerName(v, join(key, in))
			if ok {
				k.In, k.Name, k.at = in, name, place{source: name, root: in, steps: []placeStep{{name: name}}}
			}
			continue
		}
		if p, ok := d.writable(v, join(key, in), in); ok {
			k.In, k.Name, k.at = in, v.Value, p
		}
	}
	if k.In == "" && n.Kind == yaml.MappingNode && m["header"] == nil && m["json"] == nil && m["form"] == nil && m["query"] == nil {
		d.fail("missing", key, n, "native_key names no place", "add header: Idempotency-Key, or json:, form: or query: with a name")
	}
}

// markerOf reads where the mutation leaves its mark.
func (d *decoder) markerOf(n *yaml.Node, key string, op *Operation) {
	if n == nil {
		return
	}
	m := d.object(n, key, levelMarker)
	mk := &marker{}
	found := 0
	for _, in := range []string{"json", "form", "append"} {
		v := m[in]
		if v == nil {
			continue
		}
		found++
		var ok bool
		if in == "append" {
			mk.append = true
			mk.at, ok = d.place(v, join(key, in), "json")
		} else {
			mk.at, ok = d.writable(v, join(key, in), in)
		}
		if ok {
			op.marker = mk
		}
	}
	if found != 1 && n.Kind == yaml.MappingNode {
		d.fail("value", key, n, "must name exactly one place", "write json:, form: or append: with one place")
	}
	if m["text"] != nil {
		mk.text = d.textWith(m["text"], join(key, "text"), inRecord)
	} else if mk.append {
		d.fail("missing", join(key, "text"), n, "append needs a text", `add text: "… {mutation.marker} …"`)
	}
	if mk.text != nil && !slices.ContainsFunc(mk.text.exprs(), func(e *expr) bool { return e.readsName("mutation", "marker") }) {
		d.fail("value", join(key, "text"), m["text"], "does not hold the marker", "put {mutation.marker} into it")
	}
	if op.marker != nil && !mk.append {
		op.ignored.add(mk.at)
	}
}

// outcomes reads the outcome list.
func (d *decoder) outcomes(n *yaml.Node, key string, op *Operation) {
	items := d.optional(n, key)
	for i, item := range items {
		k := index(key, i)
		m := d.object(item, k, levelOutcome)
		if m["otherwise"] != nil {
			op.otherwise = d.word(m["otherwise"], join(k, "otherwise"), "uncertain") != ""
			if i != len(items)-1 || len(m) != 1 {
				d.fail("value", k, item, "otherwise must be the last entry, alone", "move it to the end of the list")
			}
			continue
		}
		if o := d.outcome(item, m, k); o != nil {
			op.outcome = append(op.outcome, o)
		}
	}
	d.ofGateways(n, key, op)
}

// outcome reads one entry.
func (d *decoder) outcome(n *yaml.Node, m map[string]*yaml.Node, key string) *outcomeRule {
	if n.Kind != yaml.MappingNode {
		return nil
	}
	if m["when"] == nil || m["then"] == nil {
		d.fail("missing", key, n, "an outcome needs when and then", "write {when: CONDITION, then: applied|failed|uncertain}")
		return nil
	}
	o := &outcomeRule{when: d.condition(m["when"], join(key, "when"), inAnswer)}
	switch d.word(m["then"], join(key, "then"), "applied", "failed", "uncertain") {
	case "applied":
		o.kind = OpinionApplied
	case "failed":
		o.kind = OpinionFailed
	default:
		o.kind = OpinionUncertain
	}
	failed := o.kind == OpinionFailed
	if failed && m["class"] == nil {
		d.fail("missing", join(key, "class"), n, "a failure needs its class", "add class: transient, permission, precondition or logic")
	}
	if m["class"] != nil {
		o.class = Class(d.word(m["class"], join(key, "class"),
			string(ClassTransient), string(ClassPermission), string(ClassPrecondition), string(ClassLogic)))
		if !failed {
			d.fail("value", join(key, "class"), m["class"], "only a failure has a class", "leave it out, or write then: failed")
		}
	}
	if o.when == nil {
		return nil
	}
	if o.kind != OpinionUncertain {
		d.answered(o.when, "response")
	}
	return o
}

// boundsOf reads what is known of the API's delays.
func (d *decoder) boundsOf(n *yaml.Node, key string) *Bounds {
	if n == nil {
		return nil
	}
	m := d.object(n, key, levelBounds)
	b := &Bounds{}
	ok := n.Kind == yaml.MappingNode
	for name, into := range map[string]*time.Duration{"commit": &b.Commit, "lag": &b.Lag} {
		if m[name] == nil {
			ok = false
			continue
		}
		*into = d.duration(m[name], join(key, name))
	}
	if m["source"] != nil {
		b.Source, _ = d.text(m["source"], join(key, "source"))
	}
	if !ok || m["source"] == nil {
		d.fail("missing", key, n, "bounds needs commit, lag and source", "write {commit: 30s, lag: 5s, source: URL or where it was measured}")
		return nil
	}
	return b
}
