package lint

import (
	"slices"
	"time"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"

	"keep-proxy/rules"
)

// sinceClaim warns of a probe that looks for what is newer than the claim, and whose absence is believed. By an API's
// clock that is behind, our own effect is older.
func (l *linter) sinceClaim(probe []rules.ProbeFacts) {
	if !slices.ContainsFunc(probe, func(p rules.ProbeFacts) bool { return p.AbsenceIsProof }) {
		return
	}
	for _, read := range probe {
		for _, e := range read.Narrowing {
			if readsName(e, "mutation", "claimed_at") && usesNearClaim(e.Tree()) {
				l.warn("claim-time", e.At(), quoted(e.Source())+" takes less than "+rules.MaxClockDiff.String()+
					" off the time of the claim: by the API's clock, which may be that far behind ours, what the mutation made is older, "+
					"and its absence would be believed", "leave room for both clocks, as mutation.claimed_at - duration('10m') does")
				return
			}
		}
	}
}

// usesNearClaim reports whether x uses the time of the claim as it is, or less than [rules.MaxClockDiff] before. An
// offset that its text doesn't tell is taken for enough. So is an addition: a time after the claim is no beginning.
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
			return told && off < rules.MaxClockDiff
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
	r, ok := rules.RefOf(x)
	return ok && r.Root == "mutation" && len(r.Names) == 1 && r.Name() == "claimed_at"
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
