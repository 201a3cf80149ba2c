package clients

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"keep-proxy/internal/fakes/oracle"
	"keep-proxy/internal/fakes/server"
)

var gitClient = client{
	name: "git", trade: pushing{}, argv: []string{"git"}, version: []string{"git", "--version"},
	needs: []string{"/usr/bin/python3"},
	note:  "its `http.proxy` must not be set; see below",
	more: []caseOf{
		{"content when run again", pushedAlready},
		{"two pushes are two mutations", twoPushes},
		{"a push in chunks", chunkedPush},
		{"a fetch in gzip", gzippedFetch},
		{"a refused push is none", refusedPush},
	},
}

// pushing is the trade of git: it lists refs and pushes branches.
type pushing struct{}

func (pushing) read(_ *testing.T, w *world) errand {
	return errand{on: w.git, args: []string{"ls-remote", repository(w, "kept")}}
}

// change pushes a branch from a clone of its own, as often as it is asked for: where the
// branch is there, somebody has deleted it meanwhile.
func (pushing) change(t *testing.T, w *world, word string) errand {
	t.Helper()
	return push(t, w, "kept", word)
}

func (pushing) halt(t *testing.T, w *world, word string) errand {
	t.Helper()
	return push(t, w, "silent", word)
}

func (pushing) content(d done, what string) bool {
	return d.code == 0 && (what == "read" || strings.Contains(d.text, "[new branch]"))
}

func (pushing) refused(d done) bool { return d.code != 0 && strings.Contains(d.text, "error: 424") }

func repository(w *world, name string) string { return w.site(w.git) + "/team/" + name + ".git" }

func bare(w *world, name string) string {
	return filepath.Join(w.dir, "repositories", "team", name+".git")
}

func push(t *testing.T, w *world, name, branch string) errand {
	t.Helper()
	deleteBranch(t, w, name, branch)
	clone := cloned(t, w, name)
	commit(t, clone, branch)
	return errand{
		on: w.git, counts: "push:/team/" + name + ".git refs/heads/" + branch,
		args: []string{"-C", clone, "push", repository(w, name), "HEAD:refs/heads/" + branch},
	}
}

// deleteBranch deletes a branch on the server's side.
func deleteBranch(t *testing.T, w *world, name, branch string) {
	t.Helper()
	w.command(t, "git", "-C", bare(w, name), "update-ref", "-d", "refs/heads/"+branch)
}

// cloned is a fresh clone, made without the server.
func cloned(t *testing.T, w *world, name string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "clone")
	w.command(t, "git", "clone", "--quiet", "--branch=main", "--single-branch", bare(w, name), dir)
	return dir
}

// commit commits a file with these words, always as the same commit.
func commit(t *testing.T, dir, words string) {
	t.Helper()
	must(t, os.WriteFile(filepath.Join(dir, "file"), []byte(words), 0o600))
	in(t, dir, "add", "file")
	in(t, dir, "commit", "--quiet", "--message=change")
}

// in runs git with a fixed author and time.
func in(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir, "-c", "user.name=ann", "-c", "user.email=ann@example.com"}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_AUTHOR_DATE=2026-01-02T03:04:05Z", "GIT_COMMITTER_DATE=2026-01-02T03:04:05Z", "GIT_CONFIG_GLOBAL=/dev/null")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// pushedAlready runs a script again that lost the answer to its push: git sees for itself
// that nothing is left to push.
func pushedAlready(t *testing.T, w *world, c client) bool {
	t.Helper()
	e := push(t, w, "kept", "already")
	lose(t, e, "commit-close")
	send := w.underRun(t, c, "git already", "i")
	first, again := send(e, false), send(e, false)
	return logged(t, w.sends(t, e) == 1 && w.effects(t, e) == 1 && first.code == 0 && again.code == 0 &&
		strings.Contains(again.text, "Everything up-to-date"), first, again)
}

// twoPushes pushes one branch twice in one run.
func twoPushes(t *testing.T, w *world, c client) bool {
	t.Helper()
	first := push(t, w, "kept", "two")
	send := w.underEnv(t, c, "git two", "i")
	d := send(first, false)
	commit(t, first.args[1], "more")
	again := send(first, false)
	return logged(t, d.code == 0 && again.code == 0 && w.sends(t, first) == 2 && w.effects(t, first) == 2, d, again)
}

// chunkedPush pushes more than http.postBuffer: git knocks first, and sends chunks.
func chunkedPush(t *testing.T, w *world, c client) bool {
	t.Helper()
	e := push(t, w, "kept", "big")
	must(t, os.WriteFile(filepath.Join(e.args[1], "big"), noise(3<<20), 0o600))
	in(t, e.args[1], "add", "big")
	in(t, e.args[1], "commit", "--quiet", "--message=big")
	e.args = append([]string{"-c", "http.postBuffer=65536"}, e.args...)
	lose(t, e, "commit-close")
	send := w.underRun(t, c, "git big", "i")
	d := send(e, false)
	deleteBranch(t, w, "kept", "big")
	again := send(e, false)
	tally, err := w.git.Tally()
	must(t, err)
	knocks := 0
	for _, one := range tally.Of(oracle.KindReceived) {
		if strings.HasSuffix(one.Target, "/git-receive-pack") && one.Length == 4 {
			knocks++
		}
	}
	return logged(t, d.code == 0 && again.code == 0 && w.sends(t, e) == 1 && w.effects(t, e) == 1 && knocks > 0 &&
		strings.Contains(again.text, "[new branch]"), d, again)
}

// history adds that many commits to a clone.
func history(t *testing.T, clone string, n int) {
	t.Helper()
	var stream strings.Builder
	from := "from refs/heads/main^0\n"
	for i := range n {
		fmt.Fprintf(&stream, "commit refs/heads/main\ncommitter ann <ann@example.com> %d +0000\ndata 1\nx\n%s\n", 1767323045+i, from)
		from = ""
	}
	cmd := exec.CommandContext(t.Context(), "git", "-C", clone, "fast-import", "--quiet")
	cmd.Stdin = strings.NewReader(stream.String())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// gzippedFetch fetches into a clone with so many commits of its own that git packs its
// question.
func gzippedFetch(t *testing.T, w *world, c client) bool {
	t.Helper()
	clone := cloned(t, w, "kept")
	history(t, clone, 300)
	other := cloned(t, w, "kept")
	commit(t, other, "to be fetched")
	in(t, other, "push", "--quiet", "origin", "HEAD:refs/heads/fetched")
	e := errand{on: w.git, args: []string{"-C", clone, "fetch", repository(w, "kept"), "fetched"}}
	d := w.underRun(t, c, "git fetch", "i")(e, false)
	tally, err := w.git.Tally()
	must(t, err)
	packed := 0
	for _, one := range tally.Of(oracle.KindHead) {
		if strings.HasSuffix(one.Target, "/git-upload-pack") && one.Header["Content-Encoding"] == "gzip" {
			packed++
		}
	}
	return logged(t, d.code == 0 && packed > 0 && in(t, clone, "rev-parse", "FETCH_HEAD") == in(t, other, "rev-parse", "HEAD"), d)
}

// refusedPush pushes what the server's hook refuses, in an answer with status 200.
func refusedPush(t *testing.T, w *world, c client) bool {
	t.Helper()
	e := push(t, w, "kept", "refused-by-hook")
	d := w.underEnv(t, c, "git refused", "i")(e, false)
	return logged(t, d.code != 0 && w.effects(t, e) == 0, d)
}

func logged(t *testing.T, ok bool, all ...done) bool {
	t.Helper()
	for _, d := range all {
		if !ok {
			t.Logf("exit %d:\n%s", d.code, d.text)
		}
	}
	return ok
}

// noise is what can't be compressed, always the same.
func noise(n int) []byte {
	out, state := make([]byte, n), uint32(1)
	for i := range out {
		state = state*1664525 + 1013904223
		out[i] = byte(state >> 24)
	}
	return out
}

// gitConnector puts the example's program where its connector says.
func gitConnector(t *testing.T, w *world, dir string) {
	t.Helper()
	text, err := os.ReadFile("../../examples/git/git.yaml")
	must(t, err)
	program, err := filepath.Abs("../../examples/git/pushed.py")
	must(t, err)
	kept := strings.Replace(string(text), "[python3, /etc/keep-proxy/pushed.py]",
		fmt.Sprintf("[/usr/bin/python3, %q, %q]", program, "http.sslCAInfo="+filepath.Join(w.dir, "upstreams.pem")), 1)
	if kept == string(text) {
		t.Fatal("the example's program is not where it was")
	}
	must(t, os.WriteFile(filepath.Join(dir, "git.yaml"), []byte(kept), 0o600))
}

// gitHost serves repositories by git's own program, git http-backend. Identity in the log:
// push:REPOSITORY REF.
type gitHost struct{ root, program string }

const refusingHook = `#!/bin/sh
case $1 in *refused-by-hook*) echo "no such branches here" >&2; exit 1;; esac
`

func newGitHost(t *testing.T, root string) *gitHost {
	t.Helper()
	program, err := exec.LookPath("git")
	if err != nil {
		return &gitHost{} // Nobody is there to ask it.
	}
	for _, name := range []string{"kept", "silent"} {
		dir := filepath.Join(root, "team", name+".git")
		must(t, os.MkdirAll(dir, 0o700))
		in(t, dir, "init", "--quiet", "--bare", "--initial-branch=main")
		in(t, dir, "config", "http.receivepack", "true")
		must(t, os.WriteFile(filepath.Join(dir, "hooks", "update"), []byte(refusingHook), 0o700))
		first := t.TempDir()
		in(t, first, "clone", "--quiet", dir, "first")
		commit(t, filepath.Join(first, "first"), "begin")
		in(t, filepath.Join(first, "first"), "push", "--quiet", "origin", "HEAD:refs/heads/main")
	}
	return &gitHost{root, program}
}

func (*gitHost) Name() string                 { return "git" }
func (*gitHost) Restore([]oracle.Event) error { return nil }

// pushed is what a push wants: the first ref, and what it becomes.
func pushed(r *server.Request) (repo, ref, becomes string) {
	repo, ok := strings.CutSuffix(r.Path, "/git-receive-pack")
	line, _, _ := bytes.Cut(r.Body, []byte{0})
	words := strings.Fields(string(line))
	if !ok || r.Method != http.MethodPost || len(words) != 3 {
		return "", "", ""
	}
	return repo, words[2], words[1]
}

func (*gitHost) Identity(r *server.Request) string {
	if repo, ref, _ := pushed(r); repo != "" {
		return "push:" + repo + " " + ref
	}
	return ""
}

func (g *gitHost) Serve(ctx context.Context, c *server.Call) (*server.Answer, error) {
	if err := c.Pause(ctx); err != nil || c.NoEffect {
		return c.Own, err
	}
	target := c.Path
	if len(c.Query) > 0 {
		target += "?" + c.Query.Encode()
	}
	r := httptest.NewRequestWithContext(ctx, c.Method, target, bytes.NewReader(c.Body))
	r.Header = c.Header
	answer := httptest.NewRecorder()
	(&cgi.Handler{Path: g.program, Args: []string{"http-backend"}, Env: []string{
		"GIT_PROJECT_ROOT=" + g.root, "GIT_HTTP_EXPORT_ALL=1", "GIT_PROTOCOL=" + c.Header.Get("Git-Protocol"),
	}}).ServeHTTP(answer, r)
	if repo, ref, becomes := pushed(c.Request); repo != "" {
		out, _ := exec.CommandContext(ctx, g.program, "-C", g.root+repo, "rev-parse", "--verify", "--quiet", ref).Output()
		if strings.TrimSpace(string(out)) == becomes {
			if err := c.Commit(g.Identity(c.Request), becomes, nil); err != nil {
				return nil, err
			}
		}
	}
	if c.Own != nil {
		return c.Own, nil
	}
	return &server.Answer{Status: answer.Code, Header: answer.Header(), Body: answer.Body.Bytes()}, nil
}
