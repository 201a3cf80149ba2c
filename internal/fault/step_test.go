package fault

import (
	"errors"
	"slices"
	"testing"
)

func TestWatchIsToldOfEachStepBeforeAndAfter(t *testing.T) {
	var told []Step
	stop := Watch(func(s Step) { told = append(told, s) })
	if !Watched() {
		t.Error("nobody watches")
	}
	pointOne.Pass()
	err := errors.New("the disk is gone")
	if got := Begin(OpSync, "a").End(nil); got != nil {
		t.Errorf("End(nil) = %v", got)
	}
	if got := Begin(OpRename, "b").End(err); !errors.Is(got, err) {
		t.Errorf("End(%v) = %v", err, got)
	}
	stop()
	stop()
	pointOne.Pass()
	want := []Step{
		{OpPoint, "fault.test_one", true},
		{OpSync, "a", false}, {OpSync, "a", true},
		{OpRename, "b", false}, // A rename that failed was not done.
	}
	if !slices.Equal(told, want) || Watched() {
		t.Errorf("told %v, want %v", told, want)
	}
}
