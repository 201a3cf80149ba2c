package main

// namedBreaks break lines of which it was only known that a test is named after them. Each of
// the tests was written, or was seen to fail, because of the break.
var namedBreaks = []broken{
	{
		promise: "The record becomes `failed` and is queued", how: "a redispatch of an item that is done goes out",
		edits: []edit{{"ledger/redispatch.go", "case item.State != ItemOpen && item.State != ItemFailed:", `case item.State == "":`}},
		tests: []string{"ledger.TestAQueuedRedispatchGivesWay"},
	},
	{
		promise: "Whatever else moves the record", how: "what was called off is sent all the same",
		edits: []edit{{"ledger/redispatch.go", "m.State != Failed || m.RedispatchSince.IsZero()", "m.State != Failed"}},
		tests: []string{"ledger.TestACalledOffRedispatchStaysFailedAndIsTold"},
	},
	{
		promise: "What goes out is the stored request, under the same vendor key", how: "a redispatch doesn't look at what its generation carried",
		edits: []edit{{"ledger/redispatch.go", "case m.carriesOther(m.PayloadDigest):", `case m.Version < 0:`}},
		tests: []string{"ledger.TestTheStoredRequestIsThatOfTheLastSending"},
		kept:  "a claim takes no other payload while a generation is open",
	},
	{
		promise: "The newest is undone first", how: "of two that are queued the older one goes out first",
		edits: []edit{{"ledger/redispatch.go", "if newer != nil {", "if newer != nil && m.Undo == nil {"}},
		tests: []string{"ledger.TestTheOlderOfTwoThatAreQueuedWaits"},
	},
	{
		promise: "It needs no open item", how: "an undo waits for its item",
		edits: []edit{{"ledger/redispatch.go", "if m.Undo != nil {\n\t\treturn \"\", nil", "if m.Undo != nil && m.Version < 0 {\n\t\treturn \"\", nil"}},
		tests: []string{"ledger.TestAnUndoNeedsNoOpenItem"},
	},
	{
		promise: "A waived one is never sent", how: "an undo is waived while it may take effect",
		edits: []edit{{"ledger/undo.go", "quietAsFailed(m, now, process) || Deniable(m, now, process, false)", "quietAsFailed(m, now, process) || Deniable(m, now, process, true)"}},
		tests: []string{"ledger.TestAnUndoThatMayStillTakeEffectIsNotWaived"},
	},
	{
		promise: "An undo that is owed (§6) counts like any other", how: "what may have been undone in a gap is undone",
		edits: []edit{{"ledger/redispatch.go", "if gap != nil {", "if gap != nil && m.Undo == nil {"}},
		tests: []string{"ledger.TestWhatIsOwedMayHaveBeenUndoneInAGap"},
	},
	{
		promise: "An undo that is owed (§6) counts like any other", how: "what may have been undone in a gap is sent again to ask",
		edits: []edit{{"ledger/gap.go", "m.ResendTries, m.ResendClosed = 0, true", "m.ResendTries, m.ResendClosed = 0, false"}},
		tests: []string{"ledger.TestWhatIsOwedMayHaveBeenUndoneInAGap"},
	},
	{
		promise: "At most three, and none after one that met a failure verdict", how: "settings whose process was lost aren't counted",
		edits: []edit{{"ledger/natural.go", "m.ResendTries < m.maxResends() &&\n", "m.ResendTries >= 0 &&\n"}},
		tests: []string{"ledger.TestLostResendsCountToo"},
	},
	{
		promise: "Only once `settle` of every sending before it is over", how: "a later setting is looked for on the first page",
		edits: []edit{{"ledger/since.go", `filter.Cursor = page.Next; filter.Cursor == "" {`, `filter.Cursor = page.Next; filter.Limit > 0 {`}},
		tests: []string{"ledger.TestALaterSettingIsLookedForOnEveryPage"},
	},
	{
		promise: "Only once `settle` of every sending before it is over", how: "what can't be looked through holds no later setting",
		edits: []edit{{"ledger/since.go", `return "too many mutations were made since to look through", nil`, `return "", nil`}},
		tests: []string{"ledger.TestALaterSettingIsLookedForOnEveryPage"},
	},
	{
		promise: "Only once `settle` of every sending before it is over", how: "a gap that was confirmed hides no later setting",
		edits: []edit{{"ledger/since.go", "gaps[i].Open() || gaps[i].Number > first.Gaps", "gaps[i].Open()"}},
		tests: []string{"reconcilers.TestAStateThatWasChangedSinceIsNotSetAgain"},
	},
	{
		promise: "Only once `settle` of every sending before it is over", how: "a ledger that can't tell knows of no later setting",
		edits: []edit{{"reconcilers/natural.go", "case err != nil:\n\t\treturn s.observe(", "case err != nil && !t.inline && t.inline:\n\t\treturn s.observe("}},
		tests: []string{"reconcilers.TestNothingIsSetAgainWhileTheLedgerCannotTell"},
	},
	{
		promise: "All of this is read again before byte one", how: "a ledger that can't tell before byte one knows of no later setting",
		edits: []edit{{"reconcilers/natural.go", "if err != nil {\n\t\treturn fmt.Errorf(", "if err != nil && t.mutation == nil {\n\t\treturn fmt.Errorf("}},
		tests: []string{"reconcilers.TestNothingIsSetAgainWhileTheLedgerCannotTell"},
	},
	{
		promise: "All of this is read again before byte one", how: "the time isn't read again before byte one",
		edits: []edit{{
			"reconcilers/natural.go", "if !ledger.NaturalOpen(t.mutation, s.now(), s.ledger.Process()) {\n\t\treturn errors",
			"if t.mutation == nil {\n\t\treturn errors",
		}},
		tests: []string{"reconcilers.TestAStateWhoseTimeIsOverBeforeByteOneIsNotSetAgain"},
	},
	{
		promise: "Only where `age + deadline + settle < 0.9 × window`", how: "a resend is sent before it is recorded",
		edits: []edit{{
			"reconcilers/resend.go", "\tid := s.newID()\n", "\tid := s.newID()\n\ts.send(context.WithoutCancel(ctx), t, request, ledger.Dispatch{})\n",
		}},
		tests: []string{"reconcilers.TestResendThatCannotBeRecordedIsNotSent"},
	},
	{
		promise: "A 202 (RFC 9110 §15.3.3) of a rule with `watch`", how: "what was accepted is followed by the wall clock alone",
		edits: []edit{{"ledger/watch.go", "c.now.Age(m.UnknownSince) >=", "c.now.Wall.Sub(m.UnknownSince.Wall) >="}},
		tests: []string{"ledger.TestAWatchEndsByTheClockThatPassedMore"},
	},
	{
		promise: "A 202 whose body was cut", how: "what was accepted counts as applied where its answer can't be kept",
		edits: []edit{{"proxy/conclude.go", "if s.dispatch.Verdict == ledger.VerdictAccepted {", `if s.dispatch.Verdict == "" {`}},
		tests: []string{"proxy.TestA202WhoseAnswerCantBeKeptIsUnknown"},
	},
	{
		promise: "A 202 whose body was cut", how: "a resend whose 202 was cut is a success",
		edits: []edit{{"reconcilers/watch.go", "\treturn unfollowed\n}", "\td.Verdict = ledger.VerdictCommitted\n\treturn v\n}"}},
		tests: []string{"reconcilers.TestAResendWhose202IsCutIsUnknown"},
	},
	{
		promise: "Then by the runner, with growing waits", how: "what was accepted is looked at before a Retry-After",
		edits: []edit{{"reconcilers/watch.go", "if notBefore.After(at) {", "if notBefore.After(at) && m == nil {"}},
		tests: []string{"reconcilers.TestTheNextLookIsNotBeforeItsRetryAfter"},
	},
	{
		promise: "and asking the API with credentials of another account", how: "an undo goes out under another account",
		edits: []edit{
			{"reconcilers/try.go", "if err == nil {\n\t\treached, err = r.sameAccount(", "if err == nil && t.undo == nil {\n\t\treached, err = r.sameAccount("},
			{"reconcilers/undo.go", "if err := r.underAccount(ctx, t, header); err != nil {", "if err := r.underAccount(ctx, t, header); err != nil && t.undo == nil {"},
		},
		tests: []string{"reconcilers.TestAnUndoIsNotSentUnderAnotherAccount"},
	},
	{
		promise: "A record in flight has an owner", how: "a sending that panics before it begins is left in flight",
		edits: []edit{{"reconcilers/redispatch.go", "finish, v = r.unsent(t, moved, d, errors.New(t.broken(p)))", "panic(p)"}},
		tests: []string{"reconcilers.TestASendingThatPanicsBeforeItBeginsHasAnEnd"},
	},
	{
		promise: "If the ledger can't record the claim, nothing is sent", how: "what can't be kept of a request is sent all the same",
		edits: []edit{{"proxy/settle.go", "stored, err := w.kept.spool.Keep(ctx)\n\tif err != nil {", "stored, err := w.kept.spool.Keep(ctx)\n\tif err != nil && w == nil {"}},
		tests: []string{"proxy.TestARequestWhoseContentCantBeKeptIsNotSent"},
	},
	{
		promise: "During the inline try, and then for `proxy.hold`, requests wait instead", how: "a try that has just ended refuses a request",
		edits: []edit{{"proxy/settle.go", "if !until.asked && slices", "if until.asked && slices"}},
		tests: []string{"proxy.TestAnInlineTryThatEndsAsTheGateIsAskedRefusesNobody"},
	},
	{
		promise: "During the inline try, and then for `proxy.hold`, requests wait instead", how: "a try that has just ended cuts a stream",
		edits: []edit{{"proxy/cut.go", "if a.Hold && !p.inline.trying(", "if a.Open && !p.inline.trying("}},
		tests: []string{"proxy.TestAnInlineTryThatEndsAsTheGateIsAskedRefusesNobody"},
	},
	{
		promise: "the rule says `absence_is_proof`: a strong read by key", how: "only the last of several links may lead to the next page",
		edits: []edit{{"rules/link.go", "if relatesNext(params) {", `if relatesNext(params) && rest == "" {`}},
		tests: []string{"rules.TestALinkToTheNextPageIsNotOverlooked"},
	},
	{
		promise: "Several objects that carry our vendor key or marker", how: "the newest of several is the result",
		edits: []edit{{"rules/observation.go", `" are ours", found[0].result`, `" are ours", found[len(found)-1].result`}},
		tests: []string{"rules.TestTheResultOfADuplicateIsTheOldestOnes"},
	},
	{
		promise: "is damaged: every value has a checksum", how: "a high-water file without a mark is another ledger's",
		edits: []edit{{"ledger/badgerstore/highwater.go", "case errFirst != nil && errSecond != nil:", "case errFirst != nil && errSecond == nil && path == \"\":"}},
		tests: []string{"ledger/badgerstore.TestAHighWaterFileWithoutAMarkIsDamaged"},
	},
	{
		promise: "If a sync fails, or hasn't ended after 30 s", how: "a log whose sync failed is taken for synced",
		edits: []edit{{"ledger/badgerstore/persist.go", "if err := s.log.sync(); err != nil {", "if err := s.log.sync(); err != nil && s.log == nil {"}},
		tests: []string{"ledger/badgerstore.TestALogWhoseSyncFailsStopsTheLedger"},
	},
	{
		promise: "If a sync fails, or hasn't ended after 30 s", how: "a log whose sync failed lets the journal be emptied",
		edits: []edit{{"ledger/badgerstore/giving.go", "if err := s.log.sync(); err != nil {", "if err := s.log.sync(); err != nil && s.log == nil {"}},
		tests: []string{"ledger/badgerstore.TestALogWhoseSyncFailsStopsTheLedger"},
	},
	{
		promise: "Settle of what is followed is at least as long as it may take", how: "what is followed may be believed absent before",
		edits: []edit{{"rules/loadwatch.go", "op.Settle = max(op.Settle, w.Max)", "op.Settle = max(op.Settle, w.Every)"}},
		tests: []string{"rules.TestWhatIsFollowedSettlesNoSoonerThanItMayTake"},
	},
	{
		promise: "Settle of what is followed is at least as long as it may take", how: "of two ends at once the good one is taken",
		edits: []edit{{"rules/watch.go", "case holds[1] && holds[2]:", "case holds[1] && holds[2] && !holds[0]:"}},
		tests: []string{"rules.TestALookIsPendingUnlessItIsClear"},
	},
	{
		promise: "The rule file of the claim, kept in the ledger by its hash", how: "a program's credential doesn't grow old while the machine sleeps",
		edits: []edit{{"app/credentials.go", "c.clock.Boot() < given.until", "c.clock.Mono() < given.until"}},
		tests: []string{"app.TestAProgramGivesTheCredentialForAWhile"},
	},
	{
		promise: "If the upstream cuts an answer, so does the proxy", how: "what is cut while it is read ends as if it were whole",
		edits: []edit{{"proxy/pass.go", "if errors.Is(err, io.EOF) && u.ctx.Err() != nil {", "if errors.Is(err, io.EOF) && u.ctx == nil {"}},
		tests: []string{"proxy.TestAStreamThatEndsBecauseItIsCutIsNotWhole"},
	},
	{
		promise: "Mutations are read whole (beyond `max_body`: 413", how: "a body that told the rule is not bounded by it",
		edits: []edit{{"proxy/mutate.go", "if x.body.size() > m.Operation.MaxBody {", "if x.body.size() > p.config.MaxBody {"}},
		tests: []string{"proxy.TestABodyThatTellsTheRuleIsBounded"},
	},
	{
		promise: "There is no retry, no redirect is followed", how: "what isn't safe and has no content goes out by a way that may repeat it",
		edits: []edit{{"proxy/pass.go", "if safe(out.Method) || out.ContentLength != 0 {", "if out.ContentLength >= 0 {"}},
		tests: []string{"proxy.TestWhatIsNotSafeAndHasNoContentIsSentOnce"},
	},
	{
		promise: "With `send` a mutation is sent in steps", how: "a commit is judged by the method of the script's request",
		edits: []edit{{"proxy/steps.go", "\tif s.w.op.Send != nil {\n\t\treturn s.w.op.Send.CommitMethod()", "\tif s.w.op.Send != nil && s.w == nil {\n\t\treturn s.w.op.Send.CommitMethod()"}},
		tests: []string{"proxy.TestACommitIsJudgedByItsOwnMethod"},
	},
	{
		promise: "is another one than `ledger.id` says", how: "the data may say that they are another's",
		edits: []edit{{"ledger/badgerstore/load.go", "if i.ID != s.identity.ID || i.Format > s.identity.Format {", "if i.Format > s.identity.Format {"}},
		tests: []string{"ledger/badgerstore.TestDataOfAnotherLedgerAreNotTaken"},
	},
}
