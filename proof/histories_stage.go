package main

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
)

var historiesLine = regexp.MustCompile(`[0-9]+ histories from seed .*`)

// historiesStage simulates whole runs.
func historiesStage(ctx context.Context, o options) part {
	cmd := exec.CommandContext(ctx, "go", "test", "./proof/histories", "-run", "^TestHistories$", "-count", "1", "-timeout", "0", "-v",
		"-histories", fmt.Sprint(o.histories), "-seed", fmt.Sprint(o.seed))
	cmd.Dir, cmd.Stderr = o.root, o.progress
	out, err := cmd.Output()
	if err != nil {
		return part{bad: []string{fmt.Sprintf("%v\n%s", err, out)}}
	}
	return part{says: string(historiesLine.Find(out)) + ". Nothing took effect twice, nothing was recorded that was not so, and everything came to an end."}
}

var rivalLine = regexp.MustCompile(`baselines_test.go:[0-9]+: ([^:]+): ([0-9]+) histories, ([0-9]+) intended effects, ` +
	`([0-9]+) took effect more than once, ([0-9]+) were`)

// rivalsStage lets other ways of sending go through the same histories.
func rivalsStage(ctx context.Context, o options) part {
	cmd := exec.CommandContext(ctx, "go", "test", "./proof/histories", "-run", "^TestRivalsPayTwice$", "-count", "1", "-timeout", "0", "-v",
		"-histories", fmt.Sprint(o.histories), "-seed", fmt.Sprint(o.seed))
	cmd.Dir, cmd.Stderr = o.root, o.progress
	out, err := cmd.Output()
	if err != nil {
		return part{bad: []string{fmt.Sprintf("%v\n%s", err, out)}}
	}
	p := part{
		says:   "The same scripts, faults and judge with other ways of sending in the place of keep-proxy.",
		header: []string{"instead", "histories", "intended effects", "took effect more than once", "taken as done, and never were"},
	}
	for _, m := range rivalLine.FindAllStringSubmatch(string(out), -1) {
		p.rows = append(p.rows, m[1:])
	}
	if len(p.rows) == 0 {
		p.bad = append(p.bad, "the rivals reported nothing")
	}
	return p
}
