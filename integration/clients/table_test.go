package clients

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

const docs = "../../docs/clients.md"

// printed is the table of what was tried.
func printed(results []result) string {
	var b strings.Builder
	b.WriteString("| client | version | tried | |\n| --- | --- | --- | --- |\n")
	for _, r := range results {
		tried := shortened(r.done)
		switch {
		case r.notRun != "":
			tried = "not run: no " + r.notRun
		case r.bad:
			tried = "**failed**; passed: " + tried
		case tried == "around":
			tried = "**goes around the proxy**"
		case tried == "":
			tried = "not run"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", r.name, r.version, tried, r.note)
	}
	return b.String()
}

// usual are the cases that all clients have, in both ways.
var usual = func() (all []string) {
	for _, by := range ways {
		for _, what := range []string{"read", "mutation", "replay", "wrong token", "stop"} {
			all = append(all, by.name+": "+what)
		}
	}
	return all
}()

// shortened says "all" for the usual cases, if none is missing.
func shortened(done []string) string {
	if len(done) >= len(usual) && slices.Equal(done[:len(usual)], usual) {
		done = append([]string{"all"}, done[len(usual):]...)
	}
	return strings.Join(done, ", ")
}

// writeTable puts the table into the documents, where it has its name.
func writeTable(t *testing.T, name, table string) {
	t.Helper()
	begin, end := "<!-- begin "+name+" -->\n", "<!-- end "+name+" -->"
	text, err := os.ReadFile(docs)
	must(t, err)
	before, rest, found := strings.Cut(string(text), begin)
	_, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s has no place for the table", docs)
	}
	must(t, os.WriteFile(docs, []byte(before+begin+"\n"+table+"\n"+end+after), 0o644))
}
