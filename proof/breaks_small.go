package main

// smallBreaks are bugs of a fourth reader, such as a small change could bring in. No test of their
// packages noticed them before; each test named here was seen to fail by its bug.
var smallBreaks = []broken{
	{
		promise: "`applied`: the stored status, header fields and body", how: "a payload that failed before is covered by what took effect",
		edits: []edit{{
			"ledger/replay.go", "c.m.PayloadDigest, c.m.SignificantDigest = record.PayloadDigest, record.SignificantDigest",
			"c.m.PayloadDigest = record.PayloadDigest",
		}},
		tests: []string{"ledger.TestAStoredAnswerCoversThePayloadThatWasSentLast"},
	},
	{
		promise: "`applied`: the stored status, header fields and body", how: "two payloads without a digest of what counts are alike",
		edits: []edit{{"ledger/dispatch.go", "(significant != \"\" && significant == m.SignificantDigest)", "significant == m.SignificantDigest"}},
		tests: []string{"ledger.TestWithoutADigestOfWhatCountsAllCounts"},
	},
	{
		promise: "it was seen `absent_confirmations` (2) times", how: "the spacing counts to the answer, not to the asking",
		edits: []edit{{"ledger/absence.go", "if gap, _ := o.At.MonoSince(last.At); gap < spacing", "if gap, _ := c.now.MonoSince(last.At); gap < spacing"}},
		tests: []string{"ledger.TestASlowAnswerIsNoLaterAsking"},
	},
	{
		promise: "A settled mutation (`applied`, `failed` or `skipped`, with no open question)", how: "what is being sent is forgotten",
		edits: []edit{{"ledger/retention.go", " || c.sending(m, 0) {", " {"}},
		tests: []string{"ledger.TestWhatIsBeingSentIsNotForgotten"},
	},
	{
		promise: "The newest is undone first", how: "an undo that a person is asked about counts as given up",
		edits: []edit{{"ledger/undo.go", "if other.State != Failed || !other.givenUp() {", "if !other.givenUp() {"}},
		tests: []string{"ledger.TestAnOlderEffectWaitsForANewerUndoOfUnknownOutcome"},
	},
	{
		promise: "The record becomes `failed` and is queued", how: "an undo goes out in a stopped scope",
		edits: []edit{{
			"ledger/redispatch.go", "if all[i].Key != m.Key && all[i].stops(m.Workflow, m.Item) {",
			"if m.Undo == nil && all[i].Key != m.Key && all[i].stops(m.Workflow, m.Item) {",
		}},
		tests: []string{"ledger.TestAnUndoWaitsForItsScope"},
	},
	{
		promise: "A success whose body was cut is *committed*", how: "a success without its answer counts only while its record is in flight",
		edits: []edit{{"ledger/finish.go", "case d.Verdict == VerdictCommitted && (!newest || m.State != InFlight):", "case d.Verdict == VerdictCommitted && !newest:"}},
		tests: []string{"ledger.TestASuccessWithoutItsAnswerCountsWhereverTheRecordIs"},
	},
	{
		promise: "A re-run that claims a new identity of an operation", how: "what the run itself made counts as an earlier one's",
		edits: []edit{{"ledger/drift.go", " || m.Attempt != c.q.Attempt || m.Run == c.run.ID {", " || m.Attempt != c.q.Attempt {"}},
		tests: []string{"ledger.TestARunDoesNotDriftFromItself"},
	},
	{
		promise: "A re-run that claims a new identity of an operation", how: "drift isn't looked for again although something is unknown",
		edits: []edit{{"ledger/drift.go", "InFlight || m.Unresolved() || m.Queued() || m.Watching ||", "InFlight || m.Watching ||"}},
		tests: []string{"ledger.TestDriftIsLookedForUntilAllIsKnown"},
	},
	{
		promise: "With `one`, after the first only the same one passes", how: "what was met under an earlier version of its rule is another one",
		edits: []edit{{"ledger/past.go", "\t\tc.m = c.met[0]\n\t\tc.q.Key = c.m.Key\n", "\t\tc.m = c.met[0]\n"}},
		tests: []string{"ledger.TestARunOfOneMutationAsksAgainUnderAnotherVersionOfItsRule"},
	},
	{
		promise: "Each needs an actor and a reason, and is refused while a run of the item goes on", how: "what was accepted is skipped with its item",
		edits: []edit{{"ledger/decideitem.go", "case m.State == InFlight, m.Watching, m.Undo", "case m.State == InFlight, m.Undo"}},
		tests: []string{"ledger.TestWhatIsFollowedIsNotSkippedWithItsItem"},
	},
	{
		promise: "After `max_dispatches` sendings (8), or a failure that waiting", how: "an undo is sent as often as its mutation may be",
		edits: []edit{{"reconcilers/undo.go", "MaxDispatches: op.MaxDispatches, ResultLimit", "MaxDispatches: of.Policy.MaxDispatches, ResultLimit"}},
		tests: []string{"reconcilers.TestAnUndoIsBoundByItsOwnRule"},
	},
	{
		promise: "Only where `age + deadline + settle < 0.9 × window`", how: "any undo by resending counts as changing nothing more",
		edits: []edit{{"reconcilers/undo.go", "p.Idempotent = p.Resend && undo.Idempotent", "p.Idempotent = p.Resend"}},
		tests: []string{"reconcilers.TestAnUndoIsBoundByItsOwnRule"},
	},
	{
		promise: "With `verify_on_replay` the API is asked", how: "our own evidence counts as another's",
		edits: []edit{{"reconcilers/alike.go", "owner != ledger.Key{} && !m.Owns(owner, object)", "owner != ledger.Key{}"}},
		tests: []string{"reconcilers.TestVerifyingFindsOurOwnEvidence"},
	},
	{
		promise: "*The upstream declared that it didn't process it*", how: "a refusal of what is sent again is believed although the connector doesn't",
		edits: []edit{{"reconcilers/resend.go", "TrustRefused: t.connector.TrustRefused,", "TrustRefused: true,"}},
		tests: []string{"reconcilers.TestASendingAgainTrustsARefusalAsItsConnectorSays"},
	},
	{
		promise: "A claim looks for its record under the key of every stored version", how: "what was met under an earlier version of its rule is recorded under its key of now",
		edits: []edit{{"proxy/settle.go", "\tif c.Mutation != nil {\n\t\tw.key = c.Mutation.Key\n\t}\n", ""}},
		tests: []string{"proxy.TestAFailedMutationIsSentAgainUnderARuleThatWasChanged"},
	},
	{
		promise: "307 and 308 don't abort", how: "a redirect aborts the run of who waited for it",
		edits: []edit{{"proxy/conclude.go", "if s.mutation.State == ledger.Failed && !s.passedOn() {", "if s.mutation.State == ledger.Failed {"}},
		tests: []string{"proxy.TestJoiningAnotherRun"},
	},
}
