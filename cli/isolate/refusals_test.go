package isolate

import (
	"fmt"
	"slices"
	"testing"
)

func TestListIsInOrderOfFrequency(t *testing.T) {
	r := NewRefusals()
	if got := r.List(); len(got) != 0 {
		t.Errorf("before anything, %v is refused", got)
	}
	for _, n := range []struct{ network, target string }{{"udp", "b:443"}, {"tcp", "c:1"}, {"tcp", "a:1"}, {"udp", "b:443"}, {"icmp", "d"}} {
		r.Note(n.network, n.target)
	}
	if got, want := r.List(), []Refusal{{"udp", "b:443", 2}, {"icmp", "d", 1}, {"tcp", "a:1", 1}, {"tcp", "c:1", 1}}; !slices.Equal(got, want) {
		t.Errorf("list = %v, want %v", got, want)
	}
}

func TestTargetsBeyondTheBoundAreCountedTogether(t *testing.T) {
	r := NewRefusals()
	for port := range maxTargets + 100 {
		r.Note("tcp", fmt.Sprintf("10.0.0.1:%d", port))
	}
	r.Note("tcp", "10.0.0.1:0")
	r.Note("udp", "10.0.0.1:0")
	list := r.List()
	if len(list) != maxTargets+2 {
		t.Errorf("%d lines, want %d", len(list), maxTargets+2)
	}
	if got, want := list[:2], []Refusal{{"tcp", otherTargets, 100}, {"tcp", "10.0.0.1:0", 2}}; !slices.Equal(got, want) {
		t.Errorf("list begins with %v, want %v", got, want)
	}
	if !slices.Contains(list, Refusal{"udp", otherTargets, 1}) {
		t.Error("another protocol's aren't counted apart")
	}
}
