package main

// gateBreaks break what stops, runs and items.
var gateBreaks = []broken{
	{
		promise: "An unresolved mutation stops its block scope", how: "a scope that isn't known stops nothing",
		edits: []edit{{"ledger/gate.go", "default:\n\t\treturn true\n\t}", "case BlockWorkflow:\n\t\treturn true\n\t}\n\treturn false"}},
		tests: []string{"ledger.TestAdmit"},
	},
	{
		promise: "An unresolved mutation stops its block scope", how: "the scope item stops every item",
		edits: []edit{{"ledger/gate.go", "return b.Item == item", "return b.Item == item || item != \"\""}},
		tests: []string{"ledger.TestAdmit"},
	},
	{
		promise: "In a stopped scope everything is refused", how: "the gate isn't asked within the claim",
		edits: []edit{{"ledger/claim.go", "c.checkAllowance, c.checkScope, ", "c.checkAllowance, "}},
		tests: []string{"ledger.TestTheGateInsideTheClaim"},
	},
	{
		promise: "In a stopped scope everything is refused", how: "a run is opened in a stopped scope",
		edits: []edit{{"ledger/openrun.go", "if len(stopping) > 0 {", "if len(stopping) > 1 {"}},
		tests: []string{"ledger.TestOpenRunIsRefused"},
	},
	{
		promise: "A managed run that was refused because of a stop is over", how: "a run that was refused by a stop goes on",
		edits: []edit{{"ledger/claim.go", "if err := c.refuse(c.run, out.Detail, first.ID); err != nil {", "if err := error(nil); err != nil {"}},
		tests: []string{"ledger.TestTheGateInsideTheClaim"},
	},
	{
		promise: "The run that caused the unknown is `paused:reconciliation`", how: "the run that caused an unknown goes on",
		edits: []edit{{
			"ledger/finish.go", `return c.pause(runID, m, "the outcome of mutation "+m.ID+" is unknown: "+m.Reason)`, "return c.runOf(runID)",
		}},
		tests: []string{"ledger.TestUncertainEnds"},
	},
	{
		promise: "Every later request of a run that is over gets 424", how: "a run that is over passes the gate",
		edits: []edit{{"ledger/gate.go", "if run.State.Ended() {", "if run.State.Ended() && run.Closing != \"\" {"}},
		tests: []string{"ledger.TestAdmit"},
	},
	{
		promise: "Every later request of a run that is over gets 424", how: "a run that is over claims",
		edits: []edit{{"ledger/claim.go", "if !c.run.State.Ended() {\n\t\treturn nil, nil\n\t}", "if c.run != nil {\n\t\treturn nil, nil\n\t}"}},
		tests: []string{"ledger.TestTheGrace", "ledger.TestTimeLimits", "ledger.TestAllowances"},
	},
	{
		promise: "With `on_failure: abort` (the default) a definite failure ends the run", how: "a definite failure ends no run",
		edits: []edit{{"ledger/endrun.go", "if r.OnFailure == FailureReturn {", "if r.OnFailure != \"\" {"}},
		tests: []string{"ledger.TestDefiniteFailures"},
	},
	{
		promise: "After a `transient` failure or a 401 the run is `failing`", how: "a 401 has no grace",
		edits: []edit{{"ledger/endrun.go", "f.class != ClassTransient && !f.unauthorized ||", "f.class != ClassTransient ||"}},
		tests: []string{"ledger.TestTheGrace", "ledger.TestDefiniteFailures"},
	},
	{
		promise: "After a `transient` failure or a 401 the run is `failing`", how: "the tries of the grace aren't counted",
		edits: []edit{{"ledger/endrun.go", "return over(c.now, r.FailingUntil) || r.FailingTries >= c.config.RetryGraceTries", "return over(c.now, r.FailingUntil)"}},
		tests: []string{"ledger.TestTheGrace"},
	},
	{
		promise: "After a `transient` failure or a 401 the run is `failing`", how: "another payload may be sent in the grace",
		edits: []edit{{
			"ledger/claim.go", "*r.FailingKey != c.q.Key || r.FailingDigest != c.q.Record.PayloadDigest", "*r.FailingKey != c.q.Key",
		}},
		tests: []string{"ledger.TestTheGrace"},
	},
	{
		promise: "307 and 308 don't abort", how: "a redirect aborts the run",
		edits: []edit{{"ledger/finish.go", "r.State.Ended() || passedOn {", "r.State.Ended() {"}},
		tests: []string{"ledger.TestDefiniteFailures"},
	},
	{
		promise: "`permission` and `precondition` also open an escalation", how: "nobody is asked about a missing permission",
		edits: []edit{{"ledger/finish.go", "m.escalate(EscalationPermission, mv)", "_ = mv"}},
		tests: []string{"ledger.TestDefiniteFailures"},
	},
	{
		promise: "A run finishes `done` only if each of its mutations is", how: "a run finishes over an unknown",
		edits: []edit{{"ledger/finishrun.go", "default:\n\t\treturn false, nil", "default:\n\t\treturn true, nil"}},
		tests: []string{"ledger.TestKeepOpenLeavesTheItemOpen"},
	},
	{
		promise: "A run finishes `done` only if each of its mutations is", how: "a failure whose answer nobody had lets a run finish",
		edits: []edit{{"ledger/finishrun.go", "return delivery != nil && delivery.answers(m), err", "return delivery != nil || m != nil, err"}},
		tests: []string{"ledger.TestFinishRun"},
	},
	{
		promise: "An item is `open`, until a run of it finishes `done`", how: "an item that is done has new effects",
		edits: []edit{{"ledger/claim.go", "case ItemOpen, ItemFailed:\n", "case ItemOpen, ItemFailed:\n\t\tcase ItemDone:\n"}, {"ledger/claim.go", "case ItemDone, ItemSkipped:", "case ItemSkipped:"}},
		tests: []string{"ledger.TestClaimsOfTheWrongItemOrAttempt"},
	},
	{
		promise: "No run of it is opened (409 `item-done`)", how: "a run of an item that is done is opened",
		edits: []edit{{"ledger/openrun.go", "case item.over() && o.IfDone == IfDoneRead:", "case item.over() && o.IfDone != \"never\":"}},
		tests: []string{"ledger.TestOpenRunIsRefused"},
	},
	{
		promise: "It is `failed` after a run that ended with a definite failure", how: "an item that waits for a person admits a run",
		edits: []edit{{"ledger/openrun.go", "case item.State == ItemOpen || item.State == ItemFailed:", "case !item.over():"}},
		tests: []string{"ledger.TestOpenRunIsRefused"},
	},
	{
		promise: "A run that names another attempt than the item's current one", how: "a run of another attempt is told that its item is done",
		edits: []edit{{"ledger/openrun.go", "if o.Attempt != 0 && o.Attempt != item.Attempt {", "if o.Attempt != 0 && o.Attempt != item.Attempt && !item.over() {"}},
		tests: []string{"ledger.TestOpenRunIsRefused"},
	},
	{
		promise: "begins a new attempt, which is new work", how: "a request of another attempt is sent",
		edits: []edit{{"ledger/claim.go", "if c.q.Attempt != attempt {", "if c.q.Attempt < attempt-1 {"}},
		tests: []string{"ledger.TestClaimsOfTheWrongItemOrAttempt"},
	},
	{
		promise: "Each needs an actor and a reason, and is refused while a run of the item goes on", how: "an item with an unresolved mutation is decided on",
		edits: []edit{{
			"ledger/decideitem.go", "if err := itemSettled(c, item.Workflow, item.Item); err != nil {", "if err := itemSettled(c, item.Workflow, item.Item); err != nil && c == nil {",
		}},
		tests: []string{"ledger.TestDecisionsOnAnItem"},
	},
	{
		promise: "Each needs an actor and a reason, and is refused while a run of the item goes on", how: "a decision on an item ends its run",
		edits: []edit{{"ledger/decideitem.go", "c.makeRoom(item, false)", "c.makeRoom(item, true)"}},
		tests: []string{"ledger.TestDecisionsOnAnItem"},
	},
	{
		promise: "That takes several commands: the item admits nothing from the first on", how: "an item admits claims while its mutations are skipped",
		edits: []edit{{
			"ledger/decideitem.go", "item.State, item.Cause, item.ActiveRun, item.Shared = ItemNeedsAttention,", "item.State, item.Cause, item.ActiveRun, item.Shared = ItemOpen,",
		}},
		tests: []string{"ledger.TestAnItemAdmitsNothingWhileItsMutationsAreSkipped"},
	},
	{
		promise: "A run of `items: many` takes each item at its first mutation", how: "a run of many items takes none",
		edits: []edit{{"ledger/manyitems.go", "c.takes = true", "c.takes = false"}},
		tests: []string{"ledger.TestARunOfManyItemsTakesEachAtItsFirstClaim"},
	},
	{
		promise: "What the item refuses (403 `item-done`", how: "one item that refuses ends a run of many",
		edits: []edit{{
			"ledger/claim.go", "if c.run != nil && c.run.Many() {\n\t\treturn out, nil\n\t}\n\treturn c.endByLogic(out)", "return c.endByLogic(out)",
		}},
		tests: []string{"ledger.TestAnItemThatRefusesDoesNotEndARunOfMany"},
	},
	{
		promise: "Finished `done`, it closes all of its items", how: "a run of many items claims while its items are closed",
		edits: []edit{{"ledger/claim.go", `if c.run.Closing != "" && !c.run.State.Ended() {`, `if c.run.Closing == "never" {`}},
		tests: []string{"ledger.TestWhatHappensToARunWhileItsItemsAreClosed", "ledger.TestFinishingManyItemsGoesOnAfterACrash"},
	},
	{
		promise: "A second is refused (409 `item-busy`), or takes over", how: "an item has two running runs",
		edits: []edit{{
			"ledger/openrun.go", `return fmt.Errorf("%w: run %s of item %q is %s", ErrItemBusy, active.ID, item.Item, active.State)`, "return nil",
		}},
		tests: []string{"ledger.TestOpenRunIsRefused"},
	},
	{
		promise: "Runs have a time limit that heartbeats move on", how: "a heartbeat moves no time limit",
		edits: []edit{{"ledger/endrun.go", "r.ExpiresAt = c.now.Wall.Add(ttl)", "_ = ttl"}},
		tests: []string{"ledger.TestTimeLimits"},
	},
	{
		promise: "With `one`, after the first only the same one passes", how: "a run of one mutation makes a second",
		edits: []edit{{"ledger/claim.go", "r.Only != nil && *r.Only != c.q.Key", "r.Only != nil && *r.Only == c.q.Key && c.m == nil"}},
		tests: []string{"ledger.TestAllowances"},
	},
	{
		promise: "Only finishing waits for it", how: "an item is closed over what was accepted",
		edits: []edit{{"ledger/finishrun.go", "m.State == InFlight || m.Watching || m.Unresolved()", "m.State == InFlight || m.Unresolved()"}},
		tests: []string{"ledger.TestAnItemIsNotClosedOverWhatIsFollowed"},
	},
}
