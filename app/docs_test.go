package app_test

import (
	"os"
	"strings"
	"testing"

	"keep-proxy/internal/fault"
)

// TestTheCrashTableNamesEveryCrashPoint holds docs/semantics.md §9 against the
// points that are in the program.
func TestTheCrashTableNamesEveryCrashPoint(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/semantics.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "<!-- begin crashes -->")
	table, _, ended := strings.Cut(rest, "<!-- end crashes -->")
	if !found || !ended {
		t.Fatal("docs/semantics.md has no table of crashes")
	}
	documented := map[string]bool{}
	for i, word := range strings.Split(table, "`") {
		if i%2 == 1 && strings.Contains(word, ".") {
			documented[word] = true
		}
	}
	for _, name := range fault.Names() {
		if !documented[name] {
			t.Errorf("no row names the crash point %s", name)
		}
		delete(documented, name)
	}
	for name := range documented {
		t.Errorf("the table names %s, which is no crash point of the program", name)
	}
}
