package main

// hostBreaks break what a host and a person see.
var hostBreaks = []broken{
	{
		promise: "Otherwise finishing is refused, and `keep-proxy run` exits", how: "a run that waits for a person counts as aborted",
		edits: []edit{{"cli/managed/verdict.go", "v.Code = CodeAttention", "v.Code = CodeAborted"}},
		tests: []string{"cli/managed.TestAVerdictIsTheFirstRowThatFits"},
	},
	{
		promise: "Otherwise finishing is refused, and `keep-proxy run` exits", how: "the command's success is the run's",
		edits: []edit{{"cli/managed/managed.go", "if err == nil && !s.failing && (code == 0) == (s.Run.State == stateFinished) {", "if code == 0 {"}},
		tests: []string{"cli/managed.TestASuccessIsNotReportedForARunThatCannotFinish"},
	},
	{
		promise: "Otherwise finishing is refused, and `keep-proxy run` exits", how: "a stopped run counts as aborted by a failure",
		edits: []edit{{"cli/managed/verdict.go", "cause != nil && cause.State != \"failed\"", "cause != nil && cause.State == \"failed\""}},
		tests: []string{"cli/managed.TestAVerdictIsTheFirstRowThatFits"},
	},
	{
		promise: "Escalations say what was attempted", how: "an escalation doesn't say what came back",
		edits: []edit{{"admin/narrate.go", "wrote(d), cameBack(d))", "wrote(d), \"\")"}},
		tests: []string{"admin.TestEscalationsSayAllThatIsNeeded", "admin.TestWhyUnknown"},
	},
	{
		promise: "Escalations say what was attempted", how: "an escalation doesn't say what was sent where",
		edits: []edit{{"admin/narrate.go", "text := fmt.Sprintf(\"%s: %s %s\", targetOf(m), m.Request.Method, m.Request.URL)", "text := targetOf(m)"}},
		tests: []string{"admin.TestEscalationsSayAllThatIsNeeded", "admin.TestAttempted"},
	},
	{
		promise: "A decision needs an actor, a reason, and the record's version", how: "a decision without a version is taken",
		edits: []edit{{"admin/resolve.go", "if q.Version < 1 {", "if q.Version < 0 {"}},
		tests: []string{"admin.TestResolveRefusesADecisionThatIsNone"},
	},
}
