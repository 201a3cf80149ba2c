package rules

import (
	"slices"
	"time"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"go.yaml.in/yaml/v4"
)

// MaxClockDiff is how far the API's clock may be from ours for an absence to be taken at its
// word. What a rule asks for by the time of the claim begins that much earlier.
const MaxClockDiff = 5 * time.Minute

// sinceClaim warns of a probe whose absence is believed and that looks for what is newer than the
// claim: by the API's clock, where that is behind, our own effect is older.
func (d *decoder) sinceClaim(n *yaml.Node, key string, p *Probe) {
	if p == nil || !p.absenceIsProof && !slices.ContainsFunc(p.steps, func(step *Probe) bool { return step.absenceIsProof }) {
		return
	}
	for _, read := range append([]*Probe{p}, p.steps...) {
		for _, e := range read.narrowing() {
			if e == nil || !e.nearClaim {
				continue
			}
			at := d.standing(e, n, key)
			d.warn("claim-time", at.key, at.node, quoted(e.source)+" takes less than "+MaxClockDiff.String()+
				" off the time of the claim: by the API's clock, which may be that far behind ours, what the mutation made is older, "+
				"and its absence would be believed",
				"leave room for both clocks, as mutation.claimed_at - duration('10m') does")
			return
		}
	}
}

// narrowing are the expressions by which an object can be left out: those that ask for a listing and
// those that choose from it.
func (p *Probe) narrowing() []*expr {
	out := append(p.path.exprs(), p.expect, p.candidates, p.ours)
	for _, t := range []*template{p.query, p.header, p.json} {
		out = append(out, t.exprs()...)
	}
	if p.pages != nil {
		out = append(append(out, p.pages.more), p.pages.set.exprs()...)
	}
	return out
}

// usesNearClaim reports whether x uses the time of the claim as it is, or less than [MaxClockDiff]
// before. What is taken off by something that its text doesn't tell is taken for enough, and so is
// what is added: a time after the claim is no beginning.
func usesNearClaim(x ast.NavigableExpr) bool {
	if isClaim(x) {
		return true
	}
	if x.Kind() == ast.CallKind {
		args := x.AsCall().Args()
		switch name := x.AsCall().FunctionName(); {
		case len(args) != 2:
		case name == operators.Subtract && isClaimTime(args[0]):
			off, told := constantTime(args[1])
			return told && off < MaxClockDiff
		case name == operators.Subtract && isClaimTime(args[1]), name == operators.Add && (isClaimTime(args[0]) || isClaimTime(args[1])):
			return false
		case compares(name) && slices.ContainsFunc(x.Children(), func(side ast.NavigableExpr) bool { return moves(side) && !usesNearClaim(side) }):
			return false // the room is on the other side, or enough on the claim's
		}
	}
	return slices.ContainsFunc(x.Children(), usesNearClaim)
}

// isClaim knows mutation.claimed_at.
func isClaim(x ast.Expr) bool {
	root, steps, ok := accessOf(x)
	return ok && root == "mutation" && len(steps) == 1 && steps[0].name == "claimed_at"
}

// isClaimTime knows it as a time, or as its number of seconds.
func isClaimTime(x ast.Expr) bool {
	if x.Kind() == ast.CallKind && !x.AsCall().IsMemberFunction() && len(x.AsCall().Args()) == 1 &&
		slices.Contains([]string{"int", "uint", "double", "timestamp"}, x.AsCall().FunctionName()) {
		return isClaimTime(x.AsCall().Args()[0])
	}
	return isClaim(x)
}

// constantTime is a constant duration, or number of seconds.
func constantTime(x ast.Expr) (time.Duration, bool) {
	if x.Kind() == ast.CallKind && x.AsCall().FunctionName() == "duration" && len(x.AsCall().Args()) == 1 {
		x = x.AsCall().Args()[0]
		if x.Kind() != ast.LiteralKind {
			return 0, false
		}
		text, _ := x.AsLiteral().(types.String)
		d, err := time.ParseDuration(string(text))
		return d, err == nil
	}
	if x.Kind() != ast.LiteralKind {
		return 0, false
	}
	switch v := x.AsLiteral().(type) {
	case types.Int:
		return secondsOf(float64(v)), true
	case types.Uint:
		return secondsOf(float64(v)), true
	case types.Double:
		return secondsOf(float64(v)), true
	}
	return 0, false
}

// secondsOf is a number of seconds, or a day where it is more.
func secondsOf(v float64) time.Duration {
	return time.Duration(min(v, (24*time.Hour).Seconds()) * float64(time.Second))
}

// compares knows the operators by which one time is held against another.
func compares(name string) bool {
	return slices.Contains([]string{operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals}, name)
}

// moves knows what is added to or taken off.
func moves(x ast.Expr) bool {
	return x.Kind() == ast.CallKind && slices.Contains([]string{operators.Add, operators.Subtract}, x.AsCall().FunctionName())
}
