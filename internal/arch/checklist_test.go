package arch

import (
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

const checklist = "docs/source-checklist.md"

var (
	namedTest   = regexp.MustCompile(`^(?:([a-z0-9/-]+)\.)?((?:Test|Fuzz|Benchmark)[A-Za-z0-9_]+)$`)
	namedScript = regexp.MustCompile(`^[a-z0-9-]+\.txtar$`)
	quoted      = regexp.MustCompile("`([^`]+)`")
	linked      = regexp.MustCompile(`\]\(([^):]+)\)`)
	noSlug      = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// TestTheChecklistNamesWhatExists holds the page on the sources against the tree,
// so that renaming a test, a package or a page can't make it lie.
func TestTheChecklistNamesWhatExists(t *testing.T) {
	t.Parallel()
	root := os.DirFS("../..")
	page, err := fs.ReadFile(root, checklist)
	if err != nil {
		t.Fatal(err)
	}
	rows, problems := readChecklist(root, string(page), testNames(root))
	for _, p := range problems {
		t.Error(p)
	}
	if rows < 140 {
		t.Errorf("%d rows were read", rows)
	}
}

func TestReadChecklist(t *testing.T) {
	t.Parallel()
	tree := fstest.MapFS{
		"docs/semantics.md":                        {Data: []byte("# Title\n\n## 8. Stopping: what's it?\n")},
		"cmd/keep-proxy/testdata/script/run.txtar": {},
		"ledger/a.go":                              {},
	}
	names := map[string][]string{"TestA": {"ledger"}, "FuzzA": {"rules"}}
	const row = "| asks | `ledger` | "
	for line, problem := range map[string]string{
		row + "`ledger.TestA`, `TestA`, `rules.FuzzA` |":            "",
		row + "`run.txtar` |":                                       "",
		row + "**open**: [why](semantics.md#8-stopping-whats-it) |": "",
		row + "**otherwise**, as `x` |":                             "",
		row + "**theirs** |":                                        "",
		row + "`rules.TestA` |":                                     "there is no TestA in rules",
		row + "`TestB` |":                                           "there is no TestB",
		row + "`walk.txtar` |":                                      "there is no script walk.txtar",
		row + " |":                                                  "neither names a test nor says",
		row + "as it is |":                                          "neither names a test nor says",
		"| asks | `proxy` | `TestA` |":                              "there is no proxy",
		"| asks | `ledger` |":                                       "not of three columns",
		row + "`TestA`, [page](nowhere.md) |":                       "there is no page nowhere.md",
		row + "`TestA`, [page](semantics.md#9-crash-windows) |":     "has no heading #9-crash-windows",
		"Text that names `ledger.TestC`, and [links](decisions/0001.md).\n": "there is no",
	} {
		_, problems := readChecklist(tree, line, names)
		got := strings.Join(problems, "\n")
		if (problem == "") != (got == "") || !strings.Contains(got, problem) {
			t.Errorf("%s\ngives %q, want %q", line, got, problem)
		}
	}
}

// readChecklist counts the rows of the page and finds what it names and isn't in
// the tree.
func readChecklist(tree fs.FS, page string, names map[string][]string) (rows int, problems []string) {
	for line := range strings.Lines(page) {
		line = strings.TrimSpace(line)
		var found []string
		tests := 0
		for _, m := range quoted.FindAllStringSubmatch(line, -1) {
			isTest, problem := missingTest(tree, m[1], names)
			if isTest {
				tests++
			}
			found = append(found, problem)
		}
		for _, m := range linked.FindAllStringSubmatch(line, -1) {
			found = append(found, missingPage(tree, m[1]))
		}
		if strings.HasPrefix(line, "|") && !strings.HasPrefix(line, "| asked |") && !strings.HasPrefix(line, "| --- |") {
			rows++
			found = append(found, wrongRow(tree, line, tests)...)
		}
		for _, problem := range found {
			if problem != "" {
				problems = append(problems, checklist+": "+problem+": "+line)
			}
		}
	}
	return rows, problems
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

// missingPage says what is wrong with a relative link of the page.
func missingPage(tree fs.FS, link string) string {
	file, anchor, _ := strings.Cut(link, "#")
	text, err := fs.ReadFile(tree, path.Join(path.Dir(checklist), file))
	if err != nil {
		return "there is no page " + file
	}
	for line := range strings.Lines(string(text)) {
		heading := strings.TrimLeft(line, "#")
		slug := strings.ReplaceAll(noSlug.ReplaceAllString(strings.ToLower(strings.TrimSpace(heading)), ""), " ", "-")
		if anchor == "" || heading != line && slug == anchor {
			return ""
		}
	}
	return file + " has no heading #" + anchor
}

// wrongRow says what is wrong with a row: each says where it is built, in words that
// are paths, and by which test it is shown or why by none.
func wrongRow(tree fs.FS, line string, tests int) (problems []string) {
	cells := strings.Split(strings.Trim(line, "|"), "|")
	if len(cells) != 3 {
		return []string{"a row that is not of three columns"}
	}
	for _, m := range quoted.FindAllStringSubmatch(cells[1], -1) {
		if _, err := fs.Stat(tree, m[1]); err != nil {
			problems = append(problems, "there is no "+m[1])
		}
	}
	shown := strings.ToLower(cells[2])
	if tests == 0 && !strings.Contains(shown, "**otherwise**") && !strings.Contains(shown, "**theirs**") && !strings.Contains(shown, "**open**") {
		problems = append(problems, "a row that neither names a test nor says why there is none")
	}
	return problems
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
