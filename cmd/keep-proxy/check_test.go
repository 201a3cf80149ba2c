package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestWhatCheckFindsDrivesNoTerminal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	config := write("config.yaml", `proxy: {"ho\e[2Jld": 3, "\u202ehold": 3}`+"\n")
	rule := write("evil.yaml", `apiVersion: keep/v1
connector: evil
version: 1
hosts: [api.evil.example]
reads: safe-methods
"bad\e[2Jkey": 1
operations:
  - name: thing.create
    match: {method: POST, path: /things}
    effect: mutation
    identity: {thing: "json.\e[2J"}
    reconcile:
      - none: "it keeps no list"
    manual_check: "Ask it"
`)
	var out, errs bytes.Buffer
	code := run(t.Context(), []string{"check", "--config", config, rule}, streams{strings.NewReader(""), &out, &errs})
	if code != codeFailed || !strings.Contains(out.String(), "bad [2Jkey") || !strings.Contains(out.String(), "ho [2Jld") {
		t.Fatalf("code %d, found %q %q", code, &out, &errs)
	}
	for line := range strings.Lines(out.String()) {
		if line = strings.TrimSuffix(line, "\n"); line != printable(line) {
			t.Errorf("%q isn't for a terminal", line)
		}
	}
}
