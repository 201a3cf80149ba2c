package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	promisedTest = regexp.MustCompile("`([a-z/-]+)\\.(Test[A-Za-z0-9]+)`")
	testFunction = regexp.MustCompile(`(?m)^func (Test[A-Za-z0-9]+)\(`)
)

// promise is a row of docs/promises.md.
type promise struct {
	section, says string
	// tests are as "pkg.TestName".
	tests []string
}

// readPromises reads the rows, and the sentences that promise nothing.
func readPromises(t *testing.T) (rows []promise, silent []string) {
	t.Helper()
	text, err := os.ReadFile("../docs/promises.md")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if says, ok := strings.CutPrefix(line, "- "); ok {
			silent = append(silent, says)
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), " | ")
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| §") || strings.HasPrefix(line, "| ---") {
			continue
		}
		if len(cells) != 3 {
			t.Errorf("%d cells in %s", len(cells), line)
			continue
		}
		row := promise{section: strings.TrimSpace(cells[0]), says: strings.TrimSpace(cells[1])}
		for _, m := range promisedTest.FindAllStringSubmatch(cells[2], -1) {
			row.tests = append(row.tests, m[1]+"."+m[2])
		}
		rows = append(rows, row)
	}
	return rows, silent
}

func TestPromisesNameTestsThatExist(t *testing.T) {
	t.Parallel()
	functions := map[string]map[string]bool{}
	rows, _ := readPromises(t)
	for _, row := range rows {
		if len(row.tests) == 0 {
			t.Errorf("no test is named beside %q", row.says)
		}
		for _, test := range row.tests {
			pkg, name, _ := strings.Cut(test, ".")
			if functions[pkg] == nil {
				functions[pkg] = testsOf(t, pkg)
			}
			if !functions[pkg][name] {
				t.Errorf("there is no %s in %s: write the test that holds this promise now into docs/promises.md: %s", name, pkg, row.says)
			}
		}
	}
	if len(rows) < 200 {
		t.Errorf("%d promises were read", len(rows))
	}
}

// TestEachSentenceIsAPromiseOrNone holds docs/promises.md against the sentences of
// docs/semantics.md §2–§9: each is a row, or is listed as one that promises nothing.
func TestEachSentenceIsAPromiseOrNone(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/semantics.md")
	if err != nil {
		t.Fatal(err)
	}
	rows, silent := readPromises(t)
	found := map[string]bool{}
	said := sentences(string(text), 2, 9)
	for _, s := range said {
		row := slices.ContainsFunc(rows, func(p promise) bool { return p.section == s.section && p.says == s.says })
		switch {
		case row && slices.Contains(silent, s.says):
			t.Errorf("docs/promises.md has it twice, with tests and as promising nothing: %s", s.says)
		case !row && !slices.Contains(silent, s.says):
			t.Errorf("docs/promises.md doesn't have this sentence of semantics.md §%s: write it there, with the tests that would fail without it:\n| %s | %s | … |",
				s.section, s.section, s.says)
		}
		found[s.section+s.says], found[s.says] = true, true
	}
	for _, row := range rows {
		if section := row.section; !strings.HasPrefix(section, "design") && !found[section+row.says] {
			t.Errorf("semantics.md §%s doesn't say any more: %s", section, row.says)
		}
	}
	for _, s := range silent {
		if !found[s] {
			t.Errorf("semantics.md doesn't say any more: %s", s)
		}
	}
	if len(said) < 200 {
		t.Errorf("%d sentences were read", len(said))
	}
}

func TestEachBreakIsOfAPromise(t *testing.T) {
	t.Parallel()
	rows, _ := readPromises(t)
	words := map[string]string{}
	for _, b := range allBreaks() {
		var of []promise
		for _, row := range rows {
			if strings.Contains(row.says, b.promise) {
				of = append(of, row)
			}
		}
		if len(of) != 1 {
			t.Errorf("%s: %d rows of docs/promises.md say %q, not one", b.how, len(of), b.promise)
			continue
		}
		if known, ok := words[of[0].says]; ok && known != b.promise {
			t.Errorf("%s: its promise is called %q elsewhere, and would count as two when some are drawn", b.how, known)
		}
		words[of[0].says] = b.promise
		for _, test := range b.tests {
			if !slices.Contains(of[0].tests, test) {
				t.Errorf("%s: docs/promises.md doesn't name `%s` beside %q", b.how, test, of[0].says)
			}
		}
	}
}

// sentence is one of a page, without marks of emphasis and the targets of links.
type sentence struct{ section, says string }

var (
	sectionHead = regexp.MustCompile(`^## ([0-9]+)\.`)
	listItem    = regexp.MustCompile(`^(- |[0-9]+\. )`)
	linked      = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	runIn       = regexp.MustCompile(`^\*\*[^*]+\.\*\*( |$)`)
	sentenceEnd = regexp.MustCompile("[.!?] +([A-Z`\"(0-9*])")
	generated   = regexp.MustCompile(`^<!-- begin ([a-z]+) -->$`)
)

// sentences are those of the sections first to last: of paragraphs, list items and rows of
// tables. A table that is made by a tool is one, and headings within a line are none.
func sentences(text string, first, last int) (out []sentence) {
	section, inside, made := 0, "", false
	var block []string
	flush := func() {
		if len(block) > 0 && first <= section && section <= last {
			for _, s := range split(strings.Join(block, " ")) {
				out = append(out, sentence{fmt.Sprint(section), s})
			}
		}
		block = nil
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		m := sectionHead.FindStringSubmatch(line)
		switch begun := generated.FindStringSubmatch(line); {
		case made:
			made = line != "<!-- end "+inside+" -->"
		case begun != nil:
			flush()
			inside, made = begun[1], true
			block = []string{"the table " + inside}
			flush()
		case m != nil:
			flush()
			_, _ = fmt.Sscan(m[1], &section)
		case strings.HasPrefix(line, "| ---"), strings.HasPrefix(line, "|") && i+1 < len(lines) && strings.HasPrefix(lines[i+1], "| ---"):
			flush()
		case strings.HasPrefix(line, "|"):
			flush()
			cells := slices.DeleteFunc(strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|"), func(s string) bool { return strings.TrimSpace(s) == "" })
			for i := range cells {
				cells[i] = strings.TrimSpace(cells[i])
			}
			if first <= section && section <= last {
				out = append(out, sentence{fmt.Sprint(section), plain(strings.Join(cells, ": "))})
			}
		case strings.TrimSpace(line) == "", strings.HasPrefix(line, "## "):
			flush()
		default:
			if listItem.MatchString(line) {
				flush()
			}
			block = append(block, strings.TrimSpace(listItem.ReplaceAllString(line, "")))
		}
	}
	flush()
	return out
}

// split parts a paragraph.
func split(block string) (out []string) {
	block = runIn.ReplaceAllString(block, "")
	for block != "" {
		end := len(block)
		if at := sentenceEnd.FindStringSubmatchIndex(block); at != nil {
			end = at[2]
		}
		out = append(out, plain(block[:end]))
		block = block[end:]
	}
	return out
}

func plain(s string) string {
	s = strings.ReplaceAll(linked.ReplaceAllString(s, "$1"), "**", "")
	return strings.Join(strings.Fields(s), " ")
}

func TestSentences(t *testing.T) {
	t.Parallel()
	got := sentences("## 1. One\n\nNot this.\n\n## 2. Two\n\n**Head.** It is `so`.\nSee [decision 1](d.md): it isn't.\n\n- one thing;\n- another\n  thing. And more.\n\n"+
		"| a | b |\n| --- | --- |\n| x | | **y** |\n\n<!-- begin made -->\n\n| p |\n| --- |\n| q |\n\n<!-- end made -->\n\nThe *end*. *Really* so.\n\n## 3. Three\n\nNor this.\n", 2, 2)
	want := []string{
		"It is `so`.", "See decision 1: it isn't.", "one thing;", "another thing.", "And more.", "x: y", "the table made", "The *end*.", "*Really* so.",
	}
	var says []string
	for _, s := range got {
		says = append(says, s.says)
	}
	if !slices.Equal(says, want) {
		t.Errorf("%q", says)
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
