package serving

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// playVariable makes the test binary play another process.
const playVariable = "SERVING_TEST_PLAY"

// TestMain plays a process that announces itself, or that takes a share, and holds
// it until its standard input ends or it is killed.
func TestMain(m *testing.M) {
	dir := os.Getenv(playVariable)
	if dir == "" {
		os.Exit(m.Run())
	}
	_, err := Announce(dir, State{PID: os.Getpid(), Admin: "http://127.0.0.1:1"})
	if err == nil {
		_, err = Join(context.Background(), dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("ready")
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

// play starts the other process, and returns its process id and a way to kill it.
func play(t *testing.T, dir string) (pid int, kill func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), playVariable+"="+dir)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fscanln(out, new(string)); err != nil {
		t.Fatal(err)
	}
	kill = func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = stdin.Close()
	}
	t.Cleanup(kill)
	return cmd.Process.Pid, kill
}

func find(t *testing.T, dir string) *State {
	t.Helper()
	s, err := Find(dir)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestNothingIsFoundInAFolderThatNobodyServes(t *testing.T) {
	t.Parallel()
	if s := find(t, t.TempDir()); s != nil {
		t.Errorf("found %+v", s)
	}
}

func TestAnAnnouncementIsFoundUntilItIsWithdrawn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	want := State{PID: 7, Admin: "http://127.0.0.1:1", Proxy: "127.0.0.1:2", TokenFile: "/t", Embedded: true}
	a, err := Announce(dir, want)
	if err != nil {
		t.Fatal(err)
	}
	if got := find(t, dir); got == nil || *got != want {
		t.Errorf("found %+v, want %+v", got, want)
	}
	if err := a.Withdraw(); err != nil {
		t.Fatal(err)
	}
	if got := find(t, dir); got != nil {
		t.Errorf("found %+v after it was withdrawn", got)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) != 0 {
		t.Errorf("it left %v behind", left)
	}
}

func TestWithdrawingLeavesALaterAnnouncement(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first, err := Announce(dir, State{PID: 1})
	if err != nil {
		t.Fatal(err)
	}
	second, err := Announce(dir, State{PID: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = second.Withdraw() }()
	if err := first.Withdraw(); err != nil {
		t.Fatal(err)
	}
	if got := find(t, dir); got == nil || got.PID != 2 {
		t.Errorf("found %+v, want the later one", got)
	}
}

func TestTheAnnouncementOfAKilledProcessCountsAsNone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pid, kill := play(t, dir)
	if got := find(t, dir); got == nil || got.PID != pid {
		t.Fatalf("found %+v, want the process %d", got, pid)
	}
	kill()
	if got := find(t, dir); got != nil {
		t.Errorf("found %+v: its port may be another program's by now", got)
	}
}

func TestAnAnnouncementThatCannotBeReadIsAnError(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a, err := Announce(dir, State{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = a.Withdraw() }()
	if err := os.WriteFile(filepath.Join(dir, FileName), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err := Find(dir); err == nil {
		t.Errorf("found %+v, want an error", s)
	}
}

func TestTheLastRunWaitsForTheOthers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	last, err := Join(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer last.Leave()
	_, kill := play(t, dir)
	short, cancel := context.WithTimeout(t.Context(), 3*lockPoll)
	defer cancel()
	if err := last.Last(short); err == nil {
		t.Fatal("it is alone although another process has a share")
	}
	kill()
	if err := last.Last(t.Context()); err != nil {
		t.Errorf("not alone after the other was killed: %v", err)
	}
}

func TestNobodyJoinsWhileTheLastLeaves(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	last, err := Join(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := last.Last(t.Context()); err != nil {
		t.Fatal(err)
	}
	joined := make(chan error, 1)
	go func() {
		p, err := Join(t.Context(), dir)
		if err == nil {
			p.Leave()
		}
		joined <- err
	}()
	select {
	case err := <-joined:
		t.Fatalf("joined (%v) a proxy that is about to stop", err)
	case <-time.After(3 * lockPoll):
	}
	last.Leave()
	if err := <-joined; err != nil {
		t.Errorf("after the last has left: %v", err)
	}
}

func TestStateHoldsNoSecret(t *testing.T) {
	t.Parallel()
	text, err := json.Marshal(State{TokenFile: "/t"})
	if err != nil || string(text) != `{"pid":0,"admin":"","proxy":"","token_file":"/t","embedded":false}` {
		t.Errorf("state %s, %v", text, err)
	}
}
