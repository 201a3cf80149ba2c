package rules

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Severity says whether a finding keeps a set from loading.
type Severity string

// Severities. An unknown one counts as an error.
const (
	// SeverityError keeps the whole set from loading.
	SeverityError Severity = "error"
	// SeverityWarning is advice: the set loads.
	SeverityWarning Severity = "warning"
)

// Finding is one problem of a connector file or of its settings.
type Finding struct {
	Severity Severity `json:"severity"`
	// Code is a stable word for the kind of problem, such as "unknown-key".
	Code string `json:"code"`
	// File is the name the file was loaded under; empty for settings, of which the
	// caller knows where they stand.
	File string `json:"file"`
	// Line and Column start at 1; 0 when the problem has no place.
	Line   int `json:"line"`
	Column int `json:"column"`
	// Key is the path of the key inside the file, such as
	// "operations[0].payload.ignore".
	Key string `json:"key"`
	// Value is what was written there, shortened; empty for maps and lists.
	Value   string `json:"value,omitempty"`
	Problem string `json:"problem"`
	// Fix says what to write instead; never empty.
	Fix string `json:"fix"`
}

// String formats the finding on one line: place, severity, code, problem, fix.
func (f Finding) String() string {
	var b strings.Builder
	if f.File != "" {
		b.WriteString(f.File)
		if f.Line > 0 {
			fmt.Fprintf(&b, ":%d:%d", f.Line, f.Column)
		}
		b.WriteString(": ")
	}
	fmt.Fprintf(&b, "%s [%s] ", f.Severity, f.Code)
	if f.Key != "" {
		b.WriteString(f.Key)
		if f.Value != "" && !strings.Contains(f.Problem, f.Value) {
			fmt.Fprintf(&b, " = %q", f.Value)
		}
		b.WriteString(": ")
	}
	b.WriteString(f.Problem)
	if f.Fix != "" {
		fmt.Fprintf(&b, "; %s", f.Fix)
	}
	return b.String()
}

// Findings are the problems of a load, in the order of files, lines and columns.
type Findings []Finding

// Failed reports whether any finding keeps the set from loading.
func (fs Findings) Failed() bool {
	return slices.ContainsFunc(fs, func(f Finding) bool { return f.Severity != SeverityWarning })
}

// Error lists every finding, one a line.
func (fs Findings) Error() string {
	lines := make([]string, len(fs))
	for i, f := range fs {
		lines[i] = f.String()
	}
	return strings.Join(lines, "\n")
}

// sortFindings orders findings by place, keeping the order found for equal ones.
func sortFindings(fs Findings) {
	slices.SortStableFunc(fs, func(a, b Finding) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
}
