package rules

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
)

// strategies reads the ordered list of ways to find out.
func (d *decoder) strategies(v value, op *Operation) {
	if !v.Given() {
		d.Fail("no-reconcile", v, "the mutation has no way to find out what happened",
			"add reconcile: with resend or probe, or - none: \"why it can't be found out\"")
		return
	}
	seen := map[StrategyKind]bool{}
	for _, item := range d.list(v) {
		s, ok := d.strategy(item, op)
		if !ok {
			continue
		}
		if seen[StrategyNone] {
			d.Fail("value", item, "none must be the last strategy", "move it to the end")
		}
		if seen[s.Kind] && s.Kind != StrategyProbe && s.Kind != StrategyExec {
			d.Fail("value", item, string(s.Kind)+" is there twice", "keep one of them")
		}
		seen[s.Kind] = true
		op.Strategies = append(op.Strategies, s)
	}
	if v.Is(yaml.SequenceNode) && len(v.Content) == 0 {
		d.Fail("no-reconcile", v, "reconcile is empty", "add resend or probe, or - none: \"why it can't be found out\"")
	}
	d.usable(v, op)
}

// strategyFix is how a strategy is written that stands there as a word alone.
var strategyFix = map[string]string{
	"resend": "resend: {}",
	"probe":  "probe: with get: or post: and what its answers mean below it",
	"exec":   "exec: with command: below it",
	"none":   `none: "why it can't be found out"`,
}

// strategy reads one entry.
func (d *decoder) strategy(v value, op *Operation) (Strategy, bool) {
	if fix := strategyFix[v.Value]; v.Is(yaml.ScalarNode) && fix != "" {
		d.Fail("type", v, v.Value+" stands alone", "write "+fix)
		return Strategy{}, false
	}
	if d.besides(v) {
		return Strategy{}, false
	}
	m, ok := d.Map(v, levelStrategy)
	if !ok || m.Len() == 0 && len(v.Content) == 2 {
		return Strategy{}, false // what is wrong was reported
	}
	if m.Len() != 1 {
		d.Fail("value", v, "a strategy is exactly one of resend, probe, exec and none", "write each as an entry of its own")
		return Strategy{}, false
	}
	switch {
	case m.Has("resend"):
		r, _ := d.Map(m.At("resend"), levelResend)
		return Strategy{Kind: StrategyResend, Natural: d.boolean(r.At("natural"))}, true
	case m.Has("probe"):
		p := d.probe(m.At("probe"), op)
		return Strategy{Kind: StrategyProbe, Probe: p}, p != nil
	case m.Has("exec"):
		e := d.exec(m.At("exec"))
		return Strategy{Kind: StrategyExec, Exec: e}, len(e.Command) > 0
	default:
		why, ok := d.text(m.At("none"))
		return Strategy{Kind: StrategyNone, Why: why}, ok
	}
}

// besides reports, as one mistake, the keys of a strategy that stand beside its name
// instead of below it.
func (d *decoder) besides(v value) bool {
	if !v.Is(yaml.MappingNode) || len(v.Content) < 4 || v.Content[1].Tag != "!!null" || strategyFix[v.Content[0].Value] == "" {
		return false
	}
	name := v.Content[0].Value
	at := v.Place().Under(name)
	at.Line, at.Column = v.Content[0].Line, v.Content[0].Column
	d.Fail("type", at, "the keys of "+name+" stand beside it", "indent them further than "+name)
	return true
}

// usable checks that what resends can resend, and that what needs a value that is
// not stored isn't there.
func (d *decoder) usable(v value, op *Operation) {
	for i, s := range op.Strategies {
		at := Where{Key: fmt.Sprintf("%s[%d]", v.Key, i), Line: v.Line, Column: v.Column}
		switch s.Kind {
		case StrategyResend:
			if s.Natural {
				d.naturallyResendable(at, op)
				continue
			}
			d.resendable(at, op, len(op.Strategies) == 1)
		case StrategyProbe:
			d.probable(at, op, s.Probe)
		case StrategyExec:
			d.tied(at, op, s.Exec.Tie)
		case StrategyNone:
		}
	}
	if op.OnAbsent == OnAbsentRedispatch {
		at := v.Place()
		at.Key = strings.TrimSuffix(v.Key, "reconcile") + "on_absent"
		d.redispatchable(at, op)
	}
}

// redispatchable checks that what is to be sent again by itself is stored whole.
func (d *decoder) redispatchable(at Where, op *Operation) {
	if d.pinned && (op.Send != nil || slices.ContainsFunc(op.secret, place.isOfRequest)) {
		// Only an override says it, which is for the version in force.
		op.OnAbsent = OnAbsentFail
		return
	}
	if op.Send != nil {
		d.Fail("redispatch", at, "what is sent in steps is not sent again by itself", "write on_absent: fail: the next request begins with the first step")
	}
	d.storedWhole(at, "redispatch", op)
}

// storedWhole checks that the request can be made again from what is stored.
func (d *decoder) storedWhole(at Where, what string, op *Operation) {
	for _, p := range op.secret {
		if p.isOfRequest() {
			d.Fail(what+"-secret", at, what+" needs the whole request, but "+p.source+" is secret and is not stored", "remove "+what+", or the secret place")
		}
	}
}

// isOfRequest reports whether a secret place is left out of what is stored to be sent again.
func (p place) isOfRequest() bool {
	return slices.Contains([]string{"json", "form", "query", "path"}, p.root)
}

// resendable checks a resend: it needs a native key with a window, and a request that is stored whole. In
// a window that is too short no resend is tried, so that it can't be the only way.
func (d *decoder) resendable(at Where, op *Operation, only bool) {
	switch {
	case op.Send != nil:
		d.Fail("resend", at, "what is sent in steps can't be sent again as one request", "add a probe, which may read mutation.kept, or none:")
	case op.NativeKey == nil:
		d.Fail("resend", at, "resend needs a native_key: nothing else keeps the second request from taking effect", "add native_key, or remove resend")
	case op.NativeKey.Window == 0:
		d.Fail("resend", at, "resend needs native_key.window: nothing says how long the API remembers a key", "add window, or remove resend")
	case only && sum(op.Timeout, op.Settle) >= op.NativeKey.usable():
		d.mistaken("resend", at, fmt.Sprintf("the window of %v is too short for a resend: timeout (%v) and settle (%v) leave no time in 0.9 of it",
			op.NativeKey.Window, op.Timeout, op.Settle), "add a probe or none:, or give the operation a shorter timeout")
	}
	d.storedWhole(at, "resend", op)
}

// naturallyResendable checks a resend without a key. The request must set the state of something that it names, and be
// stored whole.
func (d *decoder) naturallyResendable(at Where, op *Operation) {
	settable := []string{http.MethodPut, http.MethodDelete, http.MethodPatch}
	if slices.ContainsFunc(op.matches, func(m *matcher) bool {
		other := func(method string) bool { return !slices.Contains(settable, method) }
		return m.actions == nil && (len(m.methods) == 0 || slices.ContainsFunc(m.methods, other))
	}) {
		d.Fail("resend", at, "natural is for requests that set a state, and not all that match are PUT, DELETE, PATCH or a named action of AWS",
			"split the operation, or remove resend")
	}
	if op.NoIdentity {
		d.Fail("resend", at, "natural needs an identity: nothing says whose state is set", "name what is changed under identity:, or remove resend")
	}
	if op.NativeKey != nil {
		d.Fail("resend", at, "natural is for requests without a native_key", "write resend: {}, or remove native_key")
	}
	if op.Send != nil {
		d.Fail("resend", at, "what is sent in steps can't be sent again as one request", "add a probe, which may read mutation.kept, or none:")
	}
	d.storedWhole(at, "resend", op)
}

// probable checks that a probe reads nothing that is not stored, and that its tie
// exists.
func (d *decoder) probable(at Where, op *Operation, p *Probe) {
	d.notSecret("probe-secret", "probe", p.exprs(), op)
	for _, one := range p.reads() {
		d.tied(at, op, one.tie)
	}
}

// notSecret refuses expressions that read a secret place, which is not stored.
func (d *decoder) notSecret(code, how string, exprs []*expr, op *Operation) {
	for _, e := range exprs {
		if e.readsSecret(op.secret) {
			d.Fail(code, e.at, quoted(e.source)+" reads a secret place, which is not stored", how+" by something that is not secret")
		}
	}
}

// tied checks that what the tie depends on is sent. A step of a sending writes the marker wherever its
// template says.
func (d *decoder) tied(at Where, op *Operation, tie Tie) {
	switch {
	case tie == TieMarker && len(op.markers) == 0 && !op.unmarkable && !op.Send.marks():
		d.Fail("tie", at, "tie: marker needs a marker in what is sent", "add marker:, or another tie")
	case tie == TieVendorKey && op.NativeKey == nil:
		d.Fail("tie", at, "tie: vendor_key needs a native_key", "add native_key:, or another tie")
	}
}

// Bounds and defaults of a program that is asked.
const (
	defaultExecTimeout = 30 * time.Second
	maxExecTimeout     = 10 * time.Minute
	defaultExecMemory  = 512 << 20
	defaultExecOutput  = 1 << 20
	maxExecOutput      = 64 << 20
)

// Exec is a program that says what happened.
type Exec struct {
	// Command is the program and its arguments, as they are; no shell reads them.
	Command []string
	// Timeout, Memory and Output bound it; the last two are in bytes.
	Timeout        time.Duration
	Memory, Output int64
	// Tie is by what the program recognises an object; never content.
	Tie Tie
	// AbsenceIsProof says whether its word that nothing is there is proof.
	AbsenceIsProof bool
}

// exec reads a program: the command alone, or a map.
func (d *decoder) exec(v value) *Exec {
	e := &Exec{Timeout: defaultExecTimeout, Memory: defaultExecMemory, Output: defaultExecOutput, Tie: TieUnique}
	if v.Is(yaml.SequenceNode) {
		e.Command = d.command(v)
		return e
	}
	if v.Is(yaml.ScalarNode) && !v.IsNull() && d.Plain(v) {
		d.Fail("type", v, "must be a list of the program and its arguments, or a map with command",
			"write ["+strings.Join(strings.Fields(printable(v.Value)), ", ")+"]")
		return e
	}
	m, ok := d.Map(v, levelExec)
	if !ok {
		return e
	}
	e.Command = d.command(d.need(m, "command"))
	e.Timeout = cmp.Or(d.atMost(m.At("timeout"), maxExecTimeout, "is more than a program may take", "write at most "+maxExecTimeout.String()), e.Timeout)
	e.Memory = cmp.Or(d.size(m.At("memory")), e.Memory)
	if e.Output = cmp.Or(d.size(m.At("output")), e.Output); e.Output > maxExecOutput {
		d.Fail("value", m.At("output"), "is more than is read of a program", "write at most 64MiB")
	}
	e.Tie = word(d, m.At("tie"), TieUnique, TieVendorKey, TieMarker, TieUnique)
	e.AbsenceIsProof = d.boolean(m.At("absence_is_proof"))
	return e
}

// command reads a program and its arguments.
func (d *decoder) command(v value) (out []string) {
	items := d.list(v)
	if v.Is(yaml.SequenceNode) && len(items) == 0 {
		d.Fail("missing", v, "names no program", "write [/path/to/program, argument]")
	}
	for _, item := range items {
		if s, ok := d.text(item); ok {
			out = append(out, s)
		}
	}
	return out
}
