package arch

import (
	"fmt"
	"go/ast"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

const conformance = "docs/conformance.md"

// A case of the page on conformance, besides tests: a vector by its name, the vectors of
// a section, or h2spec's cases of a section.
var (
	namedVector  = regexp.MustCompile(`^(http1|http2|answers): (.+)$`)
	namedSection = regexp.MustCompile(`^(http1|http2|answers) (\d{4} §[\d.]+)$`)
	namedH2spec  = regexp.MustCompile(`^h2spec ([\d.]+)$`)
	parted       = regexp.MustCompile(`\s\|\s`)
	namedTest    = regexp.MustCompile(`^(?:([a-z0-9/-]+)\.)?((?:Test|Fuzz|Benchmark)[A-Za-z0-9_]+)$`)
	namedScript  = regexp.MustCompile(`^[a-z0-9-]+\.txtar$`)
	quoted       = regexp.MustCompile("`([^`]+)`")
)

// TestConformanceNamesWhatExists holds each row of the page against the vectors and
// tests that there are.
func TestConformanceNamesWhatExists(t *testing.T) {
	t.Parallel()
	root := os.DirFS("../..")
	rows, problems := readConformance(t, root, testNames(root))
	for _, p := range problems {
		t.Error(p)
	}
	if rows < 190 {
		t.Errorf("%d rows were read", rows)
	}
}

func TestReadConformance(t *testing.T) {
	t.Parallel()
	names := map[string][]string{"TestA": {"proxy"}}
	const head = "| section | asks | result | shown by |\n| --- | --- | --- | --- |\n"
	for row, problem := range map[string]string{
		"| §2.2 | x | done | `TestA`, `proxy.TestA` |":               "",
		"| §2.2 | x | 400 | `http1: a bare CR`, `http1 9112 §2.2` |": "",
		"| §6.5 | x | done | `h2spec 6.5` |":                         "",
		"| §9 | x | not applicable | nothing is cached |":            "",
		"| §9 | x | **open** | no case yet |":                        "",
		"| §9 | x | not applicable | |":                              "no reason",
		"| §9 | x | done | |":                                        "no case",
		"| §9 | x | done | it is so |":                               "no case",
		"| §9 | x | done | `TestB` |":                                "there is no TestB",
		"| §9 | x | done | `http1: a bare LF` |":                     "no vector a bare LF",
		"| §9 | x | done | `http1 9112 §7` |":                        "no vector of 9112 §7",
		"| §9 | x | done | `h2spec 6.6` |":                           "no cases for 6.6",
		"| §9 | x | done | `nonsense` |":                             "no case",
		"| §9 | x | `TestA` |":                                       "not of four columns",
	} {
		tree := fstest.MapFS{
			conformance:        {Data: []byte("<!-- begin h2spec -->\n\n| section | as |\n| 6.5 | 3 of 3 |\n\n<!-- end h2spec -->\n\n" + head + row + "\n")},
			vectorsOf("http1"): {Data: []byte("# comment\na bare CR\t9112 §2.2\t400\tx\n")}, vectorsOf("http2"): {}, vectorsOf("answers"): {},
		}
		rows, problems := readConformance(t, tree, names)
		if got := strings.Join(problems, "\n"); rows != 1 || (problem == "") != (got == "") || !strings.Contains(got, problem) {
			t.Errorf("%s\ngives %d rows and %q, want %q", row, rows, got, problem)
		}
	}
}

func vectorsOf(table string) string { return "integration/hostile/testdata/" + table + ".tsv" }

// readConformance counts the rows of the page's tables of four columns, and finds what
// they name and isn't there.
func readConformance(t *testing.T, tree fs.FS, names map[string][]string) (rows int, problems []string) {
	t.Helper()
	text, err := fs.ReadFile(tree, conformance)
	if err != nil {
		t.Fatal(err)
	}
	known := knownCases(t, tree, string(text))
	inside := false
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		switch {
		case line == "| section | asks | result | shown by |":
			inside = true
			continue
		case !strings.HasPrefix(line, "|"):
			inside = false
		}
		if !inside || strings.HasPrefix(line, "| --- ") {
			continue
		}
		rows++
		for _, p := range wrongCase(tree, line, names, known) {
			problems = append(problems, conformance+": "+p+": "+line)
		}
	}
	return rows, problems
}

// knownCases are the vectors, by name and by section, and the sections of h2spec.
func knownCases(t *testing.T, tree fs.FS, page string) map[string]bool {
	t.Helper()
	known := map[string]bool{}
	for _, table := range []string{"http1", "http2", "answers"} {
		text, err := fs.ReadFile(tree, vectorsOf(table))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if cells := strings.SplitN(line, "\t", 3); len(cells) == 3 && !strings.HasPrefix(line, "#") {
				known[table+": "+cells[0]], known[table+" "+cells[1]] = true, true
			}
		}
	}
	_, counts, _ := strings.Cut(page, "<!-- begin h2spec -->")
	counts, _, _ = strings.Cut(counts, "<!-- end h2spec -->")
	for line := range strings.Lines(counts) {
		if cells := parted.Split(line, 2); len(cells) == 2 {
			known["h2spec "+strings.TrimPrefix(cells[0], "| ")] = true
		}
	}
	return known
}

// wrongCase says what is wrong with a row: each names a case, or why there is none.
func wrongCase(tree fs.FS, line string, names map[string][]string, known map[string]bool) (problems []string) {
	cells := parted.Split(strings.TrimSuffix(strings.TrimPrefix(line, "| "), "|")+" ", -1)
	if len(cells) != 4 {
		return []string{"a row that is not of four columns"}
	}
	shown := strings.TrimSpace(cells[3])
	if strings.HasPrefix(cells[2], "not applicable") || strings.HasPrefix(cells[2], "**open**") {
		if shown == "" {
			return []string{"no reason"}
		}
		return nil
	}
	cases := 0
	for _, m := range quoted.FindAllStringSubmatch(shown, -1) {
		word := m[1]
		isTest, problem := missingTest(tree, word, names)
		vector, section, h2spec := namedVector.FindStringSubmatch(word), namedSection.FindStringSubmatch(word), namedH2spec.FindStringSubmatch(word)
		switch {
		case problem != "":
			problems = append(problems, problem)
		case isTest, known[word]:
		case vector != nil:
			problems = append(problems, fmt.Sprintf("no vector %s in %s", vector[2], vector[1]))
		case section != nil:
			problems = append(problems, fmt.Sprintf("no vector of %s in %s", section[2], section[1]))
		case h2spec != nil:
			problems = append(problems, "h2spec has no cases for "+h2spec[1])
		default:
			continue
		}
		cases++
	}
	if cases == 0 {
		problems = append(problems, "no case")
	}
	return problems
}

// missingTest tells whether a word names a test or a script, and what is wrong if
// it isn't there.
func missingTest(tree fs.FS, word string, names map[string][]string) (isTest bool, problem string) {
	if namedScript.MatchString(word) {
		if _, err := fs.Stat(tree, "cmd/keep-proxy/testdata/script/"+word); err != nil {
			return true, "there is no script " + word
		}
		return true, ""
	}
	m := namedTest.FindStringSubmatch(word)
	switch {
	case m == nil:
		return false, ""
	case names[m[2]] == nil:
		return true, "there is no " + m[2]
	case m[1] != "" && !slices.Contains(names[m[2]], m[1]):
		return true, "there is no " + m[2] + " in " + m[1]
	}
	return true, ""
}

// testNames are the packages in which each test, fuzz target and benchmark is.
func testNames(tree fs.FS) map[string][]string {
	names := map[string][]string{}
	sources, _ := parse(tree)
	for _, s := range sources {
		for _, d := range s.ast.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && s.test && f.Recv == nil && namedTest.MatchString(f.Name.Name) {
				names[f.Name.Name] = append(names[f.Name.Name], path.Dir(s.file))
			}
		}
	}
	return names
}
