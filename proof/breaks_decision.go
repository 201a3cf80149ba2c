package main

// decisionBreaks break decisions, recovery, gaps and retention.
var decisionBreaks = []broken{
	{
		promise: "A decision needs an actor, a reason, and the record's version", how: "a decision without actor or reason is taken",
		edits: []edit{{"ledger/resolve.go", `case r.Actor == "" || r.Reason == "":`, `case r.Actor == "" && r.Reason == "":`}},
		tests: []string{"ledger.TestDecisionsThatAreIncomplete"},
	},
	{
		promise: "A decision needs an actor, a reason, and the record's version", how: "a decision on an older version is carried out",
		edits: []edit{{"ledger/resend.go", "if m.Version != version {", "if m.Version < version {"}},
		tests: []string{"admin.TestResolveRefusesAStaleVersion"},
	},
	{
		promise: "`needs_reconcile`: unknown; keep-proxy is asking the API", how: "a person denies what may still take effect, without force",
		edits: []edit{{"ledger/settle.go", "if force {\n\t\treturn true", "if force || m != nil {\n\t\treturn true"}},
		tests: []string{"ledger.TestDidNotHappenNeedsForceWhileASendingMayCommit", "ledger.TestDeniable"},
	},
	{
		promise: "\"Asked about\" is `needs_reconcile`", how: "a lost sender is a reason to send again",
		edits: []edit{{
			"ledger/table.go", "{InFlight, OnOwnerLost, asks, unsent, NeedsReconcile, EffectQueue, \"\"}", "{InFlight, OnOwnerLost, asks, unsent, Failed, EffectResolve, \"\"}",
		}},
		tests: []string{"ledger.TestTheTableHoldsWhatSemanticsSays", "ledger.TestRecoveryMovesWhatLostItsOwner"},
	},
	{
		promise: "the table crashes", how: "recovery leaves what lost its owner in flight",
		edits: []edit{{"ledger/recover.go", "if m.State != InFlight || d != nil && !gone(d, c.Process()) {", "if m.State != InFlight || d != nil {"}},
		tests: []string{"ledger.TestCrashWindows"},
	},
	{
		promise: "After a restart, before any listener opens", how: "the listeners are open before recovery",
		edits: []edit{{
			"app/lifecycle.go", "err := a.telling(\"recovery\", func",
			"if err := a.listen(ctx); err != nil {\n\t\treturn err\n\t}\n\terr := a.telling(\"recovery\", func",
		}, {
			"app/lifecycle.go", "a.note(text)\n\t}\n\tif err := a.listen(ctx); err != nil {\n\t\treturn err\n\t}\n", "a.note(text)\n\t}\n",
		}},
		tests: []string{"app.TestRecoveryComesBeforeTheListeners"},
	},
	{
		promise: "Until a person confirms it (`ledger confirm`", how: "what may have been sent in a gap is sent",
		edits: []edit{{"ledger/replay.go", "if gap != nil {", "if gap != nil && c.m != nil && c.m.Committed {"}},
		tests: []string{"ledger.TestWhatMayHaveBeenSentInAGapIsAskedAbout"},
	},
	{
		promise: "A resend is no way to ask then", how: "what may have been sent in a gap is resent",
		edits: []edit{{"ledger/gap.go", "c.m.Reason, c.m.ResendClosed = mv.why, true", "c.m.Reason = mv.why"}},
		tests: []string{"ledger.TestWhatMayHaveBeenSentInAGapIsAskedAbout"},
	},
	{
		promise: "A resend is no way to ask then", how: "a probe decides where nothing tells when a gap began",
		edits: []edit{{"ledger/gap.go", "c.m.Policy.Reconciler, c.m.Policy.Resend = false, false", "c.m.Policy.Resend = false"}},
		tests: []string{"ledger.TestInAGapWithoutABeginningAPersonIsAsked"},
	},
	{
		promise: "A settled mutation (`applied`, `failed` or `skipped`, with no open question)", how: "what a person is asked about is forgotten",
		edits: []edit{{"ledger/retention.go", "m.Queued() || m.Escalated() || ", "m.Queued() || "}},
		tests: []string{"ledger.TestWhatIsNotForgotten"},
	},
	{
		promise: "A settled mutation (`applied`, `failed` or `skipped`, with no open question)", how: "what a run works on is forgotten",
		edits: []edit{{"ledger/retention.go", "c.worksOn(item); err != nil || busy {", "c.worksOn(item); err != nil || busy && m == nil {"}},
		tests: []string{"ledger.TestWhatIsNotForgotten"},
	},
	{
		promise: "Only with `after: forget` the record goes too", how: "what was forgotten is removed at once",
		edits: []edit{{"ledger/retention.go", "if !m.Forgotten.IsZero() {\n\t\tcounts.Removed++", "if !m.Forgotten.IsZero() || r.Forget {\n\t\tcounts.Removed++"}},
		tests: []string{"ledger.TestForgettingAllTakesTwiceAsLong"},
	},
	{
		promise: "Nothing is forgotten on the word of a wall clock", how: "a wall clock that jumped makes things old",
		edits: []edit{{"app/keeper.go", "if !k.wallRan() {", "if !k.wallRan() && k.store == nil {"}},
		tests: []string{"app.TestKeeperBelievesNoClockThatJumped"},
	},
}
