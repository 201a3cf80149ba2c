package rules

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// numbers resolves defaults, the rule's own numbers and the user's overrides, in
// this order. What is weaker than the built-in default needs bounds: in the file
// it is an error, elsewhere the default holds.
func (d *decoder) numbers(m fields, op *Operation, l *loading) {
	op.Bounds = d.boundsOf(m.At("bounds"))
	r := resolver{d: d, l: l, m: m, where: op.Connector.Name + ".overrides." + op.Name, bounded: m.Has("bounds")}
	var over Override
	if s := l.settingsFor(op.Connector.Name); s != nil {
		over = s.Overrides[op.Name]
	}
	own := d.duration(m.At("settle"))
	op.Settle = resolveNumber(&r, "settle", DefaultSettle, l.defaults.Settle, own, over.Settle)
	op.Spacing = resolveNumber(&r, "absent_spacing", DefaultSpacing, l.defaults.Spacing, d.duration(m.At("absent_spacing")), over.Spacing)
	op.Confirmations = resolveNumber(&r, "absent_confirmations", DefaultConfirmations, l.defaults.Confirmations,
		d.number(m.At("absent_confirmations"), 1, 100), over.Confirmations)
	op.MaxDispatches = cmp.Or(d.number(m.At("max_dispatches"), 1, maxDispatches), DefaultMaxDispatches)
	op.Timeout = min(cmp.Or(d.duration(m.At("timeout")), l.defaults.Total), l.defaults.Total)
	op.MaxBody = cmp.Or(d.size(m.At("max_body")), l.defaults.MaxBody)
	r.override(op, over)
	switch b := op.Bounds; {
	case b == nil || op.Settle > sum(b.Commit, b.Lag):
	case d.pinned:
		// An override is for the version in force, of which less may be true.
		op.Settle = max(resolveNumber(&r, "settle", DefaultSettle, l.defaults.Settle, own, nil), sum(sum(b.Commit, b.Lag), time.Second))
	default:
		d.Fail("bounds", m.At("bounds"), fmt.Sprintf("settle (%v) does not cover a commit %v late read %v later", op.Settle, b.Commit, b.Lag),
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

// resolver is where the numbers of one operation come from.
type resolver struct {
	d *decoder
	l *loading
	m fields
	// where is the operation's overrides in the settings.
	where string
	// bounded says that the rule has bounds.
	bounded bool
}

// resolveNumber takes the last source that says something. Without bounds it holds the floor. The rule's number is own;
// zero when it has none.
func resolveNumber[T cmp.Ordered](r *resolver, name string, floor, configured, own T, override *T) T {
	var zero T
	v := configured
	if v < floor && !r.bounded {
		v = floor
	}
	if own != zero {
		if own < floor && !r.bounded {
			r.d.Fail("weaker", r.m.At(name), fmt.Sprintf("%v is weaker than the default %v", own, floor),
				"add bounds: {commit, lag, source} that say why this is safe, or leave it out")
		}
		v = own
	}
	if above(r, name, override) && (*override >= floor || r.bounded) {
		v = *override
	}
	return v
}

// above reports whether an override is given and above zero; anything else that is given is an error.
func above[T cmp.Ordered](r *resolver, name string, override *T) bool {
	var zero T
	if override == nil {
		return false
	}
	if *override <= zero {
		r.l.setting(r.where+"."+name, "must be above zero", "correct it, or leave it out")
	}
	return *override > zero
}

// maxDispatches is the most that max_dispatches may say.
const maxDispatches = 10

// override applies the overrides that replace what the rule says, whatever that is.
func (r *resolver) override(op *Operation, over Override) {
	replaced(r, "on_absent", &op.OnAbsent, over.OnAbsent, OnAbsentFail, OnAbsentRedispatch, OnAbsentEscalate)
	replaced(r, "verify_on_replay", &op.Verify, over.Verify, VerifyOff, VerifyWarn, VerifyStrict, VerifyHuman)
	replaced(r, "block_scope", &op.BlockScope, over.BlockScope, "workflow", "item", "mutation")
	if above(r, "timeout", over.Timeout) {
		op.Timeout = min(*over.Timeout, r.l.defaults.Total)
	}
	if above(r, "max_body", over.MaxBody) {
		op.MaxBody = *over.MaxBody
	}
	switch n := over.MaxDispatches; {
	case n == nil:
	case *n < 1 || *n > maxDispatches:
		r.l.setting(r.where+".max_dispatches", fmt.Sprintf("must be between 1 and %d", maxDispatches), "correct it, or leave it out")
	default:
		op.MaxDispatches = *n
	}
}

// replaced applies an override that is one of some words.
func replaced[T ~string](r *resolver, name string, into *T, word T, allowed ...T) {
	switch {
	case word == "":
	case slices.Contains(allowed, word):
		*into = word
	default:
		r.l.setting(r.where+"."+name, quoted(string(word))+" is not one of its values", "write "+orWords(allowed))
	}
}
