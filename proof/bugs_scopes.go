package main

// scopeBugs are of runs that are new work or make one mutation, of scopes without a run, of verifying
// before a replay, of what is forgotten, and of what is owed when its item is skipped.
var scopeBugs = []bug{
	{
		name: "a run with once begins over an unknown of another", stage: "histories",
		sentence: `a run with once began while nobody could know`,
		edits: []edit{{
			"ledger/openrun.go", "|| o.Once && strings.HasPrefix(b.Item, oncePrefix) {", "|| false && o.Once && strings.HasPrefix(b.Item, oncePrefix) {",
		}},
	},
	{
		name: "runs with once share an item", stage: "histories", sentence: `happened for its run with once, and it never did`,
		edits: []edit{{"ledger/openrun.go", "o.Item, o.Attempt = oncePrefix+id, 1", "o.Item, o.Attempt = oncePrefix+o.Workflow, 1"}},
	},
	{
		name: "a run of one mutation makes several", stage: "histories", sentence: `a run of one mutation (sent|was told of) two`,
		edits: []edit{{"ledger/claim.go", "if r.Only != nil && *r.Only != c.q.Key {", "if false && r.Only != nil && *r.Only != c.q.Key {"}},
	},
	{
		name: "a run that may only read sends", stage: "histories", sentence: `a run that may only read (sent|was told of) a mutation`,
		edits: []edit{{"ledger/claim.go", "\tcase MutationsMany:\n\tcase MutationsOne:", "\tcase MutationsMany, MutationsNone:\n\tcase MutationsOne:"}},
	},
	{
		name: "an unmanaged scope isn't stopped", stage: "histories", sentence: `a read went out while nobody could know`,
		edits: []edit{{"ledger/gate.go", "\treturn admitScope(workflow, item, l.unrecorded.beside(blockers))\n", "\t_ = blockers\n\treturn Admission{Open: true}\n"}},
	},
	{
		name: "what is sent again stops what its first run said", stage: "histories", sentence: `went out while nobody could know`,
		edits: []edit{
			{"ledger/replay.go", "\tc.m.Policy.BlockScope = record.Policy.BlockScope\n", ""},
			{"ledger/replay.go", "\t\tc.m.Policy = r.Policy\n", "\t\tscope := c.m.Policy.BlockScope\n\t\tc.m.Policy = r.Policy\n\t\tc.m.Policy.BlockScope = scope\n"},
		},
	},
	{
		name: "an answer that says nothing counts as agreement", stage: "histories",
		sentence: `and nobody asked whether it is there|which is not there any more`,
		edits:    []edit{{"ledger/verified.go", "case v.Said == SaidAgrees ||", "case v.Said != SaidDisagrees ||"}},
	},
	{
		name: "what the world disagrees with is replayed strictly, too", stage: "histories",
		sentence: `and nobody asked whether it is there|which is not there any more`,
		edits:    []edit{{"ledger/verified.go", "\tif v.Mode == VerifyWarn {", "\tif v.Mode != VerifyHuman {"}},
	},
	{
		name: "what a person acknowledged is asked about again", stage: "histories", sentence: `refused what a person wanted replayed`,
		edits: []edit{{"ledger/resolve.go", "m.Verification.Acknowledged = true", "m.Verification.Acknowledged = false"}},
	},
	{
		name: "what is owed is waived with its item", stage: "histories", sentence: `an obligation was waived by nobody`,
		edits: []edit{
			{"ledger/decideitem.go", "case m.Undo == nil && allowedToPerson(m, OnSkip):", "case allowedToPerson(m, OnSkip):"},
			{"ledger/decideitem.go", "if m.Undo != nil || !allowedToPerson(m, OnSkip) {", "if !allowedToPerson(m, OnSkip) {"},
		},
	},
	{
		name: "what is forgotten is sent again", stage: "histories", sentence: `was claimed although it is applied|took effect [0-9]+ times`,
		edits: []edit{
			{"ledger/table.go", "{Failed, OnClaim, 0, committed, InFlight, EffectDispatch, \"\"},",
				"{Failed, OnClaim, 0, committed, InFlight, EffectDispatch, \"\"},\n\t{Applied, OnClaim, 0, 0, InFlight, EffectDispatch, \"\"},"},
			{"ledger/replay.go", "\t\treturn c.forgotten()\n", "\t\treturn c.dispatch()\n"},
		},
	},
	{
		name: "the answer of what is forgotten is given", stage: "histories", sentence: `was given the answer of [a-z]+, which was dropped`,
		edits: []edit{
			{"ledger/replay.go", "\t\treturn c.forgotten()\n", "\t\treturn Claimed{Decision: DecideReplay}, c.useRun(false)\n"},
			{"ledger/retention.go", "m.Result.Header, m.Result.Body.Dropped = nil, m.Result.Body.SHA256 != \"\"", "m.Result.Header = nil"},
		},
	},
	{
		name: "what a run works on is forgotten", stage: "histories", sentence: `was forgotten while a run of its item goes on`,
		edits: []edit{{"ledger/retention.go", "c.worksOn(item); err != nil || busy {", "c.worksOn(item); err != nil || busy && m == nil {"}},
	},
	{
		name: "a record goes with its contents", stage: "histories",
		sentence: `took effect [0-9]+ times|one vendor key carried two payloads`,
		edits:    []edit{{"ledger/retention.go", "\tif !m.Forgotten.IsZero() {\n\t\tcounts.Removed++", "\tif r.Forget {\n\t\tcounts.Removed++"}},
	},
	{
		name: "a record is removed while its API knows its key", stage: "histories", sentence: `one vendor key carried two payloads`,
		edits: []edit{
			{"ledger/retention.go", "wait = max(wait, m.Policy.KeyWindow, m.KeyKnown)", "wait = max(wait, 0)"},
			{"ledger/effect.go", "VendorKey(markedBy(m.Key, m.Remade), ", "VendorKey(m.Key, "},
		},
	},
}
