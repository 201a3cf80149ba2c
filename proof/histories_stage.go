package main

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
)

var (
	historiesLine  = regexp.MustCompile(`([0-9]+ histories from seed [0-9]+): (.*)`)
	historiesCount = regexp.MustCompile(`([0-9]+) ([^,]+)`)
)

// inHistories runs a test of the simulated histories, and returns what it printed.
func inHistories(ctx context.Context, o options, test string, more ...string) (string, error) {
	args := []string{"test", "./proof/histories", "-run", "^" + test + "$", "-count", "1", "-timeout", "0", "-v", "-seed", fmt.Sprint(o.seed)}
	cmd := exec.CommandContext(ctx, "go", append(args, more...)...)
	cmd.Dir, cmd.Stderr = o.root, o.progress
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%w\n%s", err, tail(string(out)))
	}
	return string(out), nil
}

// historiesStage simulates whole runs.
func historiesStage(ctx context.Context, o options) part {
	out, err := inHistories(ctx, o, "TestHistories", "-histories", fmt.Sprint(o.histories), "-within", o.within.String())
	if err != nil {
		return part{bad: []string{err.Error()}}
	}
	return toldOfHistories(out, o)
}

// toldOfHistories is the part of a run of histories that found nothing wrong.
func toldOfHistories(out string, o options) part {
	told := historiesLine.FindStringSubmatch(out)
	if told == nil {
		return part{bad: []string{"the histories reported nothing"}}
	}
	p := part{header: []string{"in them", "how many"}}
	count := map[string]string{}
	for _, m := range historiesCount.FindAllStringSubmatch(told[2], -1) {
		p.rows = append(p.rows, []string{m[2], m[1]})
		count[m[2]] = m[1]
	}
	p.says = fmt.Sprintf("%s, with %s sendings, %s crashes and %s decisions of people. Nothing took effect twice, nothing was recorded that was not so, "+
		"nothing went on after its stop, and everything came to an end.", told[1], count["sendings"], count["crashes"], count["decisions of people"])
	if o.within > 0 {
		p.says = fmt.Sprintf("Of %d, as many as there was time for: ", o.histories) + p.says
	}
	return p
}

// liesMost is in how many histories each lie is told at most, on each side.
const liesMost = 1000

var lieLine = regexp.MustCompile(`(inside|outside)\| (.*?) \| (.*?) \| ([0-9]+) histories, ([0-9]+) sendings, ([0-9]+) twice, ` +
	`([0-9]+) wrongly failed, ([0-9]+) wrongly applied, ([0-9]+) else, ([0-9]+) asked, ([0-9]+) clocks(?: \| (.*))?`)

// liesStage lets the API be as its rules don't say.
func liesStage(ctx context.Context, o options) part {
	out, err := inHistories(ctx, o, "TestLies", "-histories", fmt.Sprint(min(o.histories, liesMost)))
	if err != nil {
		return part{bad: []string{err.Error()}}
	}
	p := part{
		says: "Each lie is told within what the rules declare, where nothing may go wrong, and beyond it, where the broken condition of " +
			"[semantics.md](semantics.md) is named. Each is told in as many histories as the table says.",
		header: []string{
			"the API", "how", "declared", "histories", "sendings", "took effect twice", "wrongly failed", "wrongly applied", "went on wrongly",
			"a person was asked", "and told that a clock is wrong", "broken condition",
		},
	}
	for _, m := range lieLine.FindAllStringSubmatch(out, -1) {
		declared, condition := "yes", "none"
		if m[1] == "outside" {
			declared, condition = "no", m[12]
		}
		p.rows = append(p.rows, slices.Concat([]string{m[2], m[3], declared}, m[4:12], []string{condition}))
	}
	if len(p.rows) == 0 {
		p.bad = append(p.bad, "the lies reported nothing")
	}
	return p
}

var rivalLine = regexp.MustCompile(`baselines_test.go:[0-9]+: ([^:]+): ([0-9]+) histories, ([0-9]+) intended effects, ` +
	`([0-9]+) took effect more than once, ([0-9]+) were`)

// rivalsStage lets other ways of sending go through the same histories.
func rivalsStage(ctx context.Context, o options) part {
	out, err := inHistories(ctx, o, "TestRivalsPayTwice", "-histories", fmt.Sprint(o.histories))
	if err != nil {
		return part{bad: []string{err.Error()}}
	}
	p := part{
		says:   "The same scripts, faults and judge with other ways of sending in the place of keep-proxy.",
		header: []string{"instead", "histories", "intended effects", "took effect more than once", "taken as done, and never were"},
	}
	for _, m := range rivalLine.FindAllStringSubmatch(out, -1) {
		p.rows = append(p.rows, m[1:])
	}
	if len(p.rows) == 0 {
		p.bad = append(p.bad, "the rivals reported nothing")
	}
	return p
}
