package rules

import "slices"

// Advice is what is allowed but probably not meant, as warnings for `check`. It
// depends on the credentials, which rules don't know: always says whether those of
// a connector come from the configuration on every request (use: always), so that
// there is one account; nil says so of none.
//
// A connector with mutations whose credentials come from the script and that has
// no account gives two tenants of its API the same keys.
func (s *Set) Advice(always func(connector string) bool) Findings {
	var out Findings
	for _, c := range s.connectors {
		mutates := slices.ContainsFunc(c.Operations, func(op *Operation) bool { return op.Effect == EffectMutation })
		if !mutates || c.HasAccount || always != nil && always(c.Name) {
			continue
		}
		out = append(out, Finding{
			Severity: SeverityWarning, Code: "account", File: c.File, Line: c.nameLine, Column: c.nameColumn, Key: "account",
			Problem: "credentials come from the script and nothing says whose data they change: two accounts of " + c.Name + " share their keys",
			Fix:     "add account: with an expression such as header[?'x-account'].orValue(''), or configure credentials with use: always",
		})
	}
	sortFindings(out)
	return out
}
