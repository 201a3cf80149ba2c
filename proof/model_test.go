package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestEveryBugOfTheModelIsSwitchedOn holds runs.txt and the models together: a bug that
// no run switches on would be thought caught.
func TestEveryBugOfTheModelIsSwitchedOn(t *testing.T) {
	t.Parallel()
	dir := filepath.Join("..", modelDir)
	checks, err := readChecks(filepath.Join(dir, "runs.txt"))
	if err != nil {
		t.Fatal(err)
	}
	switched := map[string][]string{}
	for _, c := range checks {
		if bug := slices.ContainsFunc(c.flags, func(f string) bool { return strings.HasPrefix(f, "-DBUG_") }); bug && c.kind != "bug" {
			t.Errorf("%q switches a bug on and is called %s", c.name, c.kind)
		}
		for _, flag := range c.flags {
			switched[c.file] = append(switched[c.file], strings.TrimPrefix(flag, "-D"))
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.pml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(file)
		if switched[name] == nil {
			t.Errorf("no run checks %s", name)
		}
		for _, bug := range regexp.MustCompile(`\bBUG_[A-Z0-9_]+\b`).FindAllString(string(text), -1) {
			if !slices.Contains(switched[name], bug) {
				t.Errorf("%s: no run switches %s on", name, bug)
			}
		}
	}
}

func TestSweepFindsASettleThatIsTooShort(t *testing.T) {
	t.Parallel()
	var all strings.Builder
	violates := func(d, l, k, b, s int) {
		for _, n := range []int{d, l, k, b, s} {
			all.WriteString(" " + string(rune('0'+n)))
		}
	}
	for d := range 3 {
		for l := range 3 {
			for _, kb := range [][2]int{{1, 1}, {2, 1}, {2, 2}} {
				for s := range max(0, d+l+1-(kb[0]-1)*kb[1]) {
					all.WriteString("VIOL")
					violates(d, l, kb[0], kb[1], s)
					all.WriteString("\n")
				}
			}
		}
	}
	if got := sweep([]byte(all.String())); got != "sweep" {
		t.Errorf("what the formula says: %s", got)
	}
	if got := sweep([]byte(all.String() + "VIOL 2 1 1 1 4\n")); got != "D=2 L=1 K=1 B=1: unsafe for settle [0 1 2 3 4], expected all below 4" {
		t.Errorf("one violation more: %s", got)
	}
	if got := sweep([]byte(strings.Replace(all.String(), "VIOL 0 0 1 1 0\n", "", 1))); got == "sweep" {
		t.Error("a violation less isn't seen")
	}
}

func TestUnknownStageIsNamed(t *testing.T) {
	t.Parallel()
	if _, err := choose([]string{"model", "modle"}); err == nil || !strings.Contains(err.Error(), `no stage "modle"`) {
		t.Errorf("got %v", err)
	}
}
