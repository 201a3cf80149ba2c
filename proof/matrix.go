package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// matrixMethod names how a loss of power is made.
const matrixMethod = "copies at each sync: of each file its content when the program synced it last, under the names " +
	"that its folder had when that was synced last; for a torn write, pages, sectors and names that came since are there or not at random"

// matrixStage ends a process at each step towards durability, in each way, whatever the
// upstream does meanwhile.
func matrixStage(ctx context.Context, o options) part {
	cmd := exec.CommandContext(ctx, "go", "test", "./integration", "-run", "^TestCrashMatrix$", "-count", "1", "-timeout", "3h", "-v")
	cmd.Dir, cmd.Env = o.root, append(os.Environ(), "KEEP_TEST_MATRIX=all")
	out, err := cmd.CombinedOutput()
	p := matrixPart(string(out))
	if err != nil {
		p.bad = append(p.bad, fmt.Sprintf("%v\n%s", err, tail(string(out))))
	}
	return p
}

// matrixCell is a line that says what came of one cell: life, step, ending, when the
// upstream commits, and whether the program came to the step.
var matrixCell = regexp.MustCompile(`cell\|([a-z]+)\|([^|]+?) #[0-9]+\|([^|]+)\|([a-z]+)\|(true|false)`)

var matrixEndings = []string{"SIGKILL", "power loss", "torn write"}

// matrixCount is how many cells were ended and judged, and how many never came to their step.
type matrixCount struct{ judged, missed int }

func (c matrixCount) String() string {
	if c.missed == 0 {
		return strconv.Itoa(c.judged)
	}
	return fmt.Sprintf("%d (%d not reached)", c.judged, c.missed)
}

// matrixPart counts the cells by life, step and ending.
func matrixPart(out string) part {
	p := part{header: append([]string{"life", "step"}, matrixEndings...)}
	counts := map[string]map[string]matrixCount{}
	commits := map[string]int{}
	var rows []string
	var all matrixCount
	for _, m := range matrixCell.FindAllStringSubmatch(out, -1) {
		step := strings.TrimPrefix(strings.TrimPrefix(m[2], "before "), "after ")
		row := m[1] + "|" + step
		if counts[row] == nil {
			counts[row] = map[string]matrixCount{}
			rows = append(rows, row)
		}
		c := counts[row][m[3]]
		if m[5] == "true" {
			c.judged, all.judged, commits[m[4]] = c.judged+1, all.judged+1, commits[m[4]]+1
		} else {
			c.missed, all.missed = c.missed+1, all.missed+1
		}
		counts[row][m[3]] = c
	}
	slices.Sort(rows)
	for _, row := range rows {
		life, step, _ := strings.Cut(row, "|")
		cells := []string{life, "`" + step + "`"}
		for _, ending := range matrixEndings {
			cells = append(cells, counts[row][ending].String())
		}
		p.rows = append(p.rows, cells)
	}
	var when []string
	for _, commit := range slices.Sorted(maps.Keys(commits)) {
		when = append(when, fmt.Sprintf("%s %d", commit, commits[commit]))
	}
	p.says = fmt.Sprintf("%d processes were ended, before and after each step (%d more runs never came to theirs), while the upstream committed: %s. "+
		"After each, everything came to one effect and a sound ledger. Method of the loss of power: %s.",
		all.judged, all.missed, strings.Join(when, ", "), matrixMethod)
	if all.judged == 0 {
		p.bad = append(p.bad, "no cell was judged")
	}
	return p
}
