package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"
)

// terminal is a pseudo-terminal with a program in it.
type terminal struct {
	t    *testing.T
	cmd  *exec.Cmd
	side *os.File

	mu   sync.Mutex
	seen bytes.Buffer
	more chan struct{}
	// over is closed once nothing more is shown.
	over chan struct{}
}

// openTerminal starts this binary as a command of the scripts on a new terminal, as
// its session's leader and foreground group.
func openTerminal(t *testing.T, dir string, args ...string) *terminal {
	t.Helper()
	var err error
	term := &terminal{t: t, more: make(chan struct{}, 1), over: make(chan struct{})}
	term.cmd = exec.Command(program(t, dir), args...)
	term.cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+filepath.Join(dir, "state"))
	if term.side, err = pty.Start(term.cmd); err != nil {
		t.Fatal(err)
	}
	go term.read()
	t.Cleanup(func() {
		_ = term.cmd.Process.Kill()
		_ = term.side.Close()
	})
	return term
}

func (term *terminal) read() {
	defer close(term.over)
	buffer := make([]byte, 4096)
	for {
		n, err := term.side.Read(buffer)
		term.mu.Lock()
		term.seen.Write(buffer[:n])
		term.mu.Unlock()
		select {
		case term.more <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
	}
}

func (term *terminal) text() string {
	term.mu.Lock()
	defer term.mu.Unlock()
	return term.seen.String()
}

// await waits until the terminal shows a text.
func (term *terminal) await(text string) {
	term.t.Helper()
	late := time.After(patience)
	for !strings.Contains(term.text(), text) {
		select {
		case <-late:
			term.t.Fatalf("the terminal never showed %q, but %q", text, term.text())
		case <-term.more:
		}
	}
}

// key types a control character.
func (term *terminal) key(c byte) {
	term.t.Helper()
	if _, err := term.side.Write([]byte{c}); err != nil {
		term.t.Fatal(err)
	}
}

// ended waits for the program and for what it showed last, and returns its code.
func (term *terminal) ended() int {
	term.t.Helper()
	ctx, cancel := context.WithTimeout(term.t.Context(), patience)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = term.cmd.Process.Kill() })
	defer stop()
	_ = term.cmd.Wait()
	select {
	case <-term.over:
	case <-ctx.Done(): // Somebody else still has the terminal.
	}
	return term.cmd.ProcessState.ExitCode()
}

// terminalMain runs a command on a terminal of its own, types what comes on standard input
// into it, and prints what it shows.
func terminalMain() {
	answers, err := io.ReadAll(os.Stdin)
	if err != nil {
		panic(err)
	}
	cmd := exec.Command(os.Args[1], os.Args[2:]...)
	side, err := pty.Start(cmd)
	if err == nil {
		_, err = side.Write(answers)
	}
	if err != nil {
		panic(err)
	}
	_, _ = io.Copy(os.Stdout, side) // a terminal whose last program has ended can't be read
	_ = cmd.Wait()
	os.Exit(cmd.ProcessState.ExitCode())
}

// Control characters of a terminal.
const (
	controlC = 3
	controlZ = 26
)

func TestControlCGoesToTheCommand(t *testing.T) {
	t.Parallel()
	term := openTerminal(t, t.TempDir(), "run", "--workflow", "w", "--item", "i", "--",
		"sh", "-c", `trap 'echo caught; exit 5' INT; echo ready; while :; do read line; done`)
	term.await("ready")
	term.key(controlC)
	if code := term.ended(); code != 5 {
		t.Errorf("code %d, want the 5 with which the command answers Ctrl-C; it showed %q", code, term.text())
	}
	if !strings.Contains(term.text(), "caught") {
		t.Errorf("the command did not see Ctrl-C: %q", term.text())
	}
}

func TestAResizeReachesTheCommand(t *testing.T) {
	t.Parallel()
	term := openTerminal(t, t.TempDir(), "run", "--workflow", "w", "--item", "i", "--",
		"sh", "-c", `trap 'stty size' WINCH; echo ready; until read line; do :; done; echo "got $line"`)
	term.await("ready")
	if err := pty.Setsize(term.side, &pty.Winsize{Rows: 33, Cols: 77}); err != nil {
		t.Fatal(err)
	}
	// Shells run a trap during a read, or only after it.
	if _, err := term.side.WriteString("hello\n"); err != nil {
		t.Fatal(err)
	}
	term.await("33 77")
	term.await("got hello")
	if code := term.ended(); code != 0 {
		t.Errorf("code %d: %q", code, term.text())
	}
}

func TestAnInterpreterIsUsedAsEver(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3 here")
	}
	term := openTerminal(t, t.TempDir(), "run", "--workflow", "w", "--item", "i", "--",
		"env", "PYTHON_BASIC_REPL=1", python, "-i", "-q")
	term.await(">>>")
	if _, err := term.side.WriteString("print('a'+'b', __import__('os').isatty(0))\n"); err != nil {
		t.Fatal(err)
	}
	term.await("ab True")
	if _, err := term.side.WriteString("raise SystemExit(7)\n"); err != nil {
		t.Fatal(err)
	}
	if code := term.ended(); code != 7 {
		t.Errorf("code %d: %q", code, term.text())
	}
}

func TestAnEditorIsUsedAsEver(t *testing.T) {
	t.Parallel()
	vi, err := exec.LookPath("vi")
	if err != nil {
		t.Skip("there is no vi here")
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "text")
	term := openTerminal(t, dir, "run", "--workflow", "w", "--item", "i", "--", "env", "TERM=vt100", "HOME="+dir, vi, file)
	term.await("~")
	if _, err := term.side.WriteString("ihello\x1b:wq\r"); err != nil {
		t.Fatal(err)
	}
	if code := term.ended(); code != 0 {
		t.Errorf("code %d: %q", code, term.text())
	}
	if text, err := os.ReadFile(file); string(text) != "hello\n" {
		t.Errorf("the file holds %q, %v", text, err)
	}
}

func TestTheCommandHasTheTerminal(t *testing.T) {
	t.Parallel()
	term := openTerminal(t, t.TempDir(), "run", "--workflow", "w", "--item", "i", "--",
		"sh", "-c", `echo ready; read line; echo "got $line"`)
	term.await("ready")
	if _, err := term.side.WriteString("hello\n"); err != nil {
		t.Fatal(err)
	}
	term.await("got hello")
	if code := term.ended(); code != 0 {
		t.Errorf("code %d: %q", code, term.text())
	}
}

// TestControlZStopsTheCommandAndGoesOn is about a session's leader, which nobody
// could continue: the command goes on at once, and the terminal stays its own.
func TestControlZStopsTheCommandAndGoesOn(t *testing.T) {
	t.Parallel()
	term := openTerminal(t, t.TempDir(), "run", "--workflow", "w", "--item", "i", "--",
		"sh", "-c", `echo ready; read line; echo "got $line"`)
	term.await("ready")
	term.key(controlZ)
	term.await("^Z")
	if _, err := term.side.WriteString("hello\n"); err != nil {
		t.Fatal(err)
	}
	term.await("got hello")
	if code := term.ended(); code != 0 {
		t.Errorf("code %d: %q", code, term.text())
	}
}

// openShell starts a shell with job control on a new terminal, which finds this binary.
func openShell(t *testing.T) (term *terminal, enter func(string)) {
	t.Helper()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash here")
	}
	dir := t.TempDir()
	program(t, dir)
	term = &terminal{t: t, more: make(chan struct{}, 1), over: make(chan struct{})}
	term.cmd = exec.Command(bash, "--norc", "--noprofile", "-i")
	term.cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+filepath.Join(dir, "state"), "PS1=prompt> ", "PATH="+dir+":"+os.Getenv("PATH"), "D="+dir)
	if term.side, err = pty.Start(term.cmd); err != nil {
		t.Fatal(err)
	}
	go term.read()
	t.Cleanup(func() { _ = term.cmd.Process.Kill(); _ = term.side.Close() })
	term.await("prompt> ")
	return term, func(line string) {
		if _, err := term.side.WriteString(line + "\n"); err != nil {
			t.Fatal(err)
		}
	}
}

// TestAShellStopsAndContinuesTheJob is about a shell with job control: both the
// command and keep-proxy stop, and both go on.
func TestAShellStopsAndContinuesTheJob(t *testing.T) {
	t.Parallel()
	term, enter := openShell(t)
	enter(`keep-proxy run --workflow w --item i -- sh -c 'echo re""ady; read line; echo "got $line"'`)
	term.await("ready")
	term.key(controlZ)
	term.await("Stopped")
	enter("echo still-$((40+2))")
	term.await("still-42")
	enter("fg")
	enter("hello")
	term.await("got hello")
	enter("echo code-$?; exit")
	term.await("code-")
	term.ended()
}

// A shell without its terminal would end.
func TestAJobThatEndsInTheBackgroundLeavesTheShellItsTerminal(t *testing.T) {
	t.Parallel()
	term, enter := openShell(t)
	enter(`mkfifo $D/pipe; keep-proxy run --workflow w --item i -- sh -c 'echo re""ady; read line <$D/pipe; echo "got $line"'`)
	term.await("ready")
	term.key(controlZ)
	term.await("Stopped")
	enter("bg")
	enter("echo hello >$D/pipe; wait; echo wait-$?ed")
	term.await("got hello")
	term.await("wait-0ed")
	enter("echo still-$((40+2))")
	term.await("still-42")
	enter("exit")
	term.ended()
}

// A script that starts a file that is no program reads its terminal afterwards.
func TestACommandThatCannotBeStartedLeavesTheScriptItsTerminal(t *testing.T) {
	t.Parallel()
	term, enter := openShell(t)
	enter(`echo text >$D/plain; chmod +x $D/plain; sh -c 'keep-proxy run --workflow w --item i -- $D/plain; echo re""ady; read line; echo "got $line"'`)
	term.await("ready")
	enter("hello")
	term.await("got hello")
	enter("exit")
	term.ended()
}

func TestACommandWhoseOutputGoesElsewhereReadsTheTerminal(t *testing.T) {
	t.Parallel()
	term, enter := openShell(t)
	enter(`keep-proxy run --workflow w --item i -- sh -c 'echo re""ady; read line; echo "got $line"' | cat`)
	term.await("ready")
	enter("hello")
	term.await("got hello")
	enter("echo still-$((40+2)); exit")
	term.await("still-42")
	term.ended()
}

// A script that goes on while its pipeline is stopped would be sending, and its run would end.
func TestControlZStopsTheCommandOfAPipeline(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("ps"); err != nil {
		t.Skip("there is no ps here")
	}
	term, enter := openShell(t)
	enter(`mkfifo $D/pipe; keep-proxy run --workflow w --item i -- sh -c 'echo $$ >$D/pid; echo re""ady; read line <$D/pipe; echo "got $line"' | cat`)
	term.await("ready")
	term.key(controlZ)
	term.await("Stopped")
	enter(`until ps -o stat= -p "$(cat $D/pid)" | grep -q T; do :; done; echo stopped-$((40+2))`)
	term.await("stopped-42")
	enter("bg")
	enter("echo hello >$D/pipe; wait; echo wait-$?ed")
	term.await("got hello")
	term.await("wait-0ed")
	enter("exit")
	term.ended()
}

func TestAJobInTheBackgroundReadsTheTerminalOnceItIsInFront(t *testing.T) {
	t.Parallel()
	term, enter := openShell(t)
	enter(`keep-proxy run --workflow w --item i -- sh -c 'echo re""ady; read line; echo "got $line"' &`)
	term.await("ready")
	enter("fg")
	term.await("got $line\"'\r\n") // as fg shows the job
	enter("hello")
	term.await("got hello")
	enter("echo still-$((40+2)); exit")
	term.await("still-42")
	term.ended()
}

func TestACommandThatWaitsForTheTerminalCanBeEnded(t *testing.T) {
	t.Parallel()
	term, enter := openShell(t)
	enter(`keep-proxy run --workflow w --item i -- sh -c 'echo re""ady $$; read line' &`)
	term.await("ready")
	// Its state is T once it was stopped.
	enter(`until ps -o stat= --ppid $! | grep -q T; do :; done; kill %1; wait %1; echo code-$?ed`)
	term.await("code-143ed")
	enter("exit")
	term.ended()
}
