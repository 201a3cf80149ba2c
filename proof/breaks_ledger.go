package main

// ledgerBreaks break identity, the transition table and the claim.
var ledgerBreaks = []broken{
	{
		promise: "another item or attempt is another mutation", how: "the item is no part of the key",
		edits: []edit{{"ledger/key.go", "list(KeyFormat, p.Workflow, p.Item)", "list(KeyFormat, p.Workflow)"}},
		tests: []string{"ledger.TestEveryPartChangesTheKey"},
	},
	{
		promise: "another item or attempt is another mutation", how: "the attempt is no part of the key",
		edits: []edit{{"ledger/key.go", "int64(p.Attempt)", "int64(1)"}},
		tests: []string{"ledger.TestEveryPartChangesTheKey"},
	},
	{
		promise: "The mutation key is a SHA-256 over", how: "the subkey is no part of the key",
		edits: []edit{{"ledger/key.go", "text(p.Subkey)", `text("")`}},
		tests: []string{"ledger.TestEveryPartChangesTheKey", "ledger.TestKeyIsThatOfTheWholeArray"},
	},
	{
		promise: "another spelling of the same request", how: "identity is hashed as it is spelt",
		edits: []edit{{"ledger/key.go", "err = value.Canonicalize(jsontext.CanonicalizeRawInts(false))", "_ = jsontext.CanonicalizeRawInts"}},
		tests: []string{"ledger.TestSpellingDoesNotChangeTheKey"},
	},
	{
		promise: "and asking the API with credentials of another account", how: "the account is no part of the key",
		edits: []edit{{"ledger/key.go", "list(p.Connector, p.Operation, p.Account)", `list(p.Connector, p.Operation, "")`}},
		tests: []string{"ledger.TestEveryPartChangesTheKey"},
	},
	{
		promise: "A run is opened with an item, or `once`", how: "an unknown of a once run stops no other",
		edits: []edit{{
			"ledger/openrun.go", "b.stops(o.Workflow, o.Item) || o.Once && strings.HasPrefix(b.Item, oncePrefix)", "b.stops(o.Workflow, o.Item)",
		}},
		tests: []string{"ledger.TestOpenRunIsRefused"},
	},
	{
		promise: "It is refused (422 `repeated`) and the run goes on", how: "a delivered answer is replayed to its own run",
		edits: []edit{{"ledger/replay.go", "if d != nil && d.answers(c.m) {", "if d != nil && d.answers(c.m) && false {"}},
		tests: []string{"ledger.TestRepeats"},
	},
	{
		promise: "A re-run that claims a new identity of an operation", how: "what an earlier run applied counts as asked for",
		edits: []edit{{"ledger/drift.go", "if !asked {", "if asked && !asked {"}},
		tests: []string{"ledger.TestDrift"},
	},
	{
		promise: "The rule says what follows: `drift: warn`", how: "drift is sent where the rule refuses it",
		edits: []edit{{"ledger/drift.go", "if c.q.Drift != DriftRefuse {", "if c.q.Drift != DriftAllow {"}},
		tests: []string{"ledger.TestDrift"},
	},
	{
		promise: "A person who acknowledges a drift", how: "an acknowledged drift holds for every later attempt",
		edits: []edit{{"ledger/decideitem.go", "item.Drifts = nil", "item.Drifts = item.Drifts[:len(item.Drifts):len(item.Drifts)]"}},
		tests: []string{"ledger.TestAPersonAcceptsADrift"},
	},
	{
		promise: "A claim looks for its record under the key of every stored version", how: "records under stored versions aren't looked for",
		edits: []edit{{"ledger/past.go", "key != (Key{}) && key != c.q.Key {", "key != (Key{}) && key != c.q.Key && false {"}},
		tests: []string{"ledger.TestARecordIsMetUnderAStoredVersionOfItsRule"},
	},
	{
		promise: "If two are found, or a stored version can't be read", how: "of two records that fit, one is taken",
		edits: []edit{{"ledger/replay.go", "if len(c.met) > 1 {", "if len(c.met) > 2 {"}},
		tests: []string{"ledger.TestARecordIsMetUnderAStoredVersionOfItsRule"},
	},
	{
		promise: "Every sending of one generation carries the same key", how: "the vendor key depends on the generation's length of life",
		edits: []edit{{"ledger/replay.go", "failed := c.m.generationFailed()", "failed := c.m.generationFailed() || len(c.m.Dispatches) > 0"}},
		tests: []string{"ledger.TestGenerations"},
	},
	{
		promise: "The generation rises at the next claim only if", how: "an uncertain sending counts as a failed one",
		edits: []edit{{"ledger/dispatch.go", "if !d.Verdict.Failure() {", `if d.Verdict == "" {`}},
		tests: []string{"ledger.TestGenerations"},
	},
	{
		promise: "A believed absence does not raise it", how: "a believed absence renews the vendor key",
		edits: []edit{{
			"ledger/effect.go", "if r.Effects.Has(EffectNewKey) {", "if r.Effects.Has(EffectNewKey) || r.On == OnObservedAbsent && r.To == Failed {",
		}},
		tests: []string{"ledger.TestABelievedAbsenceQueuesARedispatchUnderTheSameVendorKey", "ledger.TestGenerations"},
	},
	{
		promise: "While a generation is open, it never carries a second payload", how: "an open generation carries a second payload",
		edits: []edit{{"ledger/dispatch.go", "d.Generation == m.Generation && d.PayloadDigest != digest", "d.Generation > m.Generation && d.PayloadDigest != digest"}},
		tests: []string{"ledger.TestReplayTable"},
	},
	{
		promise: "It is made from the table in the code and held against it by a test", how: "a move that the table doesn't hold stays where it is",
		edits: []edit{{
			"ledger/table.go", "if found == nil {\n\t\treturn Row{}, &NotAllowedError{State: from, On: on, Reason: \"no such step leads out of this state\"}",
			"if found == nil {\n\t\treturn Row{From: from, On: on, To: from}, nil",
		}},
		tests: []string{"ledger.TestNextRefusesWhatTheTableDoesNotHold"},
	},
	{
		promise: "`indeterminate`: unknown; nothing more can be asked", how: "the runner moves what only a person may",
		edits: []edit{{
			"ledger/table.go", "{NeedsReconcile, OnExhausted, 0, committed, Indeterminate, 0, giveUp},",
			"{NeedsReconcile, OnExhausted, 0, committed, Indeterminate, 0, giveUp},\n\t{Indeterminate, OnRetry, 0, 0, NeedsReconcile, EffectQueue, \"\"},",
		}},
		tests: []string{"ledger.TestOnlyPersonsMoveWhatAutomationGaveUp"},
	},
	{
		promise: "It is set durably at the head of a successful answer", how: "a person may deny what is known to have happened",
		edits: []edit{{
			"ledger/table.go", "{Indeterminate, OnDidNotHappen, FactDeniable, committed, Failed,", "{Indeterminate, OnDidNotHappen, FactDeniable, 0, Failed,",
		}},
		tests: []string{"ledger.TestTheTableHoldsWhatSemanticsSays", "ledger.TestDidNotHappenIsClosedOnceCommitted"},
	},
	{
		promise: "A mutation is unresolved in `needs_reconcile`", how: "what is asked about stops nothing",
		edits: []edit{{"ledger/mutation.go", "return !m.Watching\n", "return false\n"}},
		tests: []string{"ledger.TestTheGateInsideTheClaim"},
	},
	{
		promise: "A mutation is unresolved in `needs_reconcile`", how: "what is in flight and uncertain stops nothing",
		edits: []edit{{"ledger/mutation.go", "return len(m.Dispatches) == 0 || m.unsettled(len(m.Dispatches))", "return len(m.Dispatches) == 0"}},
		tests: []string{"ledger.TestInlineTryKeepsTheRecordInFlight", "ledger.TestTheGateInsideTheClaim"},
	},
	{
		promise: "While an earlier sending of a record is unresolved, a later one", how: "a later sending's failure clears an earlier unknown",
		edits: []edit{{"ledger/command.go", "FactEarlier.If(at > 0 && m.openBefore(at))", "FactEarlier.If(false)"}},
		tests: []string{"ledger.TestInlineResend", "ledger.TestOtherLateVerdictsAreFencedOff"},
	},
	{
		promise: "Every change is one transaction that expects a state and a version", how: "a command on an older version is carried out",
		edits: []edit{{"ledger/resend.go", "if m.Version != version {", "if m.Version < version {"}},
		tests: []string{"ledger.TestStaleOrMisplacedObservationsAreRefused"},
	},
	{
		promise: "What the preparing steps gave is kept durably before byte one", how: "that something was kept is forgotten",
		edits: []edit{{"ledger/prepared.go", "m.Kept, d.Prepared = maps.Clone(kept), true", "m.Kept = maps.Clone(kept)"}},
		tests: []string{"ledger.TestRecoveryOfASendingInSteps"},
	},
	{
		promise: "Until then nothing can have taken effect", how: "a sending that was lost before anything was kept is unknown",
		edits: []edit{{"ledger/prepared.go", "return d != nil && d.unsent() &&", "return d == nil && d.unsent() &&"}},
		tests: []string{"ledger.TestRecoveryOfASendingInSteps"},
	},
	{
		promise: "The next request begins with the first step", how: "what an earlier sending's steps gave is kept for the next",
		edits: []edit{{"ledger/dispatch.go", "m.Kept = nil", "_ = m.Kept"}},
		tests: []string{"ledger.TestPreparedIsForTheDispatchThatIsBeingPrepared"},
	},
	{
		promise: "It is claimed when its turn has come", how: "what waits for its turn is claimed at once",
		edits: []edit{{"ledger/replay.go", "if c.q.AwaitsTurn {", "if c.q.AwaitsTurn && c.m != nil {"}},
		tests: []string{"ledger.TestWhatWaitsForItsTurn"},
	},
	{
		promise: "An unknown outcome has the class `indeterminate`", how: "an unknown keeps the class of a failure",
		edits: []edit{{"ledger/effect.go", "m.Class = ClassIndeterminate", "m.Class = ClassTransient"}},
		tests: []string{"ledger.TestUncertainEnds"},
	},
	{
		promise: "A success whose body is over the limit is applied", how: "an answer over the limit is taken for a result",
		edits: []edit{{"ledger/effect.go", "m.Result, m.ResultState = nil, ResultTooLarge", "m.Result = nil"}},
		tests: []string{"ledger.TestSuccessOverTheLimitIsAppliedWithoutItsBody"},
	},
	{
		promise: "`applied`: the stored status, header fields and body", how: "any payload is covered by a stored answer",
		edits: []edit{{"ledger/dispatch.go", "if payload == m.PayloadDigest || ", "if payload != \"\" || "}},
		tests: []string{"ledger.TestReplayTable"},
	},
	{
		promise: "`applied`: the stored status, header fields and body", how: "after a refused payload the item goes on",
		edits: []edit{{"ledger/replay.go", "return out, c.needAttention(c.m, mv.why)", "return out, nil"}},
		tests: []string{"ledger.TestReplayTable"},
	},
	{
		promise: "`applied`, answer unknown: the rule's `on_no_result`", how: "an answer that is unknown is replayed as empty",
		edits: []edit{{"ledger/replay.go", "case c.m.Result == nil || !c.m.Watching && c.m.ResultState != ResultKnown:", "case c.m == nil:"}},
		tests: []string{"ledger.TestNoResultIsEscalatedOnce"},
	},
	{
		promise: "`applied`, and forgotten (§9): the rule's `on_no_result`", how: "what was forgotten is replayed",
		edits: []edit{{"ledger/replay.go", "case !c.m.Forgotten.IsZero():\n\t\treturn c.forgotten()", "case c.m.Forgotten.Year() == 1000:\n\t\treturn c.forgotten()"}},
		tests: []string{"ledger.TestForgottenIsRefusedAndNeverSentAgain"},
	},
	{
		promise: "`in_flight`: waits and gets the same answer, failures too", how: "a request joins a sending that nobody owns",
		edits: []edit{{"ledger/replay.go", "case current == nil || !c.owns(current):", "case current == nil:"}},
		tests: []string{"ledger.TestASendingOfAnotherProcessIsNotJoined"},
	},
	{
		promise: "`needs_reconcile`, `indeterminate`: 423 `blocked`: 423 `blocked`", how: "what is given up is replayed as if it were applied",
		edits: []edit{{"ledger/replay.go", "case Applied:\n\t\treturn c.ofApplied()", "case Applied, Indeterminate:\n\t\treturn c.ofApplied()"}},
		tests: []string{"ledger.TestUnresolvedMutationBlocksItsOwnKey"},
	},
	{
		promise: "`skipped`: the rule's `on_skip`, else 403 `skipped`", how: "what a person skipped is sent",
		edits: []edit{{"ledger/replay.go", "case Skipped:\n\t\treturn c.ofSkipped()", "case Skipped:\n\t\treturn Claimed{Decision: DecideReplay}, nil"}},
		tests: []string{"ledger.TestReplayTable"},
	},
	{
		promise: "A person can accept the new payload as covered", how: "an accepted payload isn't noted",
		edits: []edit{{"ledger/effect.go", `m.Accepted, m.Disputed = append(m.Accepted, m.Disputed), ""`, `m.Disputed = ""`}},
		tests: []string{"ledger.TestAcceptPayload"},
	},
	{
		promise: "`strict`: replayed: 424", how: "a replay is given against what the world says",
		edits: []edit{{"ledger/verified.go", "return false, m, c.endUnverified(", "return true, m, c.endUnverified("}},
		tests: []string{"ledger.TestWhatTheWorldSaysBeforeAReplay"},
	},
	{
		promise: "A person can acknowledge: from then on", how: "an acknowledged result is refused again",
		edits: []edit{{"ledger/verified.go", " || m.Verification != nil && m.Verification.Acknowledged:", ":"}},
		tests: []string{"ledger.TestAnAcknowledgedResultIsReplayedWhateverTheWorldSays"},
	},
}
