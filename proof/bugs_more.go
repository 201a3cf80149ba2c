package main

// moreBugs are of what came after the first: steps, watched answers, states that are set, what
// is taken back, items, runs and rewrites.
var moreBugs = []bug{
	{
		name: "the high-water file is not synced", stage: "./ledger/badgerstore TestTheHighWaterMarkSurvivesALossOfPower",
		sentence: `opened, and [0-9]+ of [0-9]+ acknowledged records are gone`,
		edits: []edit{{
			"ledger/badgerstore/highwater.go", "err := datasync(h.file)\n\tif err == nil && h.synced != nil {",
			"err := error(nil)\n\tif err == nil && h.synced != nil && false {",
		}},
	},
	{
		name: "the commit of a sending in steps goes out before what the first ones gave is kept", stage: "histories",
		sentence: `went out before what its steps gave was durable`,
		edits: []edit{{
			"ledger/prepared.go", "\terr := l.update(ctx, func(c *command) error {\n\t\tvar d *Dispatch\n\t\tvar err error\n",
			"\tvar err error\n\tif err = l.Healthy(); err != nil {\n\t\treturn nil, err\n\t}\n\tl.Note(func(tx Tx) (failed error) {\n\t\tc := l.command(tx)\n" +
				"\t\tdefer func() { err = failed }()\n\t\tvar d *Dispatch\n\t\tvar err error\n",
		}},
	},
	{
		name: "the time of the claim is what the clock of then showed", stage: "histories", sentence: `is recorded as failed, but took effect|took effect [0-9]+ times`,
		edits: []edit{{"reconcilers/claimed.go", "at, ok := now.WallOf(first.Started); ok", "at, ok := m.CreatedAt, true; ok"}},
	},
	{
		name: "202 is taken as applied", stage: "histories", sentence: `is recorded as applied, but never took effect`,
		edits: []edit{{"proxy/dispatch.go", "if s.w.op.Watch == nil || s.answer.Status", "if true || s.answer.Status"}},
	},
	{
		name: "a state is set again before settle is over", stage: "histories", sentence: `a setting took effect after the one that came next had gone out`,
		edits: []edit{{
			"ledger/natural.go", "now.Age(m.Dispatches[0].Started) < naturalAge && Settled(m, now, process)", "now.Age(m.Dispatches[0].Started) < naturalAge",
		}},
	},
	{
		name: "a state is set again over a later one", stage: "histories", sentence: `a place was set again after a later setting of it`,
		edits: []edit{{"ledger/natural.go", "if !otherTarget(m, other) &&", "if m == nil && !otherTarget(m, other) &&"}},
	},
	{
		name: "of several the newest is kept", stage: "histories", sentence: `the oldest was taken back`,
		edits: []edit{
			{"ledger/undo.go", "newer := o.Objects[min(1, len(o.Objects)):]", "newer := o.Objects[:max(1, len(o.Objects))-1]"},
			{"reconcilers/undo.go", "range objects[1:]", "range objects[:len(objects)-1]"},
		},
	},
	{
		name: "what may still be undone is waived", stage: "histories", sentence: `taken back that was waived`,
		edits: []edit{{"ledger/undo.go", "return m.Undo == nil || m.State == Failed &&", "return true || m.State == Failed &&"}},
	},
	{
		name: "an item is closed over an open mutation", stage: "histories", sentence: `an (item is [a-z]+|attempt was begun) over a mutation that is open`,
		edits: []edit{{"ledger/finishrun.go", "if m.State == InFlight || m.Watching || m.Unresolved() {", "if false {"}},
	},
	{
		name: "a run is finished over an open mutation", stage: "histories", sentence: `a run is finished over a mutation that is open`,
		edits: []edit{{"ledger/finishrun.go", "\tdefault:\n\t\treturn false, nil\n", "\tdefault:\n\t\treturn true, nil\n"}},
	},
	{
		name: "a run goes on after its end", stage: "histories", sentence: `after it was (over|stopped)`,
		edits: []edit{
			{"ledger/claim.go", "\tif !c.run.State.Ended() {\n\t\treturn nil, nil\n\t}\n\tout := ", "\tif true {\n\t\treturn nil, nil\n\t}\n\tout := "},
			{
				"proxy/gate.go", "func (p *Proxy) standing(c caller) ledger.Admission {",
				"func (p *Proxy) standing(c caller) ledger.Admission {\n\tif true {\n\t\treturn ledger.Admission{Open: true}\n\t}",
			},
		},
	},
	{
		name: "a run that is taken over goes on", stage: "histories", sentence: `two runs of an item go on at once`,
		edits: []edit{{
			"ledger/openrun.go", "\tcase takeover:\n\t\treturn c.end(", "\tcase takeover && true:\n\t\treturn nil\n\tcase takeover:\n\t\treturn c.end(",
		}},
	},
	{
		name: "any payload is covered", stage: "histories", sentence: `happened with another payload than it did`,
		edits: []edit{{
			"ledger/replay.go", "func (c *claiming) covered() bool {\n", "func (c *claiming) covered() bool {\n\tif true {\n\t\treturn true\n\t}\n",
		}},
	},
	{
		name: "a refused drift is sent", stage: "histories", sentence: `a re-run that changed its mind was sent`,
		edits: []edit{{"ledger/drift.go", "if c.q.Drift != DriftRefuse {", "if c.q.Drift != \"\" {"}},
	},
	{
		name: "records under an earlier version of the rule are not looked for", stage: "histories", sentence: `took effect [0-9]+ times`,
		edits: []edit{{"ledger/past.go", "if r.Connector == now.Connector &&", "if false && r.Connector == now.Connector &&"}},
	},
	{
		name: "the subkey is left out of the key", stage: "histories", sentence: `a script was told of [0-9]+ intents, and [0-9]+ took effect`,
		edits: []edit{
			{"proxy/past.go", "Identity: identity, Subkey: d.Subkey,", "Identity: identity,"},
		},
	},
	{
		name: "what was skipped is sent", stage: "histories", sentence: `was claimed although it is skipped`,
		edits: []edit{
			{"ledger/table.go", "{Failed, OnClaim, 0, committed, InFlight, EffectDispatch, \"\"},",
				"{Failed, OnClaim, 0, committed, InFlight, EffectDispatch, \"\"},\n\t{Skipped, OnClaim, 0, committed, InFlight, EffectDispatch, \"\"},"},
			{"ledger/replay.go", "\t\treturn c.ofSkipped()\n", "\t\treturn c.ofFailed()\n"},
		},
	},
	{
		name: "a new attempt is begun by every run", stage: "histories", sentence: `took effect [0-9]+ times`,
		edits: []edit{{
			"ledger/openrun.go", "\tr := c.newRun(id, o, item.Attempt)\n\titem.State,", "\titem.Attempt++\n\tr := c.newRun(id, o, item.Attempt)\n\titem.State,",
		}},
	},
}
