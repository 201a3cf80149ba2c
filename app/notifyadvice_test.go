package app

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"keep-proxy/config"
)

// Without a word of it the first to find out is who isn't called.
func TestDestinationsThatCannotBeCalledAreNamedAtTheStart(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOOK_ADDRESS", "hooks.example.com/s3cret")
	t.Setenv("HOOK_KEY", "s3cret!")
	file := filepath.Join(dir, "config.yaml")
	text := fmt.Sprintf(`proxy: {listen: [127.0.0.1:0]}
admin: {listen: 127.0.0.1:0}
ledger: {dir: %q}
notify:
  exec:
    - {name: there, command: [%q]}
    - {name: gone, command: [/no/such/pager]}
  webhooks:
    - {name: right, url: https://hooks.example.com/a, secret: whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw}
    - {name: wrong, url: "${env:HOOK_ADDRESS}", secret: "${env:HOOK_KEY}"}
    - {name: unset, url: "${env:HOOK_THAT_IS_NOT_SET}"}
    - {name: piped, url: "${file:%s}"}
`, filepath.Join(dir, "data"), os.Args[0], pipe)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(config.Options{File: file})
	if err != nil {
		t.Fatal(err)
	}
	var notes []string
	a, err := New(t.Context(), Options{Config: c, Note: func(text string) { notes = append(notes, text) }})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	var checked []string
	for _, f := range SecretAdvice(c) {
		checked = append(checked, f.String())
	}
	for who, said := range map[string][]string{"the start": notes, "check": checked} {
		all := strings.Join(said, "\n")
		for _, want := range []string{
			"config.yaml:7:", "notify.exec[1].command: can't be started here", "notify.webhooks[1].url: is none: write https://HOST/PATH",
			"notify.webhooks[1].secret: is not whsec_ and base64", "notify.webhooks[2].url: can't be resolved here",
		} {
			if !strings.Contains(all, want) {
				t.Errorf("%s doesn't say %q:\n%s", who, want, all)
			}
		}
		if n := strings.Count(all, "notify."); n != 4 || strings.Contains(all, "s3cret") {
			t.Errorf("%s says %d things of it, want 4, and no secret:\n%s", who, n, all)
		}
	}
}
