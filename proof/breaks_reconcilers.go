package main

// reconcilerBreaks break asking.
var reconcilerBreaks = []broken{
	{
		promise: "A try shows *applied* (with the answer for the script)", how: "a panic in a try is a presence",
		edits: []edit{{
			"reconcilers/try.go", "out = r.observe(ctx, t, sighting{reached: true, reason: t.broken(v)})",
			"out = r.observe(ctx, t, sighting{seen: ledger.SeenApplied, reached: true, reason: t.broken(v)})",
		}},
		tests: []string{"reconcilers.TestPanicInATryIsRetry"},
	},
	{
		promise: "A try shows *applied* (with the answer for the script)", how: "a cut answer is read as a whole one",
		edits: []edit{{"reconcilers/probe.go", "if reply.complete() {\n\t\t\tasking.Answer(", "if reply.evidence.Head {\n\t\t\tasking.Answer("}},
		tests: []string{"reconcilers.TestWhatIsNotAWholeListingIsRetry"},
	},
	{
		promise: "Only where `age + deadline + settle < 0.9 × window`", how: "the window isn't read again before byte one",
		edits: []edit{{
			"reconcilers/resend.go", "if !ledger.ResendOpen(&m, s.now(), deadline) {\n\t\t\treturn errors.New(", "if t.mutation == nil {\n\t\t\treturn errors.New(",
		}},
		tests: []string{"reconcilers.TestWindowThatEndsAfterTheResendWasRecorded"},
	},
	{
		promise: "Never once success is known", how: "the strategy doesn't look whether success is known",
		edits: []edit{{"reconcilers/resend.go", "case t.mutation.Committed:", "case t.mutation.Committed && t.mutation.Watching:"}},
		tests: []string{"reconcilers.TestCommittedIsNeverSentAgain"},
		kept:  "the transition table has no resend of what is committed",
	},
	{
		promise: "Only once `settle` of every sending before it is over", how: "a state is set again before settle",
		edits: []edit{{"ledger/natural.go", "now.Age(m.Dispatches[0].Started) < naturalAge && Settled(m, now, process)", "now.Age(m.Dispatches[0].Started) < naturalAge"}},
		tests: []string{"reconcilers.TestAStateIsSetAgainAfterSettle"},
	},
	{
		promise: "Only once `settle` of every sending before it is over", how: "a state is set again days later",
		edits: []edit{{"ledger/natural.go", "now.Age(m.Dispatches[0].Started) < naturalAge &&", "naturalAge > 0 &&"}},
		tests: []string{"reconcilers.TestAStateIsNotSetAgainADayLater"},
	},
	{
		promise: "Only once `settle` of every sending before it is over", how: "a state is set again over a later one",
		edits: []edit{{"ledger/natural.go", "!otherTarget(m, other) && other.sentAfter(first) {", "!otherTarget(m, other) && other.sentAfter(first) && m == nil {"}},
		tests: []string{"reconcilers.TestAStateThatWasChangedSinceIsNotSetAgain"},
	},
	{
		promise: "All of this is read again before byte one", how: "a state is set again unread",
		edits: []edit{{"reconcilers/resend.go", "check = func() error { return s.stillNatural(ctx, t) }", "check = func() error { return nil }"}},
		tests: []string{"reconcilers.TestAStateThatIsChangedBeforeByteOneIsNotSetAgain"},
	},
	{
		promise: "`exec` asks a program of the rule", how: "a program gets our environment",
		edits: []edit{{"reconcilers/program.go", "Env: programs.PlainEnvironment(os.Environ())", "Env: os.Environ()"}},
		tests: []string{"reconcilers.TestAProgramGetsTheRecordAndNoSecret"},
	},
	{
		promise: "`exec` asks a program of the rule", how: "whatever a program says is proof",
		edits: []edit{{"reconcilers/program.go", "proof: e.AbsenceIsProof,", "proof: true,"}},
		tests: []string{"reconcilers.TestAProgramsAbsenceIsProofOnlyWhereTheRuleSaysSo"},
	},
	{
		promise: "Then by the runner, with growing waits", how: "the API is asked before its Retry-After",
		edits: []edit{{"reconcilers/schedule.go", "if o.notBefore.After(at) {", "if o.notBefore.After(at) && o.random < 0 {"}},
		tests: []string{"reconcilers.TestNextTry"},
	},
	{
		promise: "Then by the runner, with growing waits", how: "the waits don't grow",
		edits: []edit{{"reconcilers/schedule.go", "float64(max(elapsed, 0))*(s.Factor-1)", "float64(max(elapsed, 0))*0*s.Factor"}},
		tests: []string{"reconcilers.TestRunnerTriesByBackoff", "reconcilers.TestNextTry"},
	},
	{
		promise: "the API's `Date` is within 5 minutes of our clock", how: "an answer of another time proves absence",
		edits: []edit{{"reconcilers/probe.go", "if s.seen == ledger.SeenAbsent && all.clocks.Off > maxClockDiff {", "if s.seen == ledger.SeenAbsent && all.clocks.Off < 0 {"}},
		tests: []string{"reconcilers.TestAbsenceByAnotherClockIsRetry"},
	},
	{
		promise: "Every sending of one generation carries the same key", how: "an undo goes out under the key of before its failure",
		edits: []edit{{"reconcilers/redispatch.go", "if t.mutation = moved; renewed {", "if t.mutation = moved; renewed && t.undo == nil {"}},
		tests: []string{"reconcilers.TestEachSendingOfAnUndoCarriesTheKeyOfItsGeneration"},
	},
	{
		promise: "and asking the API with credentials of another account", how: "credentials of another account are asked with",
		edits: []edit{{
			"reconcilers/account.go",
			"case account != t.mutation.Account:\n\t\treturn errors.New(\"the configured credentials are",
			"case account != t.mutation.Account && t.mutation == nil:\n\t\treturn errors.New(\"the configured credentials are",
		}},
		tests: []string{"reconcilers.TestAnotherAccountIsRetry"},
	},
	{
		promise: "What goes out is the stored request, under the same vendor key", how: "a redispatch is sent before it is recorded",
		edits: []edit{{
			"reconcilers/redispatch.go", "moved, d, err := r.ledger.Redispatch(ctx, ledger.Redispatch{",
			"r.send(ctx, t, request, ledger.Dispatch{})\n\tmoved, d, err := r.ledger.Redispatch(ctx, ledger.Redispatch{",
		}},
		tests: []string{"reconcilers.TestWhatIsNotThereIsSentAgainOnceUnderTheSameKey"},
	},
	{
		promise: "Once it was sent `max_dispatches` times (2)", how: "a redispatch without its credential is sent",
		edits: []edit{{"reconcilers/redispatch.go", "if len(t.missing) > 0 {", "if len(t.missing) > 1000 {"}},
		tests: []string{"reconcilers.TestARedispatchWithoutItsCredentialIsCalledOff"},
	},
	{
		promise: "The rule file of the claim, kept in the ledger by its hash", how: "secrets of the answer are stored",
		edits: []edit{{"reconcilers/sighting.go", "content := t.secrets.Bytes(answer.Body)", "content := answer.Body"}},
		tests: []string{"reconcilers.TestSecretsStayOutOfTheRecord"},
	},
}
