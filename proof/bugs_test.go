package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A bug whose edits don't fit any more would be found out only when the whole stage runs.
func TestEachBugCanBePutBack(t *testing.T) {
	t.Parallel()
	for _, b := range allBugs() {
		if _, err := regexp.Compile(b.sentence); err != nil {
			t.Errorf("%s: %v", b.name, err)
		}
		for _, e := range b.edits {
			text, err := os.ReadFile(filepath.Join("..", e.file))
			if err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(string(text), e.before); n != 1 || e.before == e.after {
				t.Errorf("%s: %s holds the text that the bug replaces %d times, not once: %q", b.name, e.file, n, e.before)
			}
		}
	}
}
