package child

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// playVariable makes the test binary play a command; the tests of this package
// share one process's children and can't be parallel.
const playVariable = "CHILD_TEST_PLAY"

// TestMain plays commands: "exit N"; "obey", which ends on SIGTERM with 9;
// "stubborn", which ignores it; "polite", which says bye; "family X", which starts X in a
// session of its own; "pair X", which starts X in its own group, lets SIGTERM pass, and ends
// with 7 after X; "waits F", which ends when the pipe F does; "keeper", which runs a stubborn command as this package
// does; "signalled", which kills itself. Those that stay say
// their process id first, and end with their standard input, so that none is left
// behind.
func TestMain(m *testing.M) {
	words := strings.Fields(os.Getenv(playVariable))
	if len(words) == 0 {
		os.Exit(m.Run())
	}
	// What it starts plays what it is told, and never this again.
	_ = os.Unsetenv(playVariable)
	switch words[0] {
	case "exit":
		code, _ := strconv.Atoi(words[1])
		os.Exit(code)
	case "obey":
		terminated := make(chan os.Signal, 1)
		signal.Notify(terminated, syscall.SIGTERM)
		fmt.Println(os.Getpid())
		<-terminated
		os.Exit(9)
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
		fmt.Println(os.Getpid())
		_, _ = io.Copy(io.Discard, os.Stdin)
	case "polite":
		terminated := make(chan os.Signal, 1)
		signal.Notify(terminated, syscall.SIGTERM)
		fmt.Println(os.Getpid())
		<-terminated
		fmt.Println("bye")
	case "waits":
		pipe, err := os.Open(words[1])
		if err != nil {
			os.Exit(1)
		}
		_, _ = io.Copy(io.Discard, pipe)
	case "family":
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), playVariable+"="+words[1])
		cmd.Stdin, cmd.Stdout = os.Stdin, os.Stdout
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := cmd.Start(); err != nil {
			os.Exit(1)
		}
		fmt.Println(os.Getpid())
		_, _ = io.Copy(io.Discard, os.Stdin)
	case "pair":
		signal.Notify(make(chan os.Signal, 1), syscall.SIGTERM)
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), playVariable+"="+words[1])
		cmd.Stdin, cmd.Stdout = os.Stdin, os.Stdout
		if cmd.Run() != nil {
			os.Exit(1)
		}
		os.Exit(7)
	case "keeper":
		p, err := Start(Command{
			Args: []string{os.Args[0]}, Env: append(os.Environ(), playVariable+"=stubborn"),
			Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		})
		if err != nil {
			os.Exit(1)
		}
		p.Code()
	case "signalled":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	os.Exit(0)
}

// begin starts a playing command, and returns its output.
func begin(t *testing.T, grace time.Duration, words string) (*Process, *bufio.Reader) {
	t.Helper()
	inRead, inWrite, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	outRead, outWrite, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p, err := Start(Command{
		Args: []string{os.Args[0]}, Env: append(os.Environ(), playVariable+"="+words),
		Stdin: inRead, Stdout: outWrite, Stderr: os.Stderr, Grace: grace,
	})
	_ = inRead.Close()
	_ = outWrite.Close()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = inWrite.Close(); p.Stop(); _ = outRead.Close() })
	return p, bufio.NewReader(outRead)
}

// said reads a process id.
func said(t *testing.T, r *bufio.Reader) int {
	t.Helper()
	var pid int
	if _, err := fmt.Fscanln(r, &pid); err != nil {
		t.Fatal(err)
	}
	return pid
}

func TestTheCodeIsTheCommandsOwn(t *testing.T) {
	for _, c := range []struct {
		play string
		want int
	}{{"exit 0", 0}, {"exit 3", 3}, {"signalled", 128 + 9}} {
		t.Run(c.play, func(t *testing.T) {
			p, _ := begin(t, 0, c.play)
			if got := p.Code(); got != c.want {
				t.Errorf("code %d, want %d", got, c.want)
			}
		})
	}
}

func TestACommandThatCannotBeStartedHasAShellsCode(t *testing.T) {
	plain := t.TempDir() + "/plain"
	if err := os.WriteFile(plain, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		args []string
		want int
	}{
		{"a name that is nowhere", []string{"keep-proxy-no-such-command"}, CodeNotFound},
		{"a path that is nowhere", []string{plain + "-not"}, CodeNotFound},
		{"a file that is no program", []string{plain}, CodeNotExecutable},
		{"nothing", nil, CodeNotFound},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Start(Command{Args: c.args, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr})
			e, ok := errors.AsType[*StartError](err)
			if !ok || e.Code != c.want {
				t.Errorf("error %v, want code %d", err, c.want)
			}
		})
	}
}

func TestAFullProcessTableHasAShellsCode(t *testing.T) {
	e := startError("make", &os.PathError{Op: "fork/exec", Path: "/usr/bin/make", Err: syscall.EAGAIN})
	if e.Code != CodeNotExecutable || e.Error() != "make: resource temporarily unavailable" {
		t.Errorf("code %d: %v", e.Code, e)
	}
}

func TestStoppingAsksFirst(t *testing.T) {
	p, out := begin(t, time.Minute, "obey")
	said(t, out)
	p.Stop()
	if got := p.Code(); got != 9 {
		t.Errorf("code %d, want the 9 with which it obeyed", got)
	}
}

func TestACommandThatDoesNotObeyIsKilled(t *testing.T) {
	p, out := begin(t, 50*time.Millisecond, "stubborn")
	said(t, out)
	p.Stop()
	if got := p.Code(); got != 128+9 {
		t.Errorf("code %d, want that of SIGKILL", got)
	}
}

func TestASignalReachesTheGroup(t *testing.T) {
	p, out := begin(t, 0, "obey")
	said(t, out)
	p.Signal(syscall.SIGTERM)
	if got := p.Code(); got != 9 {
		t.Errorf("code %d, want 9", got)
	}
	p.Signal(syscall.SIGTERM) // An ended command has no group any more.
}

func TestASignalReachesWhatTheCommandStarted(t *testing.T) {
	p, out := begin(t, time.Millisecond, "pair polite")
	said(t, out)
	p.Signal(syscall.SIGTERM)
	select {
	case <-p.Done():
	case <-time.After(time.Minute): // It isn't told, and nothing else ends it.
		t.Fatal("what the command started didn't get the signal")
	}
	if got := p.Code(); got != 7 {
		t.Errorf("code %d, want the 7 with which the command ends after what it started", got)
	}
}
