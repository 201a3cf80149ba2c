package main

// unseenBreaks are of guards that no test would have missed, found by switching each condition of the code off and
// on, with the tests that came of them.
var unseenBreaks = []broken{
	{
		promise: "While an earlier sending of a record is unresolved, a later one", how: "the end of an older sending counts for a newer one",
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
		edits: []edit{{"ledger/endrun.go", "if err != nil || r == nil || r.State.Ended() {", "if err != nil || r == nil {"}},
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
	{
		promise: "If two are found, or a stored version can't be read", how: "whoever waited gets the answer of one of two that fit",
		edits: []edit{{"ledger/join.go", "if len(c.met) > 1 {", "if len(c.met) > 2 {"}},
		tests: []string{"ledger.TestNobodyJoinsOneOfTwoRecordsThatFit"},
	},
	{
		promise: "An item that is over by then, at another attempt", how: "a late question stops an attempt that it isn't about",
		edits: []edit{{"ledger/item.go", "err != nil || item.Attempt != m.Attempt || item.State != ItemOpen &&", "err != nil || item.State != ItemOpen &&"}},
		tests: []string{"ledger.TestALateQuestionLeavesTheItemAsItIs"},
	},
	{
		promise: "Finished `done`, it closes all of its items", how: "an item that waits for a person is closed with its run",
		edits: []edit{{"ledger/manyitems.go", "if r.Closing == ClosingDone && item.State == ItemOpen {", "if r.Closing == ClosingDone {"}},
		tests: []string{"ledger.TestHowARunOfManyItemsEnds"},
	},
	{
		promise: "Until then nothing can have taken effect", how: "what a step gave is kept for a sending that has ended",
		edits: []edit{{
			"ledger/prepared.go", "if m.State != InFlight || m.Current().ID != d.ID || d.Verdict != \"\" || d.Lost || !d.unsent() {", "if !d.unsent() {",
		}},
		tests: []string{"ledger.TestPreparedIsForTheDispatchThatIsBeingPrepared"},
	},
	{
		promise: "A 202 whose body was cut", how: "what was accepted is followed by an answer that isn't there",
		edits: []edit{{"ledger/finish.go", "if f.Result != nil && !f.TooLarge {", "if f.Result != nil || f.TooLarge {"}},
		tests: []string{"ledger.TestAnEndIsReadAsStrictlyAsItsAnswerAllows"},
	},
	{
		promise: "A success whose body was cut is *committed*", how: "a success without its whole answer counts as one with it",
		edits: []edit{{"ledger/finish.go", "f.TooLarge || v == VerdictApplied && f.Result != nil {", "f.TooLarge || f.Result != nil {"}},
		tests: []string{"ledger.TestAnEndIsReadAsStrictlyAsItsAnswerAllows"},
	},
	{
		promise: "`failed`: it did not commit: the next request", how: "a success may follow a verdict of failure",
		edits: []edit{{"ledger/finish.go", "\t\treturn old == VerdictUncertain\n\tdefault:\n", "\t\treturn true\n\tdefault:\n"}},
		tests: []string{"ledger.TestOtherLateVerdictsAreFencedOff"},
	},
	{
		promise: "Each needs an actor and a reason, and is refused while a run of the item goes on", how: "nobody decides on an item",
		edits: []edit{{"ledger/decideitem.go", "case d.Actor == \"\" || d.Reason == \"\":", "case d.Reason == \"\":"}},
		tests: []string{"ledger.TestEachDecisionNeedsAnActorAndAReason"},
	},
	{
		promise: "A condition that can't be evaluated is uncertain", how: "what is sent again is judged by the part of its answer that came",
		edits: []edit{{"reconcilers/resend.go", "Complete: answered.complete() && !upstream.Coded(answered.header),", "Complete: !upstream.Coded(answered.header),"}},
		tests: []string{"reconcilers.TestAnAnswerThatCannotBeReadWholeIsNotJudgedByWhatItLacks"},
	},
	{
		promise: "An answer holds for requests with the same credentials", how: "a credential in another field is asked as the one of before",
		edits: []edit{{"reconcilers/accountread.go", "part(http.CanonicalHeaderKey(name))", "part(http.CanonicalHeaderKey(\"\"))"}},
		tests: []string{"reconcilers.TestAnAccountIsThatOfWhoAsksHow"},
	},
	{
		promise: "`exec` asks a program of the rule", how: "an object without an id is evidence",
		edits: []edit{{"reconcilers/program.go", "if slices.Contains(a.Objects, \"\") {", "if a.Objects == nil && slices.Contains(a.Objects, \"\") {"}},
		tests: []string{"reconcilers.TestAProgramSaysWhatHappened"},
	},
	{
		promise: "A 202 whose body was cut", how: "what is sent again and accepted took effect where its answer can't be kept",
		edits: []edit{{
			"reconcilers/resend.go", "if v.Kind = upstream.Committed; finish.Dispatch.Verdict == ledger.VerdictAccepted {",
			"if v.Kind = upstream.Committed; finish.Dispatch.Verdict == ledger.VerdictUncertain {",
		}},
		tests: []string{"reconcilers.TestAnAnswerToAResendThatCannotBeKept"},
	},
	{
		promise: "Once at once, while the script waits", how: "a record whose outcome is still to be recorded is asked about",
		edits: []edit{{"reconcilers/inline.go", " || !m.Unresolved() || !r.busy.claim(m.Key) {", " || !m.Unresolved() {"}},
		tests: []string{"reconcilers.TestNoInlineTryIsMadeOfARecordThatIsTaken"},
	},
	{
		promise: "With `verify_on_replay` the API is asked", how: "no program is asked",
		edits: []edit{{"reconcilers/verify.go", "return program{r}.ask(ctx, t)", "return sighting{}"}},
		tests: []string{"reconcilers.TestVerifyingAsksAProgram"},
	},
	{
		promise: "`applied`, and forgotten (§9): the rule's `on_no_result`", how: "the rule answers for another payload than what was applied",
		edits: []edit{{"ledger/retention.go", "if c.covered() && c.q.OnNoResult {", "if c.q.OnNoResult {"}},
		tests: []string{"ledger.TestForgottenIsRefusedAndNeverSentAgain"},
	},
	{
		promise: "Only with `after: forget` the record goes too", how: "an item that is done goes with the first of its mutations",
		edits: []edit{{"ledger/retention.go", "err != nil || len(left) > 0 {", "err != nil || len(left) < 0 {"}},
		tests: []string{"ledger.TestADoneItemOutlivesAllButItsLastMutation"},
	},
	{
		promise: "A person who resolves an unknown as *happened*", how: "what did not happen is undone",
		edits: []edit{{"ledger/resolve.go", "case r.Action != OnHappened && r.Compensate != nil:", "case r.Action == OnSkip && r.Compensate != nil:"}},
		tests: []string{"ledger.TestDecisionsThatAreIncomplete"},
	},
	{
		promise: "A person can acknowledge: from then on", how: "who answers another question acknowledges the result",
		edits: []edit{{"ledger/resolve.go", "if asked == EscalationVerify && m.Verification != nil {", "if m.Verification != nil {"}},
		tests: []string{"ledger.TestAnotherQuestionsEndAcknowledgesNoResult"},
	},
	{
		promise: "Every later request of a run that is over gets 424", how: "a run that is over ends once more when its replay is verified",
		edits: []edit{{"ledger/verified.go", "if err != nil || r == nil || r.State.Ended() {", "if err != nil || r == nil {"}},
		tests: []string{"ledger.TestALateQuestionLeavesTheItemAsItIs"},
	},
	{
		promise: "A run finishes `done` only if each of its mutations is", how: "what is owed is a mutation of the run that made too much",
		edits: []edit{{"ledger/undo.go", "\tu.Run = \"\"\n", ""}},
		tests: []string{"ledger.TestARunFinishesOverWhatIsOwed"},
	},
	{
		promise: "A run finishes `done` only if each of its mutations is", how: "a failure whose answer was lost on the way counts as told",
		edits: []edit{{"ledger/tx.go", "\tif d.Begun {\n\t\treturn false\n\t}\n", ""}},
		tests: []string{"ledger.TestAFailureWhoseAnswerWasLostKeepsItsRunFromFinishing"},
	},
	{
		promise: "One page of several (`Link` with `rel=\"next\"`) tells", how: "what was to be deleted is gone by one page",
		edits: []edit{{"rules/watch.go", "seen == WatchFailed || takesAway(env)", "seen == WatchFailed"}},
		tests: []string{"rules.TestNoDeletionIsDoneByOnePageOfSeveral"},
	},
	{
		promise: "Where another mutation of the operation, under whatever name", how: "one of several objects is known to be whoever's they may be",
		edits: []edit{{"ledger/alike.go", "o.Seen == SeenDuplicate && o.Strong)", "o.Seen == SeenDuplicate)"}},
		tests: []string{"ledger.TestOnlyWhatMayHaveMadeItIsAskedAbout"},
	},
	{
		promise: "Where the machine was started again since", how: "what is gone from what was asked for since a claim of no known time is gone",
		edits: []edit{
			{"rules/observation.go", "seen == SeenApplied && a.takesAway() && a.whole.asksByClaim()", "false"},
		},
		tests: []string{"rules.TestWhatIsGoneSinceTheClaimRestsOnItsTime"},
	},
	{
		promise: "A managed run that was refused because of a stop is over", how: "a run that is over finishes as done until the ledger is told",
		edits: []edit{{"ledger/finishrun.go", "if err := l.endUnrecorded(ctx, id); err != nil {", "if err := l.endUnrecorded(ctx, \"\"); err != nil {"}},
		tests: []string{"ledger.TestARunThatIsOverUnrecordedDoesNotFinish", "ledger.TestARunThatIsOverUnrecordedIsNotFinishedAsFailed"},
	},
	{
		promise: "`in_flight`: waits and gets the same answer, failures too", how: "nobody knows on which record those of another version are",
		edits: []edit{{"proxy/settle.go", "\tp.flights.works(w.flight, w.key)\n", ""}},
		tests: []string{"proxy.TestWhatIsSentAgainByAnotherRuleThanItsOwnIsWaitedFor"},
	},
	{
		promise: "`in_flight`: waits and gets the same answer, failures too", how: "what has just landed counts as unknown",
		edits: []edit{{"proxy/settle.go", "until.missed++; until.missed > maxMissed", "until.missed++; until.missed > 0"}},
		tests: []string{"proxy.TestWorkThatHasJustLandedIsAskedForAgain"},
	},
	{
		promise: "A run that asks again for a mutation whose answer it has had whole", how: "a repeat isn't told from a replay where the rule was changed meanwhile",
		edits: []edit{{"proxy/settle.go", "\t\tp.knowRepeat(x, w, &claimed)\n", ""}},
		tests: []string{"proxy.TestARepeatBesideTheRuleOfBefore"},
	},
}
