package program

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

const long = 60 * time.Second

func sh(script string) Spec {
	return Spec{Args: []string{"/bin/sh", "-c", script}, Env: []string{"PATH=/bin:/usr/bin"}, Timeout: long, MaxOutput: 1 << 20}
}

func TestAProgramGetsItsInputAndGivesItsOutput(t *testing.T) {
	t.Parallel()
	s := sh(`cat; echo "$GIVEN"; env | sort`)
	s.Stdin, s.Env = []byte("hello\n"), append(s.Env, "GIVEN=x")
	out, err := Run(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	if text := string(out); !strings.HasPrefix(text, "hello\nx\n") || strings.Contains(text, "HOME=") {
		t.Errorf("it wrote %q", text)
	}
}

func TestAProgramThatReadsNothingIsNoFailure(t *testing.T) {
	t.Parallel()
	s := sh(`echo done`)
	s.Stdin = make([]byte, 1<<20)
	if out, err := Run(t.Context(), s); err != nil || string(out) != "done\n" {
		t.Errorf("got %q, %v", out, err)
	}
}

func TestAProgramThatFailsIsAnErrorWithoutItsWords(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spec Spec
		want string
	}{
		"by its exit code": {sh("echo secret; echo secret >&2; exit 3"), "exit status 3"},
		"by a signal":      {sh("kill -9 $$"), "signal: killed"},
		"not there":        {Spec{Args: []string{"/nowhere/to/be/found"}, Timeout: long, MaxOutput: 1}, "no such file"},
		"nothing to run":   {Spec{Timeout: long, MaxOutput: 1}, "incomplete"},
		"no time":          {Spec{Args: []string{"sh"}, MaxOutput: 1}, "incomplete"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, err := Run(t.Context(), c.spec)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret") || out != nil {
				t.Errorf("got %q, %v; want %q", out, err, c.want)
			}
		})
	}
}

func TestAProgramThatHangsIsKilledWithWhatItStarted(t *testing.T) {
	t.Parallel()
	alive := filepath.Join(t.TempDir(), "alive")
	if err := syscall.Mkfifo(alive, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, err := Run(ctx, sh(`exec 3> `+alive+`; sleep 1000 & echo started >&3; wait`))
		done <- err
	}()
	pipe, err := os.Open(alive)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = pipe.Close() }()
	in := bufio.NewReader(pipe)
	if line, err := in.ReadString('\n'); line != "started\n" {
		t.Fatalf("it wrote %q, %v", line, err)
	}
	cancel()
	if err := <-done; !errors.Is(err, ErrTimeout) {
		t.Errorf("got %v", err)
	}
	// The pipe ends once nobody is left that has it open: the program and its child.
	if rest, err := io.ReadAll(in); err != nil || len(rest) > 0 {
		t.Errorf("the pipe ends with %q, %v", rest, err)
	}
}

func TestAProgramWhoseTimeIsOverIsNotStarted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Run(ctx, sh("exit 0")); !errors.Is(err, ErrTimeout) {
		t.Errorf("got %v", err)
	}
}

func TestAProgramThatTakesTooLongIsKilled(t *testing.T) {
	t.Parallel()
	s := sh("sleep 1000")
	s.Timeout = time.Millisecond
	if _, err := Run(t.Context(), s); !errors.Is(err, ErrTimeout) {
		t.Errorf("got %v", err)
	}
}

func TestAProgramThatWritesTooMuchIsKilled(t *testing.T) {
	t.Parallel()
	s := sh("while :; do echo too much; done")
	s.MaxOutput = 1000
	if _, err := Run(t.Context(), s); !errors.Is(err, ErrOutput) {
		t.Errorf("got %v", err)
	}
}

func TestAProgramThatLeavesAProcessBehindIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip("there is no setsid")
	}
	// It leaves the group, so that it isn't killed with it, and holds the output. The program ends
	// when it has.
	left := filepath.Join(t.TempDir(), "pid")
	s := sh(`setsid sh -c 'echo $$ > ` + left + `; exec sleep 1000' & until [ -s ` + left + ` ]; do :; done; echo '{"seen":"absent"}'`)
	t.Cleanup(func() {
		text, err := os.ReadFile(left)
		if err != nil {
			t.Error(err)
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil {
			t.Error(err)
			return
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Error(err)
		}
	})
	done := make(chan error, 1)
	go func() {
		_, err := Run(t.Context(), s)
		done <- err
	}()
	select {
	case err := <-done:
		if err == nil || !strings.Contains(err.Error(), "left behind") {
			t.Errorf("got %v", err)
		}
	case <-time.After(long):
		t.Error("it is waited for")
	}
}

// A command that tells somebody may leave that to a process of its own, as mail does: its exit
// code says that it was taken, whoever holds its output and however much that is.
func TestOfAnUnheardProgramTheExitCodeAloneCounts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	wait, done := filepath.Join(dir, "wait"), filepath.Join(dir, "done")
	for _, name := range []string{wait, done} {
		if err := syscall.Mkfifo(name, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := sh(`head -c 3000000 /dev/zero; (read x < ` + wait + `; echo "$x" > ` + done + `) & exit 0`)
	s.MaxOutput, s.Unheard = 0, true
	if out, err := Run(t.Context(), s); err != nil || out != nil {
		t.Fatalf("got %q, %v", out, err)
	}
	if err := os.WriteFile(wait, []byte("it lives\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(done); err != nil || string(got) != "it lives\n" {
		t.Errorf("what it left running said %q, %v", got, err)
	}
	s = sh("exit 3")
	s.MaxOutput, s.Unheard = 0, true
	if _, err := Run(t.Context(), s); err == nil || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("an exit code of 3: %v", err)
	}
}

func TestAProgramThatWantsTooMuchMemoryDoesNotGetIt(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("memory is bounded on Linux only")
	}
	// The limit holds long before the text has grown beyond it.
	s := sh(`read x; a=0123456789abcdef; i=0; while [ $i -lt 24 ]; do a=$a$a; i=$((i+1)); done; echo ${#a}`)
	s.Stdin, s.MaxMemory = []byte("go\n"), 32<<20
	if out, err := Run(t.Context(), s); err == nil {
		t.Errorf("it ended with %q", out)
	}
}

func TestThePlainEnvironmentHoldsNoSecret(t *testing.T) {
	t.Parallel()
	got := PlainEnvironment([]string{"PATH=/bin", "STRIPE_KEY=sk", "HOME=/h", "KEEP_ADMIN_TOKEN_FILE=/t", "odd"})
	if !slices.Equal(got, []string{"PATH=/bin", "HOME=/h"}) {
		t.Errorf("got %q", got)
	}
}
