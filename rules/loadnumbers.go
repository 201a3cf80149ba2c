package rules

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"go.yaml.in/yaml/v4"
)

// numbers resolves defaults, the rule's own numbers and the user's overrides, in
// this order. What is weaker than the built-in default needs bounds: in the file
// it is an error, elsewhere the default holds and a warning says so.
func (d *decoder) numbers(m map[string]*yaml.Node, key string, op *Operation, l *loading) {
	op.Bounds = d.boundsOf(m["bounds"], join(key, "bounds"))
	r := resolver{d: d, l: l, m: m, key: key, where: op.Connector.Name + ".overrides." + op.Name, bounded: m["bounds"] != nil}
	var over Override
	if s := l.settingsFor(op.Connector.Name); s != nil {
		over = s.Overrides[op.Name]
	}
	settle := numberSource[time.Duration]{
		name: "settle", floor: DefaultSettle, configured: l.defaults.Settle,
		own: d.ownDuration(m, key, "settle"), override: over.Settle,
	}
	op.Settle = resolveNumber(&r, settle)
	op.Spacing = resolveNumber(&r, numberSource[time.Duration]{
		name: "absent_spacing", floor: DefaultSpacing, configured: l.defaults.Spacing,
		own: d.ownDuration(m, key, "absent_spacing"), override: over.Spacing,
	})
	confirmations := 0
	if m["absent_confirmations"] != nil {
		confirmations = d.number(m["absent_confirmations"], join(key, "absent_confirmations"), 1, 100)
	}
	op.Confirmations = resolveNumber(&r, numberSource[int]{
		name: "absent_confirmations", floor: DefaultConfirmations, configured: l.defaults.Confirmations,
		own: confirmations, override: over.Confirmations,
	})
	d.limits(m, key, op, l)
	r.words(op, over)
	r.limits(op, over)
	switch b := op.Bounds; {
	case b == nil || op.Settle > sum(b.Commit, b.Lag):
	case d.pinned:
		// An override is for the version in force, of which less may be true.
		settle.override = nil
		op.Settle = max(resolveNumber(&r, settle), sum(sum(b.Commit, b.Lag), time.Second))
	default:
		d.fail("bounds", join(key, "bounds"), m["bounds"],
			fmt.Sprintf("settle (%v) does not cover a commit %v late read %v later", op.Settle, b.Commit, b.Lag),
			fmt.Sprintf("let settle be more than %v", sum(b.Commit, b.Lag)))
	}
}

// sum adds two durations that aren't negative. One that is too long to be told is the longest.
func sum(a, b time.Duration) time.Duration {
	if total := a + b; total >= 0 {
		return total
	}
	return math.MaxInt64
}

// ownDuration reads the rule's own number; 0 when it has none.
func (d *decoder) ownDuration(m map[string]*yaml.Node, key, name string) time.Duration {
	if m[name] == nil {
		return 0
	}
	return d.duration(m[name], join(key, name))
}

// resolver is where the numbers of one operation come from.
type resolver struct {
	d   *decoder
	l   *loading
	m   map[string]*yaml.Node
	key string
	// where is the operation's overrides in the settings.
	where string
	// bounded says that the rule has bounds.
	bounded bool
}

// numberSource is one number and where it may come from.
type numberSource[T cmp.Ordered] struct {
	name              string
	floor, configured T
	// own is the rule's number; zero when it has none.
	own      T
	override *T
}

// resolveNumber takes the last source that says something and holds the floor
// where there are no bounds.
func resolveNumber[T cmp.Ordered](r *resolver, s numberSource[T]) T {
	var zero T
	v := s.configured
	if v < s.floor && !r.bounded {
		v = s.floor
	}
	if s.own != zero {
		if s.own < s.floor && !r.bounded {
			r.d.fail("weaker", join(r.key, s.name), r.m[s.name], fmt.Sprintf("%v is weaker than the default %v", s.own, s.floor),
				"add bounds: {commit, lag, source} that say why this is safe, or leave it out")
		}
		v = s.own
	}
	switch {
	case s.override == nil:
	case *s.override <= zero:
		r.error(s.name, "must be above zero", "correct it, or leave it out")
	case *s.override < s.floor && !r.bounded:
		r.l.setting(SeverityWarning, r.where+"."+s.name,
			fmt.Sprintf("%v is weaker than the default %v and the rule has no bounds; %v holds", *s.override, s.floor, max(v, s.floor)),
			"leave it out, or give the rule bounds")
	default:
		v = *s.override
	}
	return v
}

// error records a problem of an override.
func (r *resolver) error(name, problem, fix string) {
	r.l.setting(SeverityError, r.where+"."+name, problem, fix)
}

// maxDispatches is the most that max_dispatches may say.
const maxDispatches = 10

// limits reads the rule's own timeout, size and number of sendings.
func (d *decoder) limits(m map[string]*yaml.Node, key string, op *Operation, l *loading) {
	op.Timeout, op.MaxBody, op.MaxDispatches = l.defaults.Total, l.defaults.MaxBody, DefaultMaxDispatches
	if m["max_dispatches"] != nil {
		op.MaxDispatches = d.number(m["max_dispatches"], join(key, "max_dispatches"), 1, maxDispatches)
	}
	if v := d.ownDuration(m, key, "timeout"); v > 0 {
		if v > l.defaults.Total {
			d.warn("timeout", join(key, "timeout"), m["timeout"],
				fmt.Sprintf("is longer than timeouts.total (%v), which holds", l.defaults.Total), "say less, or raise timeouts.total")
		}
		op.Timeout = min(v, l.defaults.Total)
	}
	if m["max_body"] != nil {
		if v := d.size(m["max_body"], join(key, "max_body")); v > 0 {
			op.MaxBody = v
		}
	}
}

// limits applies an override of timeout and size.
func (r *resolver) limits(op *Operation, over Override) {
	switch {
	case over.Timeout == nil:
	case *over.Timeout <= 0:
		r.error("timeout", "must be above zero", "correct it, or leave it out")
	default:
		op.Timeout = min(*over.Timeout, r.l.defaults.Total)
	}
	switch {
	case over.MaxDispatches == nil:
	case *over.MaxDispatches < 1 || *over.MaxDispatches > maxDispatches:
		r.error("max_dispatches", fmt.Sprintf("must be between 1 and %d", maxDispatches), "correct it, or leave it out")
	default:
		op.MaxDispatches = *over.MaxDispatches
	}
	switch {
	case over.MaxBody == nil:
	case *over.MaxBody <= 0:
		r.error("max_body", "must be above zero", "correct it, or leave it out")
	default:
		op.MaxBody = *over.MaxBody
	}
}

// words applies an override of what absence leads to and what is stopped.
func (r *resolver) words(op *Operation, over Override) {
	switch over.OnAbsent {
	case "":
	case OnAbsentFail, OnAbsentRedispatch, OnAbsentEscalate:
		op.OnAbsent = over.OnAbsent
	default:
		r.error("on_absent", quoted(string(over.OnAbsent))+" is not one of its values", "write fail, redispatch or escalate")
	}
	switch over.Verify {
	case "":
	case VerifyOff, VerifyWarn, VerifyStrict, VerifyHuman:
		op.Verify = over.Verify
	default:
		r.error("verify_on_replay", quoted(string(over.Verify))+" is not one of its values", "write off, warn, strict or human")
	}
	switch over.BlockScope {
	case "":
	case "workflow", "item", "mutation":
		op.BlockScope = over.BlockScope
	default:
		r.error("block_scope", quoted(over.BlockScope)+" is not one of its values", "write workflow, item or mutation")
	}
}
