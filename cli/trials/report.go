package trials

import (
	"cmp"
	"fmt"
	"maps"
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
	// ManualCheck is what a person is told to look at, as the rule has it.
	ManualCheck string `json:"manual_check,omitempty"`
}

// Report is what the trials of a connector came to.
type Report struct {
	Connector string `json:"connector"`
	Title     string `json:"title,omitempty"`
	Fake      string `json:"fake"`
	Rows      []Row  `json:"operations"`
}

// Failed reports whether any trial failed.
func (r Report) Failed() bool { return r.count(Failed) > 0 }

// count is how many operations have a trial with this outcome.
func (r Report) count(outcome string) (n int) {
	for _, row := range r.Rows {
		if row.has(outcome) {
			n++
		}
	}
	return n
}

func (r Row) has(outcome string) bool {
	return slices.ContainsFunc(r.Cells, func(c Cell) bool { return c.Outcome == outcome })
}

// sentence tells a cell's outcome and what it says.
func (c Cell) sentence() string {
	if c.Said == "" {
		return c.Outcome
	}
	return fmt.Sprintf("%s: %s", c.Outcome, strings.TrimSpace(c.Said))
}

// Text writes the operation for people.
func (r Row) Text() string {
	if len(r.Cells) == 0 {
		return r.Operation + "\n  not tried: no case has a request that could be sent, or the fake has no such change\n"
	}
	var out strings.Builder
	fmt.Fprintf(&out, "%s (%s)\n", r.Operation, r.Case)
	for _, c := range r.Cells {
		fmt.Fprintf(&out, "  %-26s %s\n", c.Trial, c.sentence())
	}
	return out.String()
}

// Page writes the report as a page of docs/connectors.
func (r Report) Page() string {
	var out strings.Builder
	fmt.Fprintf(&out, "# %s\n\nWhat came of the [trials](README.md) of `%s.yaml` against its [fake](../../connectors/fakes/%s.yaml).\n\n",
		cmp.Or(r.Title, r.Connector), r.Connector, r.Fake)
	kinds := Kinds()
	out.WriteString("| operation |")
	for _, k := range kinds {
		out.WriteString(" " + k.Short + " |")
	}
	out.WriteString(" errors |\n|" + strings.Repeat(" --- |", len(kinds)+2) + "\n")
	for _, row := range r.Rows {
		fmt.Fprintf(&out, "| `%s` |", row.Operation)
		errors := map[string]int{}
		cells := map[string]string{}
		for _, c := range row.Cells {
			if strings.HasPrefix(c.Trial, ErrorPrefix) {
				errors[short[c.Outcome]]++
			}
			cells[c.Trial] = short[c.Outcome]
		}
		for _, k := range kinds {
			out.WriteString(" " + cells[k.Name] + " |")
		}
		var counts []string
		for _, outcome := range slices.Sorted(maps.Keys(errors)) {
			counts = append(counts, fmt.Sprintf("%d %s", errors[outcome], outcome))
		}
		out.WriteString(" " + strings.Join(counts, ", ") + " |\n")
	}
	var asking strings.Builder
	for _, row := range r.Rows {
		if row.has(Person) {
			fmt.Fprintf(&asking, "| `%s` | %s |\n", row.Operation, strings.ReplaceAll(row.ManualCheck, "|", "\\|"))
		}
	}
	if asking.Len() > 0 {
		out.WriteString("\n| where a person is asked | what they are told to look at |\n| --- | --- |\n" + asking.String())
	}
	if _, others := r.Tried(); others > 0 {
		out.WriteString("\nAn operation without marks was not tried: no case has a request that could be sent, or the fake has no such change.\n")
	}
	return out.String()
}

// short are the outcomes as the pages write them.
var short = map[string]string{OK: "ok", Person: "person", Failed: "FAILED", Idle: "–"}

// Tried counts the operations that ran against the fake, and the others.
func (r Report) Tried() (tried, others int) {
	for _, row := range r.Rows {
		if len(row.Cells) > 0 {
			tried++
		}
	}
	return tried, len(r.Rows) - tried
}

// Summary is the page about all reports. Others are the connectors without a fake.
func Summary(reports []Report, others []string) string {
	var out strings.Builder
	out.WriteString("# Bundled connectors and their trials\n\n" +
		"Each mutating operation is sent through the whole program to a [fake](../fakes.md) of its API, which loses\n" +
		"answers, delays commits and so on. The fake's own log is the judge. `keep-proxy connectors test NAME` does the same.\n\n" +
		"| connector | mutating operations | ran against the fake | may ask a person |\n| --- | --- | --- | --- |\n")
	var all [3]int
	for _, r := range reports {
		tried, others := r.Tried()
		persons := r.count(Person)
		fmt.Fprintf(&out, "| [%s](%s.md) | %d | %d | %d |\n", cmp.Or(r.Title, r.Connector), r.Connector, tried+others, tried, persons)
		all[0], all[1], all[2] = all[0]+tried+others, all[1]+tried, all[2]+persons
	}
	fmt.Fprintf(&out, "| all | %d | %d | %d |\n\nWithout a fake: %s.\n\n"+
		"| column | trial | what is done, and what must hold |\n| --- | --- | --- |\n",
		all[0], all[1], all[2], cmp.Or(strings.Join(others, ", "), "none"))
	for _, k := range Kinds() {
		fmt.Fprintf(&out, "| %s | %s | %s |\n", k.Short, k.Name, k.Means)
	}
	out.WriteString("| errors | documented errors | Each is given once in place of the answer; one that proves nothing also after the effect. " +
		"One effect. |\n\n" +
		"| mark | means |\n| --- | --- |\n| ok | the log shows what must hold |\n" +
		"| person | what can't be known stops, and a person is asked. keep-proxy makes no second effect |\n| – | there is no such trial here |\n")
	return out.String()
}
