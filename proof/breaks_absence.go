package main

// absenceBreaks break settle, absence, presence, resends, redispatches and what is owed.
var absenceBreaks = []broken{
	{
		promise: "Only where `age + deadline + settle < 0.9 × window`", how: "settle is left out of the window",
		edits: []edit{{"ledger/resend.go", ", deadline, settle) < p.KeyWindow/10*9", ", deadline, 0*settle) < p.KeyWindow/10*9"}},
		tests: []string{"ledger.TestResendOpen"},
	},
	{
		promise: "At most three, and none after one that met a failure verdict", how: "resends aren't counted",
		edits: []edit{{"ledger/resend.go", "m.ResendTries < m.maxResends() && WindowOpen", "WindowOpen"}, {"ledger/finish.go", " || m.ResendTries >= m.maxResends() {", " {"}},
		tests: []string{"ledger.TestResendOpen", "ledger.TestResendsEnd"},
	},
	{
		promise: "At most three, and none after one that met a failure verdict", how: "a failed resend is followed by another",
		edits: []edit{{"ledger/finish.go", "if d.Resend && d.Verdict == VerdictFailed || ", "if "}},
		tests: []string{"ledger.TestNothingIsResentAfterAFailedResend"},
	},
	{
		promise: "Never once success is known", how: "what is known to have happened is sent again",
		edits: []edit{{
			"ledger/table.go", "{NeedsReconcile, OnResend, judged | FactResendOpen, committed, NeedsReconcile,", "{NeedsReconcile, OnResend, judged | FactResendOpen, 0, NeedsReconcile,",
		}},
		tests: []string{"ledger.TestTheTableHoldsWhatSemanticsSays", "ledger.TestResendIsRefused"},
	},
	{
		promise: "It ends after `max_attempts` tries that reached the API", how: "tries before settle use up the number",
		edits: []edit{{"ledger/observe.go", "if q.Reached && Settled(m, o.At, c.Process()) {", "if q.Reached {"}},
		tests: []string{"ledger.TestExhaustion"},
	},
	{
		promise: "It ends after `max_attempts` tries that reached the API", how: "tries never end",
		edits: []edit{{"ledger/observe.go", "return m.Tries >= c.config.Reconcile.MaxAttempts || ", "return "}},
		tests: []string{"ledger.TestExhaustion"},
	},
	{
		promise: "An upstream that can't be reached uses up no tries", how: "a try that reached nobody counts",
		edits: []edit{{"ledger/observe.go", "if q.Reached && Settled(m, o.At, c.Process()) {", "if Settled(m, o.At, c.Process()) {"}},
		tests: []string{"ledger.TestExhaustion"},
	},
	{
		promise: "every sending of the record ended at least `settle` (5 min) before", how: "absence is believed before settle is over",
		edits: []edit{{"ledger/absence.go", "case !Settled(m, o.At, c.Process()) || !Settled(m, c.now, c.Process()):", "case !Settled(m, c.now, c.Process()):"}},
		tests: []string{"ledger.TestAbsenceIsBelievedOnlyWhenItIsProven"},
	},
	{
		promise: "every sending of the record ended at least `settle` (5 min) before", how: "half of settle is enough",
		edits: []edit{{"ledger/settle.go", "!sameBoot || quiet < settle", "!sameBoot || quiet < settle/2"}},
		tests: []string{"ledger.TestSettled"},
	},
	{
		promise: "The time is measured on a clock that stands still", how: "settle runs while the machine sleeps",
		edits: []edit{{"ledger/settle.go", "if quiet, sameBoot := now.MonoSince(since); !sameBoot", "if quiet, sameBoot := now.Age(since), since.BootID == now.BootID; !sameBoot"}},
		tests: []string{"ledger.TestSettled"},
	},
	{
		promise: "The time is measured on a clock that stands still", how: "a lost sending counts as ended when it began",
		edits: []edit{{"ledger/settle.go", "gone(d, process):\n\t\treturn process.Started, true", "gone(d, process):\n\t\treturn d.Started, true"}},
		tests: []string{"ledger.TestSettled", "ledger.TestAbsenceAfterARestartCountsFromTheProcess"},
	},
	{
		promise: "it was seen `absent_confirmations` (2) times", how: "one confirmation is enough",
		edits: []edit{{"ledger/observe.go", "m.confirmations(o.At)+1 >= wanted", "m.confirmations(o.At)+wanted >= wanted"}},
		tests: []string{"ledger.TestAbsenceIsBelievedOnlyWhenItIsProven"},
	},
	{
		promise: "it was seen `absent_confirmations` (2) times", how: "confirmations may follow at once",
		edits: []edit{{"ledger/absence.go", "gap < spacing {", "gap < 0*spacing {"}},
		tests: []string{"ledger.TestAbsenceIsBelievedOnlyWhenItIsProven"},
	},
	{
		promise: "the rule says `absence_is_proof`: a strong read by key", how: "an absence counts that the rule doesn't call proof",
		edits: []edit{{"ledger/absence.go", "case !proof:", "case !proof && m.Committed:"}},
		tests: []string{"ledger.TestAbsenceIsBelievedOnlyWhenItIsProven"},
	},
	{
		promise: "Absence counts only if all of this holds", how: "an observation outlives a new sending",
		edits: []edit{{"ledger/effect.go", "m.Observations[i].Voided = true", "m.Observations[i].Voided = m.Observations[i].Voided || m.Committed"}},
		tests: []string{"ledger.TestANewDispatchVoidsWhatWasSeen"},
	},
	{
		promise: "success is not known", how: "the ledger doesn't look whether success is known",
		edits: []edit{{"ledger/absence.go", "case m.Committed:", "case m.Committed && !proof:"}},
		tests: []string{"ledger.TestAbsenceIsBelievedOnlyWhenItIsProven", "ledger.TestTheTableHoldsWhatSemanticsSays"},
	},
	{
		promise: "A 202 (RFC 9110 §15.3.3) of a rule with `watch`", how: "what was accepted stops its scope",
		edits: []edit{{"ledger/mutation.go", "return !m.Watching\n", "return true\n"}},
		tests: []string{"reconcilers.TestAWatchedMutationComesToItsEnd"},
	},
	{
		promise: "A 202 (RFC 9110 §15.3.3) of a rule with `watch`", how: "what was accepted is followed for ever",
		edits: []edit{{"ledger/watch.go", "return c.now.Age(m.UnknownSince) >= m.Policy.WatchMax", "return false"}},
		tests: []string{"reconcilers.TestAWatchThatTakesTooLongAsksAPerson"},
	},
	{
		promise: "While an earlier sending is unresolved, a failure of what was accepted", how: "a failure of what was accepted settles an earlier sending",
		edits: []edit{{"ledger/watch.go", "!m.Dispatches[i].Resolved && i != followed {", "!m.Dispatches[i].Resolved && i != followed && m.Dispatches[i].Verdict == VerdictCommitted {"}},
		tests: []string{"reconcilers.TestAFailureWhileAnEarlierSendingIsUnresolvedAsksAPerson"},
	},
	{
		promise: "A believed absence makes the record `failed` (`on_absent: fail`)", how: "a believed absence fails where the rule wants a person",
		edits: []edit{{
			"ledger/command.go", "FactAbsentFails.If(m.Policy.OnAbsent == AbsentFail || m.Policy.OnAbsent == AbsentRedispatch)", "FactAbsentFails",
		}},
		tests: []string{"ledger.TestBelievedAbsenceGoesWhereTheRuleSays"},
	},
	{
		promise: "The record becomes `failed` and is queued", how: "a redispatch goes out in a stopped scope",
		edits: []edit{{"ledger/redispatch.go", "if all[i].Key != m.Key && all[i].stops(m.Workflow, m.Item) {", "if all[i].Key == m.Key && all[i].stops(m.Workflow, m.Item) {"}},
		tests: []string{"ledger.TestAQueuedRedispatchGivesWay"},
	},
	{
		promise: "The record becomes `failed` and is queued", how: "a redispatch of an old attempt goes out",
		edits: []edit{{"ledger/redispatch.go", "case item.Attempt != m.Attempt:", "case item.Attempt < m.Attempt:"}},
		tests: []string{"ledger.TestAQueuedRedispatchGivesWay"},
	},
	{
		promise: "Whatever else moves the record", how: "a queued redispatch outlives other moves",
		edits: []edit{{"ledger/effect.go", "m.RedispatchSince = time.Time{}\n", "if false {\n\t\tm.RedispatchSince = time.Time{}\n\t}\n"}},
		tests: []string{"ledger.TestAnyMoveTakesARecordOutOfTheQueue"},
	},
	{
		promise: "Once it was sent `max_dispatches` times (2)", how: "it is sent once more than allowed",
		edits: []edit{{"ledger/redispatch.go", "return sent < limit", "return sent <= limit"}},
		tests: []string{"ledger.TestARedispatchIsBoundedAndThenAPersonIsTold"},
	},
	{
		promise: "Once it was sent `max_dispatches` times (2)", how: "resends use up the number",
		edits: []edit{{"ledger/redispatch.go", "if !m.Dispatches[i].Resend {", "if i >= 0 {"}},
		tests: []string{"ledger.TestResendsAreNoRedispatches"},
	},
	{
		promise: "One object is evidence for one mutation", how: "another mutation's object counts as ours",
		edits: []edit{{"ledger/observe.go", "if m.Owns(owner, object) {", "if m.Owns(owner, object) || !m.Committed {"}},
		tests: []string{"ledger.TestOneObjectIsEvidenceForOneMutation"},
	},
	{
		promise: "Several by any other tie are a question to a person", how: "objects that are only alike count as ours",
		edits: []edit{{"ledger/observe.go", "known := FactStrong.If(o.Strong)", "known := FactStrong"}},
		tests: []string{"ledger.TestNothingIsOwedOfWhatIsOnlyAlike", "ledger.TestObservedPresence"},
	},
	{
		promise: "Nothing is undone that isn't tied to us", how: "what is only alike is owed",
		edits: []edit{{"ledger/observe.go", "if on == OnObservedDuplicate && m.State == Applied && o.Strong {", "if on == OnObservedDuplicate && m.State == Applied {"}},
		tests: []string{"ledger.TestNothingIsOwedOfWhatIsOnlyAlike"},
	},
	{
		promise: "Nothing is undone that isn't tied to us", how: "a person undoes what is another mutation's",
		edits: []edit{{"ledger/undo.go", "if taken != \"\" {", "if taken != \"\" && object == \"\" {"}},
		tests: []string{"ledger.TestAPersonDoesNotUndoWhatIsAnothersOwn"},
	},
	{
		promise: "Where the rule says how an effect is taken back", how: "the oldest effect is owed too",
		edits: []edit{{"ledger/undo.go", "newer := o.Objects[min(1, len(o.Objects)):]", "newer := o.Objects"}},
		tests: []string{"ledger.TestOnlyTheNewerObjectsAreOwed"},
	},
	{
		promise: "A rule that asks or judges by the time of the claim", how: "it is given what the clock of then showed",
		edits: []edit{{"reconcilers/claimed.go", "at, ok := now.WallOf(first.Started); ok", "at, ok := m.CreatedAt, true; ok"}},
		tests: []string{"reconcilers.TestTheTimeOfTheClaimIsByTheClockThatAsks"},
	},
	{
		promise: "A rule that asks or judges by the time of the claim", how: "a clock may be set during the asking",
		edits: []edit{{"reconcilers/probe.go", "Sub(all.claimed).Abs() > time.Second", "Sub(all.claimed).Abs() > time.Hour"}},
		tests: []string{"reconcilers.TestAClockThatIsSetDuringTheAskingTellsNoTimeOfTheClaim"},
	},
	{
		promise: "Where the machine was started again since", how: "the clock of another boot is believed",
		edits: []edit{{"rules/observation.go", "case !c.SameBoot:", "case false:"}},
		tests: []string{"rules.TestWhatRestsOnTheTimeOfTheClaim"},
	},
	{
		promise: "Where the machine was started again since", how: "an API whose clock nobody knows is believed",
		edits: []edit{{"rules/observation.go", "case !c.Measured:", "case false:"}},
		tests: []string{"rules.TestWhatRestsOnTheTimeOfTheClaim"},
	},
}
