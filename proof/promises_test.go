package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	promisedTest = regexp.MustCompile("`([a-z/]+)\\.(Test[A-Za-z0-9]+)`")
	testFunction = regexp.MustCompile(`(?m)^func (Test[A-Za-z0-9]+)\(`)
)

func TestPromisesNameTestsThatExist(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/promises.md")
	if err != nil {
		t.Fatal(err)
	}
	functions := map[string]map[string]bool{}
	rows := 0
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| §") || strings.HasPrefix(line, "| ---") {
			continue
		}
		rows++
		named := promisedTest.FindAllStringSubmatch(line, -1)
		if len(named) == 0 {
			t.Errorf("no test is named in %s", line)
		}
		for _, n := range named {
			if functions[n[1]] == nil {
				functions[n[1]] = testsOf(t, n[1])
			}
			if !functions[n[1]][n[2]] {
				t.Errorf("there is no %s in %s: write the test that holds this promise now into docs/promises.md: %s", n[2], n[1], line)
			}
		}
	}
	if rows < 60 {
		t.Errorf("%d promises were read", rows)
	}
}

// testsOf are the test functions of a package.
func testsOf(t *testing.T, pkg string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", pkg, "*_test.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no tests in %s: %v", pkg, err)
	}
	found := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range testFunction.FindAllStringSubmatch(string(text), -1) {
			found[m[1]] = true
		}
	}
	return found
}
