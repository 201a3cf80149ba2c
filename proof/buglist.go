package main

// bugs are those that every proof must catch.
var bugs = []bug{
	{
		name: "sent before the claim is synced", stage: "histories",
		sentence: twice + `|one vendor key carried two payloads|went out before its claim was durable`,
		edits: []edit{{
			"ledger Ledger.claiming", "evaluate(ctx, l, func(c *command) (Claimed, error) {", noting("Claimed"),
		}},
	},
	{
		name: "tried again on a timeout", stage: "histories", sentence: `took effect [0-9]+ times`,
		edits: []edit{{"upstream Sender.Send", "return d.sendH1()\n", again("!ev.Head && !ev.NotSent")}},
	},
	{
		name: "GetBody set: sent again on a stale connection", stage: "histories", sentence: `took effect [0-9]+ times`,
		edits: []edit{{"upstream Sender.Send", "return d.sendH1()\n", again(`ev.Reused && !ev.Head && !ev.NotSent && ev.ErrorClass != "timeout"`)}},
	},
	{
		name: "a lost owner is dispatched again", stage: "histories", sentence: twice,
		edits: []edit{
			{
				"ledger table", "{InFlight, OnOwnerLost, asks, unsent, NeedsReconcile, EffectQueue, \"\"}",
				"{InFlight, OnOwnerLost, asks, unsent, Failed, EffectResolve, \"\"}",
			},
			{
				"ledger table", "{InFlight, OnOwnerLost, 0, asks | committed | unsent, Indeterminate, 0, giveUp}",
				"{InFlight, OnOwnerLost, 0, asks | committed | unsent, Failed, EffectResolve, \"\"}",
			},
		},
	},
	{
		name: "503 judged as failed", stage: "histories", sentence: twice,
		edits: []edit{{"upstream statusRules", "{statuses: []int{425, 429}, kind: Failed", "{statuses: []int{425, 429, 503}, kind: Failed"}},
	},
	{
		name: "absence believed at once", stage: "histories", sentence: twice,
		edits: []edit{{"ledger command.countsAsAbsence", "case !Settled(m, o.At, c.Process()) || !Settled(m, c.now, c.Process()):", "case false:"}},
	},
	{
		name: "the vendor key is renewed after a believed absence", stage: "histories", sentence: `vendor key was renewed after a sending of unknown outcome`,
		edits: []edit{{
			"ledger Mutation.apply", "if r.Effects.Has(EffectNewKey) {",
			"if r.Effects.Has(EffectNewKey) || r.On == OnObservedAbsent && r.To == Failed {",
		}},
	},
	{
		name: "answered before the outcome is durable", stage: "histories", sentence: `told that [a-z]+ happened before that was durable`,
		edits: []edit{{
			"ledger Ledger.EndDispatch", "\treturn l.moving(ctx, func(c *command) (*Mutation, *Run, error) { return c.endDispatch(&f) })\n",
			"\tvar out Moved\n\terr := l.Healthy()\n\tif err != nil {\n\t\treturn Moved{}, err\n\t}\n" +
				"\tl.Note(func(tx Tx) error {\n\t\tc := l.command(tx)\n\t\tout.Mutation, out.Run, err = c.endDispatch(&f)\n\t\treturn err\n\t})\n\treturn out, err\n",
		}},
	},
	{
		name: "a later sending's failure clears an earlier unknown", stage: "histories", sentence: twice + `|a run went on after it was stopped`,
		edits: []edit{{"ledger command.facts", "FactEarlier.If(at > 0 && m.openBefore(at))", "FactEarlier.If(false)"}},
	},
	{
		name: "frames of the log are freed before Badger has them", stage: "./ledger/badgerstore TestALossOfPowerAtEachSync",
		sentence: `what was acknowledged is gone`,
		edits:    []edit{{"ledger/badgerstore Store.append", "s.log.Free(r.folded)", "s.log.Free(s.log.Last().Number)"}},
	},
	{
		name: "a commit is answered before its frame is synced", stage: "./ledger/badgerstore TestALossOfPowerAtEachSync",
		sentence: `what was acknowledged is gone`,
		edits:    []edit{{"ledger/badgerstore/wal Log.write", "err = l.file.Sync()", "err = error(nil)"}},
	},
	{
		name: "the gate isn't asked within the claim", stage: "histories",
		sentence: `went out while another outcome of its scope was unknown|a run read after it was (over|stopped)`,
		edits: []edit{
			{"ledger claiming.decide", "c.checkAllowance, c.checkScope, ", "c.checkAllowance, "},
			{
				"proxy Proxy.standing", "func (p *Proxy) standing(c caller) ledger.Admission {",
				"func (p *Proxy) standing(c caller) ledger.Admission {\n\tif true {\n\t\treturn ledger.Admission{Open: true}\n\t}",
			},
		},
	},
	{
		name: "the witness is not synced before its epoch", stage: "./ledger/badgerstore TestTheWitnessIsDurableBeforeItsEpoch",
		sentence: `the epoch begins before its witness is durable`,
		edits: []edit{{
			"ledger/badgerstore Config.openWitness", "writeSynced(c.HighWaterFile, w.says.encode())",
			"os.WriteFile(c.HighWaterFile, w.says.encode(), 0o600)",
		}},
	},
	{
		name: "the commit of a sending in steps goes out before what the first ones gave is kept", stage: "histories",
		sentence: `went out before what its steps gave was durable`,
		edits: []edit{{
			"ledger Ledger.Prepared", "evaluate(ctx, l, func(c *command) (*Mutation, error) {", noting("*Mutation"),
		}},
	},
	{
		name: "the time of the claim is what the clock of then showed", stage: "histories", sentence: `is recorded as failed, but took effect|took effect [0-9]+ times`,
		edits: []edit{{"reconcilers claimedAt", "at, ok := now.WallOf(first.Started); ok", "at, ok := m.CreatedAt, true; ok"}},
	},
	{
		name: "202 is taken as applied", stage: "histories", sentence: `is recorded as applied, but never took effect`,
		edits: []edit{{"dispatch Sending.accepted", "if s.Operation.Watch == nil || s.Answer.Status", "if true || s.Answer.Status"}},
	},
	{
		name: "a state is set again before settle is over", stage: "histories", sentence: `a setting took effect after the one that came next had gone out`,
		edits: []edit{{
			"ledger NaturalOpen", "now.Age(m.Dispatches[0].Started) < naturalAge && Settled(m, now, process)", "now.Age(m.Dispatches[0].Started) < naturalAge",
		}},
	},
	{
		name: "a state is set again over a later one", stage: "histories", sentence: `a place was set again after a later setting of it`,
		edits: []edit{{"ledger Ledger.LaterOfTarget", "if !otherTarget(m, other) &&", "if m == nil && !otherTarget(m, other) &&"}},
	},
	{
		name: "of several the newest is kept", stage: "histories", sentence: `the oldest was taken back`,
		edits: []edit{
			{"ledger command.oweNewer", "newer := o.Objects[min(1, len(o.Objects)):]", "newer := o.Objects[:max(1, len(o.Objects))-1]"},
			{"reconcilers try.owed", "range s.objects[1:]", "range s.objects[:len(s.objects)-1]"},
		},
	},
	{
		name: "what may still be undone is waived", stage: "histories", sentence: `taken back that was waived`,
		edits: []edit{{"ledger waivable", "return m.Undo == nil || m.State == Failed &&", "return true || m.State == Failed &&"}},
	},
	{
		name: "an item is closed over an open mutation", stage: "histories", sentence: `an (item is [a-z]+|attempt was begun) over a mutation that is open`,
		edits: []edit{{"ledger mayClose", "if m.State == InFlight || m.Watching || m.Unresolved() {", "if false {"}},
	},
	{
		name: "a run is finished over an open mutation", stage: "histories", sentence: `a run is finished over a mutation that is open`,
		edits: []edit{{"ledger letsFinish", "\tdefault:\n\t\treturn false, nil\n", "\tdefault:\n\t\treturn true, nil\n"}},
	},
	{
		name: "a run goes on after its end", stage: "histories", sentence: `after it was (over|stopped)`,
		edits: []edit{
			{"ledger claiming.checkRun", "\tif !c.run.State.Ended() {\n\t\treturn nil, nil\n\t}\n\tout := ", "\tif true {\n\t\treturn nil, nil\n\t}\n\tout := "},
			{
				"proxy Proxy.standing", "func (p *Proxy) standing(c caller) ledger.Admission {",
				"func (p *Proxy) standing(c caller) ledger.Admission {\n\tif true {\n\t\treturn ledger.Admission{Open: true}\n\t}",
			},
		},
	},
	{
		name: "a run that is taken over goes on", stage: "histories", sentence: `two runs of an item go on at once`,
		edits: []edit{{
			"ledger command.makeRoom", "\tcase takeover:\n\t\treturn c.end(", "\tcase takeover && true:\n\t\treturn nil\n\tcase takeover:\n\t\treturn c.end(",
		}},
	},
	{
		name: "any payload is covered", stage: "histories", sentence: `happened with another payload than it did`,
		edits: []edit{{
			"ledger claiming.covered", "func (c *claiming) covered() bool {\n", "func (c *claiming) covered() bool {\n\tif true {\n\t\treturn true\n\t}\n",
		}},
	},
	{
		name: "a refused drift is sent", stage: "histories", sentence: `a re-run that changed its mind was sent`,
		edits: []edit{{"ledger claiming.drift", "if c.q.Drift != DriftRefuse {", "if c.q.Drift != \"\" {"}},
	},
	{
		name: "records under an earlier version of the rule are not looked for", stage: "histories", sentence: `took effect [0-9]+ times`,
		edits: []edit{{"ledger Item.EarlierRules", "if r != now &&", "if false && r != now &&"}},
	},
	{
		name: "the subkey is left out of the key", stage: "histories", sentence: `a script was told of [0-9]+ intents, and [0-9]+ took effect`,
		edits: []edit{
			{"proxy keyOf", "Identity: identity, Subkey: d.Subkey,", "Identity: identity,"},
		},
	},
	{
		name: "what was skipped is sent", stage: "histories", sentence: `was claimed although it is skipped`,
		edits: []edit{
			{"ledger table", "{Failed, OnClaim, 0, committed, InFlight, EffectDispatch, \"\"},",
				"{Failed, OnClaim, 0, committed, InFlight, EffectDispatch, \"\"},\n\t{Skipped, OnClaim, 0, committed, InFlight, EffectDispatch, \"\"},"},
			{"ledger claiming.byRecord", "\t\treturn c.ofSkipped()\n", "\t\treturn c.ofFailed()\n"},
		},
	},
	{
		name: "a new attempt is begun by every run", stage: "histories", sentence: `took effect [0-9]+ times`,
		edits: []edit{{
			"ledger command.openRun", "\tr := c.newRun(id, o, item.Attempt)\n\titem.State,", "\titem.Attempt++\n\tr := c.newRun(id, o, item.Attempt)\n\titem.State,",
		}},
	},
	{
		name: "a run with once begins over an unknown of another", stage: "histories",
		sentence: `a run with once began while nobody could know`,
		edits: []edit{{
			"ledger command.admitScope", "|| o.Once && strings.HasPrefix(b.Item, oncePrefix) {", "|| false && o.Once && strings.HasPrefix(b.Item, oncePrefix) {",
		}},
	},
	{
		name: "runs with once share an item", stage: "histories", sentence: `happened for its run with once, and it never did`,
		edits: []edit{{"ledger command.openRun", "o.Item, o.Attempt = oncePrefix+id, 1", "o.Item, o.Attempt = oncePrefix+o.Workflow, 1"}},
	},
	{
		name: "a run of one mutation makes several", stage: "histories", sentence: `a run of one mutation (sent|was told of) two`,
		edits: []edit{{"ledger claiming.checkAllowance", "if r.Only != nil && *r.Only != c.q.Key {", "if false && r.Only != nil && *r.Only != c.q.Key {"}},
	},
	{
		name: "a run that may only read sends", stage: "histories", sentence: `a run that may only read (sent|was told of) a mutation`,
		edits: []edit{{"ledger claiming.checkAllowance", "\tcase MutationsMany:\n\tcase MutationsOne:", "\tcase MutationsMany, MutationsNone:\n\tcase MutationsOne:"}},
	},
	{
		name: "an unmanaged scope isn't stopped", stage: "histories", sentence: `a read went out while nobody could know`,
		edits: []edit{{"ledger Ledger.GateUnmanaged", "\treturn admitScope(workflow, item, l.unrecorded.beside(blockers))\n", "\t_ = blockers\n\treturn Admission{Open: true}\n"}},
	},
	{
		name: "what is sent again stops what its first run said", stage: "histories", sentence: `went out while nobody could know`,
		edits: []edit{
			{"ledger claiming.prepare", "\tc.m.Policy.BlockScope = record.Policy.BlockScope\n", ""},
			{"ledger claiming.repin", "\t\tc.m.Policy = r.Policy\n", "\t\tscope := c.m.Policy.BlockScope\n\t\tc.m.Policy = r.Policy\n\t\tc.m.Policy.BlockScope = scope\n"},
		},
	},
	{
		name: "an answer that says nothing counts as agreement", stage: "histories",
		sentence: `and nobody asked whether it is there|which is not there any more`,
		edits:    []edit{{"ledger command.verified", "case v.Said == SaidAgrees ||", "case v.Said != SaidDisagrees ||"}},
	},
	{
		name: "what the world disagrees with is replayed strictly, too", stage: "histories",
		sentence: `and nobody asked whether it is there|which is not there any more`,
		edits:    []edit{{"ledger command.verified", "\tif v.Mode == VerifyWarn {", "\tif v.Mode != VerifyHuman {"}},
	},
	{
		name: "what a person acknowledged is asked about again", stage: "histories", sentence: `refused what a person wanted replayed`,
		edits: []edit{{"ledger Mutation.decided", "m.Verification.Acknowledged = true", "m.Verification.Acknowledged = false"}},
	},
	{
		name: "what is owed is waived with its item", stage: "histories", sentence: `an obligation was waived by nobody`,
		edits: []edit{
			{"ledger command.barItem", "case m.Undo == nil && allowedToPerson(m, OnSkip):", "case allowedToPerson(m, OnSkip):"},
			{"ledger command.skipEach", "if m.Undo != nil || !allowedToPerson(m, OnSkip) {", "if !allowedToPerson(m, OnSkip) {"},
		},
	},
	{
		name: "what is forgotten is sent again", stage: "histories", sentence: `was claimed although it is applied|took effect [0-9]+ times`,
		edits: []edit{
			{"ledger table", "{Failed, OnClaim, 0, committed, InFlight, EffectDispatch, \"\"},",
				"{Failed, OnClaim, 0, committed, InFlight, EffectDispatch, \"\"},\n\t{Applied, OnClaim, 0, 0, InFlight, EffectDispatch, \"\"},"},
			{"ledger claiming.ofApplied", "\t\treturn c.forgotten()\n", "\t\treturn c.dispatch()\n"},
		},
	},
	{
		name: "the answer of what is forgotten is given", stage: "histories", sentence: `was given the answer of [a-z]+, which was dropped`,
		edits: []edit{
			{"ledger claiming.ofApplied", "\t\treturn c.forgotten()\n", "\t\treturn &Claimed{Decision: DecideReplay}, c.useRun(false)\n"},
			{"ledger Mutation.dropContents", "m.Result.Header, m.Result.Body.Dropped = nil, m.Result.Body.SHA256 != \"\"", "m.Result.Header = nil"},
		},
	},
	{
		name: "what a run works on is forgotten", stage: "histories", sentence: `was forgotten while a run of its item goes on`,
		edits: []edit{{"ledger command.forget", "c.worksOn(item); err != nil || busy {", "c.worksOn(item); err != nil || busy && m == nil {"}},
	},
	{
		name: "a record goes with its contents", stage: "histories",
		sentence: `took effect [0-9]+ times|one vendor key carried two payloads`,
		edits:    []edit{{"ledger command.forget", "\tif !m.Forgotten.IsZero() {\n\t\tcounts.Removed++", "\tif r.Forget {\n\t\tcounts.Removed++"}},
	},
	{
		name: "a record is removed while its API knows its key", stage: "histories", sentence: `one vendor key carried two payloads`,
		edits: []edit{
			{"ledger Retention.Forgettable", "wait = max(wait, m.Policy.KeyWindow, m.KeyKnown)", "wait = max(wait, 0)"},
			{"ledger Mutation.deriveVendorKey", "VendorKey(markedBy(m.Key, m.Remade), ", "VendorKey(m.Key, "},
		},
	},
}
