package main

// proxyBreaks break the front door and the pipeline of a mutation.
var proxyBreaks = []broken{
	{
		promise: "Not repeats are: the same client `Idempotency-Key`", how: "a caller that has gone counts as connected",
		edits: []edit{{"proxy/flights.go", "c.run != other.run || other.gone() {", "c.run != other.run {"}},
		tests: []string{"proxy.TestACallerThatGoesAwayCancelsNothing"},
	},
	{
		promise: "A run that asks again for a mutation whose answer it has had whole", how: "two connected callers of one run are one intent",
		edits: []edit{{"proxy/flights.go", "return !c.replay && (c.clientKey == \"\" || c.clientKey != other.clientKey)", "return false"}},
		tests: []string{"proxy.TestTwentyCallersOfOneKey"},
	},
	{
		promise: "Refused before anything is sent: dot segments", how: "another authority inside a tunnel is served",
		edits: []edit{{"proxy/serve.go", "err != nil || asked != t.target {", "err != nil && asked != t.target {"}},
		tests: []string{"proxy.TestAnotherAuthorityInsideATunnelIsMisdirected"},
	},
	{
		promise: "Refused before anything is sent: dot segments", how: "another server name is served",
		edits: []edit{{"proxy/serve.go", `if r.TLS != nil && r.TLS.ServerName != "" && strings.`, `if r.TLS == nil && strings.`}, {"proxy/serve.go", "TrimSuffix(strings.ToLower(r.TLS.ServerName), \".\") != host {", "TrimSuffix(host, \".\") != host {"}},
		tests: []string{"proxy.TestAnotherServerNameIsMisdirected"},
	},
	{
		promise: "If two are found, or a stored version can't be read", how: "a stored version that can't be read is passed over",
		edits: []edit{{"proxy/settle.go", "case ledger.DecideRules:\n", "case ledger.DecideRules:\n\t\tw.claim.CanDerive = false\n\t\tif again, err := p.tryClaim(ctx, w); err == nil {\n\t\t\treturn p.decided(ctx, x, w, again)\n\t\t}\n"}},
		tests: []string{"proxy.TestARuleThatCantBeReadAnyMoreRefuses"},
	},
	{
		promise: "Wrong ones, or none without an unmanaged scope, get 407", how: "an unknown token is the unmanaged scope",
		edits: []edit{{
			"proxy/caller.go", "case errors.Is(err, ledger.ErrNotFound):\n\t\treturn caller{}, errCredentials",
			"case errors.Is(err, ledger.ErrNotFound):\n\t\treturn caller{unmanaged: true, workflow: \"w\", item: \"i\"}, nil",
		}},
		tests: []string{"proxy.TestCredentials"},
	},
	{
		promise: "If the run is over or its scope is stopped", how: "the gate's refusal is passed over",
		edits: []edit{{"proxy/pipeline.go", "if f := p.gate(x); f != nil {", "if f := p.gate(x); f != nil && x.tunnel == nil && x.client == nil {"}},
		tests: []string{"proxy.TestALostAcknowledgementStopsTheWorkflow"},
	},
	{
		promise: "On other hosts GET, HEAD and OPTIONS pass", how: "a mutation to an unknown host is passed",
		edits: []edit{{"proxy/pipeline.go", "case PolicyDeny:\n\t}", "case PolicyDeny:\n\t\treturn p.pass(x, r, req, \"\")\n\t}"}},
		tests: []string{"proxy.TestUnmatchedHosts"},
	},
	{
		promise: "TRACE is always denied, and a protocol upgrade", how: "an upgrade without a rule goes through",
		edits: []edit{{"rules/upgrade.go", "return nil, refuse(ProblemDenied, \"protocol upgrades are refused where no rule names the protocol (upgrade)\")", "return asked, nil"}},
		tests: []string{"proxy.TestRefusalsSendNothing", "proxy.TestUpgradesThatNoRuleAllowsAreRefused"},
	},
	{
		promise: "TRACE is always denied, and a protocol upgrade", how: "an upgrade goes through with its Upgrade field taken out",
		edits: []edit{{"proxy/pipeline.go", "if x.asked = asked; f != nil {", "if x.asked = asked[len(asked):]; f != nil {"}},
		tests: []string{"proxy.TestUpgradesThatNoRuleAllowsAreRefused"},
	},
	{
		promise: "With `upgrade` a GET request without content may change", how: "the upstream is asked for every protocol of the client's",
		edits: []edit{{"proxy/upgrade.go", "x.effect, x.protocols = m.Effect.String(), allowed", "x.effect, x.protocols = m.Effect.String(), append(allowed[:0], x.asked...)"}},
		tests: []string{"proxy.TestAConnectionChangesToAProtocolThatItsRuleNames"},
	},
	{
		promise: "With `upgrade` a GET request without content may change", how: "a change to another protocol is believed",
		edits: []edit{{"upstream/switched.go", "if !listed(asked, one) {", "if !listed(asked, one) && len(asked) == 0 {"}},
		tests: []string{"proxy.TestAnswersToAnUpgrade"},
	},
	{
		promise: "From then on bytes are carried both ways as in a blind tunnel", how: "what comes before the answer is read as HTTP",
		edits: []edit{{"proxy/strict/scanner.go", "case s.head.upgrade:\n\t\ts.state = atUpgrade", "case s.head.upgrade && s.head.connect:\n\t\ts.state = atUpgrade"}},
		tests: []string{"proxy.TestWhatTheClientSaysBeforeTheChangeIsKept"},
	},
	{
		promise: "If the upstream cuts an answer, so does the proxy", how: "a cut answer ends as if it were whole",
		edits: []edit{{"proxy/serve.go", "answer.finish(); answer.cut {", "answer.finish(); answer.cut && x == nil {"}},
		tests: []string{"proxy.TestACutReadIsCutForTheClient"},
	},
	{
		promise: "Mutations are read whole (beyond `max_body`: 413", how: "half a body is sent",
		edits: []edit{{"proxy/spool.go", "if _, err := io.ReadFull(r.Body, body); err != nil {", "if _, err := io.ReadFull(r.Body, body); err != nil && len(body) == 0 {"}},
		tests: []string{"proxy.TestHalfABodySendsNothing"},
	},
	{
		promise: "Mutations are read whole (beyond `max_body`: 413", how: "chunks without an end are sent",
		edits: []edit{{"proxy/spool.go", "case err != nil:\n\t\treturn nil, err\n\tcase r.ContentLength", "case err != nil && c == nil:\n\t\treturn nil, err\n\tcase r.ContentLength"}},
		tests: []string{"proxy.TestHalfABodySendsNothing"},
	},
	{
		promise: "Mutations are read whole (beyond `max_body`: 413", how: "half a long body is sent",
		edits: []edit{
			{"proxy/spool.go", "case err != nil:\n\t\treturn nil, err\n\tcase r.ContentLength > 0 && c.size()", "case err != nil && (c == nil || r.ContentLength < 0):\n\t\treturn nil, err\n\tcase r.ContentLength > 0 && limit"},
		},
		tests: []string{"proxy.TestHalfABodySendsNothing"},
	},
	{
		promise: "A script that goes away cancels nothing", how: "a script that goes away cancels what was claimed",
		edits: []edit{{"proxy/mutate.go", "return p.settle(context.WithoutCancel(x.client), x, w)", "_ = context.Background\n\treturn p.settle(x.client, x, w)"}},
		tests: []string{"proxy.TestACallerThatGoesAwayCancelsNothing"},
	},
	{
		promise: "If the ledger can't record the claim, nothing is sent", how: "what could not be claimed is sent",
		edits: []edit{{
			"proxy/settle.go", "if err != nil {\n\t\t\treturn &settled{refusal: ledgerRefusal(err)}\n\t\t}\n\t\tif claimed.Decision == ledger.DecideTurn {",
			"if err != nil {\n\t\t\tm := w.claim.Record\n\t\t\tm.Key, m.ID = w.key, w.key.ID()\n\t\t\td := ledger.Dispatch{ID: w.claim.DispatchID}\n" +
				"\t\t\treturn p.dispatch(ctx, w, ledger.Claimed{Decision: ledger.DecideDispatch, Mutation: &m, Dispatch: &d})\n\t\t}\n\t\tif claimed.Decision == ledger.DecideTurn {",
		}},
		tests: []string{"proxy.TestALedgerThatCantClaimSendsNothing"},
	},
	{
		promise: "If it can't record the outcome, the script is told", how: "a success that could not be recorded is told",
		edits: []edit{{
			"proxy/conclude.go", "if !recorded {\n\t\tendWait()\n\t\treturn p.notRecorded(s)", "if !recorded {\n\t\tendWait()\n\t\ts.mutation.State = ledger.Applied\n\t\treturn p.outcomeAnswer(s)",
		}},
		tests: []string{"proxy.TestAnUnrecordableOutcomeIsUnknown"},
	},
	{
		promise: "If it can't record the outcome, the script is told", how: "what could not be recorded stops nothing",
		edits: []edit{{"ledger/unrecorded.go", "if len(u.blockers) == 0 {", "if len(u.blockers) < 1000 {"}},
		tests: []string{"proxy.TestAnUnrecordedOutcomeStopsItsScope"},
	},
	{
		promise: "If it can't record the outcome, the script is told", how: "recording isn't tried again",
		edits: []edit{{"proxy/recorder.go", "case err == nil:\n\tcase permanent(err):", "case err == nil || p != nil:\n\t\treturn true\n\tcase permanent(err):"}},
		tests: []string{"proxy.TestAnUnrecordedOutcomeStopsItsScope"},
	},
	{
		promise: "In a host listed under `proxy.passthrough` the tunnel is blind", how: "a blind tunnel isn't gated when it opens",
		edits: []edit{{"proxy/connect.go", "if f := p.gate(x); f != nil {", "if f := p.gate(x); f != nil && t == nil {"}},
		tests: []string{"proxy.TestBlindTunnels"},
	},
	{
		promise: "The script's own `Accept-Encoding` doesn't reach the API", how: "the script's codings are asked for",
		edits: []edit{{"proxy/dispatch.go", `header["Accept-Encoding"] = identityCoding`, "_ = identityCoding"}},
		tests: []string{"proxy.TestNoContentCodingIsAskedFor"},
	},
	{
		promise: "It is set durably at the head of a successful answer", how: "success is recorded where the body decides",
		edits: []edit{{"proxy/collect.go", "if !s.w.op.BodyDecides(", "if p != nil || !s.w.op.BodyDecides("}},
		tests: []string{"proxy.TestALateBodyThatDecidesIsAwaited"},
	},
	{
		promise: "It is set durably at the head of a successful answer", how: "success isn't recorded before its body",
		edits: []edit{{"proxy/collect.go", "if !p.succeeded(s) {", "if p.succeeded(s) {"}},
		tests: []string{"proxy.TestASuccessWhoseBodyIsLateIsCommittedFirst"},
	},
	{
		promise: "Where the connector has a `rate`, what exceeds it waits", how: "what exceeds the rate is sent at once",
		edits: []edit{{"proxy/settle.go", "needsTurn := w.match.Connector.Rate.Bounds()", "needsTurn := false"}},
		tests: []string{"proxy.TestNothingIsClaimedBeforeItsTurn"},
	},
	{
		promise: "Once at once, while the script waits", how: "nothing is asked while the script waits",
		edits: []edit{{"proxy/conclude.go", "f.Pending = s.w.op.Reconciles()", "f.Pending = false"}},
		tests: []string{"proxy.TestTheInlineTryFindsTheResult"},
	},
	{
		promise: "`applied`: the stored status, header fields and body", how: "a replay says nothing of the stored fields",
		edits: []edit{{"proxy/settle.go", "map[string][]string(result.Header), body", "nil, body"}},
		tests: []string{"proxy.TestAnAppliedMutationIsReplayedToALaterRun"},
	},
	{
		promise: "`applied`: the stored status, header fields and body", how: "a replay isn't marked as one",
		edits: []edit{{"proxy/settled.go", "if s.replayed {\n\t\theader[headerReplayed]", "if s.replayed && s.standIn != \"\" {\n\t\theader[headerReplayed]"}},
		tests: []string{"proxy.TestAnAppliedMutationIsReplayedToALaterRun"},
	},
	{
		promise: "If the rule was changed since, the payload is covered", how: "the rule of then isn't asked",
		edits: []edit{{"proxy/compare.go", "m.ConnectorHash != op.Connector.Hash ||", "m.ConnectorHash == op.Connector.Hash ||"}},
		tests: []string{"proxy.TestPayloadsAreComparedByMeaning", "proxy.TestAChangedRuleMeetsItsPast", "proxy.TestRulesMayChangeWhileARunIsOpen"},
	},
	{
		promise: "What differs, place by place, is kept with the record", how: "what differs isn't told",
		edits: []edit{{"proxy/compare.go", "out.Diff.Changes = append(out.Diff.Changes, ledger.Change{", "_ = append(out.Diff.Changes, ledger.Change{"}},
		tests: []string{"proxy.TestTheDifferenceIsToldAndKept"},
	},
	{
		promise: "In a stopped scope everything is refused", how: "open streams go on after a stop",
		edits: []edit{{"proxy/cut.go", "case a.Open:\n", "case a.Open || a.Problem == string(problemBlocked):\n"}},
		tests: []string{"proxy.TestAStopCutsOpenStreams"},
	},
	{
		promise: "The first of these that says something decides", how: "the run's scope comes before the rule's",
		edits: []edit{{"proxy/mutate.go", "or(ledger.BlockScope(op.BlockScope), or(x.caller.scope, p.config.BlockScope))", "or(x.caller.scope, or(ledger.BlockScope(op.BlockScope), p.config.BlockScope))"}},
		tests: []string{"integration.TestTheItemScopeStopsItsItemAlone"},
	},
	{
		promise: "Until then nothing can have taken effect", how: "the commit is sent although its steps' values aren't kept",
		edits: []edit{{
			"proxy/steps.go", "if err != nil {\n\t\ts.answer = nil\n\t\treturn p.unprepared(ctx, s, fmt.Errorf(\"what it gave can't be kept: %w\", err))\n\t}",
			"if err != nil {\n\t\tunkept := *s.mutation\n\t\tm, unkept.Kept = &unkept, kept\n\t}\n\t_ = fmt.Errorf",
		}},
		tests: []string{"proxy.TestWhatStepsGaveMustBeKept"},
	},
}
