package main

// missedBreaks are bugs that a reader wrote and that every test let pass, with the tests that
// came of them, or the guard that keeps the promise all the same.
var missedBreaks = []broken{
	{
		promise: "*It is proven that nothing was sent*", how: "bytes are counted before a writer of the same connection is done",
		edits: []edit{{"upstream/dispatch.go", "\td.conn.plain.settle()\n", ""}},
		tests: []string{"upstream.TestWhatIsBeingWrittenCountsAsWritten", "upstream.TestWhatMayHaveGoneOutWasTouched"},
		kept:  "what is being written counts as written, and counts as begun before its first byte goes out",
	},
	{
		promise: "*It is proven that nothing was sent*", how: "what is being written doesn't count",
		edits: []edit{{"upstream/wire.go", "\t\treturn c.begun.Load()\n", "\t\treturn c.written.Load()\n"}},
		tests: []string{"upstream.TestWhatIsBeingWrittenCountsAsWritten"},
	},
	{
		promise: "*It is proven that nothing was sent*", how: "a write counts as begun once it has ended",
		edits: []edit{{"upstream/wire.go", "\tc.begun.Add(int64(len(p)))\n\tn, err := c.Conn.Write(p)\n", "\tn, err := c.Conn.Write(p)\n\tc.begun.Add(int64(len(p)))\n"}},
		tests: []string{"upstream.TestWhatIsBeingWrittenCountsAsWritten"},
	},
	{
		promise: "It ends when its connection, or HTTP/2 stream, is closed", how: "a connection whose request was not written whole is used again",
		edits: []edit{{"upstream/dispatch.go", "if reusable && !killed && d.whole.Load() {", "if reusable && !killed {"}},
		tests: []string{"upstream.TestAConnectionThatARequestWasCutOffOnIsNotUsedAgain"},
		kept:  "a request is cut off by closing its connection, and one that is closed isn't taken from the pool",
	},
	{
		promise: "It ends when its connection, or HTTP/2 stream, is closed", how: "a connection on which a request is still being written is used again",
		edits: []edit{
			{"upstream/dispatch.go", "if reusable && !killed && d.whole.Load() {", "if reusable && !killed {"},
			{"upstream/dispatch.go", "\tif !d.writing() {\n\t\treturn\n\t}\n\tpatience", "\tif d.conn.h2 == nil || !d.writing() {\n\t\treturn\n\t}\n\tpatience"},
		},
		tests: []string{"upstream.TestAConnectionThatARequestWasCutOffOnIsNotUsedAgain"},
	},
	{
		promise: "Every sending of one generation carries the same key", how: "a redispatch goes on with the record of before",
		edits: []edit{{"reconcilers/redispatch.go", "if t.mutation = moved; renewed {", "if renewed {"}},
		tests: []string{"reconcilers.TestEachSendingOfAnUndoCarriesTheKeyOfItsGeneration"},
	},
	{
		promise: "A record pins the version of its rule by content", how: "the stored request may be another operation's",
		edits: []edit{{"reconcilers/try.go", "t.match.Operation == nil || t.match.Operation.Name != of.Operation {", "t.match.Operation == nil {"}},
		tests: []string{"reconcilers.TestAStoredRequestThatIsAnotherOperationsNowIsNotAskedAbout"},
	},
	{
		promise: "A run that asks again for a mutation whose answer it has had whole", how: "an answer that was cut counts as delivered",
		edits: []edit{{"proxy/answer.go", "if w.status == 0 || w.cut || w.lost {", "if w.status == 0 || w.lost {"}},
		tests: []string{"proxy.TestAnAnswerThatIsCutIsNotDelivered"},
	},
	{
		promise: "A person can acknowledge: from then on", how: "another result counts as acknowledged",
		edits: []edit{{
			"ledger/effect.go", "\t\tm.ResultState = ResultKnown\n\t\tif mv.tooLarge",
			"\t\tm.ResultState = ResultKnown\n\t\tif m.Verification != nil {\n\t\t\tm.Verification.Acknowledged = true\n\t\t}\n\t\tif mv.tooLarge",
		}},
		tests: []string{"ledger.TestAnAcknowledgedResultIsReplayedWhateverTheWorldSays", "ledger.TestAResultThatWasVerifiedIsNotReplaced"},
		kept:  "only a known result is verified, and the transition table replaces none that is known",
	},
	{
		promise: "A person can acknowledge: from then on", how: "a person replaces a result that is known",
		edits: []edit{{"ledger/table.go", "{Applied, OnHappened, FactResultMissing | result, 0, Applied", "{Applied, OnHappened, result, 0, Applied"}},
		tests: []string{"ledger.TestAResultThatWasVerifiedIsNotReplaced"},
	},
	{
		promise: "During the inline try, and then for `proxy.hold`, requests wait instead", how: "a claim that meets a stop doesn't wait",
		edits: []edit{{"proxy/settle.go", "case c.Decision == ledger.DecideBlocked:\n", "case c.Decision == ledger.DecideBlocked && until == nil:\n"}},
		tests: []string{"proxy.TestAClaimWaitsForAStopThatTheGateDidNotSee"},
	},
	{
		promise: "begins a new attempt, which is new work", how: "an unmanaged scope works at attempt 1",
		edits: []edit{{"proxy/gate.go", "attempt = max(attempt, i.Attempt)", "attempt = min(attempt, i.Attempt)"}},
		tests: []string{"proxy.TestTheUnmanagedScopeWorksAtItsItemsAttempt"},
	},
}
