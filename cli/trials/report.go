package trials

import (
	"fmt"
	"slices"
	"strings"
)

// Outcomes of a trial.
const (
	OK     = "ok"
	Person = "asks a person"
	Failed = "FAILED"
	Idle   = "-"
)

// Cell is what one trial of an operation came to.
type Cell struct {
	Trial   string `json:"trial"`
	Outcome string `json:"outcome"`
	// Said is the sentence that a person is asked with, what was seen of a failure, or why there is no such trial.
	Said string `json:"said,omitempty"`
}

// Row is one mutating operation.
type Row struct {
	Operation string `json:"operation"`
	// Case is the case whose request was sent, "" for none.
	Case  string `json:"case,omitempty"`
	Cells []Cell `json:"trials"`
}

// Report is what the trials of a connector came to.
type Report struct {
	Connector string `json:"connector"`
	Fake      string `json:"fake"`
	Rows      []Row  `json:"operations"`
}

// Failed reports whether any trial failed.
func (r Report) Failed() bool { return r.count(Failed) > 0 }

// count is how many operations have a trial with this outcome.
func (r Report) count(outcome string) (n int) {
	for _, row := range r.Rows {
		if slices.ContainsFunc(row.Cells, func(c Cell) bool { return c.Outcome == outcome }) {
			n++
		}
	}
	return n
}

// sentence tells a cell's outcome and what it says.
func (c Cell) sentence() string {
	if c.Said == "" {
		return c.Outcome
	}
	return fmt.Sprintf("%s: %s", c.Outcome, strings.TrimSpace(c.Said))
}

// Text writes the report for people.
func (r Report) Text() string {
	var out strings.Builder
	for _, row := range r.Rows {
		fmt.Fprintf(&out, "%s (%s)\n", row.Operation, row.Case)
		for _, c := range row.Cells {
			fmt.Fprintf(&out, "  %-26s %s\n", c.Trial, c.sentence())
		}
	}
	return out.String()
}
