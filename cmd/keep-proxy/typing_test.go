package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// typistMain is a script that types into its terminal, as if somebody sat there. It tries
// whatever it may hold of it, and says what came of it.
func typistMain() {
	streams := []*os.File{os.Stdin, os.Stdout, os.Stderr}
	if tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0); err == nil {
		streams = append(streams, tty)
	}
	// Whoever has no terminal might take one.
	_ = unix.IoctlSetInt(int(os.Stdin.Fd()), unix.TIOCSCTTY, 1)
	for _, f := range streams {
		if unix.IoctlSetPointerInt(int(f.Fd()), unix.TIOCSTI, 'x') == nil {
			fmt.Println("typed into", f.Name())
			return
		}
	}
	fmt.Println("nothing typed")
}

// forAnother makes a folder that every user can enter, or skips where no command can be
// another user's.
func forAnother(t *testing.T) string {
	t.Helper()
	if runtime.GOOS != "linux" || os.Geteuid() != 0 {
		t.Skip("commands can be another user's only on Linux, as root")
	}
	dir := t.TempDir()
	for _, name := range []string{filepath.Dir(dir), dir} {
		if err := os.Chmod(name, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// runAs is run with a command of another user's.
func runAs(command ...string) []string {
	return append([]string{"run", "--workflow", "w", "--item", "i", "--user", "65534:65534", "--"}, command...)
}

// What is typed into the terminal of an operator's shell is a decision of the operator's,
// once the command has ended.
func TestACommandOfAnotherUserCannotTypeIntoTheTerminal(t *testing.T) {
	t.Parallel()
	dir := forAnother(t)
	typist := programAs(t, dir, "typist")
	if err := os.Chmod(typist, 0o755); err != nil {
		t.Fatal(err)
	}
	term := openTerminal(t, dir, runAs(typist)...)
	term.await("typed")
	if code := term.ended(); code != 0 || !strings.Contains(term.text(), "nothing typed") {
		t.Errorf("code %d: %q", code, term.text())
	}
}

// It is used from the terminal all the same, Ctrl-C included.
func TestACommandOfAnotherUserIsUsedFromTheTerminal(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("there is no sh here")
	}
	term := openTerminal(t, forAnother(t), runAs("sh", "-c",
		`trap 'echo caught; exit 5' INT; echo ready; read line; echo "got $line"; while :; do read line; done`)...)
	term.await("ready")
	if _, err := term.side.WriteString("hello\n"); err != nil {
		t.Fatal(err)
	}
	term.await("got hello")
	term.key(controlC)
	if code := term.ended(); code != 5 {
		t.Errorf("code %d, want the 5 with which the command answers Ctrl-C; it showed %q", code, term.text())
	}
}
