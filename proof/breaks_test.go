package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// An edit that doesn't fit any more, or names a test that is gone, would be found out only
// when the stage draws it.
func TestEachBreakCanBeMade(t *testing.T) {
	t.Parallel()
	functions := map[string]map[string]bool{}
	seen := map[string]bool{}
	for _, b := range allBreaks() {
		if name := b.promise + ": " + b.how; seen[name] {
			t.Errorf("%s is there twice", name)
		} else {
			seen[name] = true
		}
		for _, e := range b.edits {
			text, err := os.ReadFile(filepath.Join("..", e.file))
			if err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(string(text), e.before); n != 1 || e.before == e.after {
				t.Errorf("%s: %s holds the text that is to be replaced %d times, not once: %q; write what keeps the promise now into proof/breaks_*.go",
					b.how, e.file, n, e.before)
			}
		}
		for _, test := range b.tests {
			pkg, name, _ := strings.Cut(test, ".Test")
			if "./"+pkg != b.pkg() {
				t.Errorf("%s: %s is of another package than %s", b.how, test, b.tests[0])
			}
			if functions[pkg] == nil {
				functions[pkg] = testsOf(t, pkg)
			}
			if !functions[pkg]["Test"+name] {
				t.Errorf("%s: there is no %s", b.how, test)
			}
		}
	}
	if n := len(allBreaks()); n < 60 {
		t.Errorf("%d breaks", n)
	}
}

func TestOnlyANamedTestThatFailsNotices(t *testing.T) {
	t.Parallel()
	failed := errors.New("exit status 1")
	for _, c := range []struct {
		out    string
		failed error
		by     string
		says   string
	}{
		{out: "ok  \tkeep-proxy/ledger\t0.1s\n", says: "survived"},
		{out: "--- FAIL: TestB (0.00s)\n    --- FAIL: TestB/case (0.00s)\n--- FAIL: TestA (0.00s)\nFAIL\n", failed: failed, by: "`TestA`, `TestB`"},
		{out: "--- FAIL: TestA (0.00s)\npanic: here\n", failed: failed, by: "`TestA`"},
		{out: "ledger/key.go:3:1: syntax error\nFAIL\tkeep-proxy/ledger [build failed]\n", failed: failed, says: "does not build"},
		{out: "panic: test timed out after 8m0s\nrunning tests:\n\tTestA\n", failed: failed, says: "timed out"},
		{out: "--- FAIL: TestB (0.00s)\npanic: test timed out after 8m0s\n", failed: failed, says: "timed out"},
		{out: "no such package\n", failed: failed, says: "no test failed"},
	} {
		by, err := noticed(c.out, c.failed)
		if by != c.by || c.says == "" && err != nil || c.says != "" && (err == nil || !strings.HasPrefix(err.Error(), c.says)) {
			t.Errorf("%q: %q, %v", c.out, by, err)
		}
	}
	if _, err := noticed("", nil); !errors.Is(err, errSurvived) {
		t.Error("what survives isn't told from what goes wrong")
	}
}

func TestWhatIsDrawnFollowsFromTheSeed(t *testing.T) {
	t.Parallel()
	how := func(seed uint64, n int) (out []string) {
		drawn, of := drawBreaks(options{seed: seed, breaks: n, match: everything})
		for _, b := range drawn {
			out = append(out, b.promise+": "+b.how)
		}
		if of != len(allBreaks()) || len(drawn) != min(n, of) {
			t.Errorf("%d of %d are drawn", len(drawn), of)
		}
		return out
	}
	if !slices.Equal(how(1, 40), how(1, 40)) || slices.Equal(how(1, 40), how(2, 40)) {
		t.Error("what is drawn doesn't follow from the seed")
	}
	for seed := range uint64(5) {
		if drawn, _ := drawBreaks(options{seed: seed, breaks: 40, match: everything}); promisesOf(drawn) != 40 {
			t.Errorf("seed %d: 40 breaks are of %d promises", seed, promisesOf(drawn))
		}
	}
	if all := how(3, 10_000); len(all) != len(allBreaks()) {
		t.Errorf("%d of all are drawn", len(all))
	}
}

func TestEditsAreTakenBack(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for _, name := range []string{"a", "b"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("one two"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	back, err := put(dir, []edit{{"a", "one", "1"}, {"a", "two", "2"}, {"b", "one", "3"}})
	if err != nil || read("a") != "1 2" || read("b") != "3 two" {
		t.Fatalf("%v: %q, %q", err, read("a"), read("b"))
	}
	if err := back(); err != nil || read("a") != "one two" || read("b") != "one two" {
		t.Fatalf("%v: %q, %q", err, read("a"), read("b"))
	}
	if _, err := put(dir, []edit{{"a", "one", "1"}, {"b", "three", "3"}}); err == nil || read("a") != "one two" {
		t.Errorf("an edit that doesn't fit leaves the others: %v, %q", err, read("a"))
	}
}
