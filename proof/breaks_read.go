package main

// readBreaks break what is read, of answers, of the wire and of the disk. They are those that no test
// noticed at first.
var readBreaks = []broken{
	{
		promise: "every sending of the record ended at least `settle` (5 min) before", how: "absence counts from the last page that was asked for",
		edits: []edit{{"reconcilers/probe.go", "if first {\n\t\t\tt.at = p.now()", "if first || t.mutation != nil {\n\t\t\tt.at = p.now()"}},
		tests: []string{"reconcilers.TestAbsenceCountsFromTheFirstPage"},
	},
	{
		promise: "the API's `Date` is within 5 minutes of our clock", how: "the last page alone is held against the clock",
		edits: []edit{{"reconcilers/probe.go", "a.clocks.Off = max(a.clocks.Off, diff.Ahead.Abs()+diff.Within)", "a.clocks.Off = diff.Ahead.Abs() + diff.Within"}},
		tests: []string{"reconcilers.TestEachPageIsHeldAgainstTheClock"},
	},
	{
		promise: "It *agrees* if the effect is there, and no cache said so", how: "an absence disagrees before settle is over",
		edits: []edit{{"reconcilers/verify.go", "s.proof && r.settled(t):", "s.proof:"}},
		tests: []string{"reconcilers.TestVerifyingDisagreesOnlyAfterSettle"},
	},
	{
		promise: "A 202 (RFC 9110 §15.3.3) of a rule with `watch`", how: "a look that was cut is judged",
		edits: []edit{{"reconcilers/watch.go", "if reply.complete() {", "if reply.evidence.Head {"}},
		tests: []string{"reconcilers.TestALookThatIsCutShowsNothing"},
	},
	{
		promise: "An obligation is a mutation of its own", how: "an undo of unknown outcome stops itself alone",
		edits: []edit{{"reconcilers/undo.go", "BlockScope: of.Policy.BlockScope,", "BlockScope: ledger.BlockMutation,"}},
		tests: []string{"reconcilers.TestAnUndoStopsWhatItsMutationWould"},
	},
	{
		promise: "Several by any other tie are a question to a person", how: "what is unique is tied to us",
		edits: []edit{{"rules/probe.go", "return t == TieVendorKey || t == TieMarker }", "return t == TieVendorKey || t == TieMarker || t == TieUnique }"}},
		tests: []string{"rules.TestOnlyAVendorKeyOrAMarkerIsAStrongTie"},
	},
	{
		promise: "*It is proven that nothing was sent*", how: "a part of a record of TLS doesn't count",
		edits: []edit{{"upstream/dispatch.go", "return now.written == d.handed.written && now.raw == d.handed.raw", "return now.written == d.handed.written"}},
		tests: []string{"upstream.TestWhatMayHaveGoneOutWasTouched"},
	},
	{
		promise: "*It is proven that nothing was sent*", how: "over HTTP/2 a write that was begun doesn't count",
		edits: []edit{{"upstream/dispatch.go", "return now.begun == d.handed.begun", "return now.written == d.handed.written"}},
		tests: []string{"upstream.TestWhatMayHaveGoneOutWasTouched"},
	},
	{
		promise: "A condition that can't be evaluated is uncertain", how: "a body that was cut is judged as a whole one",
		edits: []edit{{"proxy/dispatch.go", "Complete: ev.BodyComplete && !s.tooLarge &&", "Complete: !s.tooLarge &&"}},
		tests: []string{"proxy.TestABodyThatCantBeReadWholeDecidesNothing"},
	},
	{
		promise: "If it can't record the outcome, the script is told", how: "a success that the proxy lost is an unknown",
		edits: []edit{{"proxy/conclude.go", "if s.verdict.Kind.Success() && s.dispatch.Verdict != ledger.VerdictAccepted {", "if !s.verdict.Kind.Success() && s.dispatch.Verdict == ledger.VerdictApplied {"}},
		tests: []string{"proxy.TestASuccessThatTheProxyLostIsKnownToHaveHappened"},
	},
	{
		promise: "In a stopped scope everything is refused", how: "a claim doesn't see the stop that is being synced",
		edits: []edit{{"ledger/badgerstore/tx.go", "t.store.gate.pending(workflow, &t.store.syncingGate, &t.batch.gate, &t.gate)", "t.store.gate.pending(workflow, &t.batch.gate, &t.gate)"}},
		tests: []string{"ledger/badgerstore.TestAStopThatIsBeingSyncedStopsTheNextCommand"},
	},
	{
		promise: "Then it is sent once (§5), the outcome is recorded durably", how: "what rests on a stop that is being synced is answered at once",
		edits: []edit{{"ledger/badgerstore/tx.go", "syncing && len(t.store.syncingGate.mutations) > 0\n", "syncing && len(t.store.syncingGate.mutations) < 0\n"}},
		tests: []string{"ledger/badgerstore.TestAStopThatIsBeingSyncedStopsTheNextCommand"},
	},
	{
		promise: "ends before what was acknowledged", how: "another history of the same length is taken",
		edits: []edit{{"ledger/badgerstore/load.go", "if err != nil || c.Tip.Link != last.Link {", "if err != nil || c.Tip.Commit != last.Commit {"}},
		tests: []string{"ledger/badgerstore.TestAnotherHistoryOfTheSameLengthIsALoss"},
	},
	{
		promise: "ends before what was acknowledged", how: "the high-water file keeps one mark",
		edits: []edit{{"ledger/badgerstore/highwater.go", "if _, err := h.file.WriteAt(slot, n*slotSize); err != nil {", "if _, err := h.file.WriteAt(slot, n*0); err != nil {"}},
		tests: []string{"ledger/badgerstore.TestEitherMarkWillDo"},
	},
	{
		promise: "If a sync fails, or hasn't ended after 30 s", how: "a commit that can't be made durable stops nothing",
		edits: []edit{{
			"ledger/badgerstore/persist.go", "\t\ts.poison(err)\n\t\terr = s.Healthy()\n\t}\n\tb.answer(err)", "\t\terr = s.Healthy()\n\t}\n\tb.answer(err)",
		}},
		tests: []string{"ledger/badgerstore.TestASyncThatFailsOnceStopsTheLedger"},
	},
}
