package main

// unseenBreaks are of guards that no test would have missed, found by switching each condition of the code off and
// on, with the tests that came of them.
var unseenBreaks = []broken{
	{
		promise: "While an earlier sending of a record is unresolved, a later one", how: "the end of an older sending counts for a newer one that is under way",
		edits: []edit{{"ledger/finish.go", "m.State != NeedsReconcile, !newest:", "m.State != NeedsReconcile:"}},
		tests: []string{"ledger.TestTheEndOfAnOlderSendingTellsNothingOfANewerOne"},
	},
	{
		promise: "Every later request of a run that is over gets 424", how: "a run that is over is failing again once its sending fails",
		edits: []edit{{"ledger/finish.go", "r == nil || r.State.Ended() || passedOn {", "r == nil || passedOn {"}},
		tests: []string{"ledger.TestARunThatIsOverStaysSoWhateverItsSendingComesTo"},
	},
	{
		promise: "Every later request of a run that is over gets 424", how: "a run that is over is paused once its sending is unknown",
		edits: []edit{{"ledger/endrun.go", "if err != nil || r == nil || r.State.Ended() {\n\t\treturn r, err\n", "if err != nil || r == nil {\n\t\treturn r, err\n"}},
		tests: []string{"ledger.TestARunThatIsOverStaysSoWhateverItsSendingComesTo"},
	},
	{
		promise: "It is `failed` after a run that ended with a definite failure", how: "a failure lets the next run into an item that waits for a person",
		edits: []edit{{"ledger/endrun.go", "if e.failed && item.State == ItemOpen {", "if e.failed {"}},
		tests: []string{"ledger.TestAFailureLetsNobodyIntoAnItemThatWaits"},
	},
	{
		promise: "It is `failed` after a run that ended with a definite failure", how: "a failure of a run of many lets the next one into an item that waits",
		edits: []edit{{"ledger/manyitems.go", "item.ActiveRun != r.ID || item.State != ItemOpen {", "item.ActiveRun != r.ID {"}},
		tests: []string{"ledger.TestAFailureLetsNobodyIntoAnItemThatWaits"},
	},
	{
		promise: "claimed again, and sent: the same; but with a native key", how: "a generation that failed for certain carries no other payload",
		edits: []edit{{"ledger/dispatch.go", "if !m.Policy.NativeKey || m.generationFailed() {", "if !m.Policy.NativeKey {"}},
		tests: []string{"ledger.TestReplayTable"},
	},
	{
		promise: "claimed again, and sent: the same; but with a native key", how: "what has no native key carries no other payload either",
		edits: []edit{{"ledger/dispatch.go", "if !m.Policy.NativeKey || m.generationFailed() {", "if m.generationFailed() {"}},
		tests: []string{"ledger.TestReplayTable"},
	},
}
