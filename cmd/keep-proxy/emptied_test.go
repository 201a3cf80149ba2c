package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
)

func TestAFlagWithoutAValueIsRefused(t *testing.T) {
	dir := t.TempDir()
	// What isn't refused ends at once, and leaves nothing behind.
	t.Setenv("XDG_STATE_HOME", dir)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		args, want string
	}{
		"a restore without its moment":            {"serve --data-dir DIR --restored ", "serve: --restored is empty"},
		"no folder":                               {"serve --data-dir ", "serve: --data-dir is empty"},
		"no configuration":                        {"run --config  --workflow w --item i -- true", "run: --config is empty"},
		"no proxy":                                {"run --data-dir DIR --admin  --workflow w --item i -- true", "run: --admin is empty"},
		"no item, where a re-run is new work":     {"run --data-dir DIR --workflow w --item  --once -- true", "run: --item is empty"},
		"no item, where a workflow is confirmed":  {"ledger confirm --data-dir DIR --workflow w --item  --reason x", "confirm: --item is empty"},
		"no workflow, where all of it is decided": {"resolve --data-dir DIR --all --connector c --workflow  --did-not-happen --reason x", "resolve: --workflow is empty"},
		"no run, where there is none without":     {"env --data-dir DIR --workflow  --item ", "env: --item is empty"},
	} {
		var out, errs bytes.Buffer
		// Two spaces have an empty word between them.
		args := strings.Split(strings.ReplaceAll(c.args, "DIR", dir), " ")
		code := run(ctx, args, streams{strings.NewReader(""), &out, &errs})
		if want := "keep-proxy: " + c.want + "; give it a value, or leave it out\n"; code != codeUsage || errs.String() != want || out.Len() > 0 {
			t.Errorf("%s: code %d, %q; want %d, %q", name, code, errs.String(), codeUsage, want)
		}
	}
}
