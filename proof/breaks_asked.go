package main

// askedBreaks put back what a reader found who followed repeats and the questions to people
// through the ledger: each was answered, overwritten or kept by something that it wasn't about.
var askedBreaks = []broken{
	{
		promise: "A run that asks again for a mutation whose answer it has had whole", how: "the 202 of what was applied since is no answer",
		edits: []edit{{"ledger/tx.go", "return d.State == m.State || followed", "return d.State == m.State || followed && d.At.IsZero()"}},
		tests: []string{"ledger.TestRepeats"},
	},
	{
		promise: "A run that asks again for a mutation whose answer it has had whole", how: "a 202 that is followed is no answer to whoever waited",
		edits: []edit{{"ledger/join.go", " || c.m.Watching {", " {"}},
		tests: []string{"ledger.TestJoin"},
	},
	{
		promise: "One about the outcome is open until", how: "what was accepted closes what a person was asked by its end",
		edits: []edit{{"ledger/asked.go", "\tdefault:\n\t\treturn aboutOutcome(kind)", "\tdefault:\n\t\treturn true"}},
		tests: []string{"ledger.TestOnlyItsAnswerClosesAQuestion"},
	},
	{
		promise: "One about the outcome is open until", how: "a question about an earlier sending stays",
		edits: []edit{{"ledger/table.go", "EffectResolve | EffectRedispatch | EffectClose", "EffectResolve | EffectRedispatch"}},
		tests: []string{"ledger.TestWhatIsQueuedIsAskedAboutNoMore"},
	},
	{
		promise: "A question that comes while another is open", how: "the other is lost",
		edits: []edit{{"ledger/asked.go", "m.Displaced = append(m.Displaced, *m.Escalation)", "_ = m.Escalation"}},
		tests: []string{"ledger.TestADriftTakesNoQuestionAway"},
	},
	{
		promise: "A question that comes while another is open", how: "nobody is told that it is asked again",
		edits: []edit{{"ledger/command.go", " || q.AskedAgain.Equal(now)", ""}},
		tests: []string{"ledger.TestAQuestionThatIsDisplacedIsAskedAgain"},
	},
	{
		promise: "A payload that was refused can be accepted until", how: "it is accepted as the answer of another question",
		edits: []edit{{"ledger/command.go", " && (m.asked() == EscalationMismatch || !m.Escalated())", ""}, {"ledger/decideitem.go", "\t\tm.Disputed = \"\"\n", ""}},
		tests: []string{"ledger.TestARefusedPayloadIsNoAnswerToAnotherQuestion"},
	},
	{
		promise: "A payload that was refused can be accepted until", how: "the item is free while it waits for another answer",
		edits: []edit{{"ledger/item.go", " || m.asks(EscalationDrift) || ", " || "}},
		tests: []string{"ledger.TestARefusedPayloadIsNoAnswerToAnotherQuestion"},
	},
	{
		promise: "Whatever else moves the record", how: "to acknowledge a question takes it out",
		edits: []edit{{"ledger/table.go", "EffectClose | EffectKeepQueue", "EffectClose"}},
		tests: []string{"ledger.TestToAcknowledgeTakesNothingOutOfTheQueue"},
	},
	{
		promise: "Once it was sent `max_dispatches` times (2)", how: "nobody is told of a redispatch that fails",
		edits: []edit{{"ledger/finish.go", "m.State == Failed && d.Redispatch:", "m.State == Failed && d.Redispatch && m.Version < 0:"}},
		tests: []string{"ledger.TestARedispatchThatFailsIsTold"},
	},
	{
		promise: "A settled mutation (`applied`, `failed` or `skipped`, with no open question)", how: "what an ended run of many items took is kept for ever",
		edits: []edit{{"ledger/retention.go", "return r != nil && !r.State.Ended(), err", "return r != nil, err"}},
		tests: []string{"ledger.TestWhatAnEndedRunOfManyItemsTookIsForgotten"},
	},
	{
		promise: "It is `failed` after a run that ended with a definite failure", how: "a run of many items fails none by what another run made",
		edits: []edit{{"ledger/manyitems.go", "if err != nil || m == nil {", "if err != nil || m == nil || m.Run != r.ID {"}},
		tests: []string{"ledger.TestAnItemIsFailedByAMutationOfAnEarlierRun"},
	},
	{
		promise: "Once it was sent `max_dispatches` times (2)", how: "a redispatch is put off for ever",
		edits: []edit{{"ledger/redispatch.go", " && waited < c.config.Reconcile.MaxAge {", " && waited < waited+1 {"}},
		tests: []string{"ledger.TestARedispatchIsNotPutOffForEver"},
	},
}
