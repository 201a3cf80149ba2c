package main

// heedBreaks put back what reconciling got wrong about settings that became more careful, the time of the
// claim, and answers that go on. Each is noticed by the test that came with its mend.
var heedBreaks = []broken{
	{
		promise: "Settings that are more careful than when a mutation was sent", how: "what was counted before counts for ever",
		edits: []edit{{"ledger/observe.go", "\tc.recount(m, was)\n", "\t_ = was\n"}},
		tests: []string{"ledger.TestConfirmationsComeUpToTheSettingsOfNow"},
	},
	{
		promise: "Settings that are more careful than when a mutation was sent", how: "a request is sent again by the settle of before",
		edits: []edit{
			{"reconcilers/resend.go", "\tm.Policy = m.Policy.Heeding(cautionOf(t.operation))\n", ""},
			{"ledger/resend.go", "\tm.Policy = m.Policy.Heeding(r.Caution)\n", ""},
		},
		tests: []string{"reconcilers.TestWhatIsSentByItselfHeedsTheSettingsOfNow"},
	},
	{
		promise: "The record becomes `failed` and is queued", how: "what is queued goes out by the settings of before",
		edits: []edit{{"ledger/redispatch.go", "m.Policy.Heeding(r.Caution).OnAbsent != AbsentRedispatch", "m.Policy.OnAbsent != AbsentRedispatch"}},
		tests: []string{"ledger.TestWhatIsQueuedHeedsTheSettingsOfNow"},
	},
	{
		promise: "it was seen `absent_confirmations` (2) times", how: "a program asks from before its turn had come",
		edits: []edit{{"reconcilers/program.go", "\tt.at = p.now()\n\tinput, err := json.Marshal(inputOf(t, t.at))", "\tinput, err := json.Marshal(inputOf(t, p.now()))"}},
		tests: []string{"reconcilers.TestAProgramAsksFromWhenItsTurnHasCome"},
	},
	{
		promise: "A rule that asks or judges by the time of the claim", how: "a look is given what the clock of then showed",
		edits: []edit{{"reconcilers/watch.go", "\tenv, sameBoot := t.envByClock(r.now())", "\tenv, sameBoot := t.env(), true"}},
		tests: []string{"reconcilers.TestALookGoesByTheTimeOfTheClaim"},
	},
	{
		promise: "Where the machine was started again since", how: "a look ends by the time of the claim although that can't be told",
		edits: []edit{{"rules/watch.go", "untold != \"\" && w.restsOnClaim(missing)", "untold != \"\" && w.restsOnClaim(false)"}},
		tests: []string{"rules.TestALookThatGoesByTheClaimNeedsItsTime"},
	},
	{
		promise: "One page of several (`Link` with `rel=\"next\"`) tells", how: "what is on the next page has failed",
		edits: []edit{{"rules/watch.go", "missing && (more", "seen == WatchPending && (more"}},
		tests: []string{"rules.TestNothingHasFailedByOnePageOfSeveral"},
	},
	{
		promise: "Settings that are more careful than when a mutation was sent", how: "the world disagrees after the settle of before",
		edits: []edit{{"reconcilers/verify.go", "\tm.Policy = m.Policy.Heeding(cautionOf(t.operation))\n", ""}},
		tests: []string{"reconcilers.TestVerifyingHeedsTheSettingsOfNow"},
	},
	{
		promise: "One page of several (`Link` with `rel=\"next\"`) shows", how: "conditions find gone what is on the next page",
		edits: []edit{{"rules/observation.go", "o.Seen == SeenApplied && a.takesAway()", "o.Seen == SeenApplied && a.takesAway() && !a.done"}},
		tests: []string{"rules.TestNothingIsGoneByOnePageOfSeveral"},
	},
}
