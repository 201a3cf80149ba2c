package app

import (
	"fmt"
	"strings"

	"keep-proxy/ledger"
)

// recovered says what recovery found, empty for nothing.
func recovered(c ledger.RecoverCounts) string {
	var parts []string
	for _, p := range []struct {
		n    int
		what string
	}{
		{c.NeedsReconcile, "to be reconciled"},
		{c.Indeterminate, "waiting for a person"},
		{c.Applied, "applied with an unknown result"},
		{c.Failed, "proven not to have been sent"},
	} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.what))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "an earlier process left mutations in flight: " + strings.Join(parts, ", ")
}
