package main

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// modelDir holds the Promela files and runs.txt.
const modelDir = "docs/model"

// modelTime bounds one exhaustive check.
const modelTime = 5 * time.Minute

// check is one line of runs.txt.
type check struct {
	kind, name, file, want string
	flags                  []string
}

// modelStage checks the protocol exhaustively with spin. The properties must hold, and each bug
// that is switched on must violate its own property.
func modelStage(ctx context.Context, o options) part {
	for _, tool := range []string{"spin", "gcc"} {
		if _, err := exec.LookPath(tool); err != nil {
			return part{notRun: tool + " is not installed; tools/proof-packages names the Debian packages"}
		}
	}
	checks, err := readChecks(filepath.Join(o.root, modelDir, "runs.txt"))
	if err != nil {
		return part{bad: []string{err.Error()}}
	}
	p := part{header: []string{"kind", "what", "model", "states", "expected", "found"}}
	held, caught := 0, 0
	for _, c := range checks {
		fmt.Fprintf(o.progress, "model: %s\n", c.name)
		states, found, err := c.run(ctx, filepath.Join(o.root, modelDir))
		switch {
		case err != nil:
			p.bad = append(p.bad, fmt.Sprintf("%s: %v", c.name, err))
			found = "error"
		case !c.expects(found):
			p.bad = append(p.bad, fmt.Sprintf("%s: expected %s, found %s", c.name, c.want, found))
		case c.kind == "bug":
			caught++
		default:
			held++
		}
		p.rows = append(p.rows, []string{c.kind, c.name, c.file, states, c.want, found})
	}
	p.says = fmt.Sprintf("%d checks held over every order of every step; %d bugs that were switched on were each caught by the property "+
		"that they should break.", held, caught)
	return p
}

// readChecks reads runs.txt.
func readChecks(path string) ([]check, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var checks []check
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		f := strings.Split(line, "|")
		if len(f) != 5 {
			return nil, fmt.Errorf("%s: %q is not kind|name|file|expected|flags", path, line)
		}
		checks = append(checks, check{f[0], f[1], f[2], f[3], strings.Fields(f[4])})
	}
	return checks, nil
}

func (c check) expects(found string) bool {
	return found == c.want || c.want == "Q" && strings.HasPrefix(found, "Q")
}

var (
	statesLine   = regexp.MustCompile(`(?m)^ *([0-9.e+]+) states, stored`)
	violatedLine = regexp.MustCompile(`assertion violated (.*) \(at depth`)
)

// run generates, compiles and runs one checker, and says what it found. That is ok, the violated
// property, or for a sweep whether the settle condition is right.
func (c check) run(ctx context.Context, dir string) (states, found string, err error) {
	work, err := os.MkdirTemp("", "keep-model-")
	if err != nil {
		return "", "", err
	}
	defer func() { _ = os.RemoveAll(work) }()
	text, err := os.ReadFile(filepath.Join(dir, c.file))
	if err != nil {
		return "", "", err
	}
	if err := os.WriteFile(filepath.Join(work, c.file), text, 0o600); err != nil {
		return "", "", err
	}
	ctx, cancel := context.WithTimeout(ctx, modelTime)
	defer cancel()
	for _, command := range [][]string{
		append(append([]string{"spin", "-a"}, c.flags...), c.file),
		{"gcc", "-w", "-O2", "-DSAFETY", "-DNOREDUCE", "-DMEMLIM=6000", "-o", "pan", "pan.c"},
	} {
		if out, err := in(ctx, work, command...); err != nil {
			return "", "", fmt.Errorf("%s: %w\n%s", command[0], err, out)
		}
	}
	out, err := in(ctx, work, "./pan", "-m4000000", "-w23")
	if err != nil && ctx.Err() != nil {
		return "", "", ctx.Err()
	}
	if m := statesLine.FindSubmatch(out); m != nil {
		states = string(m[1])
	}
	switch m := violatedLine.FindSubmatch(out); {
	case m != nil:
		found = property(c.file, string(bytes.TrimSpace(m[1])))
	case !bytes.Contains(out, []byte("errors: 0")) || bytes.Contains(out, []byte("max search depth")):
		return states, "", fmt.Errorf("the search was not complete:\n%s", out)
	case c.kind == "sweep":
		found = sweep(out)
	default:
		found = "ok"
	}
	return states, found, nil
}

// in runs a program in a folder.
func in(ctx context.Context, dir string, command ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Dir = dir
	return cmd.CombinedOutput()
}

// violations tells the properties apart by what spin prints of the assertion, per model
// file; the first that fits counts.
var violations = map[string][]struct{ words, property string }{
	"mutation.pml": {
		{"effects<=1", "P1"}, {"load[", "P5"}, {"st==5)||committed", "P6"}, {"!(committed)", "P3"}, {"(at!=0)", "P4"},
		{"effects==0", "P2"}, {"effects==1", "P2"},
	},
	"gate.pml": {
		{"lost[", "Q1"}, {"refused[", "Q2"}, {"taken[", "Q3"}, {"by[", "Q4"}, {"att[", "Q5"}, {"done[", "Q6"},
		{")==i)", "Q5"}, {"st[", "Q1"},
	},
	"compensation.pml": {
		{"!(waived", "C5"}, {"kept))", "C3"}, {"!=kept", "C2"}, {"there[i]", "C6"}, {"!(there", "C4"}, {"ours[", "C1"},
	},
}

// property names the property that an assertion stands for.
func property(file, assertion string) string {
	for _, v := range violations[file] {
		if strings.Contains(assertion, v.words) {
			return v.property
		}
	}
	return "another: " + assertion
}

// sweep compares the smallest safe settle found for each set of parameters with D + L + 1 -
// (K-1)·B. So settle must exceed the longest late commit and read lag together. Confirmations only
// take off the time that they wait.
func sweep(out []byte) string {
	bad := map[[4]int]map[int]bool{}
	for line := range strings.Lines(string(out)) {
		var d, l, k, b, s int
		if n, _ := fmt.Sscanf(line, "VIOL %d %d %d %d %d", &d, &l, &k, &b, &s); n == 5 {
			set := [4]int{d, l, k, b}
			if bad[set] == nil {
				bad[set] = map[int]bool{}
			}
			bad[set][s] = true
		}
	}
	for d := range 3 {
		for l := range 3 {
			for _, kb := range [][2]int{{1, 1}, {2, 1}, {2, 2}} {
				smallest := max(0, d+l+1-(kb[0]-1)*kb[1])
				found := slices.Sorted(maps.Keys(bad[[4]int{d, l, kb[0], kb[1]}]))
				if len(found) != smallest || smallest > 0 && found[smallest-1] != smallest-1 {
					return fmt.Sprintf("D=%d L=%d K=%d B=%d: unsafe for settle %v, expected all below %d", d, l, kb[0], kb[1], found, smallest)
				}
			}
		}
	}
	return "sweep"
}
