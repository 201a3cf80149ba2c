package main

// foundBreaks put back what a reader found who followed clocks, settings and what the runner sends
// by itself through the whole program. Each is noticed by the test that came with its mend.
var foundBreaks = []broken{
	{
		promise: "The same file with other hosts in force", how: "the hosts in force are no part of a version",
		edits: []edit{{"ledger/past.go", "r != now && (named", "(r.Operation != now.Operation || r.Hash != now.Hash) && (named"}},
		tests: []string{"ledger.TestARecordIsMetUnderAStoredVersionOfItsRule"},
	},
	{
		promise: "A claim looks for its record under the key of every stored version", how: "an operation that is renamed has no past without its word",
		edits: []edit{{"ledger/past.go", "(named || !same)", "(named || !same && r.Hash == \"\")"}},
		tests: []string{"proxy.TestAChangedRuleMeetsItsPast"},
	},
	{
		promise: "A claim looks for its record under the key of every stored version", how: "what would fit alone is the past of another name",
		edits: []edit{{"proxy/past.go", "if op.Name == now.Name ||", "if op.Name != \"\" ||"}},
		tests: []string{"proxy.TestAnotherNameIsThePastOfWhatItWasTakenForAlone"},
	},
	{
		promise: "The same file with other hosts in force", how: "the past is read with the hosts of now",
		edits: []edit{{"rules/again.go", "switch noted {", "switch noted = \"\"; noted {"}},
		tests: []string{"proxy.TestOtherHostsInForceMeetTheirPast"},
	},
	{
		promise: "What waits while its rule is changed", how: "what waited is sent by the rule of before",
		edits: []edit{{"proxy/past.go", "now != nil && now.Hash == was.Hash && now.HostsInForce == was.HostsInForce {", "now == nil || now.Hash != \"\" {"}},
		tests: []string{"proxy.TestARequestThatWaitedIsNotSentByARuleOfBefore"},
	},
	{
		promise: "Only where `age + deadline + settle < 0.9 × window`", how: "what can't be added up passes for little",
		edits: []edit{{"ledger/resend.go", "if total += d; total < 0 {", "if total += d; total == 0 && d < 0 {"}},
		tests: []string{"ledger.TestResendOpen"},
	},
	{
		promise: "Not after another start of the machine", how: "a resend trusts the wall clock of another boot",
		edits: []edit{{"ledger/resend.go", "now.sameBoot(d.Started) && sum(", "sum("}},
		tests: []string{"ledger.TestResendOpen"},
	},
	{
		promise: "Only once `settle` of every sending before it is over", how: "a state is set again by the wall clock of another boot",
		edits: []edit{{"ledger/natural.go", "now.sameBoot(m.Dispatches[0].Started) && now.Age", "now.Age"}},
		tests: []string{"ledger.TestAStateIsNotSetAgainAfterABoot"},
	},
	{
		promise: "Only once `settle` of every sending before it is over", how: "a clock that was ahead hides later settings",
		edits: []edit{{"ledger/since.go", "ok && shown.Before(since) {", "ok && shown.Before(since) && l == nil {"}},
		tests: []string{"ledger.TestALaterSettingIsFoundAlthoughTheClockWasAhead"},
	},
	{
		promise: "Until a person confirms it (`ledger confirm`", how: "what was sent after a gap is told by the clock",
		edits: []edit{{"ledger/gap.go", "d.Gap == 0 && d.Gaps >= g.Number", "d.Gap == 0 && d.Started.Wall.After(g.Until)"}},
		tests: []string{"ledger.TestAGapIsNotToldByTheClock"},
	},
	{
		promise: "While an earlier sending is unresolved, a failure of what was accepted", how: "all that was accepted is followed at once",
		edits: []edit{{"ledger/watch.go", "!m.Dispatches[i].Resolved && i != followed {", "!m.Dispatches[i].Resolved && m.Dispatches[i].Verdict != VerdictAccepted && followed >= 0 {"}},
		tests: []string{"ledger.TestTheFailureOfOneOfTwoAcceptedSendingsIsNoFailure"},
	},
	{
		promise: "Settings that are more careful than when a mutation was sent", how: "an open question keeps its settle",
		edits: []edit{{"ledger/observe.go", "\tm.Policy = m.Policy.Heeding(q.Caution)\n", ""}},
		tests: []string{"ledger.TestSettingsOfNowMakeAnOpenQuestionMoreCareful"},
	},
	{
		promise: "Settings that are more careful than when a mutation was sent", how: "nobody says what the settings of now ask for",
		edits: []edit{{"reconcilers/sighting.go", "if op := t.operation; op != nil {", "if op := t.operation; op != nil && op.Settle < 0 {"}},
		tests: []string{"reconcilers.TestSettingsOfNowAreHeeded"},
	},
	{
		promise: "Settings that are more careful than when a mutation was sent", how: "what is sent again keeps the settings of before",
		edits: []edit{{"ledger/replay.go", "\t\tc.m.Policy = r.Policy\n\t\treturn nil", "\t\treturn nil"}},
		tests: []string{"ledger.TestARecordThatIsSentAgainHasTheSettingsOfNow"},
	},
	{
		promise: "None is sent before `settle` of every sending of its mutation", how: "an undo goes before a sending of what it takes back",
		edits: []edit{{"ledger/undo.go", "if Settled(&careful, c.now, c.Process()) {", "if of != nil {"}},
		tests: []string{"ledger.TestAnUndoWaitsForWhatItTakesBack"},
	},
	{
		promise: "A settled mutation (`applied`, `failed` or `skipped`, with no open question)", how: "trailers outlive their answer",
		edits: []edit{{"ledger/retention.go", "\t\tm.Result.Trailer = nil\n", ""}},
		tests: []string{"ledger.TestTrailersAreForgottenWithTheirAnswer"},
	},
	{
		promise: "A settled mutation (`applied`, `failed` or `skipped`, with no open question)", how: "what preparing steps gave is kept for ever",
		edits: []edit{{"ledger/retention.go", "m.Diff, m.Kept = nil, nil", "m.Diff = nil"}},
		tests: []string{"ledger.TestWhatPreparingStepsGaveIsForgotten"},
	},
	{
		promise: "A known restore (`serve --restored SINCE`)", how: "a later copy is taken for the one that was put back before",
		edits: []edit{{"ledger/gap.go", "gaps[min(max(held, 0), len(gaps)):]", "gaps[min(0, held):]"}},
		tests: []string{"ledger/badgerstore.TestARestoreOfALaterCopyOpensAGapWhateverWasSaidBefore"},
	},
	{
		promise: "A known restore (`serve --restored SINCE`)", how: "nobody says that a copy is behind",
		edits: []edit{{"app/gaps.go", "held, _ := a.store.Behind()", "held := 0"}},
		tests: []string{"app.TestARestoreOfALaterCopyIsTold"},
	},
	{
		promise: "A known restore (`serve --restored SINCE`)", how: "that a copy is behind is forgotten by a crash",
		edits: []edit{{"ledger/badgerstore/restored.go", "if s.behind.known {", "if s.behind.known && s.behind.gaps < 0 {"}},
		tests: []string{"ledger/badgerstore.TestARestoreOfALaterCopyOpensAGapWhateverWasSaidBefore"},
	},
	{
		promise: "was written by a newer version", how: "what a later program wrote counts as damaged",
		edits: []edit{{"ledger/badgerstore/codec.go", "errors.AsType[*cbor.UnknownFieldError](err); later {", "errors.AsType[*cbor.UnknownFieldError](err); later && v == nil {"}},
		tests: []string{"ledger/badgerstore.TestWhatALaterProgramWroteIsNoDamage"},
	},
	{
		promise: "was written by a newer version", how: "a ledger with indexes that nobody keeps is opened",
		edits: []edit{{"ledger/badgerstore/load.go", "if i.Indexes > allIndexes {", "if i.Indexes > allIndexes+1000 {"}},
		tests: []string{"ledger/badgerstore.TestWhatALaterProgramWroteIsNoDamage"},
	},
	{
		promise: "It is sent under another marker and vendor key then", how: "the marker of what is removed is free again",
		edits: []edit{{"ledger/retention.go", "\tif err := c.useUp(m); err != nil {\n\t\treturn err\n\t}\n", ""}},
		tests: []string{"ledger.TestWhatIsMadeAfterItWasForgottenHasOtherMarks"},
	},
	{
		promise: "It is sent under another marker and vendor key then", how: "what is made again has the vendor key of what was removed",
		edits: []edit{{"ledger/effect.go", "VendorKey(markedBy(m.Key, m.Remade), ", "VendorKey(m.Key, "}},
		tests: []string{"ledger.TestWhatIsMadeAfterItWasForgottenHasOtherMarks"},
	},
	{
		promise: "An item that is over by then, at another attempt", how: "a late question opens a closed item again",
		edits: []edit{{"ledger/item.go", " || item.Attempt != m.Attempt || item.State != ItemOpen && item.State != ItemFailed {", " || item.Attempt != m.Attempt {"}},
		tests: []string{"ledger.TestALateQuestionLeavesTheItemAsItIs"},
	},
	{
		promise: "A re-run that claims a new identity of an operation", how: "what comes by itself after a run's first claim is no drift",
		edits: []edit{{"ledger/drift.go", " || m.Queued() || m.Watching || c.sending(m, 0)\n", "\n"}},
		tests: []string{"ledger.TestDriftIsLookedForWhileSomethingMayComeByItself"},
	},
	{
		promise: "The newest is undone first", how: "an undo that is given up holds older ones up once that is acknowledged",
		edits: []edit{{"ledger/undo.go", "return m.Escalated() || m.Escalation != nil", "return m.Escalated() || m.Escalation == nil && m.Undo == nil"}},
		tests: []string{"ledger.TestAnOlderEffectDoesNotWaitForAnUndoThatIsGivenUp"},
	},
	{
		promise: "A waived one is never sent", how: "what a person calls failed can be waived whatever is under way",
		edits: []edit{{"ledger/undo.go", "return len(rest.Dispatches) == 0 || Deniable(&rest, now, process, false)", "return rest.Undo != nil"}},
		tests: []string{"ledger.TestAnUndoThatIsCalledFailedIsNotWaivedWhileItIsSent"},
	},
	{
		promise: "`permission` and `precondition` also open an escalation", how: "a grace that a stop ends asks nobody",
		edits: []edit{{"ledger/endrun.go", "\tif graced {\n", "\tif graced && e.failed {\n"}},
		tests: []string{"ledger.TestTheGrace"},
	},
	{
		promise: "An outcome that the ledger doesn't take is unknown", how: "what the runner can't record stops nothing",
		edits: []edit{{"reconcilers/record.go", "\tr.unrecorded.Add(m, \"\", ledger.Over{})\n", ""}},
		tests: []string{"reconcilers.TestARedispatchWhoseEndIsNotRecordedStopsWhatDependsOnIt"},
	},
	{
		promise: "An outcome that the ledger doesn't take is unknown", how: "only what the disk refused is offered again",
		edits: []edit{{"reconcilers/record.go", "return err == nil ||", "return !errors.Is(err, ledger.ErrUnavailable) ||"}},
		tests: []string{"reconcilers.TestOutcomeOfAResendIsOfferedUntilItIsDurable"},
	},
	{
		promise: "Refused before anything is sent: dot segments", how: "what content overrides isn't looked at in a mutation",
		edits: []edit{{"proxy/mutate.go", "if problem := m.Judge(req); problem != nil {", "if problem := m.Judge(req); problem != nil && p == nil {"}},
		tests: []string{"proxy.TestRefusalsSendNothing"},
	},
	{
		promise: "Refused before anything is sent: dot segments", how: "several segments hide an escaped slash",
		edits: []edit{{"rules/matching.go", "m.Operation.joinsSlash(&req.path) {", "m.Operation.joinsSlash(&req.path) && req == nil {"}},
		tests: []string{"rules.TestAnEscapedSlashWithinSeveralSegmentsIsRefused"},
	},
	{
		promise: "Refused before anything is sent: dot segments", how: "loops read names in another case",
		edits: []edit{{"rules/variant.go", "\tif e.roams {\n", "\tif e.roams && e == nil {\n"}},
		tests: []string{"rules.TestNamesThatDifferInCaseAreSeenInLoops"},
	},
	{
		promise: "Refused before anything is sent: dot segments", how: "the elements of a list that is the whole body may have names in another case",
		edits: []edit{{"rules/expr.go", "&& (len(r.steps) > 0 || e.roams)\n", "&& len(r.steps) > 0\n"}},
		tests: []string{"rules.TestNamesThatDifferInCaseAreSeenWhereverTheyAreRead"},
	},
	{
		promise: "A body counts as JSON if it is declared so", how: "whatever is JSON is compared as JSON",
		edits: []edit{{"rules/payload.go", "case c.typed || op.namesJSON:", "case true:"}},
		tests: []string{"rules.TestWhatIsNotDeclaredAsJSONIsComparedByItsBytes"},
	},
	{
		promise: "Of a path or host variable of which identity takes a part", how: "any mention of a variable makes it identity alone",
		edits: []edit{{"rules/payload.go", "op.identifiesWhole(root, name)", "op.identifies(root, name)"}},
		tests: []string{"rules.TestTheRestOfAPathVariableIsPayload"},
	},
	{
		promise: "Of a path or host variable of which identity takes a part", how: "a path that no pattern takes apart doesn't count",
		edits: []edit{{"rules/matching.go", "return map[string]string{wholePath: req.path.plain()}, true", "return nil, req != nil"}},
		tests: []string{"rules.TestThePathOfAMatchWithoutOneIsPayload"},
	},
	{
		promise: "Those don't pass if servers may take them for a GET", how: "a HEAD of what a GET changes passes as a read",
		edits: []edit{{"rules/matching.go", "if op := c.resembling(req, m.Host, nil); op != nil {", "if op := c.resembling(req, m.Host, nil); op != nil && req.Method != http.MethodHead {"}},
		tests: []string{"rules.TestWhatResemblesAMutatingGETIsNoRead"},
	},
	{
		promise: "Those don't pass if servers may take them for a GET", how: "a slash at its end makes a read of a GET that changes something",
		edits: []edit{{"rules/resembling.go", "loose := *p, path{wire: at.wire, slash: p.slash}", "loose := *p, path{wire: at.wire, slash: at.slash}"}},
		tests: []string{"rules.TestWhatResemblesAMutatingGETIsNoRead"},
	},
	{
		promise: "Those don't pass if servers may take them for a GET", how: "what resembles a mutation passes by the rule for all else",
		edits: []edit{{"rules/matching.go", "if op := c.resembling(req, m.Host, m.Operation); op != nil {", "if op := c.resembling(req, m.Host, m.Operation); op != nil && m.Effect == EffectDeny {"}},
		tests: []string{"rules.TestWhatResemblesAMutationIsNoReadOfAllElse"},
	},
	{
		promise: "another spelling of the same request", how: "a large whole number is another text where it has a point",
		edits: []edit{{"rules/celenv.go", "case !ok || f != math.Trunc(f) ||", "case !ok || f == math.Trunc(f) ||"}},
		tests: []string{"rules.TestATextOfANumberDoesNotDependOnHowItIsWritten"},
	},
	{
		promise: "A body counts as JSON if it is declared so", how: "the boundary of a multipart body is part of it",
		edits: []edit{{"rules/multipart.go", "closed = ends\n", "closed = ends && at < 0\n"}},
		tests: []string{"rules.TestAFormWithAFileIsTheSameMutationAtTheNextRun"},
	},
	{
		promise: "Where another mutation of the operation, under whatever name", how: "what another one was answered for counts by its content",
		edits: []edit{{"reconcilers/alike.go", "o.Tie != rules.TieContent ||", "o.Tie == rules.TieContent ||"}},
		tests: []string{"reconcilers.TestWhatAnotherMutationMayHaveMadeIsNotTakenByItsContent"},
	},
	{
		promise: "Where another mutation of the operation, under whatever name", how: "what ended without an answer took effect before its end",
		edits: []edit{{"ledger/alike.go", "(!succeeded || !before)", "(!before || succeeded && m == nil)"}},
		tests: []string{"reconcilers.TestWhatWasAnsweredBeforeTheClaimMadeNothingAfterIt"},
	},
	{
		promise: "Where another mutation of the operation, under whatever name", how: "what was made in a gap is ours",
		edits: []edit{{"ledger/since.go", "if why, err := l.gapSince(ctx, &m.Dispatches[0]); err != nil || why != \"\" {", "if why, err := l.gapSince(ctx, &m.Dispatches[0]); err != nil || why == \"\" && told == nil {"}},
		tests: []string{"ledger.TestWhatWasMadeInAGapIsNobodys"},
	},
	{
		promise: "Those of earlier runs of which it was given", how: "a run finishes before a 202 that it was given has ended",
		edits: []edit{{"ledger/finishrun.go", "range slices.Concat(given, keys) {", "range slices.Concat(given[len(given):], keys) {"}},
		tests: []string{"ledger.TestAnItemIsNotClosedOverWhatIsFollowed", "ledger.TestARunOfManyItemsWaitsForWhatItWasGiven"},
	},
	{
		promise: "where the script's request carried a credential", how: "an empty list is an absence to whoever asks",
		edits: []edit{{"reconcilers/try.go", "t.unauthorised = slices.Concat(left,", "t.unauthorised = slices.Concat(left[len(left):],"}},
		tests: []string{"reconcilers.TestAnAbsenceIsNotBelievedOfWhoAsksWithoutACredential"},
	},
	{
		promise: "A connection on which a client logged in", how: "what somebody logged in on is kept for everybody",
		edits: []edit{{"upstream/bound.go", "key := r.endpoint()\n\tif r.binds {", "key := r.endpoint()\n\tif r.binds && key.client != nil {"}},
		tests: []string{"upstream.TestAConnectionThatSomebodyLoggedInOnIsNoOthers"},
	},
	{
		promise: "It ends after `max_attempts` tries that reached the API", how: "a resend that reaches nobody is made for ever",
		edits: []edit{{"reconcilers/resend.go", "s.ledger.Process()) >= s.settings.MaxAge {", "s.ledger.Process()) >= beyond {"}},
		tests: []string{"reconcilers.TestAResendThatReachesNobodyEndsWithAPerson"},
	},
	{
		promise: "It ends after `max_attempts` tries that reached the API", how: "resends are no running time",
		edits: []edit{{"ledger/resend.go", "\t\tm.RunningAge += max(r.Ran, 0)\n", ""}},
		tests: []string{"reconcilers.TestAResendThatReachesNobodyEndsWithAPerson"},
	},
	{
		promise: "no cache answered, which an `Age`", how: "what a cache answers is an absence",
		edits: []edit{{"reconcilers/probe.go", "age != \"0\" {", "age == \"\" {"}},
		tests: []string{"reconcilers.TestAbsenceByACacheIsRetry"},
	},
	{
		promise: "What a cache has from before that sending", how: "a look believes what was there before",
		edits: []edit{{"reconcilers/watch.go", "t.asLooked(s, all.ages, at)", "t.asLooked(s, nil, at)"}},
		tests: []string{"reconcilers.TestALookAtWhatACacheHasFromBeforeTheSendingShowsNothing"},
	},
	{
		promise: "What a cache has from before that sending", how: "an earlier sending that failed was the one that is followed",
		edits: []edit{{"reconcilers/claimed.go", "d.Verdict == ledger.VerdictAccepted {", "d == &m.Dispatches[0] {"}},
		tests: []string{"reconcilers.TestALookAtWhatACacheHasFromBeforeTheSendingShowsNothing"},
	},
	{
		promise: "It *agrees* if the effect is there, and no cache said so", how: "several that are alike are still there by a cache's word",
		edits: []edit{{"reconcilers/aged.go", "ledger.SeenApplied || s.seen == ledger.SeenDuplicate && !s.strong):", "ledger.SeenApplied):"}},
		tests: []string{"reconcilers.TestVerifyingTakesNoCachesWordForSeveral"},
	},
	{
		promise: "What a cache shows from before the first sending", how: "a state of before the sending is taken for its effect",
		edits: []edit{{"reconcilers/aged.go", "!s.strong && slices.ContainsFunc(ages, t.mayPrecede)", "false && slices.ContainsFunc(ages, t.mayPrecede)"}},
		tests: []string{"reconcilers.TestWhatACacheHasFromBeforeTheSendingIsNotTakenForIt"},
	},
	{
		promise: "What a cache shows from before the first sending", how: "an age is taken for exact, though it is in whole seconds",
		edits: []edit{{"reconcilers/aged.go", "seconds+1", "seconds"}},
		tests: []string{"reconcilers.TestWhatACacheHasFromBeforeTheSendingIsNotTakenForIt"},
	},
	{
		promise: "Where another mutation of the operation, under whatever name", how: "what was sent under another name of the operation isn't thought of",
		edits: []edit{{"ledger/alike.go", "other.Operation == m.Operation || other.ConnectorHash != m.ConnectorHash", "other.Operation == m.Operation"}},
		tests: []string{"reconcilers.TestWhatAnotherMutationMayHaveMadeIsNotTakenByItsContent"},
	},
	{
		promise: "It *agrees* if the effect is there, and no cache said so", how: "what a cache shows is still there",
		edits: []edit{{"reconcilers/aged.go", "case t.verifies && (", "case false && ("}},
		tests: []string{"reconcilers.TestVerifyingTakesNoCachesWord"},
	},
	{
		promise: "With `content`, objects created before the claim", how: "what was made after a sending that failed is ours",
		edits: []edit{{"reconcilers/claimed.go", "!d.Verdict.Failure() {", "d.ID != \"\" {"}},
		tests: []string{"reconcilers.TestWhatWasMadeBeforeTheSendingThatIsUnknownIsNotOurs"},
	},
	{
		promise: "the rule says `absence_is_proof`: a strong read by key", how: "conditions find absent what is on the next page",
		edits: []edit{{"rules/observation.go", "if a.cut && (o.Seen == SeenAbsent ||", "if a.cut && (o.Seen == SeenAbsent && !a.done ||"}},
		tests: []string{"rules.TestNoStateIsAbsentByOnePageOfSeveral"},
	},
	{
		promise: "Once it was sent `max_dispatches` times (2)", how: "an account that isn't told for a while gives a sending up",
		edits: []edit{{"reconcilers/redispatch.go", "s.reached && !untold, err)", "s.reached || untold, err)"}},
		tests: []string{"reconcilers.TestASendingWaitsForTheAccountToBeTold"},
	},
	{
		promise: "Settings that are more careful than when a mutation was sent", how: "a state is set again by the settle of before",
		edits: []edit{{"reconcilers/natural.go", "\tm.Policy = m.Policy.Heeding(cautionOf(t.operation))\n", ""}},
		tests: []string{"reconcilers.TestWhatIsSentByItselfHeedsTheSettingsOfNow"},
	},
	{
		promise: "Settings that are more careful than when a mutation was sent", how: "an undo goes out by the settle of before",
		edits: []edit{{"ledger/undo.go", "of.Policy.Heeding(now)", "of.Policy.Heeding(Caution{OnAbsent: now.OnAbsent})"}},
		tests: []string{"reconcilers.TestWhatIsSentByItselfHeedsTheSettingsOfNow"},
	},
	{
		promise: "The generation rises at the next claim only if", how: "what was accepted and failed keeps its key",
		edits: []edit{{"ledger/observe.go", "d := m.failFollowed(); d != nil && d.Redispatch", "d := m.Current(); d != nil && d.Redispatch"}},
		tests: []string{"ledger.TestWhatWasAcceptedAndFailedIsSentUnderAnotherKey"},
	},
	{
		promise: "where the script's request carried a credential", how: "an empty list is an absence to whoever asks without the key of the query",
		edits: []edit{{"reconcilers/try.go", "slices.Concat(left, maskedQuery(of.Request.URL))", "slices.Concat(left, maskedQuery(\"\"))"}},
		tests: []string{"reconcilers.TestAnAbsenceIsNotBelievedOfWhoAsksWithoutTheKeyOfTheQuery"},
	},
	{
		promise: "Then by the runner, with growing waits", how: "a rate limit by 403 is asked against",
		edits: []edit{{"reconcilers/probe.go", "wait > 0 && r.status >= http.StatusMultipleChoices {", "wait > 0 && r.status == http.StatusTooManyRequests {"}},
		tests: []string{"reconcilers.TestRetryAfterIsObeyed"},
	},
	{
		promise: "the rule says `absence_is_proof`: a strong read by key", how: "a page of a proxy is a listing with nothing in it",
		edits: []edit{{"rules/answer.go", "return a.asked && a.parsed.json == nil &&", "return a.asked && a.parsed.json != nil && a.parsed.json == nil &&"}},
		tests: []string{"rules.TestAnAnswerWithoutJSONIsNoListing"},
	},
	{
		promise: "Without that credential a state that was told by conditions", how: "what isn't shown to whoever asks is gone",
		edits: []edit{{"reconcilers/probe.go", "if len(t.unauthorised) == 0 || s.seen ==", "if len(t.unauthorised) == 0 || s.seen != ledger.SeenAbsent || s.seen =="}},
		tests: []string{
			"reconcilers.TestAStateIsNotBelievedOfWhoAsksWithoutACredential", "reconcilers.TestAnEndIsNotBelievedOfWhoLooksWithoutACredential",
		},
	},
	{
		promise: "What of it has not left this machine", how: "what was written goes on after the end of a sending",
		edits: []edit{{"upstream/wire.go", "\t\tsec = 0\n", "\t\tsec = -1\n"}},
		tests: []string{"upstream.TestNothingArrivesAfterTheEndOfASending", "upstream.TestASendingEndsWithItsProcess"},
	},
	{
		promise: "A person who acknowledges a drift", how: "a drift of an attempt that is over is accepted for the next one",
		edits: []edit{{"ledger/drift.go", "if err != nil || item.Attempt != m.Attempt {", "if err != nil {"}},
		tests: []string{"ledger.TestADriftIsAcceptedForItsOwnAttempt"},
	},
	{
		promise: "Where the rule says nothing, or can't be evaluated", how: "a place of a form's list counts wherever it stands",
		edits: []edit{{"rules/pairs.go", "i >= 0 {\n\t\treturn name[:i+len(\"[]\")]", "i >= 0 {\n\t\treturn name"}},
		tests: []string{"rules.TestPayloadsAreCompared"},
	},
	{
		promise: "A difference is *equivalent*", how: "white space beside elements that nobody knows doesn't count",
		edits: []edit{{"rules/markup.go", "block := blocks[n.DataAtom]\n", "block := blocks[n.DataAtom] || n.DataAtom == 0\n"}},
		tests: []string{"rules.TestPayloadsAreCompared"},
	},
	{
		promise: "With `none`, as in a run of an item that is done", how: "what no rule declares is let through",
		edits: []edit{{"proxy/pipeline.go", "if passes && p.readsOnly(x.caller) {", "if passes && p.readsOnly(caller{}) {"}},
		tests: []string{"proxy.TestARunThatReadsOnlyIsHeldToItWhereNoRuleIs"},
	},
	{
		promise: "A known restore (`serve --restored SINCE`)", how: "a restore whose moment is an unset variable is an ordinary start",
		edits: []edit{{"cmd/keep-proxy/emptied.go", "f.Value.String() == \"\"", "f.Value.String() == \" \""}},
		tests: []string{"cmd/keep-proxy.TestAFlagWithoutAValueIsRefused"},
	},
	{
		promise: "Until a person confirms it (`ledger confirm`", how: "an item that is left empty confirms its workflow",
		edits: []edit{{"admin/routes.go", "shape{whole: []string{\"item\"}}", "shape{whole: nil}"}},
		tests: []string{"admin.TestConfirmingAGapRefuses"},
	},
	{
		promise: "Until a person confirms it (`ledger confirm`", how: "an item whose variable is not set confirms its workflow",
		edits: []edit{{"cmd/keep-proxy/emptied.go", "\"data-dir\", \"item\",", "\"data-dir\","}},
		tests: []string{"cmd/keep-proxy.TestAFlagWithoutAValueIsRefused"},
	},
	{
		promise: "A mutation costs two synced commits", how: "the tables of a ledger beside are taken for those of this one",
		edits: []edit{{"ledger/badgerstore/quarantine.go", "filesIn(opt.Dir, tableSuffix)", "filepath.Glob(filepath.Join(opt.Dir, \"*\"+tableSuffix))"}},
		tests: []string{"ledger/badgerstore.TestALedgerBesideIsLeftAlone"},
	},
	{
		promise: "When the disk has less than `ledger.min_free` left", how: "a copy of the ledger takes all of its disk",
		edits: []edit{{"ledger/badgerstore/space.go", "uint64(size); free < want {", "uint64(size); free < want && free == 0 {"}},
		tests: []string{"ledger/badgerstore.TestACopyStopsBeforeItsDiskIsFull"},
	},
	{
		promise: "Once the loss is accepted (`ledger accept-loss`), what the high-water file's journal holds", how: "a journal that can't be read just now is given up",
		edits: []edit{{"ledger/badgerstore/putback.go", "\tcase accepted:\n", "\tcase accepted && err == nil:\n"}},
		tests: []string{"ledger/badgerstore.TestAnUnreadableJournalIsNoLossToAccept"},
	},
	{
		promise: "No connector's host is tunnelled blindly", how: "a tunnel stays blind when a reload makes its host a connector's",
		edits: []edit{{"proxy/open.go", "return may == nil || may()", "return may == nil || true"}},
		tests: []string{"proxy.TestAReloadCutsTheBlindTunnelsToAConnectorsHost"},
	},
	{
		promise: "No connector's host is tunnelled blindly", how: "a tunnel that is made during a reload stays blind",
		edits: []edit{{"proxy/open.go", "\ts.mu.Unlock()\n\treturn may()\n", "\ts.mu.Unlock()\n\treturn true\n"}},
		tests: []string{"proxy.TestAReloadWhileABlindTunnelIsMade"},
	},
	{
		promise: "A connection whose rule names its protocol no more", how: "a connection stays what it was changed to",
		edits: []edit{{"proxy/upgrade.go", "return refusal == nil && len(allowed) == len(protocols)", "return refusal == nil || len(allowed) < len(protocols)"}},
		tests: []string{"proxy.TestAReloadCutsAConnectionWhoseRuleNamesItsProtocolNoMore"},
	},
	{
		promise: "No connector's host is tunnelled blindly", how: "nobody tells the proxy of a reload",
		edits: []edit{{"app/reload.go", "\ta.proxy.Reloaded()\n", ""}},
		tests: []string{"app.TestAReloadUncoversABlindTunnel"},
	},
	{
		promise: "It is set durably at the head of a successful answer", how: "what decides once the body is whole is taken for false before",
		edits: []edit{{"rules/judge.go", "if o.when.readsName(\"response\", \"complete\") {", "if o.when.readsName(\"response\", \"complete\") && o.kind == OpinionNone {"}},
		tests: []string{"proxy.TestALateBodyThatDecidesIsAwaited"},
	},
	{
		promise: "The script's own `Accept-Encoding` doesn't reach the API", how: "what is sent again accepts what the script accepted",
		edits: []edit{{"reconcilers/resend.go", "\theader[\"Accept-Encoding\"] = []string{\"identity\"}\n", ""}},
		tests: []string{"reconcilers.TestNoContentCodingIsAskedForAgain"},
	},
	{
		promise: "The script's own `Accept-Encoding` doesn't reach the API", how: "a coded answer to a resend is kept as it came",
		edits: []edit{{"reconcilers/resend.go", "request, limit).uncoded(limit)", "request, limit)"}},
		tests: []string{"reconcilers.TestACodedAnswerToAResend"},
	},
	{
		promise: "A damaged value stops the ledger; a damaged long body", how: "who decides on a record needs its damaged content",
		edits: []edit{{"admin/mutations.go", "\t\tshown.Missing = wire.MissingDamaged\n", "\t\treturn err\n"}},
		tests: []string{"admin.TestARecordIsShownAndDecidedOnWithoutItsContent"},
	},
	{
		promise: "A damaged value stops the ledger; a damaged long body", how: "a damaged value that holds content is refused alone",
		edits: []edit{{"ledger/badgerstore/bodyread.go", "\tif isDamage(err) {\n\t\tr.store.poison(err)\n\t}\n", ""}},
		tests: []string{"ledger/badgerstore.TestADamagedValueOfABodyStopsTheStore"},
	},
	{
		promise: "Escalations say what was attempted", how: "what never left this machine counts as sent",
		edits: []edit{{"admin/narrate.go", "case d.Verdict != ledger.VerdictNotSent:", "default:"}},
		tests: []string{"admin.TestWhatDidNotLeaveThisMachineIsNotCountedAsSent"},
	},
	{
		promise: "Escalations say what was attempted", how: "a person who skips isn't told that the rule may let the script on",
		edits: []edit{{"ledger/actions.go", "\"unless the rule says what they get (on_skip).\"", "\"whatever they ask for.\""}},
		tests: []string{"ledger.TestWhoLeavesNoResultIsToldThatTheRuleMayHaveOne"},
	},
	{
		promise: "A 202 (RFC 9110 §15.3.3) of a rule with `watch`", how: "the time of looking counts from when the outcome became unknown",
		edits: []edit{{"ledger/effect.go", "\t\t\tm.UnknownSince = mv.now // The", "\t\t\t_ = mv.now // The"}},
		tests: []string{"ledger.TestWhatIsAcceptedLateIsFollowedForAllOfItsTime"},
	},
	{
		promise: "Once it was sent `max_dispatches` times (2)", how: "nobody is told of what was sent again, accepted, and failed",
		edits: []edit{{"ledger/observe.go", "d != nil && d.Redispatch {", "d != nil && d.Redispatch && m.Class == \"\" {"}},
		tests: []string{"ledger.TestWhatWasSentAgainAcceptedAndFailedIsTold"},
	},
	{
		promise: "An undo that is owed (§6) counts like any other", how: "a restore calls off what is to be undone by itself",
		edits: []edit{{"ledger/gap.go", "m.Queued() && m.Undo == nil:", "m.Queued():"}},
		tests: []string{"ledger.TestWhatIsUndoneByItselfStaysSoAfterAGap"},
	},
	{
		promise: "If two are found, or a stored version can't be read", how: "which record is meant is asked only where nothing else is",
		edits: []edit{{"ledger/past.go", "if first.asked() != EscalationAmbiguous &&", "if !first.Escalated() &&"}},
		tests: []string{"ledger.TestWhichOfTwoRecordsIsMeantIsAskedBesideAnotherQuestion"},
	},
	{
		promise: "keep-proxy makes it from the mutation key and a generation", how: "what was sent without a key never gets one",
		edits: []edit{{"ledger/replay.go", "if failed || c.m.VendorKey == \"\" {", "if failed {"}},
		tests: []string{"ledger.TestWhatWasSentWithoutAKeyGetsOneByTheRuleOfNow"},
	},
	{
		promise: "A request that comes meanwhile waits for it.", how: "a caller that doesn't wait so long ends its run",
		edits: []edit{{"proxy/settle.go", "return again, !again && client.Err() != nil", "return again, false"}},
		tests: []string{"proxy.TestACallerThatLeavesWaitsForNothingThatIsSentAgain"},
	},
	{
		promise: "A decision needs an actor, a reason, and the record's version", how: "an item is skipped with its mutations, whatever it has become",
		edits: []edit{{"ledger/decideitem.go", "\t\t\td.Version = barred //", "\t\t\td.Version = barred - barred //"}},
		tests: []string{"ledger.TestSkippingWithMutationsHeedsTheVersionThatWasSeen"},
	},
}
