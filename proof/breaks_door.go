package main

// doorBreaks are lines of the front door that were broken one after the other, and that no
// test held then: shutting down, what waits, and bodies on disks that fill or don't read back.
var doorBreaks = []broken{
	{
		promise: "When the proxy shuts down, what waits is refused", how: "shutting down ends the run of what is held",
		edits: []edit{{"proxy/gate.go", "if p.draining.Load() {\n\t\t\t// Shutting", "if p.draining.Load() && x == nil {\n\t\t\t// Shutting"}},
		tests: []string{"proxy.TestShuttingDownEndsTheHold"},
	},
	{
		promise: "When the proxy shuts down, what waits is refused", how: "shutting down waits for what is held",
		edits: []edit{{"proxy/settle.go", "case <-p.admitting.Done():\n\t\treturn false\n\tcase <-time.After(holdTick):\n\t\treturn true", "case <-time.After(holdTick):\n\t\treturn true"}},
		tests: []string{"proxy.TestHowLongAStoppedRequestIsHeld"},
	},
	{
		promise: "When the proxy shuts down, what waits is refused", how: "a claim that is stopped then ends its run",
		edits: []edit{{"proxy/settle.go", "blockersOf(c), until) || p.draining.Load()", "blockersOf(c), until)"}},
		tests: []string{"proxy.TestAClaimThatIsStoppedWhileShuttingDownEndsNoRun"},
	},
	{
		promise: "When the proxy shuts down, what waits is refused", how: "who has left waits for the whole time of the hold",
		edits: []edit{{"proxy/settle.go", "case <-client.Done():\n\t\treturn false\n\tcase <-p.admitting.Done():\n\t\treturn false\n\tcase <-time.After(holdTick):\n\t\treturn true", "case <-p.admitting.Done():\n\t\treturn false\n\tcase <-time.After(holdTick):\n\t\treturn true"}},
		tests: []string{"proxy.TestWhoHasLeftWaitsForNothing"},
	},
	{
		promise: "A shutdown lets what was claimed be sent", how: "a sending over plain HTTP isn't waited for",
		edits: []edit{{"proxy/server.go", "err := p.outer.Shutdown(ctx)", "err := error(nil)"}},
		tests: []string{"proxy.TestShuttingDownLetsWhatIsUnderWayEnd"},
	},
	{
		promise: "A shutdown lets what was claimed be sent", how: "a sending in a tunnel with HTTP/1.1 isn't waited for",
		edits: []edit{
			{"proxy/server.go", "p.inner.Shutdown(ctx), <-tunnelled)", "p.inner.Shutdown(ctx))"},
			unwaited,
		},
		tests: []string{"proxy.TestShuttingDownLetsWhatIsUnderWayEnd"},
	},
	{
		promise: "A shutdown lets what was claimed be sent", how: "a sending in a tunnel with HTTP/2 isn't waited for",
		edits: []edit{
			{"proxy/server.go", "errors.Join(err, p.inner.Shutdown(ctx), <-tunnelled)", "errors.Join(err, <-tunnelled)"},
			unwaited,
		},
		tests: []string{"proxy.TestShuttingDownLetsWhatIsUnderWayEnd"},
	},
	{
		promise: "A shutdown lets what was claimed be sent", how: "a sending whose client has gone isn't waited for",
		edits: []edit{{"proxy/server.go", "p.working.Wait() // What", "// What"}},
		tests: []string{"proxy.TestShuttingDownLetsADispatchEndWhoseCallerHasGone"},
	},
	{
		promise: "A shutdown lets what was claimed be sent", how: "what nobody would wait for is claimed",
		edits: []edit{{"proxy/mutate.go", "if !p.working.Begin() {", "if !p.working.Begin() && w == nil {"}},
		tests: []string{"proxy.TestNothingIsClaimedThatNobodyWaitsFor"},
	},
	{
		promise: "In a host listed under `proxy.passthrough` the tunnel is blind", how: "a blind tunnel outlives the proxy",
		edits: []edit{{"proxy/server.go", "p.open.sweep(func(_ caller, all streams) { all.cut() })", ""}},
		tests: []string{"proxy.TestClosingLeavesNothing"},
	},
	{
		promise: "A request that comes meanwhile waits for it.", how: "who asks while it is sent again is refused",
		edits: []edit{{"proxy/settle.go", "case redispatched(c):\n", "case redispatched(c) && until == nil:\n"}},
		tests: []string{"proxy.TestARequestWaitsForWhatIsSentAgain"},
	},
	{
		promise: "`in_flight`: waits and gets the same answer, failures too", how: "what is in flight by the rule of before stops who asks by that of now",
		edits: []edit{{"proxy/settle.go", "again = p.awaitLanding(client, w, c.Mutation.Key, until)", "again = false"}},
		tests: []string{"proxy.TestWhatIsInFlightByTheRuleOfBeforeIsWaitedFor"},
	},
	{
		promise: "A success whose body is over the limit is applied", how: "what the rule changed breaks off when its answer turns out to be long",
		edits: []edit{{"proxy/dispatch.go", "\t\tif !s.streaming {\n\t\t\ts.changed", "\t\tif p != nil {\n\t\t\ts.changed"}},
		tests: []string{"proxy.TestWhatWasMarkedGoesOnBesideAnAnswerOverTheLimit"},
	},
	{
		promise: "If it can't record the outcome, the script is told", how: "a run that waited for another's outcome goes on once that can be recorded",
		edits: []edit{{"proxy/settled.go", "\t\t\tp.endLater(x.caller.run, notRecorded(s.mutation.ID))\n", ""}},
		tests: []string{"proxy.TestARunThatJoinedAnUnrecordedOutcomeIsOver"},
	},
	{
		promise: "It is claimed when its turn has come", how: "who leaves while it waits for its turn is sent at once",
		edits: []edit{{"proxy/settle.go", "if f := p.awaitTurn(x.client, w); f != nil {", "if f := p.awaitTurn(x.client, w); f != nil && w == nil {"}},
		tests: []string{"proxy.TestACallerThatLeavesBeforeItsTurnSendsNothing"},
	},
	{
		promise: "In a stopped scope everything is refused", how: "open streams go on for the time of the hold",
		edits: []edit{{"proxy/open.go", "if !s.held {\n\t\treturn true, false", "if !s.held && s.over {\n\t\treturn true, false"}},
		tests: []string{"proxy.TestWhatIsStreamedIsNotHeld"},
	},
	{
		promise: "In a stopped scope everything is refused", how: "a stop before the content is read waits for all of it",
		edits: []edit{{"proxy/spool.go", "if !s.awaits(x.answer, func() { p.expectContent(x) }) {", "if !s.awaits(x.answer, func() { p.expectContent(x) }) && x == nil {"}},
		tests: []string{"proxy.TestAStopThatComesBeforeTheContentIsNotWaitedOut"},
	},
	{
		promise: "Mutations are read whole (beyond `max_body`: 413", how: "what is over the limit is cut off, and the rest sent",
		edits: []edit{{"proxy/spool.go", "p.spoolAll(io.LimitReader(r.Body, limit+1), r.ContentLength, mustSpool)", "p.spoolAll(io.LimitReader(r.Body, limit), r.ContentLength, mustSpool)"}},
		tests: []string{"proxy.TestABodyThatTellsTheRuleIsBounded"},
	},
	{
		promise: "If the ledger can't record the claim, nothing is sent", how: "a masked body that finds no place on the disk stays in memory",
		edits: []edit{{"proxy/spool.go", "bytes.NewReader(b), int64(len(b)), mustSpool)", "bytes.NewReader(b), int64(len(b)), maySpool)"}},
		tests: []string{"proxy.TestDiskThatFillsBeforeTheMaskedBodyIsPutAside"},
	},
	{
		promise: "A success whose body was cut is *committed*", how: "the end of an answer whose beginning is lost counts as all of it",
		edits: []edit{{"proxy/spool.go", "spool.Size())); err != nil {", "spool.Size())); err != nil && spool == nil {"}},
		tests: []string{"proxy.TestAnAnswerThatCantBeReadBackIsLost"},
	},
	{
		promise: "If it can't record the outcome, the script is told", how: "a long answer is gone when it can be recorded at last",
		edits: []edit{{"proxy/recorder.go", "body := s.body.taken()", "body := (*content)(nil)"}},
		tests: []string{"proxy.TestALongAnswerIsThereWhenItIsRecordedAtLast"},
	},
	{
		promise: "If it can't record the outcome, the script is told", how: "an outcome that was recorded although its commit failed is tried for ever",
		edits: []edit{{"proxy/recorder.go", "case permanent(err):", "case permanent(err) && s == nil:"}},
		tests: []string{"proxy.TestAnOutcomeThatWasRecordedAllTheSameStopsNothing"},
	},
	{
		promise: "`applied`: the stored status, header fields and body", how: "more than the record says is replayed",
		edits: []edit{{"proxy/settle.go", "int64(len(in.Whole())) <= b.Size {", "len(in.Whole()) > 0 {"}},
		tests: []string{"proxy.TestAStoredAnswerThatIsNotItsRecordsIsNotReplayed"},
	},
	{
		promise: "`skipped`: the rule's `on_skip`, else 403 `skipped`", how: "what was skipped is answered twice",
		edits: []edit{{"proxy/settled.go", " || s.mutation.State == ledger.Skipped || s.mutation.Watching)", " || s.mutation.Watching)"}},
		tests: []string{"proxy.TestAskingAgainForWhatIsNotAppliedIsARepeat"},
	},
	{
		promise: "`in_flight`: waits and gets the same answer, failures too", how: "a failure that the ledger can't be told of is shared all the same",
		edits: []edit{{
			"proxy/settled.go", "s.failure.unauthorized)\n\t\tif err != nil {", "s.failure.unauthorized)\n\t\tif err != nil && x == nil {",
		}},
		tests: []string{"proxy.TestAJoinerThatTheLedgerCantBeToldOfIsRefused"},
	},
	{
		promise: "If it can't record the outcome, the script is told", how: "what is replayed without a command passes by an outcome that isn't recorded",
		edits: []edit{{"ledger/replayed.go", "l.unrecorded.any() || ", ""}},
		tests: []string{"ledger.TestAReplayThatChangesNothingIsNoCommand"},
	},
	{
		promise: "A managed run that was refused because of a stop is over", how: "a run whose streams are cut while the ledger fails goes on after the stop",
		edits: []edit{{"proxy/cut.go", "\t\tp.endLater(run, over)\n", ""}},
		tests: []string{"proxy.TestARunWhoseEndCouldNotBeRecordedIsOver"},
	},
}

// unwaited drops the second guard of a sending under way: the count of what is at work.
var unwaited = edit{"proxy/server.go", "\t\tp.working.Wait() // What they can't record is in the background after that.\n", ""}
