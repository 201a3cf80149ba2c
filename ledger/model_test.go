package ledger

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// modelDir holds the Promela model of the protocol, and moves.txt, which names the moves
// on which model and table differ on purpose.
const modelDir = "../docs/model"

// modelled is a row of the table without its conditions, as the model names it.
type modelled struct{ from, on, to string }

func (m modelled) String() string { return m.from + " " + m.on + " " + m.to }

var (
	// modelRow is a move, of the model's one mutation or of one of several.
	modelRow = regexp.MustCompile(`\brow(?:of\([^,]+, |\()(\w+), (\w+), (\w+)\)`)
	// modelState is where a model gives a record a state.
	modelState = regexp.MustCompile(`\b(?:st|ob)(?:\[[a-z0-9]+(?:\[\w+\])?\])? = \w+`)
)

// models are the models' lines by file, without those that are there for a bug.
func models(t *testing.T) map[string][]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(modelDir, "*.pml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no model in %s: %v", modelDir, err)
	}
	all := map[string][]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all[filepath.Base(file)] = withoutBugs(string(text))
	}
	return all
}

// withoutBugs leaves out what is compiled only where a bug is switched on.
func withoutBugs(text string) (lines []string) {
	// Of each condition that is open: whether it is about a bug, and whether what follows is one's.
	type part struct{ about, bug bool }
	var open []part
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		about := strings.Contains(line, "BUG_")
		switch word, _, _ := strings.Cut(line, " "); word {
		case "#if", "#ifdef":
			open = append(open, part{about, about})
		case "#ifndef":
			open = append(open, part{about, false})
		case "#else":
			last := &open[len(open)-1]
			last.bug = last.about && !last.bug
		case "#endif":
			open = open[:len(open)-1]
		default:
			if !slices.ContainsFunc(open, func(p part) bool { return p.bug }) {
				lines = append(lines, line)
			}
		}
	}
	return lines
}

// modelMoves are the moves that the models name, by file.
func modelMoves(t *testing.T) map[string]map[modelled]bool {
	t.Helper()
	moves := map[string]map[modelled]bool{}
	for file, lines := range models(t) {
		moves[file] = map[modelled]bool{}
		for _, m := range modelRow.FindAllStringSubmatch(strings.Join(lines, "\n"), -1) {
			if m[1] != "from" {
				moves[file][modelled{m[1], m[2], m[3]}] = true
			}
		}
	}
	return moves
}

// TestEachMoveOfTheModelNamesItsRow holds that no model moves a record past the rows: nothing
// would hold such a move and the table together.
func TestEachMoveOfTheModelNamesItsRow(t *testing.T) {
	t.Parallel()
	moves := modelMoves(t)
	for file, lines := range models(t) {
		if len(moves[file]) == 0 {
			t.Errorf("%s names no row", file)
		}
		for _, line := range lines {
			declared := strings.HasPrefix(line, "mtype ") || strings.HasPrefix(line, "#define row")
			// A new attempt is another mutation, which has no record.
			anew := strings.HasPrefix(line, "inline anew(")
			if moved := modelState.FindString(line); moved != "" && !declared && !anew {
				t.Errorf("%s: %q names no row: %s", file, moved, line)
			}
		}
	}
}

// namedMoves reads moves.txt: "folded" are those of the table that the model has within
// another move or doesn't need, "later" those of the model that the table doesn't have.
func namedMoves(t *testing.T) map[string]map[modelled]bool {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(modelDir, "moves.txt"))
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]map[modelled]bool{"folded": {}, "later": {}}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		words, why, _ := strings.Cut(line, ":")
		f := strings.Fields(words)
		if len(f) != 4 || named[f[0]] == nil || strings.TrimSpace(why) == "" {
			t.Fatalf("moves.txt: %q is not \"folded|later FROM TRIGGER TO: why\"", line)
		}
		named[f[0]][modelled{f[1], f[2], f[3]}] = true
	}
	return named
}

// TestModelHasTheTable holds the model's moves and those of the table together, so that
// what is checked exhaustively is what is built.
func TestModelHasTheTable(t *testing.T) {
	t.Parallel()
	model, named := map[modelled]bool{}, namedMoves(t)
	for _, moves := range modelMoves(t) {
		maps.Copy(model, moves)
	}
	built := map[modelled]bool{}
	for _, r := range Table() {
		m := modelled{string(r.From), string(r.On), string(r.To)}
		if m.from == "" {
			m.from = "none"
		}
		built[m] = true
	}
	var wrong []string
	add := func(text string, m modelled) { wrong = append(wrong, m.String()+": "+text) }
	for m := range built {
		if !model[m] && !named["folded"][m] {
			add("a move of ledger/table.go that no .pml file names by row(...) or rowof(...): model it, or add a line \"folded\" with the reason to docs/model/moves.txt", m)
		}
		if named["later"][m] {
			add("is built now: take its line \"later\" out of docs/model/moves.txt", m)
		}
	}
	for m := range model {
		if !built[m] && !named["later"][m] {
			add("a move of the model that ledger/table.go doesn't hold", m)
		}
	}
	for m := range named["folded"] {
		if !built[m] || model[m] {
			add("needs no line \"folded\" in docs/model/moves.txt", m)
		}
	}
	slices.Sort(wrong)
	if len(wrong) > 0 {
		t.Errorf("model and table differ:\n%s", strings.Join(wrong, "\n"))
	}
}
