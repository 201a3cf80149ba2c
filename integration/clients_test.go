package integration

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"keep-proxy/internal/fakes/script"
)

// clientVar names a URL: this binary is then an unmodified Go client, which posts
// what it reads to that URL.
const clientVar = "KEEP_INTEGRATION_CLIENT"

// post is the Go client. It prints status, fields and body as curl -i does.
func post(target string) int {
	resp, err := http.Post(target, "application/json", os.Stdin) //nolint:forbidigo // As scripts do.
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = resp.Body.Close() }()
	fmt.Fprintln(os.Stdout, resp.Proto, resp.Status)
	_ = resp.Header.Write(os.Stdout)
	fmt.Fprintln(os.Stdout)
	if _, err := io.Copy(os.Stdout, resp.Body); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

const python = `
import sys, urllib.error, urllib.request
q = urllib.request.Request(sys.argv[1], data=sys.stdin.buffer.read(), headers={"Content-Type": "application/json"})
try:
    a = urllib.request.urlopen(q)
except urllib.error.HTTPError as e:
    a = e
print("HTTP/1.1", a.status, a.reason)
print(a.headers)
print(a.read().decode())
`

// clients are the commands that post standard input to a URL. The name of a program
// that this machine lacks comes in place of one.
func clients(t *testing.T, target string) map[string][]string {
	t.Helper()
	all := map[string][]string{"Go": {os.Args[0]}}
	all["curl"] = []string{"curl", "-sS", "-i", "-H", "Content-Type: application/json", "--data-binary", "@-", target}
	all["Python urllib"] = []string{"python3", "-c", python, target}
	for name, command := range all {
		path, err := exec.LookPath(command[0])
		if err != nil {
			all[name] = command[:1]
			continue
		}
		command[0] = path
	}
	if path := all["Python urllib"][0]; len(all["Python urllib"]) > 1 {
		// A shim needs its owner's environment, the interpreter itself none.
		if own, err := exec.CommandContext(t.Context(), path, "-c", "import sys; print(sys.executable)").Output(); err == nil {
			all["Python urllib"][0] = strings.TrimSpace(string(own))
		}
	}
	return all
}

// newWorldOfClients is a world whose bank without keys is at 0.0.0.0: Go and others
// don't send a loopback address to a proxy.
func newWorldOfClients(t *testing.T) (w *world, target string) {
	t.Helper()
	w = prepare(t)
	_, port, _ := strings.Cut(w.probed.Addr(), ":")
	w.settings.Hosts["probed-bank"] = "0.0.0.0:" + port
	w.start()
	return w, "https://0.0.0.0:" + port + "/transfers"
}

// command starts a client with nothing but the run's environment.
func (s *scriptRun) command(ctx context.Context, command []string, target string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env = []string{}
	for name, value := range s.opened.Env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	if len(command) == 1 {
		cmd.Env = append(cmd.Env, clientVar+"="+target)
	}
	cmd.Stdin = strings.NewReader(order("R-1"))
	return cmd
}

func TestUnmodifiedClients(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"Go", "curl", "Python urllib"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, target := newWorldOfClients(t)
			command := clients(t, target)[name]
			if name != "Go" && len(command) == 1 {
				t.Skipf("not run: %s is not on this machine", command[0])
			}
			w.probed.arm("commit-close")
			ask := func(s *scriptRun) string {
				answer, err := s.command(t.Context(), command, target).CombinedOutput()
				if err != nil {
					t.Fatalf("%v: %s", err, answer)
				}
				return strings.ToLower(string(answer))
			}
			first, again := ask(w.open("a")), ask(w.again("a"))
			for _, want := range []string{" 201", "keep-state: applied", "location: /transfers/tr_000001", `"reference":"r-1"`} {
				if !strings.Contains(first, want) || !strings.Contains(again, want) {
					t.Errorf("no %q in the first answer or in the second:\n%s\n%s", want, first, again)
				}
			}
			if strings.Contains(first, "keep-replayed") || !strings.Contains(again, "keep-replayed: true") {
				t.Errorf("the second answer is no replay, or the first is one:\n%s\n%s", first, again)
			}
			w.probed.want("transfer:R-1", 1, 1)

			w.probed.arm("close")
			if refused := ask(w.open("b")); !strings.Contains(refused, " 424") || !strings.Contains(refused, "urn:keep:problem:unknown-outcome") {
				t.Errorf("an unknown outcome came as\n%s", refused)
			}
			w.probed.want("transfer:R-1", 1, 2)
		})
	}
}

func TestAClientThatIsKilledAndRunAgain(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"Go", "curl", "Python urllib"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, target := newWorldOfClients(t)
			command := clients(t, target)[name]
			if name != "Go" && len(command) == 1 {
				t.Skipf("not run: %s is not on this machine", command[0])
			}
			w.probed.arm("hang")
			ctx, kill := context.WithCancel(t.Context())
			cmd := w.open("a").command(ctx, command, target)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			w.probed.await("the transfer arrived", received("transfer:R-1", 1))
			kill()
			if err := cmd.Wait(); err == nil {
				t.Error("the killed client ended well")
			}
			w.probed.Release(script.GateHang)
			answer, err := w.again("a").command(t.Context(), command, target).CombinedOutput()
			if err != nil || !strings.Contains(string(answer), " 201") {
				t.Errorf("%v: %s", err, answer)
			}
			w.probed.want("transfer:R-1", 1, 1)
		})
	}
}
