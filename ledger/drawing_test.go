package ledger

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/states.md and docs/mutation-key.md from the code")

// section replaces what stands between the page's marks of this name.
func section(t *testing.T, page, name, content string) string {
	t.Helper()
	begin, end := "<!-- begin "+name+" -->\n", "<!-- end "+name+" -->"
	before, rest, ok := strings.Cut(page, begin)
	_, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("the page has no section %q", name)
	}
	return before + begin + "\n" + content + "\n" + end + after
}

// holds compares a page with what the code says, or writes it with -update.
func holds(t *testing.T, path string, sections map[string]string) {
	t.Helper()
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := string(page)
	for name, content := range sections {
		want = section(t, want, name, content)
	}
	if want == string(page) {
		return
	}
	if !*update {
		t.Fatalf("%s is not what the code says; run go test ./ledger -update", path)
	}
	if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestStatesPageHoldsTheTable(t *testing.T) {
	holds(t, "../docs/states.md", map[string]string{"drawing": drawing(), "table": tableOfRows()})
}

// drawing is the table as a mermaid state diagram, one edge per pair of states.
func drawing() string {
	var b strings.Builder
	b.WriteString("```mermaid\nstateDiagram-v2\n")
	type edge struct{ from, to State }
	labels := map[edge][]string{}
	var order []edge
	for _, r := range Table() {
		e := edge{r.From, r.To}
		if labels[e] == nil {
			order = append(order, e)
		}
		if on := string(r.On); !strings.Contains(" "+strings.Join(labels[e], " ")+" ", " "+on+" ") {
			labels[e] = append(labels[e], on)
		}
	}
	for _, e := range order {
		from := string(e.from)
		if from == "" {
			from = "[*]"
		}
		fmt.Fprintf(&b, "    %s --> %s: %s\n", from, e.to, strings.Join(labels[e], ", "))
	}
	fmt.Fprintf(&b, "    %s --> [*]\n    %s --> [*]\n```\n", Applied, Skipped)
	return b.String()
}

// tableOfRows is the table as Markdown.
func tableOfRows() string {
	var b strings.Builder
	b.WriteString("| from | on | if | to | also |\n| --- | --- | --- | --- | --- |\n")
	for _, r := range Table() {
		from := "(none)"
		if r.From != "" {
			from = "`" + string(r.From) + "`"
		}
		conditions := r.Has.Names()
		for _, name := range r.Not.Names() {
			conditions = append(conditions, "not: "+name)
		}
		also := r.Effects.String()
		if r.Escalation != "" {
			also = strings.TrimPrefix(also+"; escalated as `"+r.Escalation+"`", "; ")
		}
		fmt.Fprintf(&b, "| %s | `%s` | %s | `%s` | %s |\n", from, r.On, strings.Join(conditions, "; "), r.To, also)
	}
	return b.String()
}
