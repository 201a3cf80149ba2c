package lint

import (
	"slices"

	"keep-proxy/rules"
)

// nativeKey warns of strategies that don't fit what the API makes of its keys.
func (l *linter) nativeKey(op *rules.Operation, f rules.Facts) {
	k := op.NativeKey
	if k == nil {
		return
	}
	has := func(kinds ...rules.StrategyKind) bool {
		return slices.ContainsFunc(op.Strategies, func(s rules.Strategy) bool { return slices.Contains(kinds, s.Kind) })
	}
	if has(rules.StrategyResend) && !k.Repeats() && !has(rules.StrategyProbe, rules.StrategyExec) {
		l.warn("native-key", k.Where(), "a resend gives no result with replays: "+string(k.Replays)+", and nothing else is asked for it: a person is",
			"add a probe for the result, or remove resend")
	}
	if f.Ignores && (k.Mismatch == rules.MismatchExecuted || k.Mismatch == rules.MismatchSeparate) {
		l.warn("native-key", k.Where(), "with mismatch: "+string(k.Mismatch)+" a request that differs only under payload.ignore takes effect as well, "+
			"although it is sent under the same key", "leave out of payload.ignore what the API compares, or native_key")
	}
}
