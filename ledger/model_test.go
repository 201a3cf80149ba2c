package ledger

import (
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

var modelRow = regexp.MustCompile(`\brow\((\w+), (\w+), (\w+)\)`)

// modelMoves are the moves that the model names.
func modelMoves(t *testing.T) map[modelled]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(modelDir, "*.pml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no model in %s: %v", modelDir, err)
	}
	moves := map[modelled]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range modelRow.FindAllStringSubmatch(string(text), -1) {
			if m[1] != "from" {
				moves[modelled{m[1], m[2], m[3]}] = true
			}
		}
	}
	return moves
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
	model, named := modelMoves(t), namedMoves(t)
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
			add("a move of ledger/table.go that no .pml file names by row(...): model it, or add a line \"folded\" with the reason to docs/model/moves.txt", m)
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
