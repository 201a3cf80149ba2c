package main

// ruleBreaks break what a rule makes of requests and answers.
var ruleBreaks = []broken{
	{
		promise: "A request from which identity can't be derived is refused", how: "an identity whose values are missing is an empty one",
		edits: []edit{{"rules/derive.go", "if len(out) == 0 {", "if len(out) < 0 {"}},
		tests: []string{"rules.TestDeriveRefuses", "rules.TestAMissingValueIsRefusedAndAnOptionalOneIsNot"},
	},
	{
		promise: "A request from which identity can't be derived is refused", how: "a missing value counts as an absent optional",
		edits: []edit{{"rules/derive.go", "if err != nil {\n\t\treturn jsonValue{}, false, refuse(ProblemIdentity, what", "if err != nil && what == \"\" {\n\t\treturn jsonValue{}, false, refuse(ProblemIdentity, what"}},
		tests: []string{"rules.TestAMissingValueIsRefusedAndAnOptionalOneIsNot", "rules.TestDeriveRefuses"},
	},
	{
		promise: "Everything else in method, path and host variables, query and body is payload", how: "the method is no payload",
		edits: []edit{{"rules/payload.go", "dst = append(appendString(dst, s.req.Method), ',')", "dst = append(appendString(dst, \"\"), ',')"}},
		tests: []string{"rules.TestPayloadIsEverythingElse"},
	},
	{
		promise: "Everything else in method, path and host variables, query and body is payload", how: "a query that can't be read is no payload",
		edits: []edit{{"rules/payload.go", "if p.problem != nil {\n\t\treturn appendString(dst, p.raw)", "if p.problem != nil {\n\t\treturn appendString(dst, \"\")"}},
		tests: []string{"rules.TestPayloadOfFormsAndBytes"},
	},
	{
		promise: "A rule without identity loads only if it says", how: "a rule without identity loads",
		edits: []edit{{"rules/loadmutation.go", `d.fail("missing", key, at, "identity is missing:`, `d.warn("missing", key, at, "identity is missing:`}},
		tests: []string{"rules.TestProblemsOfAFileAreNamed"},
	},
	{
		promise: "Host names become lower case", how: "escapes of unreserved characters stay",
		edits: []edit{{"rules/path.go", "if isUnreserved(d) {", "if isUnreserved(d) && d == 0 {"}},
		tests: []string{"rules.TestNormalizeBringsSpellingsTogether"},
	},
	{
		promise: "Host names become lower case", how: "a default port is another host",
		edits: []edit{{"rules/normalize.go", "if port == defaultPort(scheme) {", "if port == defaultPort(scheme) && host == \"\" {"}},
		tests: []string{"rules.TestNormalizeBringsSpellingsTogether"},
	},
	{
		promise: "Refused before anything is sent: dot segments", how: "empty segments pass",
		edits: []edit{{"rules/path.go", `case value == "":`, `case value == "\x00":`}},
		tests: []string{"rules.TestNormalizeRefusesWhatParsersReadDifferently"},
	},
	{
		promise: "Refused before anything is sent: dot segments", how: "an overriding header passes",
		edits: []edit{{"rules/override.go", "if len(req.Header[name]) > 0 && !m.matchesOn(", "if len(req.Header[name]) > 1 && !m.matchesOn("}},
		tests: []string{"rules.TestOverridesAreRefusedWhereverServersLook"},
	},
	{
		promise: "Refused before anything is sent: dot segments", how: "an encoded slash passes",
		edits: []edit{{"rules/matching.go", "if req.path.encodedSlash && !isSafe(req.Method) &&", "if req.path.encodedSlash && isSafe(req.Method) &&"}},
		tests: []string{"rules.TestMatchRefuses"},
	},
	{
		promise: "On a connector's host, what no operation declares is denied", how: "an undeclared POST passes as a read",
		edits: []edit{{"rules/matching.go", "if isSafe(req.Method) && (c.ReadsSafe ||", "if isSafe(req.Method) || (c.ReadsSafe ||"}},
		tests: []string{"rules.TestMatchRefuses"},
	},
	{
		promise: "TRACE is always denied, and a protocol upgrade", how: "TRACE passes",
		edits: []edit{{"rules/matching.go", "if req.Method == http.MethodTrace || req.Method", "if req.Method"}},
		tests: []string{"rules.TestMatchRefuses"},
	},
	{
		promise: "A condition that can't be evaluated is uncertain", how: "a condition that can't be evaluated doesn't hold",
		edits: []edit{{"rules/judge.go", "if err != nil {\n\t\t\treturn Opinion{Kind: OpinionUncertain, Reason: \"the condition \"", "if err != nil && resp == nil {\n\t\t\treturn Opinion{Kind: OpinionUncertain, Reason: \"the condition \""}},
		tests: []string{"rules.TestJudge"},
	},
	{
		promise: "A rule may use smaller numbers only with `bounds`", how: "settle may be shorter than the bounds",
		edits: []edit{{"rules/loadnumbers.go", "op.Settle > sum(b.Commit, b.Lag):", "op.Settle > 0:"}},
		tests: []string{"rules.TestProblemsOfAFileAreNamed"},
	},
	{
		promise: "Configuration can't make them smaller for rules without bounds", how: "an override makes settle shorter",
		edits: []edit{{"rules/loadnumbers.go", "case *s.override < s.floor && !r.bounded:", "case *s.override < s.floor && r.bounded:"}},
		tests: []string{"rules.TestNumbersComeFromTheStrongestSource"},
	},
	{
		promise: "With `content`, objects created before the claim", how: "objects of before the claim count",
		edits: []edit{{"rules/observation.go", "return slices.DeleteFunc(found, func(one object) bool { return one.created.Before(since) }), \"\"", "return found, \"\""}},
		tests: []string{"rules.TestContentCountsOnlyWhatIsYoungEnough"},
	},
	{
		promise: "With `content`, objects created before the claim", how: "the clocks' difference isn't counted",
		edits: []edit{{"rules/observation.go", "margin := clocks.Off.Abs() + createdMargin", "margin := createdMargin"}},
		tests: []string{"rules.TestTheBordersOfACreationTime", "rules.TestContentCountsOnlyWhatIsYoungEnough"},
	},
	{
		promise: "One object is evidence for one mutation", how: "leaving another's object out is absence",
		edits: []edit{{"rules/observation.go", "left > 0 && (len(found) == 0 ||", "left < 0 && (len(found) == 0 ||"}},
		tests: []string{"rules.TestAnObservationThatRestsOnLeavingAnObjectOutIsRetry"},
	},
	{
		promise: "Several objects that carry our vendor key or marker", how: "the first that was listed is taken, not the oldest",
		edits: []edit{{"rules/observation.go", "if a.probe.created != nil {\n\t\tslices.SortStableFunc", "if a.probe.created == nil {\n\t\tslices.SortStableFunc"}},
		tests: []string{"rules.TestContentCountsOnlyWhatIsYoungEnough"},
	},
	{
		promise: "404 and 410 mean that it is undone", how: "404 on an undo is a failure",
		edits: []edit{{"rules/undo.go", "if o.Kind == OpinionNone && gone {", "if o.Kind == OpinionUncertain && gone {"}},
		tests: []string{"rules.TestWhatIsNotThereIsUndone"},
	},
	{
		promise: "the rule says `absence_is_proof`: a strong read by key", how: "a listing that goes on counts as whole",
		edits: []edit{{"rules/listing.go", "cut || err != nil {\n\t\t\treturn nil, errors.New(\"the listing goes on", "cut && err != nil {\n\t\t\treturn nil, errors.New(\"the listing goes on"}},
		tests: []string{"rules.TestAListingThatGoesOnWithoutPagesIsRetry"},
	},
}
