package main

import (
	"slices"
	"testing"
)

func TestMatrixIsCounted(t *testing.T) {
	t.Parallel()
	p := matrixPart(`
    matrix_linux_test.go:1: cell|mutation|before sync of highwater: claim #1|SIGKILL|before|true
    matrix_linux_test.go:1: cell|mutation|after sync of highwater: claim #2|SIGKILL|late|true
    matrix_linux_test.go:1: cell|mutation|after sync of highwater: claim #1|torn write|late|false
    matrix_linux_test.go:1: cell|decision|proxy.claimed #1|power loss|never|true
`)
	want := [][]string{
		{"decision", "`proxy.claimed`", "0", "1", "0"},
		{"mutation", "`sync of highwater: claim`", "2", "0", "0 (1 not reached)"},
	}
	if !slices.EqualFunc(p.rows, want, slices.Equal) || len(p.bad) > 0 {
		t.Errorf("%v, %v", p.rows, p.bad)
	}
	if p := matrixPart("ok"); len(p.bad) != 1 {
		t.Error("a matrix without cells counts as one")
	}
}
