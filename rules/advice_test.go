package rules

import (
	"strings"
	"testing"
)

func TestConnectorsWithoutAccountAreAdvisedUnlessTheConfigurationSaysWhoseDataItIs(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name, file string
		always     []string
		want       int
	}{
		{"credentials of the script and no account", connectorHead + simpleMutation, nil, 1},
		{"credentials that always come from the configuration", connectorHead + simpleMutation, []string{"test"}, 0},
		{"those of another connector do", connectorHead + simpleMutation, []string{"other"}, 1},
		{"an account", strings.Replace(connectorHead, "operations:", "account: header[?'x-tenant'].orValue('')\noperations:", 1) + simpleMutation, nil, 0},
		{"no mutation", connectorHead + "\n  - {name: look, match: {method: POST, path: /look}, effect: read}\n", nil, 0},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			set := load(t, tc.file)
			got := set.Advice(func(connector string) bool { return strings.Contains(strings.Join(tc.always, " "), connector) })
			if len(got) != tc.want {
				t.Fatalf("%d findings, want %d: %v", len(got), tc.want, got)
			}
			for _, f := range got {
				if f.Severity != SeverityWarning || f.Code != "account" || f.File != "test.yaml" || f.Key != "account" || f.Fix == "" || f.Line != 2 {
					t.Errorf("%+v", f)
				}
			}
			if got.Failed() {
				t.Error("advice keeps the set from loading")
			}
		})
	}
}

func TestAdviceWithoutAConfigurationIsForEveryConnector(t *testing.T) {
	t.Parallel()
	if got := load(t, connectorHead+simpleMutation).Advice(nil); len(got) != 1 {
		t.Errorf("%v", got)
	}
}
