package lint

import (
	"strings"
	"testing"

	"keep-proxy/rules"
)

func TestConnectorsWithoutAccountAreWarnedOfUnlessTheConfigurationSaysWhoseDataItIs(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		file   string
		always func(connector string) bool
		want   int
	}{
		"credentials of the script and no account":            {withOperation(), func(string) bool { return false }, 1},
		"credentials that always come from the configuration": {withOperation(), func(c string) bool { return c == "test" }, 0},
		"those of another connector do":                       {withOperation(), func(c string) bool { return c == "other" }, 1},
		"an account":                                          {strings.Replace(withOperation(), "operations:", "account: header[?'x-tenant'].orValue('')\noperations:", 1), func(string) bool { return false }, 0},
		"no mutation":                                         {withRead(), func(string) bool { return false }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set, findings := rules.Load([]rules.File{{Name: "test.yaml", Data: []byte(tc.file)}}, nil, rules.Defaults{})
			if set == nil {
				t.Fatal(findings)
			}
			got := Accounts(set, tc.always)
			if len(got) != tc.want || got.Failed() {
				t.Fatalf("%d findings, want %d: %v", len(got), tc.want, got)
			}
			for _, f := range got {
				if f.Code != "account" || f.File != "test.yaml" || f.Key != "account" || f.Fix == "" || f.Line != 2 {
					t.Errorf("%+v", f)
				}
			}
		})
	}
}
