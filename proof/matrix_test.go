package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestMatrixIsCounted(t *testing.T) {
	t.Parallel()
	const results = `sitting|abc|copies
plan|mutation|before|1
plan|mutation|late|2
plan|decision|never|1
cell|mutation|before sync of highwater: claim #1|SIGKILL|before|judged
cell|mutation|after sync of highwater: claim #2|SIGKILL|late|judged
cell|mutation|after sync of highwater: claim #1|torn write|late|missed
cell|decision|proxy.claimed #1|power loss|never|judged
`
	p := matrixPart(results)
	want := [][]string{
		{"decision", "`proxy.claimed`", "0", "1", "0"},
		{"mutation", "`sync of highwater: claim`", "2", "0", "0 (1 not reached)"},
	}
	if !slices.EqualFunc(p.rows, want, slices.Equal) || len(p.bad) > 0 || !strings.Contains(p.says, "loss of power: copies;") {
		t.Errorf("%v, %v, %s", p.rows, p.bad, p.says)
	}
	for name, bad := range map[string]string{
		"a matrix without cells":      "ok",
		"one that was cut short":      strings.Replace(results, "before|1", "before|2", 1),
		"one with a line that is cut": strings.TrimSuffix(results, "ged\n"),
		"one with a wrong cell":       strings.Replace(results, "never|judged", "never|wrong", 1),
	} {
		if p := matrixPart(bad); len(p.bad) != 1 {
			t.Errorf("%s counts as one: %v", name, p.bad)
		}
	}
}

func TestCellsOfSomethingElseAreNotGoneOnWith(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "cells")
	o := options{root: t.TempDir()}
	for range 2 {
		if err := beginSitting(t.Context(), o, path, "copies"); err != nil {
			t.Fatal(err)
		}
	}
	if err := beginSitting(t.Context(), o, path, "a file system"); err == nil {
		t.Error("another method goes on with the cells of one")
	}
	if text, err := os.ReadFile(path); err != nil || strings.Count(string(text), "sitting|unknown|copies\n") != 2 {
		t.Errorf("%q, %v", text, err)
	}
}
