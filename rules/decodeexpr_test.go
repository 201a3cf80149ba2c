package rules

import (
	"slices"
	"strings"
	"testing"
)

// What people write who come from other tools is told how it is written here.
func TestUsualMistakesInExpressionsSayTheFix(t *testing.T) {
	t.Parallel()
	for expression, fix := range map[string]string{
		"json.a = 'b'":             "== to compare",
		"json.a =json.b":           "== to compare",
		"$.a":                      "json.name",
		"json.a ?? ''":             "orValue",
		"json.a == 1 and json.b":   "&&",
		"json.a == 1 or json.b":    "||",
		"body.a":                   "variables that exist",
		"json.a == 'b' && (json.b": "docs/connectors.md",
	} {
		file := withOperation(`match: {method: POST, path: /things, when: "` + expression + `"}`)
		_, findings := Load([]File{{Name: "bad.yaml", Data: []byte(file)}}, nil, Defaults{})
		if !slices.ContainsFunc(findings, func(f Finding) bool { return f.Code == "expression" && strings.Contains(f.Fix, fix) }) {
			t.Errorf("%s: no finding whose fix says %q: %v", expression, fix, findings)
		}
	}
}
