package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"keep-proxy/config"
)

// A max_age that is over before an absence can be believed is warned of, as each rule has it.
func TestAShortMaxAgeIsWarnedOfByRule(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		age    time.Duration
		settle string
		want   bool
	}{
		"longer than the rule's settle": {20 * time.Second, "1s", false},
		"shorter than it":               {20 * time.Second, "30s", true},
		"the default":                   {24 * time.Hour, "30s", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conf := config.Default()
			conf.Connectors.Bundled = config.Bundled{}
			conf.Connectors.Dirs = []string{t.TempDir()}
			file := filepath.Join(conf.Connectors.Dirs[0], "books.yaml")
			if err := os.WriteFile(file, []byte(strings.Replace(agedRule, "SETTLE", c.settle, 1)), 0o600); err != nil {
				t.Fatal(err)
			}
			conf.Reconcile.MaxAge = c.age
			set, findings, err := LoadRules(conf, false)
			if err != nil || set == nil {
				t.Fatal(err, findings)
			}
			warned := false
			for _, f := range findings {
				warned = warned || f.Code == "max_age"
			}
			if warned != c.want {
				t.Errorf("warned %t: %v", warned, findings)
			}
		})
	}
}

const agedRule = `apiVersion: keep/v1
connector: books
version: 1
title: t
hosts: [books.test]
reads: safe-methods
operations:
  - name: book
    match: {method: POST, path: /books}
    effect: mutation
    identity: {ref: json.ref}
    settle: SETTLE
    absent_spacing: 1s
    bounds: {commit: 100ms, lag: 100ms, source: "measured"}
    reconcile:
      - probe: {get: /books, candidates: response.json.items, ours: found.ref == json.ref, id: found.ref, tie: unique, created: timestamp(found.at), absence_is_proof: true}
    manual_check: "look"
`
