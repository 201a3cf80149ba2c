package main

import (
	"reflect"
	"strings"
	"testing"
)

func TestCountsOfHistoriesAreATable(t *testing.T) {
	t.Parallel()
	const out = "=== RUN\n    histories_test.go:104: 20 histories from seed 7: 31 mutations that ended applied, 98 sendings, 5 crashes, 2 decisions of people, 0 runs with `once`\n--- PASS\n"
	p := toldOfHistories(out, options{})
	want := [][]string{{"mutations that ended applied", "31"}, {"sendings", "98"}, {"crashes", "5"}, {"decisions of people", "2"}, {"runs with `once`", "0"}}
	if !reflect.DeepEqual(p.rows, want) || len(p.bad) > 0 {
		t.Errorf("rows %q, wrong %q", p.rows, p.bad)
	}
	if !strings.HasPrefix(p.says, "20 histories from seed 7, with 98 sendings, 5 crashes and 2 decisions of people. ") {
		t.Error(p.says)
	}
	if p := toldOfHistories("--- PASS\n", options{}); len(p.bad) != 1 {
		t.Errorf("a run that reported nothing is said to be well: %+v", p)
	}
}
