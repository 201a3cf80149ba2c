package main

// restBreaks break what keeps promises that no other list is about.
var restBreaks = []broken{
	{
		promise: "Where another mutation of the operation, under whatever name", how: "what another version takes our own request for isn't asked",
		edits: []edit{{"reconcilers/alike.go", "\treturn same\n", "\treturn same && other == nil\n"}},
		tests: []string{"reconcilers.TestWhatAnotherVersionMadeElsewhereIsNotTakenByItsContent"},
	},
	{
		promise: "It is set durably at the head of a successful answer", how: "whether the body is whole is known by the head, where nothing else of it is read",
		edits: []edit{{"rules/judge.go", "if o.when.readsName(\"response\", \"complete\") {", "if o.when.readsName(\"response\", \"complete\") && o.when.readsAnswerBody() {"}},
		tests: []string{"proxy.TestALateBodyThatDecidesIsAwaited"},
	},
	{
		promise: "Where another mutation of the operation, under whatever name", how: "what a renamed operation made at another path is nobody's",
		edits: []edit{{"reconcilers/alike.go", "op != nil && slices.Contains(op.Was, other.Operation)", "op != nil && slices.Contains(op.Was, \"\")"}},
		tests: []string{"reconcilers.TestWhatAnotherVersionMadeElsewhereIsNotTakenByItsContent"},
	},
	{
		promise: "If two are found, or a stored version can't be read", how: "a variable that the hosts of now don't have says that nothing was done",
		edits: []edit{{"rules/again.go", "if c.lacks != \"\" {", "if c == nil {"}},
		tests: []string{"rules.TestSettingsForALaterVersionKeepNoStoredOneFromLoading"},
	},
	{
		promise: "are told apart by the rule's `subkey`", how: "the subkey is no part of the key",
		edits: []edit{{"ledger/key.go", "\ttext(p.Subkey)\n", "\ttext(\"\")\n"}},
		tests: []string{"ledger.TestEveryPartChangesTheKey"},
	},
	{
		promise: "keep-proxy makes it from the mutation key and a generation", how: "each generation has the same vendor key",
		edits: []edit{{"ledger/key.go", "uint64(max(generation, 0))", "uint64(max(0, 0))"}},
		tests: []string{"ledger.TestVendorKeyShapes"},
	},
	{
		promise: "`applied`: it committed: final", how: "what is applied may be skipped",
		edits: []edit{{
			"ledger/table.go", "\t{Applied, OnAccept, FactDisputed,",
			"\t{Applied, OnSkip, 0, 0, Skipped, EffectResolve | EffectClose, \"\"},\n\t{Applied, OnAccept, FactDisputed,",
		}},
		tests: []string{"ledger.TestTheTableHoldsWhatSemanticsSays"},
	},
	{
		promise: "`skipped`: a person decided to go on without it: final", how: "what is skipped can be asked about again",
		edits: []edit{{
			"ledger/table.go", "\t{Failed, OnSkip, 0, 0, Skipped,",
			"\t{Skipped, OnCheckAgain, asks, 0, NeedsReconcile, EffectQueue | EffectReset, \"\"},\n\t{Failed, OnSkip, 0, 0, Skipped,",
		}},
		tests: []string{"ledger.TestDecisionsInEachState"},
	},
	{
		promise: "`in_flight`: recorded, and may be on its way", how: "what is in flight may be skipped",
		edits: []edit{{
			"ledger/table.go", "\t{InFlight, OnRetry, judged, 0, InFlight, 0, \"\"},",
			"\t{InFlight, OnRetry, judged, 0, InFlight, 0, \"\"},\n\t{InFlight, OnSkip, 0, 0, Skipped, EffectResolve, \"\"},",
		}},
		tests: []string{"ledger.TestTheTableHoldsWhatSemanticsSays"},
	},
	{
		promise: "`failed`: it did not commit: the next request", how: "what failed is not claimed again",
		edits: []edit{{
			"ledger/replay.go", "that may still be remembered\")\n\t}\n\treturn c.dispatch()",
			"that may still be remembered\")\n\t}\n\treturn c.ofSkipped()",
		}},
		tests: []string{"ledger.TestFailedMayBeTriedAgainHoweverOld"},
	},
	{
		promise: "A record can also be committed: success is known", how: "a success without its answer after a failure isn't kept as one",
		edits: []edit{{
			"ledger/table.go", "{Failed, OnCommitted, asks, 0, NeedsReconcile, EffectCommitted | EffectQueue | EffectClose, \"\"}",
			"{Failed, OnCommitted, asks, 0, NeedsReconcile, EffectQueue | EffectClose, \"\"}",
		}},
		tests: []string{"ledger.TestLateSuccessWithoutItsAnswer"},
	},
	{
		promise: "a delivery that isn't known to be durable counts as not delivered", how: "what nobody was given counts as delivered",
		edits: []edit{{
			"ledger/finishrun.go", "return delivery != nil && delivery.answers(m), err",
			"return delivery == nil || delivery.answers(m), err",
		}},
		tests: []string{"ledger.TestFinishRun"},
	},
	{
		promise: "Unresolved mutations stop things (§8).", how: "a claim asks no gate",
		edits: []edit{{"ledger/claim.go", "c.checkAllowance, c.checkScope, ", "c.checkAllowance, "}},
		tests: []string{"ledger.TestTheGateInsideTheClaim"},
	},
	{
		promise: "From then on the mutation is unknown like any other", how: "what a step gave proves nothing",
		edits: []edit{{"ledger/mutation.go", "return d.Prepares && !d.Prepared }", "return d.Prepares }"}},
		tests: []string{"ledger.TestRecoveryOfASendingInSteps"},
	},
	{
		promise: "Those join the sending that is under way", how: "a sending of this process isn't joined",
		edits: []edit{{"ledger/replay.go", "case current == nil || !c.owns(current):", "case current == nil || c.owns(current):"}},
		tests: []string{"ledger.TestAnotherRunJoinsAndReplays"},
	},
	{
		promise: "307 and 308 are passed on and not followed", how: "a redirect ends the run like any failure",
		edits: []edit{{"ledger/finish.go", "c.afterMove(m, d.Run, f.PassedOn, f.Unauthorized)", "c.afterMove(m, d.Run, false, f.Unauthorized)"}},
		tests: []string{"ledger.TestDefiniteFailures"},
	},
	{
		promise: "Alone, it makes every unknown a question", how: "what nothing can be asked about is no question",
		edits: []edit{{
			"ledger/table.go", "{InFlight, OnUnknown, 0, asks | committed, Indeterminate, 0, giveUp}",
			"{InFlight, OnUnknown, 0, asks | committed, Indeterminate, 0, \"\"}",
		}},
		tests: []string{"ledger.TestUncertainEnds"},
	},
	{
		promise: "claimed again, and sent: the same; but with a native key", how: "another payload is sent under an open generation",
		edits: []edit{{"ledger/replay.go", "if c.m.carriesOther(c.q.Record.PayloadDigest) {", "if c.m.carriesOther(c.m.PayloadDigest) {"}},
		tests: []string{"ledger.TestReplayTable"},
	},
	{
		promise: "`off` (default): not asked", how: "off is read as strict",
		edits: []edit{{"ledger/verified.go", "v.Mode == VerifyOff || ", ""}},
		tests: []string{"ledger.TestWhatTheWorldSaysBeforeAReplay"},
	},
	{
		promise: "`warn`: replayed: replayed;", how: "warn refuses what nothing is said of",
		edits: []edit{{"ledger/verified.go", "if v.Mode == VerifyWarn {", "if v.Mode == VerifyWarn && asks {"}},
		tests: []string{"ledger.TestWhatTheWorldSaysBeforeAReplay"},
	},
	{
		promise: "`human`: replayed: 424", how: "a person is asked although the world said nothing",
		edits: []edit{{"ledger/verified.go", "asks := v.Mode == VerifyHuman && said == SaidDisagrees", "asks := v.Mode == VerifyHuman"}},
		tests: []string{"ledger.TestWhatTheWorldSaysBeforeAReplay"},
	},
	{
		promise: "Nothing is ever sent because of what was seen here", how: "what isn't applied is verified too",
		edits: []edit{{"ledger/verified.go", "case m.State != Applied:", "case m.State == \"\":"}},
		tests: []string{"ledger.TestOnlyAnAppliedMutationIsVerified"},
	},
	{
		promise: "A repeat inside one run is decided before this table", how: "a repeat with another payload is looked up in the table",
		edits: []edit{{
			"ledger/replay.go", "\tcase again:\n\t\treturn c.refuseRepeat(), nil\n\tcase !c.m.Forgotten",
			"\tcase again && c.covered():\n\t\treturn c.refuseRepeat(), nil\n\tcase !c.m.Forgotten",
		}},
		tests: []string{"ledger.TestRepeats"},
	},
	{
		promise: "With `on_failure: return` the script gets the answer and goes on", how: "a failure ends a run that is to be told of it",
		edits: []edit{{"ledger/endrun.go", "\tif r.OnFailure == FailureReturn {\n\t\treturn nil", "\tif r.OnFailure == \"\" {\n\t\treturn nil"}},
		tests: []string{"ledger.TestDefiniteFailures"},
	},
	{
		promise: "An item and attempt has one running run.", how: "a second run takes over without being asked to",
		edits: []edit{{"ledger/openrun.go", "\tcase takeover:\n", "\tcase takeover || !active.State.Ended():\n"}},
		tests: []string{"ledger.TestOpenRunIsRefused"},
	},
	{
		promise: "A run may make many mutations, one, or none", how: "a run that may make none makes many",
		edits: []edit{{"ledger/claim.go", "\tcase MutationsMany:\n", "\tcase MutationsMany, MutationsNone:\n"}},
		tests: []string{"ledger.TestAllowances"},
	},
	{
		promise: "A run that is finished as `failed` while it is `failing`", how: "a run in its grace is aborted for no reason of its own",
		edits: []edit{{
			"ledger/finishrun.go", "case outcome == OutcomeFailed && r.State == RunFailing:",
			"case outcome == OutcomeFailed && r.State == RunFailing && keepOpen:",
		}},
		tests: []string{"ledger.TestTheGrace"},
	},
	{
		promise: "A known restore (`serve --restored SINCE`)", how: "a restore that is said again opens another gap",
		edits: []edit{{"ledger/gap.go", "g.Cause == GapRestored && g.Asked.Equal(since)", "g.Cause == GapLoss && g.Asked.Equal(since)"}},
		tests: []string{"ledger.TestARestoreSaidAgainOpensNoOtherGap"},
	},
	{
		promise: "Each row of the table can fit, and no two do", how: "two rows fit",
		edits: []edit{{
			"ledger/table.go", "\t{NeedsReconcile, OnRetry, 0, 0, NeedsReconcile, EffectQueue, \"\"},\n",
			"\t{NeedsReconcile, OnRetry, 0, 0, NeedsReconcile, EffectQueue, \"\"},\n\t{NeedsReconcile, OnRetry, committed, 0, Applied, lostAnswer, \"\"},\n",
		}},
		tests: []string{"ledger.TestEveryRowCanFit"},
	},
	{
		promise: "A run's attempt is its item's current one", how: "a run may name a later attempt",
		edits: []edit{{"ledger/openrun.go", "o.Attempt != 0 && o.Attempt != item.Attempt", "o.Attempt != 0 && o.Attempt < item.Attempt"}},
		tests: []string{"ledger.TestOpenRunIsRefused"},
	},
	{
		promise: "With `auto: true` it is sent by itself", how: "what waits for a person is sent by itself",
		edits: []edit{{"ledger/undo.go", "c.owe(m, &list[i], list[i].Auto, mv)", "c.owe(m, &list[i], true, mv)"}},
		tests: []string{"ledger.TestOnlyWhatTheRuleSaysIsUndoneByItself"},
	},
	{
		promise: "A lost `delete` or `put` is sent again", how: "what changes nothing more is not sent again",
		edits: []edit{{"ledger/resend.go", "if p.Idempotent {", "if p.Natural {"}},
		tests: []string{"ledger.TestResendOpen"},
	},
	{
		promise: "After a restart, before any listener opens", how: "records that are too long for one transaction keep the next process from starting",
		edits: []edit{{"ledger/recover.go", "\t\t\tmost, err = n/2, nil\n", "\t\t\tmost = n / 2\n"}},
		tests: []string{"ledger/badgerstore.TestRecoveryOfManyLongRecords"},
	},
	{
		promise: "It is sent under another marker and vendor key then", how: "what was found to be of the removed one is the next one's, too",
		edits: []edit{{"ledger/remade.go", "if owner != m.Key || m.Remade == 0 {", "if owner != m.Key || m.Remade >= 0 {"}},
		tests: []string{"ledger.TestWhatWasFoundOfAForgottenOneIsNotTheNextOnes"},
	},
	{
		promise: "When the disk has less than `ledger.min_free` left", how: "an outcome that owes something is refused as a new mutation",
		edits: []edit{{"ledger/badgerstore/tx.go", "if m.Version == 1 && m.Undo == nil {", "if m.Version == 1 {"}},
		tests: []string{"ledger/badgerstore.TestAnOutcomeThatOwesSomethingIsRecordedAlthoughSpaceIsLow"},
	},
}
