package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The bundled fake knows nothing of what the file adds. So nothing is tried, and that is no success.
func TestAFileThatExtendsIsTriedWithTheBundledFake(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "mine.yaml")
	rule := `apiVersion: keep/v1
connector: mine
extends: slack-hooks
version: 1
operations:
  - name: thing.create
    match: {method: POST, path: /things}
    effect: mutation
    identity: {thing: json.name}
    reconcile:
      - none: "it keeps no list"
    manual_check: "Ask it"
cases:
  - name: a thing is known by its name
    request: {method: POST, url: "https://hooks.slack.com/things", headers: {content-type: application/json}, body: {name: a}}
    expect: {operation: thing.create}
`
	if err := os.WriteFile(file, []byte(rule), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, flags := range [][]string{nil, {"--json"}} {
		var out, errs bytes.Buffer
		args := append([]string{"connectors", "test", file, "--operation", "thing.create"}, flags...)
		code := run(t.Context(), args, streams{strings.NewReader(""), &out, &errs})
		if code != codeFailed || errs.Len() == 0 || !strings.Contains(out.String(), "thing.create") {
			t.Errorf("%v: code %d, %q %q", flags, code, &out, &errs)
		}
	}
}
