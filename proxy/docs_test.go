package proxy

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestTheDocumentedRefusalsAreTheOnesThatAreGiven holds the table of docs/clients.md
// against kinds.
func TestTheDocumentedRefusalsAreTheOnesThatAreGiven(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/clients.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "<!-- begin refusals -->")
	table, _, ended := strings.Cut(rest, "<!-- end refusals -->")
	if !found || !ended {
		t.Fatal("docs/clients.md has no table of refusals")
	}
	documented := map[problem]int{}
	name := regexp.MustCompile("`([^`]+)`")
	for line := range strings.Lines(table) {
		cells := strings.Split(line, " | ")
		if len(cells) != 3 {
			continue
		}
		status, err := strconv.Atoi(cells[1])
		for _, word := range name.FindAllStringSubmatch(cells[0], -1) {
			if err != nil {
				t.Errorf("%s has the status %q", word[1], cells[1])
			}
			documented[problem(word[1])] = status
		}
	}
	for p, k := range kinds {
		if documented[p] != k.status {
			t.Errorf("%s is answered with %d, documented with %d", p, k.status, documented[p])
		}
		delete(documented, p)
	}
	for p := range documented {
		t.Errorf("%s is documented, and no refusal", p)
	}
}
