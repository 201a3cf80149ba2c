package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"keep-proxy/internal/fakes"
	"keep-proxy/internal/fakes/oracle"
)

// fenced finds the blocks of a page: the words behind the fence, and the content.
var fenced = regexp.MustCompile("(?ms)^```(\\S+)(?: (\\S+))?\n(.*?)^```$")

// TestTheTutorial does what docs/tutorial.md says: it writes each block that names a file, and runs each line
// of a console that begins with "$ ". A command must end with the code that "echo $?" shows after it, else
// with 0. What else a console shows isn't compared.
func TestTheTutorial(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"sh", "curl"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip("the page needs sh and curl")
		}
	}
	page, err := os.ReadFile("../../docs/tutorial.md")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	here := strings.NewReplacer()
	commands := 0
	for _, block := range fenced.FindAllStringSubmatch(string(page), -1) {
		switch language, name, content := block[1], block[2], block[3]; {
		case language == "console":
			lines := strings.Split(content, "\n")
			for i, line := range lines {
				command, ok := strings.CutPrefix(line, "$ ")
				if !ok || command == "echo $?" {
					continue
				}
				commands++
				if arguments, ok := strings.CutPrefix(command, "fake "); ok {
					here = startTold(t, dir, strings.TrimSuffix(arguments, " &"))
					continue
				}
				runTold(t, dir, here.Replace(command), codeTold(lines[i+1:]))
			}
		case name == "config":
			writeTold(t, filepath.Join(dir, "config.yaml"), here.Replace(content))
		case name != "":
			writeTold(t, filepath.Join(dir, name), here.Replace(content))
		}
	}
	if commands == 0 {
		t.Fatal("the page has no commands")
	}
	data, err := os.ReadFile(filepath.Join(dir, "bank.log"))
	if err != nil {
		t.Fatal(err)
	}
	tally, err := oracle.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{2, 1, 1, 1} {
		if name := fmt.Sprintf("transfer:invoice-%d", i+1); tally.Effects(name) != want {
			t.Errorf("%s took effect %d times, want %d", name, tally.Effects(name), want)
		}
	}
}

// startTold starts the API as the page does, on free ports, and returns what replaces the page's addresses.
func startTold(t *testing.T, dir, arguments string) *strings.Replacer {
	t.Helper()
	const listen, control = "127.0.0.1:9000", "127.0.0.1:9001"
	free := strings.NewReplacer("-listen "+listen, "-listen 127.0.0.1:0", "-control "+control, "-control 127.0.0.1:0",
		"-log ", "-log "+dir+string(filepath.Separator))
	words, err := exec.Command("sh", "-c", `for word in `+free.Replace(arguments)+`; do printf '%s\n' "$word"; done`).Output()
	if err != nil {
		t.Fatal(err)
	}
	told, tell := io.Pipe()
	ctx, end := context.WithCancel(context.Background())
	ended := make(chan int, 1)
	go func() {
		ended <- fakes.Main(ctx, strings.Split(strings.TrimSpace(string(words)), "\n"), nil, tell, t.Output())
		_ = tell.Close()
	}()
	t.Cleanup(func() {
		if end(); <-ended != 0 {
			t.Error("the API did not end well")
		}
	})
	var at fakes.Announcement
	if err := json.NewDecoder(told).Decode(&at); err != nil {
		t.Fatalf("fake %s: %v", arguments, err)
	}
	u, err := url.Parse(at.Control)
	if err != nil {
		t.Fatal(err)
	}
	return strings.NewReplacer(listen, at.Addr, control, u.Host)
}

// codeTold is the exit code that the page shows for the command before these lines.
func codeTold(lines []string) string {
	for i, line := range lines {
		switch {
		case line == "$ echo $?" && i+1 < len(lines):
			return lines[i+1]
		case strings.HasPrefix(line, "$ "):
			return "0"
		}
	}
	return "0"
}

func runTold(t *testing.T, dir, command, want string) {
	t.Helper()
	if strings.HasPrefix(command, "kill ") {
		return // The API of this test ends with it.
	}
	cmd := exec.Command("sh", "-c", command)
	cmd.Dir = dir
	// A busy machine may take longer than the defaults have it.
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "GORACE=" + os.Getenv("GORACE"), "HOME=" + dir,
		"KEEP_PROXY_TIMEOUTS_DIAL=60s", "KEEP_RECONCILE_INLINE=5m",
	}
	output, err := cmd.CombinedOutput()
	if code := fmt.Sprint(cmd.ProcessState.ExitCode()); code != want {
		t.Fatalf("$ %s\n%s\nended with %s (%v), the page says %s", command, output, code, err, want)
	}
}

func writeTold(t *testing.T, file, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
