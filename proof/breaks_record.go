package main

// recordBreaks break what a record keeps of its sendings, its questions and what it owes, and what
// it is told apart by. They are those that no test noticed at first.
var recordBreaks = []broken{
	{
		promise: "While a generation is open, it never carries a second payload", how: "of many sendings the first is dropped, whatever became of it",
		edits: []edit{{"ledger/dispatch.go", "if excess > 0 && d.Generation < m.Generation && d.Verdict.Failure() {", "if excess > 0 {"}},
		tests: []string{"ledger.TestAnOpenGenerationKeepsItsFirstSending"},
	},
	{
		promise: "A success whose body was cut is *committed*", how: "a late success without its answer is only noted",
		edits: []edit{{"ledger/finish.go", "case d.Verdict == VerdictCommitted && (!newest || m.State != InFlight):", "case d.Verdict == VerdictCommitted && m.State != InFlight:"}},
		tests: []string{"ledger.TestALateSuccessWithoutItsAnswerIsNotForgotten"},
	},
	{
		promise: "A mutation is unresolved in `needs_reconcile`", how: "a success without its answer stops nothing during the inline try",
		edits: []edit{{"ledger/finish.go", "seen.Resolved = d.Resolved || verdict == VerdictApplied || verdict.Failure()", "seen.Resolved = d.Resolved || verdict != VerdictUncertain"}},
		tests: []string{"ledger.TestASuccessWithoutItsAnswerStopsItsScopeDuringTheInlineTry"},
	},
	{
		promise: "What goes out is the stored request, under the same vendor key", how: "a failed mutation that is claimed again keeps its first request",
		edits: []edit{{"ledger/replay.go", "c.m.Scope, c.m.Request, c.m.Target = c.q.Scope, record.Request, record.Target", "c.m.Scope, c.m.Target = c.q.Scope, record.Target"}},
		tests: []string{"ledger.TestTheStoredRequestIsThatOfTheLastSending"},
	},
	{
		promise: "After a `transient` failure or a 401 the run is `failing`", how: "any success restores a failing run",
		edits: []edit{{"ledger/endrun.go", "if err != nil || r == nil || !r.mayRetry(key) {", "if err != nil || r == nil || r.State != RunFailing {"}},
		tests: []string{"ledger.TestTheGrace"},
	},
	{
		promise: "One object is evidence for one mutation", how: "of several objects the first alone becomes evidence",
		edits: []edit{{"ledger/observe.go", "for _, object := range o.Objects {\n\t\tif err := c.PutEvidence", "for _, object := range o.Objects[:min(1, len(o.Objects))] {\n\t\tif err := c.PutEvidence"}},
		tests: []string{"ledger.TestEachOfSeveralObjectsIsEvidence"},
	},
	{
		promise: "One object is evidence for one mutation", how: "of several objects the first alone is looked up",
		edits: []edit{{"ledger/observe.go", "for _, object := range o.Objects {\n\t\towner, err", "for _, object := range o.Objects[:min(1, len(o.Objects))] {\n\t\towner, err"}},
		tests: []string{"ledger.TestEachOfSeveralObjectsIsEvidence"},
	},
	{
		promise: "The newest is undone first", how: "the older of two effects is taken back first",
		edits: []edit{{"ledger/undo.go", "other.Undo.Order <= m.Undo.Order ||", "other.Undo.Order >= m.Undo.Order ||"}},
		tests: []string{"ledger.TestTheNewestEffectIsTakenBackFirst"},
	},
	{
		promise: "After `max_dispatches` sendings (8), or a failure that waiting", how: "an undo that failed for good is sent again by itself",
		edits: []edit{{"ledger/undo.go", "if m.Class == ClassTransient && RedispatchOpen(m) {", "if RedispatchOpen(m) {"}},
		tests: []string{"ledger.TestAnUndoThatFailsForGoodWaitsForAPerson"},
	},
	{
		promise: "A settled mutation (`applied`, `failed` or `skipped`, with no open question)", how: "what owes an undo is forgotten",
		edits: []edit{{"ledger/retention.go", "owes, err := c.owes(m); err != nil || owes {", "owes, err := c.owes(m); err != nil || owes && m == nil {"}},
		tests: []string{"ledger.TestWhatOwesAnUndoIsNotForgotten"},
	},
	{
		promise: "Until a person confirms it (`ledger confirm`", how: "a sending within a gap counts as one after it",
		edits: []edit{{"ledger/gap.go", "d.Gap == 0 && d.Gaps >= g.Number", "d.Gap == 0 && d.Started.Wall.After(g.Since)"}},
		tests: []string{"ledger.TestASendingWithinAGapDoesNotEndIt"},
	},
	{
		promise: "Until a person confirms it (`ledger confirm`", how: "what was seen before a gap counts after it",
		edits: []edit{{"ledger/gap.go", "\tm.voidObservations()\n\tm.ResendClosed = true", "\tm.ResendClosed = true"}},
		tests: []string{"ledger.TestWhatWasSeenBeforeAGapProvesNothingAfterIt"},
	},
	{
		promise: "Only once `settle` of every sending before it is over", how: "the wall clock tells the order of two boots",
		edits: []edit{{"ledger/natural.go", "return true // Of another boot", "return d.Started.Wall.After(then.Wall) // Of another boot"}},
		tests: []string{"ledger.TestASettingAfterABootIsLaterWhateverTheWallClockSays"},
	},
	{
		promise: "The mutation key is a SHA-256 over", how: "names are ordered by their bytes",
		edits: []edit{{"ledger/key.go", "func(r rune) bool { return r > 0xffff }) >= 0", "func(r rune) bool { return r > 0x1fffff }) >= 0"}},
		tests: []string{"ledger.TestNamesAreOrderedByTheirUTF16"},
	},
	{
		promise: "Each needs an actor and a reason, and is refused while a run of the item goes on", how: "what is owed is skipped with its item",
		edits: []edit{{"ledger/decideitem.go", "case m.Undo == nil && allowedToPerson(m, OnSkip):", "case allowedToPerson(m, OnSkip):"}, {"ledger/decideitem.go", "if m.Undo != nil || !allowedToPerson(m, OnSkip) {", "if !allowedToPerson(m, OnSkip) {"}},
		tests: []string{"ledger.TestWhatIsOwedIsNotSkippedWithItsItem"},
	},
	{
		promise: "A person who resolves an unknown as *happened*", how: "what a person wants undone waits for another",
		edits: []edit{{"ledger/undo.go", "return c.owe(m, r.Compensate, true, mv)", "return c.owe(m, r.Compensate, r.Compensate.Auto, mv)"}},
		tests: []string{"ledger.TestWhatAPersonWantsUndoneIsQueued"},
	},
	{
		promise: "It ends after `max_attempts` tries that reached the API", how: "tries at an earlier unknown count",
		edits: []edit{{"ledger/effect.go", "m.UnknownSince, m.Tries, m.RunningAge = now, 0, 0", "m.UnknownSince = now"}},
		tests: []string{"ledger.TestTriesCountAnewForEachUnknown"},
	},
	{
		promise: "While an earlier sending is unresolved, a failure of what was accepted", how: "a failure of what was accepted settles a lost sending",
		edits: []edit{{"ledger/watch.go", "!m.Dispatches[i].Resolved && i != followed {", "!m.Dispatches[i].Resolved && i != followed && !m.Dispatches[i].Lost {"}},
		tests: []string{"ledger.TestAFailedJobDoesNotAnswerForALostSending"},
	},
	{
		promise: "A re-run that claims a new identity of an operation", how: "drift looks away from what has no result",
		edits: []edit{{"ledger/drift.go", "if m.State != Applied {\n\t\t\tcontinue", "if m.State != Applied || m.Result == nil {\n\t\t\tcontinue"}},
		tests: []string{"ledger.TestDriftLooksAtWhatHasNoResultToo"},
	},
	{
		promise: "`applied`: the stored status, header fields and body", how: "a question that was answered is not asked again",
		edits: []edit{{"ledger/asked.go", "if m.Escalated() && m.Escalation.Kind == kind {", "if m.Escalation != nil && m.Escalation.Kind == kind {"}},
		tests: []string{"ledger.TestAPayloadThatIsRefusedOnceMoreIsAskedAboutAgain"},
	},
	{
		promise: "In a stopped scope everything is refused", how: "the stop of a workflow stops its own item alone",
		edits: []edit{{"ledger/badgerstore/standstill.go", "case ledger.BlockWorkflow:\n\t\t\treturn s\n", "case ledger.BlockWorkflow:\n\t\t\titems[b.Item] = append(items[b.Item], b)\n"}},
		tests: []string{"ledger/badgerstore.TestConformance"},
	},
}
