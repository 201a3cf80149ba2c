package app

import (
	"slices"
	"testing"
)

const mib = 1 << 20

func TestMemoryIsGivenBackOnceALoadIsOver(t *testing.T) {
	t.Parallel()
	var total uint64
	freed := 0
	m := tuner{heap: func() heap { return heap{allocated: total} }, free: func() { freed++ }, setPercent: func(int) {}}
	for _, step := range []struct {
		says  string
		more  uint64
		freed int
	}{
		{"the start is a load", 20 * mib, 0},
		{"which is over", 1 * mib, 1},
		{"a calm process has little to give", 1 * mib, 1},
		{"however long it takes", 4 * mib, 1},
		{"under load it is left alone", 100 * mib, 1},
		{"still", 5 * mib, 1},
		{"and trimmed afterwards", 0, 2},
		{"once", 0, 2},
		{"small loads", 4 * mib, 2},
		{"add", 4 * mib, 2},
		{"up", 4 * mib, 2},
		{"in the end", 4 * mib, 3},
	} {
		total += step.more
		if m.look(); freed != step.freed {
			t.Errorf("%s: freed %d times, want %d", step.says, freed, step.freed)
		}
	}
}

func TestGarbageIsBoundedByWhatLives(t *testing.T) {
	t.Parallel()
	var live uint64
	var set []int
	m := tuner{heap: func() heap { return heap{live: live} }, free: func() {}, setPercent: func(p int) { set = append(set, p) }}
	for _, live = range []uint64{0, 8 * mib, 16 * mib, 17 * mib, 35 * mib, 200 * mib, 10 * mib} {
		m.look()
	}
	if want := []int{400, 250, 200, 100, 400}; !slices.Equal(set, want) {
		t.Errorf("percentages %v, want %v", set, want)
	}
}

func TestTheRuntimeTellsOfItsHeap(t *testing.T) {
	t.Parallel()
	if readHeap().allocated == 0 {
		t.Error("it does not say what was allocated")
	}
}
