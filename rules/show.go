package rules

// Describe is the rule's describe with values filled in, as in [Derived].Target;
// the operation's name when the rule has none.
func (op *Operation) Describe(env Env) string { return op.target(op.scope(env)) }

// ManualCheckText is the rule's manual check with values filled in, "?" for what
// is missing and "<secret>" for what is secret; empty when the rule has none.
func (op *Operation) ManualCheckText(env Env) string {
	if op.manualCheck == nil {
		return ""
	}
	return op.manualCheck.show(op.scope(env), op.hides)
}

// scope is what expressions about a stored record may read.
func (op *Operation) scope(env Env) *scope {
	s := op.bind(env.Request)
	s.account, s.mutation = env.Account, &env.Mutation
	return s
}
