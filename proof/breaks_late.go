package main

// lateBreaks are bugs of a second reader, in what came last and in gaps, programs and obligations.
// No test of their packages noticed them before; each test named here was seen to fail by its bug.
var lateBreaks = []broken{
	{
		promise: "Until a person confirms it (`ledger confirm`", how: "what a person was asked about before a gap isn't marked by it",
		edits: []edit{{"ledger/gap.go", "m.State != NeedsReconcile && m.State != Indeterminate:", "m.State != NeedsReconcile:"}},
		tests: []string{"ledger.TestWhatAPersonWasAskedAboutMayHaveBeenSentAgainInAGap"},
	},
	{
		promise: "Until a person confirms it (`ledger confirm`", how: "of several gaps the newest alone counts",
		edits: []edit{{"ledger/gap.go", "\tfor n := range gaps {\n\t\tif gaps[n].covers(", "\tfor n := max(0, len(gaps)-1); n < len(gaps); n++ {\n\t\tif gaps[n].covers("}},
		tests: []string{"ledger.TestOfSeveralGapsTheFirstBeganFirst"},
	},
	{
		promise: "Until a person confirms it (`ledger confirm`", how: "the item of another workflow is confirmed",
		edits: []edit{{"ledger/gap.go", "if c.Workflow == workflow && (c.Item == \"\" || c.Item == item) {", "if c.Workflow == workflow && c.Item == \"\" || c.Item != \"\" && c.Item == item {"}},
		tests: []string{"ledger.TestConfirmingGaps"},
	},
	{
		promise: "Until a person confirms it (`ledger confirm`", how: "one gap is confirmed at a time",
		edits: []edit{{"ledger/gap.go", "if !gaps[i].Open() {\n\t\t\t\tcontinue", "if !gaps[i].Open() || confirmed {\n\t\t\t\tcontinue"}},
		tests: []string{"ledger.TestOfSeveralGapsTheFirstBeganFirst"},
	},
	{
		promise: "A resend is no way to ask then", how: "what was unknown before a gap is sent again to ask",
		edits: []edit{{"ledger/gap.go", "\tm.voidObservations()\n\tm.ResendClosed = true", "\tm.voidObservations()\n\tm.ResendClosed = false"}},
		tests: []string{"ledger.TestWhatWasUnknownBeforeAGapIsNotSentAgainToAsk"},
	},
	{
		promise: "begins a new attempt, which is new work", how: "an open item goes with its last record, and its attempt with it",
		edits: []edit{{"ledger/retention.go", "item == nil || !item.over() {", "item == nil {"}},
		tests: []string{"ledger.TestAnOpenItemOutlivesItsMutations"},
	},
	{
		promise: "Once it was sent `max_dispatches` times (2)", how: "sendings of an earlier generation aren't counted",
		edits: []edit{{"ledger/redispatch.go", "if !m.Dispatches[i].Resend {", "if !m.Dispatches[i].Resend && m.Dispatches[i].Generation == m.Generation {"}},
		tests: []string{"ledger.TestEverySendingButAResendUsesUpARedispatch"},
	},
	{
		promise: "Once it was sent `max_dispatches` times (2)", how: "what may have been sent in a gap isn't counted",
		edits: []edit{{"ledger/redispatch.go", "if !m.Dispatches[i].Resend {", "if !m.Dispatches[i].Resend && m.Dispatches[i].Gap == 0 {"}},
		tests: []string{"ledger.TestEverySendingButAResendUsesUpARedispatch"},
	},
	{
		promise: "A 202 (RFC 9110 §15.3.3) of a rule with `watch`", how: "the 202 of what failed becomes the answer of the next sending",
		edits: []edit{{"ledger/watch.go", "\t\tm.Result, m.ResultState = nil, ResultNone\n", "\t\t_ = m.Result\n"}},
		tests: []string{"ledger.TestThe202OfWhatFailedIsNobodysAnswer"},
	},
	{
		promise: "A 202 (RFC 9110 §15.3.3) of a rule with `watch`", how: "what is known to have happened goes on being followed, and stops nothing",
		edits: []edit{{"ledger/effect.go", "m.Watching && r.To == NeedsReconcile && !m.Committed", "m.Watching && r.To == NeedsReconcile"}},
		tests: []string{"ledger.TestAnEarlierSendingsSuccessEndsTheFollowing"},
	},
	{
		promise: "A 202 (RFC 9110 §15.3.3) of a rule with `watch`", how: "a redispatch that is accepted counts as applied",
		edits: []edit{{"reconcilers/watch.go", "answer.status != http.StatusAccepted || !v.Kind", "answer.status != http.StatusAccepted || t.sends || !v.Kind"}},
		tests: []string{"reconcilers.TestARedispatchThatIsAcceptedIsFollowed"},
	},
	{
		promise: "A person who resolves an unknown as *happened*", how: "the late answer of what is taken back is given",
		edits: []edit{{"ledger/finish.go", "(m.ResultState == ResultKnown || len(m.Obligations) > 0):", "m.ResultState == ResultKnown:"}},
		tests: []string{"ledger.TestNoAnswerIsKeptOfWhatIsTakenBack"},
	},
	{
		promise: "After `max_dispatches` sendings (8), or a failure that waiting", how: "an undo of unknown outcome is run, which closes its question",
		edits: []edit{{"ledger/undo.go", "\tcase m.State == Failed && !m.Committed:\n", "\tcase (m.State == Failed || m.State == Indeterminate) && !m.Committed:\n"}},
		tests: []string{"ledger.TestAnUndoOfUnknownOutcomeIsNotRun"},
	},
	{
		promise: "Only where `age + deadline + settle < 0.9 × window`", how: "the age counts from the end of a sending",
		edits: []edit{{"ledger/finish.go", "d.Resend, d.PayloadDigest, d.ClientKey, d.Started\n", "d.Resend, d.PayloadDigest, d.ClientKey, c.now\n"}},
		tests: []string{"ledger.TestAnEndChangesNothingThatTheClaimRecorded"},
	},
	{
		promise: "In the rows before them, a sending in steps", how: "a lost sending of which something is kept counts as not sent",
		edits: []edit{{"ledger/recover.go", "if m.unsent() && !m.Committed {", "if m.Current() != nil && m.Current().Prepares && !m.Committed {"}},
		tests: []string{"ledger.TestRecoveryOfASendingInSteps"},
	},
	{
		promise: "One ledger serves one process.", how: "two processes share the lock",
		edits: []edit{{"ledger/badgerstore/lock.go", "unix.LOCK_EX|unix.LOCK_NB", "unix.LOCK_SH|unix.LOCK_NB"}},
		tests: []string{"ledger/badgerstore.TestLockNamesTheHolder"},
	},
	{
		promise: "Where the machine was started again since", how: "a duplicate rests on no time of the claim",
		edits: []edit{{
			"rules/observation.go", "\tcase SeenApplied, SeenDuplicate:\n\t\treturn a.whole.judgesByClaim()", "\tcase SeenApplied:\n\t\treturn a.whole.judgesByClaim()\n\tcase SeenDuplicate:",
		}},
		tests: []string{"rules.TestWhateverIsJudgedByTheTimeOfTheClaimRestsOnIt"},
	},
	{
		promise: "Where the machine was started again since", how: "what an earlier step judges rests on no time of the claim",
		edits: []edit{{"rules/asking.go", " || slices.ContainsFunc(p.steps, (*Probe).judgesByClaim)", ""}},
		tests: []string{"rules.TestWhateverIsJudgedByTheTimeOfTheClaimRestsOnIt"},
	},
	{
		promise: "Where the machine was started again since", how: "the conditions of a state rest on no time of the claim",
		edits: []edit{{"rules/asking.go", "\tfor _, o := range p.observe {\n\t\tjudging = append(judging, o.when)\n\t}\n", ""}},
		tests: []string{"rules.TestWhateverIsJudgedByTheTimeOfTheClaimRestsOnIt"},
	},
	{
		promise: "Where the machine was started again since", how: "whether a listing goes on rests on no time of the claim",
		edits: []edit{{"rules/asking.go", "\t\tjudging = append(judging, p.pages.more)\n", "\t\t_ = p.pages.more\n"}},
		tests: []string{"rules.TestWhateverIsJudgedByTheTimeOfTheClaimRestsOnIt"},
	},
	{
		promise: "Where the machine was started again since", how: "what answer is expected rests on no time of the claim",
		edits: []edit{{"rules/asking.go", "judging := []*expr{p.expect, p.candidates, p.ours, p.id, p.created}", "judging := []*expr{p.ours, p.id, p.created}"}},
		tests: []string{"rules.TestWhateverIsJudgedByTheTimeOfTheClaimRestsOnIt"},
	},
	{
		promise: "Where the machine was started again since", how: "a program is told that it is the same boot",
		edits: []edit{{"reconcilers/program.go", "ClaimedAt: claimed, SameBoot: sameBoot,", "ClaimedAt: claimed, SameBoot: sameBoot || m != nil,"}},
		tests: []string{"reconcilers.TestAProgramIsToldTheTimeOfTheClaimByTheClockOfNow"},
	},
	{
		promise: "A rule that asks or judges by the time of the claim", how: "a program is given what the clock of then showed",
		edits: []edit{{"reconcilers/program.go", "ClaimedAt: claimed, SameBoot: sameBoot,", "ClaimedAt: m.CreatedAt, SameBoot: sameBoot && !claimed.IsZero(),"}},
		tests: []string{"reconcilers.TestAProgramIsToldTheTimeOfTheClaimByTheClockOfNow"},
	},
	{
		promise: "With `content`, objects created before the claim", how: "the last answer alone says how far the API's clock is ahead",
		edits: []edit{{"reconcilers/probe.go", "max(a.clocks.Ahead, diff.Ahead-diff.Within)", "diff.Ahead-diff.Within"}},
		tests: []string{"reconcilers.TestTheClockThatIsFurthestAheadCounts"},
	},
	{
		promise: "`exec` asks a program of the rule", how: "absence counts from the end of a program",
		edits: []edit{{
			"reconcilers/program.go", "\treturn p.observe(ctx, t, p.ask(ctx, t)), true", "\ts := p.ask(ctx, t)\n\tt.at = p.now()\n\treturn p.observe(ctx, t, s), true",
		}},
		tests: []string{"reconcilers.TestAProgramsAbsenceCountsFromItsBeginning"},
	},
	{
		promise: "`exec` asks a program of the rule", how: "whatever a program finds is strongly tied to us",
		edits: []edit{{"reconcilers/program.go", "strong: e.Tie.Strong(), proof", "strong: e.Tie.Strong() || a != nil, proof"}},
		tests: []string{"reconcilers.TestAProgramsTieIsTheRules"},
	},
	{
		promise: "Only once `settle` of every sending before it is over", how: "an identity with a name more tells two states apart",
		edits: []edit{{"ledger/natural.go", "if len(m.Identity) == 0 || len(m.Identity) != len(other.Identity) {", "if len(m.Identity) == 0 {"}},
		tests: []string{"reconcilers.TestAnIdentityWithANameMoreTellsNothingApart"},
	},
	{
		promise: "Only once `settle` of every sending before it is over", how: "what was denied or not found has changed no state",
		edits: []edit{{"ledger/natural.go", "if d.Verdict.Failure() {\n\t\t\tcontinue", "if d.Verdict.Failure() || d.Resolved {\n\t\t\tcontinue"}},
		tests: []string{"reconcilers.TestAStateThatWasChangedSinceIsNotSetAgain"},
	},
	{
		promise: "`strict`: replayed: 424", how: "what the world disagreed with once is replayed unasked",
		edits: []edit{{"proxy/verify.go", "m.State != ledger.Applied || m.Verification != nil && m.Verification.Acknowledged {", "m.State != ledger.Applied || m.Verification != nil {"}},
		tests: []string{"proxy.TestAReplayIsVerifiedEachTime"},
	},
	{
		promise: "It is set durably at the head of a successful answer", how: "the table's word on a head is taken before the rule's",
		edits: []edit{{
			"proxy/collect.go", `p.config.Clock.Now(), ""), opinion).Kind.Success()`, `p.config.Clock.Now(), ""), upstream.Opinion{Reason: opinion.Reason}).Kind.Success()`,
		}},
		tests: []string{"proxy.TestALateBodyThatDecidesIsAwaited"},
	},
	{
		promise: "Until then nothing can have taken effect", how: "what a cut step gave is kept",
		edits: []edit{{"proxy/steps.go", "whole := s.answer.Evidence().BodyComplete", "whole := s.answer.Evidence().Head"}},
		tests: []string{"proxy.TestACutStepGivesNothing"},
	},
	{
		promise: "The rule file of the claim, kept in the ledger by its hash", how: "a stored rule keeps the hosts of before a reload",
		edits: []edit{{"reconcilers/pinned.go", "; s.of == c {", "; s.set != nil && c != nil {"}},
		tests: []string{"reconcilers.TestAPinnedRuleIsThatOfTheLatestLoad"},
	},
	{
		promise: "An answer holds for requests with the same credentials", how: "an account that was told to one credential holds for every other",
		edits: []edit{{"reconcilers/accountread.go", "slices.Sorted(maps.Keys(ask.Header))", "slices.Sorted(maps.Keys(http.Header{}))"}},
		tests: []string{"reconcilers.TestAnAccountIsThatOfWhoAsksHow"},
	},
	{
		promise: "Where the rule says how an effect is taken back", how: "of several newer effects one is owed",
		edits: []edit{{"reconcilers/undo.go", "range objects[1:] {", "range objects[1:2] {"}},
		tests: []string{"reconcilers.TestAProgramsTieIsTheRules"},
	},
}
