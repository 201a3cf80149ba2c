package child

import (
	"errors"
	"io"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"
)

func TestAProcessThatLeftTheGroupIsKilledToo(t *testing.T) {
	p, out := begin(t, 50*time.Millisecond, "family")
	first, second := said(t, out), said(t, out)
	stray := first
	if first == p.PID() {
		stray = second
	}
	if group, err := syscall.Getpgid(stray); err != nil || group == p.PID() {
		t.Fatalf("the stray's group is %d (%v); it should have left %d", group, err, p.PID())
	}
	p.Stop()
	if err := syscall.Kill(stray, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("the stray is still there: %v", err)
	}
}

func TestACommandDiesWithItsKeeper(t *testing.T) {
	keeper, out := begin(t, time.Minute, "keeper")
	kept := said(t, out)
	if kept == keeper.PID() {
		t.Fatal("the command is its keeper")
	}
	if err := syscall.Kill(keeper.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	// It ignores SIGTERM and its input stays open; its output ends with it alone.
	if _, err := io.Copy(io.Discard, out); err != nil {
		t.Error(err)
	}
}

func TestAControlGroupHoldsWhatGotAway(t *testing.T) {
	g := newCgroup()
	if g == nil {
		t.Skip("no control group can be made here")
	}
	g.remove()
	p, out := begin(t, 50*time.Millisecond, "family")
	said(t, out)
	said(t, out)
	path := p.cgroup.path
	if !p.cgroup.populated() {
		t.Error("the command isn't in its group")
	}
	// Not even what was adopted by somebody else gets away.
	p.before = nil
	_ = syscall.Kill(-p.PID(), syscall.SIGKILL)
	<-p.Done()
	if !p.cgroup.populated() {
		t.Error("what left the process group left the control group too")
	}
	p.cgroup.kill()
	if p.cgroup.populated() {
		t.Error("something outlived the control group's end")
	}
	p.Stop()
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the group is left behind: %v", err)
	}
}

func TestGroupsOfKilledMakersAreRemoved(t *testing.T) {
	g := newCgroup()
	if g == nil {
		t.Skip("no control group can be made here")
	}
	defer g.remove()
	// No process has a number this large.
	left, kept := g.path+"/"+groupPrefix+"999999999-1", g.path+"/"+groupPrefix+strconv.Itoa(os.Getpid())+"-1"
	for _, path := range []string{left, kept} {
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	sweepGroups(g.path)
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
	if _, err := os.Stat(kept); err != nil {
		t.Errorf("that of a living maker: %v", err)
	}
}
