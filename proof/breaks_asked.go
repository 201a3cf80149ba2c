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
}
