package main

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"keep-proxy/cli/serving"
	"keep-proxy/internal/fakes/oracle"
)

// playing is a demo in a process of its own.
type playing struct {
	cmd    *exec.Cmd
	out    *bufio.Reader
	folder string
}

// play starts this binary as the demo.
func play(t *testing.T, args ...string) *playing {
	t.Helper()
	dir := t.TempDir()
	folder := filepath.Join(dir, "tmp")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program(t, dir), append([]string{"demo"}, args...)...)
	cmd.Env = append(os.Environ(), "TMPDIR="+folder)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	return &playing{cmd, bufio.NewReader(out), folder}
}

// until reads to a line that holds a text, and returns what was read.
func (p *playing) until(t *testing.T, text string) string {
	t.Helper()
	var all strings.Builder
	for {
		line, err := p.out.ReadString('\n')
		all.WriteString(line)
		if strings.Contains(line, text) {
			return all.String()
		}
		if err != nil {
			t.Fatalf("%v before %q: %s", err, text, all.String())
		}
	}
}

// interrupt is Ctrl-C; it returns the exit code, and wants that nothing is left.
func (p *playing) interrupt(t *testing.T) int {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := p.out.ReadString('\n'); err != nil {
			break
		}
	}
	_ = p.cmd.Wait()
	if left, _ := filepath.Glob(filepath.Join(p.folder, "*")); len(left) > 0 {
		t.Errorf("the demo left %v behind", left)
	}
	return p.cmd.ProcessState.ExitCode()
}

func TestTheDemoStaysUpAndItsLineWorks(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"sh", "curl"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("there is no %s here", name)
		}
	}
	p := play(t)
	p.until(t, "stay up until Ctrl-C")
	line := p.until(t, "/transfers")
	p.until(t, "Run it twice")
	for _, want := range []*regexp.Regexp{regexp.MustCompile(`HTTP/\S+ 201`), regexp.MustCompile(`(?i)Keep-Replayed: true`)} {
		out, err := exec.CommandContext(t.Context(), "sh", "-c", line).CombinedOutput()
		if err != nil || !want.Match(out) {
			t.Errorf("%v; want %s in %s", err, want, out)
		}
	}
	if code := p.interrupt(t); code != 0 {
		t.Errorf("code %d after Ctrl-C, want 0", code)
	}
}

// The demo judges itself; this asks the bank's own log, which it syncs before it answers.
func TestTheBanksBooksAfterEachActOfTheDemo(t *testing.T) {
	t.Parallel()
	p := play(t, "--built-in-client")
	// A demo that hangs in an act is ended, and the text that is awaited doesn't come.
	guard := time.AfterFunc(patience, func() { _ = p.cmd.Process.Kill() })
	defer guard.Stop()
	told := p.until(t, "stay up until Ctrl-C")
	logs, err := filepath.Glob(filepath.Join(p.folder, "*", "bank.log"))
	if err != nil || len(logs) != 1 {
		t.Fatalf("the bank's logs: %v, %v", logs, err)
	}
	tally, err := oracle.Read(logs[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		act, identity string
		effects       int
		told          string
	}{
		{"1", "transfer:R-1", 2, "transfer:R-1: twice."},
		{"2", "transfer:R-2", 1, "transfer:R-2: once."},
		{"3", "transfer:R-3", 1, "transfer:R-3: once."},
		{"4", "notice:N-4", 1, "notice:N-4: once."},
		{"4, the transfer behind the notice", "transfer:R-4", 1, ""},
	} {
		if n := tally.Effects(c.identity); n != c.effects {
			t.Errorf("act %s: %s took effect %d times, want %d", c.act, c.identity, n, c.effects)
		}
		if !strings.Contains(told, c.told) {
			t.Errorf("act %s doesn't tell %q", c.act, c.told)
		}
	}
	if n := tally.Sends("notice:N-4"); n != 1 {
		t.Errorf("what can't be asked about was sent %d times, want once", n)
	}
	if all := len(tally.Identities()); all != 5 {
		t.Errorf("the bank was sent %d intents, want 5: %v", all, tally.Identities())
	}
	if code := p.interrupt(t); code != 0 {
		t.Errorf("code %d after Ctrl-C, want 0", code)
	}
}

func TestTheDemosProxyEndsWithAKilledDemo(t *testing.T) {
	t.Parallel()
	p := play(t)
	config := regexp.MustCompile(`--config (\S+)`).FindStringSubmatch(p.until(t, "--config "))
	p.until(t, "Run it twice")
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = p.cmd.Wait()
	data := filepath.Join(filepath.Dir(config[1]), "data")
	// A ledger that nobody holds can be verified by itself.
	free := func() bool {
		state, err := serving.Find(data)
		return err == nil && state == nil &&
			exec.CommandContext(t.Context(), p.cmd.Path, "ledger", "verify", "--data-dir", data).Run() == nil
	}
	poll := time.NewTicker(50 * time.Millisecond)
	defer poll.Stop()
	for late := time.After(patience); !free(); {
		select {
		case <-late:
			t.Fatal("the proxy still serves")
		case <-poll.C:
		}
	}
}

func TestTheDemoCleansUpWhenItIsInterrupted(t *testing.T) {
	t.Parallel()
	p := play(t, "--exit", "--built-in-client")
	p.until(t, "Act 2")
	if code := p.interrupt(t); code != 128+int(syscall.SIGINT) {
		t.Errorf("code %d, want that of an interrupted program", code)
	}
}
