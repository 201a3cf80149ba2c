package child

import (
	"bufio"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"keep-proxy/internal/program"
)

// strayed starts a family, and returns the process that left the group.
func strayed(t *testing.T, grace time.Duration, stray string) (*Process, *bufio.Reader, int) {
	t.Helper()
	p, out := begin(t, grace, "family "+stray)
	first, second := said(t, out), said(t, out)
	pid := first
	if first == p.PID() {
		pid = second
	}
	if group, err := syscall.Getpgid(pid); err != nil || group == p.PID() {
		t.Fatalf("the stray's group is %d (%v); it should have left %d", group, err, p.PID())
	}
	return p, out, pid
}

func TestAProcessThatLeftTheGroupIsKilledToo(t *testing.T) {
	p, _, stray := strayed(t, 50*time.Millisecond, "stubborn")
	p.Stop()
	if err := syscall.Kill(stray, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("the stray is still there: %v", err)
	}
}

func TestAProcessThatLeftTheGroupIsAskedFirst(t *testing.T) {
	p, out, _ := strayed(t, time.Hour, "polite")
	p.Stop()
	if word, err := out.ReadString('\n'); word != "bye\n" || err != nil {
		t.Errorf("it said %q, %v", word, err)
	}
}

func TestWhatMayNotBeKilledIsNotWaitedFor(t *testing.T) {
	p, _, stray := strayed(t, time.Hour, "stubborn")
	_ = syscall.Kill(-p.PID(), syscall.SIGKILL)
	<-p.Done()
	asked := 0
	killStrays(p.before, func(pid int, _ syscall.Signal) error {
		if pid == stray {
			asked++
		}
		return syscall.EPERM
	})
	if asked != 1 {
		t.Errorf("the stray was asked %d times", asked)
	}
	if err := syscall.Kill(stray, 0); err != nil {
		t.Errorf("the stray has gone: %v", err)
	}
}

// What this process itself runs is none of the command's: somebody who is being called, say.
func TestAStopSparesProgramsOfOurs(t *testing.T) {
	p, _, _ := strayed(t, 50*time.Millisecond, "stubborn")
	name := t.TempDir() + "/pipe"
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	ran := make(chan error, 1)
	go func() {
		_, err := program.Run(t.Context(), program.Spec{
			Args: []string{os.Args[0]}, Env: append(os.Environ(), playVariable+"=waits "+name), Timeout: time.Hour, MaxOutput: 1,
		})
		ran <- err
	}()
	// It opens once the program reads.
	pipe, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	p.Stop()
	_ = pipe.Close()
	if err := <-ran; err != nil {
		t.Errorf("a stop of the command ended it: %v", err)
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
	p, out := begin(t, 50*time.Millisecond, "family stubborn")
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

// What doctor says of stops is what commands get.
func TestConfinementIsThatOfACommand(t *testing.T) {
	p, _ := begin(t, 0, "exit 0")
	p.Code()
	how, whole := Confinement("/bin/sh", "-c", "exit 0")
	if whole != (p.cgroup != nil) || whole != strings.Contains(how, "by a control group") || whole == strings.Contains(how, "adopted orphans") {
		t.Errorf("%q, %v; the command's group is %v", how, whole, p.cgroup)
	}
	if how, whole := Confinement("/keep-proxy-no-such-command"); whole || !strings.Contains(how, "adopted orphans") {
		t.Errorf("where no process starts in a group: %q, %v", how, whole)
	}
}
