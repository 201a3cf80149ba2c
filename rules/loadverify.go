package rules

import (
	"slices"

	"go.yaml.in/yaml/v4"
)

// verify reads what happens before a replay. Unquoted, off is what YAML 1.1 took for
// false; here it is a word like the others.
func (d *decoder) verify(n *yaml.Node, key string) Verify {
	return Verify(d.word(n, key, string(VerifyOff), string(VerifyWarn), string(VerifyStrict), string(VerifyHuman)))
}

// verifiable checks that what is to be verified can be asked about without sending, and
// fills in the default where it can.
func (d *decoder) verifiable(n *yaml.Node, key string, op *Operation, l *loading) {
	asks := slices.ContainsFunc(op.Strategies, func(s Strategy) bool { return s.Probe != nil || s.Exec != nil })
	switch {
	case op.Verify == "" && asks:
		op.Verify = l.defaults.Verify
	case op.Verify == "", d.pinned && !asks:
		op.Verify = VerifyOff
	case op.Verify != VerifyOff && !asks:
		d.fail("verify", join(key, "verify_on_replay"), n, "nothing says how the API is asked before a replay",
			"add a probe to reconcile, or write verify_on_replay: \"off\"")
	}
	if op.Verify == "" {
		op.Verify = VerifyOff
	}
}
