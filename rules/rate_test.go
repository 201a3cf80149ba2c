package rules

import (
	"strings"
	"testing"
)

func TestASlowRateIsWarnedOf(t *testing.T) {
	t.Parallel()
	for rate, warned := range map[string]bool{
		"{requests: 1, per: 1m}":  true,
		"{requests: 5, per: 51s}": true,
		"{requests: 1, per: 10s}": false,
		"{requests: 6, per: 1m}":  false,
	} {
		t.Run(rate, func(t *testing.T) {
			t.Parallel()
			text := strings.Replace(connectorHead, "operations:", "rate: "+rate+"\noperations:", 1) + simpleMutation
			set, findings := Load([]File{{Name: "test.yaml", Data: []byte(text)}}, nil, Defaults{})
			if set == nil {
				t.Fatal(findings)
			}
			found := false
			for _, f := range findings {
				found = found || f.Code == "rate" && f.Key == "rate" && f.Severity == SeverityWarning && f.Line > 1 && f.Fix != ""
			}
			if found != warned {
				t.Errorf("warned: %t, findings %v", found, findings)
			}
		})
	}
}
