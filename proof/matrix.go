package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// How a loss of power is made.
const (
	fromDisk = "a file system (FUSE) below the program's whole state: of each file its content when it was synced last, under " +
		"the names that its folder had when that, or the file itself, was synced last"
	fromCopies = "copies at each of the ledger's own syncs: of each of its files the content when it synced it last, under the names " +
		"that its folder had when that was synced last"
	whenTorn = "for a torn write, pages, sectors and renames that came since are there or not at random"
)

// matrixStage ends a process at each step towards durability, in each way, whatever the
// upstream does meanwhile.
func matrixStage(ctx context.Context, o options) part {
	dir, err := os.MkdirTemp("", "keep-proof-*")
	if err != nil {
		return part{bad: []string{err.Error()}}
	}
	defer func() { _ = os.RemoveAll(dir) }() // Nothing is lost with it but room.
	disk, method := buildDisk(ctx, o, filepath.Join(dir, "disk"))
	cells := o.cells
	if cells == "" {
		cells = filepath.Join(dir, "cells")
	}
	if err := beginSitting(ctx, o, cells, method); err != nil {
		return part{bad: []string{err.Error()}}
	}
	cmd := exec.CommandContext(ctx, "go", "test", "./integration", "-run", "^TestCrashMatrix$", "-count", "1", "-timeout", "6h", "-v")
	cmd.Dir = o.root
	cmd.Env = append(os.Environ(), "KEEP_TEST_MATRIX=all", "KEEP_TEST_MATRIX_RESULTS="+cells, "KEEP_TEST_DISK="+disk)
	out, testErr := cmd.CombinedOutput()
	results, err := os.ReadFile(cells)
	p := matrixPart(string(results))
	if err != nil {
		p.bad = append(p.bad, err.Error())
	}
	if testErr != nil {
		p.bad = append(p.bad, fmt.Sprintf("%v\n%s", testErr, tail(string(out))))
	}
	return p
}

// buildDisk builds the file system if it can be mounted here. It also says how a loss of power is
// made then.
func buildDisk(ctx context.Context, o options, path string) (disk, method string) {
	fuse, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	if err == nil {
		err = fuse.Close()
	}
	if err == nil {
		build := exec.CommandContext(ctx, "go", "build", "-o", path, ".")
		build.Dir = filepath.Join(o.root, "integration", "powerloss", "disk")
		var out []byte
		if out, err = build.CombinedOutput(); err != nil {
			err = fmt.Errorf("%w: %s", err, strings.TrimSpace(string(out)))
		}
	}
	if err != nil {
		return "", fromCopies + " (no file system below the program, since " + strings.ReplaceAll(err.Error(), "\n", " ") + ")"
	}
	return path, fromDisk
}

// beginSitting writes down what is gone through, and how. Cells of another revision, or
// with other losses of power, are not gone on with.
func beginSitting(ctx context.Context, o options, path, method string) error {
	revision := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude", "*")
	revision.Dir = o.root
	out, err := revision.Output()
	if err != nil {
		out = []byte("unknown")
	}
	line := "sitting|" + strings.TrimSpace(string(out)) + "|" + method + "\n"
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for _, before := range strings.SplitAfter(string(text), "\n") {
		if strings.HasPrefix(before, "sitting|") && before != line {
			return fmt.Errorf("%s has cells of %s, and this is %s: give -cells another file", path, strings.TrimSpace(before), strings.TrimSpace(line))
		}
	}
	return os.WriteFile(path, append(text, line...), 0o600)
}

// matrixLine is what came of one cell: life, step, ending, when the upstream commits, and the
// result. The result is judged, missed (the program never came to the step), or wrong.
var matrixLine = regexp.MustCompile(`(?m)cell\|([a-z]+)\|([^|]+?) #[0-9]+\|([^|]+)\|([a-z]+)\|(judged|missed|wrong)$`)

// planLine is a line that says how many cells there are of a life and commit.
var planLine = regexp.MustCompile(`(?m)plan\|([a-z]+\|[a-z]+)\|([0-9]+)$`)

var matrixEndings = []string{"SIGKILL", "power loss", "torn write"}

// matrixCount is how many cells were ended and judged, and how many never came to their step.
type matrixCount struct{ judged, missed int }

func (c matrixCount) String() string {
	if c.missed == 0 {
		return strconv.Itoa(c.judged)
	}
	return fmt.Sprintf("%d (%d not reached)", c.judged, c.missed)
}

// matrixTable counts the cells by life, step and ending.
type matrixTable struct {
	counts  map[string]map[string]matrixCount
	commits map[string]int
	lives   map[string]int
	all     matrixCount
	wrong   []string
}

func (t *matrixTable) add(life, step, ending, commit, outcome string) {
	row := life + "|" + strings.TrimPrefix(strings.TrimPrefix(step, "before "), "after ")
	if t.counts[row] == nil {
		t.counts[row] = map[string]matrixCount{}
	}
	c := t.counts[row][ending]
	switch outcome {
	case "judged":
		c.judged, t.all.judged, t.commits[commit] = c.judged+1, t.all.judged+1, t.commits[commit]+1
	case "missed":
		c.missed, t.all.missed = c.missed+1, t.all.missed+1
	default:
		t.wrong = append(t.wrong, fmt.Sprintf("%s: %s at %s, the upstream commits %s", life, ending, step, commit))
	}
	t.lives[life+"|"+commit]++
	t.counts[row][ending] = c
}

// matrixPart makes the stage's part of the results.
func matrixPart(results string) part {
	p := part{header: append([]string{"life", "step"}, matrixEndings...)}
	t := matrixTable{counts: map[string]map[string]matrixCount{}, commits: map[string]int{}, lives: map[string]int{}}
	for _, m := range matrixLine.FindAllStringSubmatch(results, -1) {
		t.add(m[1], m[2], m[3], m[4], m[5])
	}
	for _, row := range slices.Sorted(maps.Keys(t.counts)) {
		life, step, _ := strings.Cut(row, "|")
		cells := []string{life, "`" + step + "`"}
		for _, ending := range matrixEndings {
			cells = append(cells, t.counts[row][ending].String())
		}
		p.rows = append(p.rows, cells)
	}
	var when []string
	for _, commit := range slices.Sorted(maps.Keys(t.commits)) {
		when = append(when, fmt.Sprintf("%s %d", commit, t.commits[commit]))
	}
	p.says = fmt.Sprintf("%d processes were ended, before and after each step (%d more runs never came to theirs), while the upstream committed: %s. "+
		"After each, unless it is listed as wrong, everything came to one effect and a sound ledger.",
		t.all.judged+len(t.wrong), t.all.missed, strings.Join(when, ", "))
	if m := regexp.MustCompile(`(?m)^sitting\|[^|]*\|(.*)$`).FindStringSubmatch(results); m != nil {
		p.says += " Method of the loss of power: " + m[1] + "; " + whenTorn + "."
	}
	p.bad = append(p.bad, t.wrong...)
	if t.all.judged == 0 {
		p.bad = append(p.bad, "no cell was judged")
	}
	if missing := t.missing(results); missing != "" {
		p.bad = append(p.bad, "the matrix was cut short: "+missing)
	}
	return p
}

// missing says which cells of the plan were not gone through, "" for none.
func (t *matrixTable) missing(results string) string {
	planned := map[string]int{}
	for _, m := range planLine.FindAllStringSubmatch(results, -1) {
		n, err := strconv.Atoi(m[2])
		if err == nil {
			planned[m[1]] = max(planned[m[1]], n)
		}
	}
	var out []string
	for _, life := range slices.Sorted(maps.Keys(planned)) {
		if n := planned[life] - t.lives[life]; n > 0 {
			name, commit, _ := strings.Cut(life, "|")
			out = append(out, fmt.Sprintf("%d of %d cells of %s, commits %s", n, planned[life], name, commit))
		}
	}
	return strings.Join(out, "; ")
}
