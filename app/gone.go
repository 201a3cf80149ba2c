package app

import (
	"context"
	"fmt"
	"slices"

	"keep-proxy/ledger"
	"keep-proxy/rules"
)

// GoneAdvice warns of connectors that have records, and that no file is or was.
func GoneAdvice(set *rules.Set, recorded []string) (out rules.Findings) {
	slices.Sort(recorded)
	for _, name := range slices.Compact(recorded) {
		if set.Heir(name) == nil {
			out = append(out, rules.Finding{
				Severity: rules.SeverityWarning, Code: "gone", Key: "connectors", Value: name,
				Problem: "the connector " + name + " has records, and there is no file of it",
				Fix:     "if it was renamed, say was: " + name + " at the top of its new file",
			})
		}
	}
	return out
}

// changeAdvice warns of changes of the connectors by which records are found no more, or can't be told apart.
func (a *App) changeAdvice(ctx context.Context, before, after *rules.Set) (rules.Findings, error) {
	var out rules.Findings
	var recorded []string
	for _, c := range before.Heads() {
		now := after.Head(c.Name)
		if now != nil && now.Hash != c.Hash && now.Version == c.Version {
			out = append(out, rules.Finding{
				Severity: rules.SeverityWarning, Code: "version", File: now.File, Key: "version", Value: fmt.Sprint(now.Version),
				Problem: fmt.Sprintf("the file of %s changed, and its version is still %d", c.Name, now.Version),
				Fix:     "raise the version with each change: people tell records of the two apart by it",
			})
		}
		if now != nil {
			continue
		}
		page, err := a.ledger.Mutations(ctx, ledger.Filter{Connector: c.Name, Limit: 1})
		if err != nil {
			return nil, fmt.Errorf("records of %s: %w", c.Name, err)
		}
		if len(page.Items) > 0 {
			recorded = append(recorded, c.Name)
		}
	}
	return append(out, GoneAdvice(after, recorded)...), nil
}
