package main

import (
	"fmt"
	"maps"
	"strings"
	"testing"
)

func TestEndingsThatWereCountedOutAreOneRow(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	pass := func(name string) { fmt.Fprintf(&out, "    --- PASS: %s (0.01s)\n", name) }
	for n := range manyAlike {
		pass(fmt.Sprintf("TestFull/%d_pages", n))
	}
	for n := range manyAlike - 1 {
		pass(fmt.Sprintf("TestFew/%d_pages", n))
	}
	pass("TestFull/once_more")
	pass("TestPoint/store.applied:20/before")
	pass("TestPoint/store.applied:20/after")
	pass("TestPoint/store.applied:20")
	pass("TestPoint")
	out.WriteString("    --- FAIL: TestFull/77_pages (0.01s)\n")

	want := map[string]int{"`TestFull/N_pages`": manyAlike, "`TestFull/once_more`": 1, "`TestPoint/store.applied:20`": 2}
	for n := range manyAlike - 1 {
		want[fmt.Sprintf("`TestFew/%d_pages`", n)] = 1
	}
	if got := endings(out.String()); !maps.Equal(got, want) {
		t.Errorf("%v instead of %v", got, want)
	}
}
