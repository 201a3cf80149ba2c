package main

// upstreamBreaks break the sending and the verdict.
var upstreamBreaks = []broken{
	{
		promise: "One dispatch is one sending", how: "sent again on a timeout",
		edits: []edit{{"upstream/sender.go", "return d.sendH1()\n", again("!ev.Head && !ev.NotSent")}},
		tests: []string{"upstream.TestEveryDispatchIsSentAtMostOnce"},
	},
	{
		promise: "There is no retry, no redirect is followed", how: "sent again on a stale connection",
		edits: []edit{{"upstream/sender.go", "return d.sendH1()\n", again(`ev.Reused && !ev.Head && !ev.NotSent`)}},
		tests: []string{"upstream.TestEveryDispatchIsSentAtMostOnce", "upstream.TestConnectionsAreUsedAgainWhileFresh"},
	},
	{
		promise: "*It is proven that nothing was sent*", how: "an answer that doesn't come proves that nothing was sent",
		edits: []edit{{"upstream/dispatch.go", "ev.NotSent = d.untouched() && !ev.Head", "ev.NotSent = !ev.Head"}},
		tests: []string{"upstream.TestUpstreamThatBreaksOffLeavesTheOutcomeUncertain"},
	},
	{
		promise: "*It is proven that nothing was sent*", how: "evidence that contradicts itself is believed",
		edits: []edit{{"upstream/judge.go", "case ev.NotSent && ev.BytesWritten != 0:", "case ev.NotSent && ev.BytesWritten < 0:"}},
		tests: []string{"upstream.TestFirstRowsAlwaysHold"},
	},
	{
		promise: "*The upstream declared that it didn't process it*", how: "a refusal is believed although the connector doesn't",
		edits: []edit{{"upstream/dispatch.go", "ev.Refused = d.trusted && d.refused() && !ev.Head", "ev.Refused = d.refused() && !ev.Head"}},
		tests: []string{"upstream.TestH2RefusalIsBelievedOnlyWhereAllowed"},
	},
	{
		promise: "*No complete head of a final answer was read*", how: "the rule is asked about an answer without a head",
		edits: []edit{{"upstream/judge.go", "case !ev.Head, ev.Status < 200:", "case !ev.Head && ev.Status >= 200:"}},
		tests: []string{"upstream.TestFirstRowsAlwaysHold"},
	},
	{
		promise: "*The rule has an opinion* (`outcome`, `success`)", how: "the table comes before the rule",
		edits: []edit{{"upstream/judge.go", "op); decided {", "op); decided && op.Kind == OpinionUncertain {"}},
		tests: []string{"upstream.TestOpinionsGoBeforeTheDefaultTable"},
	},
	{
		promise: "gRPC answers are uncertain", how: "a gRPC answer is judged by its status",
		edits: []edit{{"upstream/judge.go", "case f.GRPC && ev.Status < 300:", "case f.GRPC && ev.Status < 200:"}},
		tests: []string{"upstream.TestFactsChangeTheDefaultTable"},
	},
	{
		promise: "the table verdicts", how: "503 is a failure",
		edits: []edit{{"upstream/statusrules.go", "{statuses: []int{425, 429}, kind: Failed", "{statuses: []int{425, 429, 503}, kind: Failed"}},
		tests: []string{"upstream.TestDefaultTable"},
	},
	{
		promise: "409 and 5xx are uncertain because gateways retry inside", how: "409 is a failure",
		edits: []edit{{"upstream/statusrules.go", "{statuses: []int{408, 409, 412, 499}, kind: Uncertain,", "{statuses: []int{408, 409, 412, 499}, kind: Failed, class: ClassLogic,"}},
		tests: []string{"upstream.TestDefaultTable"},
	},
	{
		promise: "404 on DELETE may be this deletion's own work", how: "404 on DELETE is a failure",
		edits: []edit{{"upstream/statusrules.go", "notDelete: true,", "notDelete: false,"}},
		tests: []string{"upstream.TestFactsChangeTheDefaultTable", "upstream.TestDefaultTable"},
	},
	{
		promise: "A success whose body was cut is *committed*", how: "a cut success is taken as whole",
		edits: []edit{{"upstream/judge.go", "case ev.BodyComplete:", "case ev.BodyComplete || ev.Head:"}},
		tests: []string{"upstream.TestFactsChangeTheDefaultTable", "upstream.TestDefaultTable"},
	},
	{
		promise: "It ends when its connection, or HTTP/2 stream, is closed", how: "a sending that broke off leaves its connection open",
		edits: []edit{{"upstream/dispatch.go", "cause := d.watch.stop()\n\td.conn.kill()\n", "cause := d.watch.stop()\n"}},
		tests: []string{"upstream.TestASendingThatBreaksOffClosesItsConnection"},
	},
	{
		promise: "The request that goes out is rebuilt from the parsed one", how: "the host that is sent is the URL's",
		edits: []edit{{"upstream/plan.go", "host: r.Host, url:", "host: \"\", url:"}},
		tests: []string{"upstream.TestH1RequestIsRebuilt", "upstream.TestH2RequestIsRebuilt"},
	},
}
