package rules

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"cel.dev/cel-go/common/types"
)

// guide is docs/connectors.md, which is written for people and held against the
// loader here.
func guide(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile("../docs/connectors.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// between is the part of the guide between two of its comments.
func between(t *testing.T, part string) string {
	t.Helper()
	_, rest, found := strings.Cut(guide(t), "<!-- begin "+part+" -->")
	body, _, ended := strings.Cut(rest, "<!-- end "+part+" -->")
	if !found || !ended {
		t.Fatalf("docs/connectors.md has no part %q", part)
	}
	return body
}

// levels are all levels of the format.
func levels() []level {
	return []level{
		levelConnector, levelParameter, levelRate, levelAccount, levelToken, levelOperation, levelMatch, levelAWS, levelAWSMatch, levelJSONRPC, levelMail, levelPayload, levelNativeKey, levelMarker,
		levelOutcome, levelSend, levelStrategy, levelResend, levelExec, levelProbe, levelStep, levelObserve, levelPages, levelWatch, levelResult, levelBounds, levelEvidence, levelCompensate,
		levelCase, levelCaseAsk, levelCaseAnswer, levelExpect,
	}
}

var code = regexp.MustCompile("`([^`]+)`")

// words are the code words of a cell.
func words(cell string) []string {
	var out []string
	for _, found := range code.FindAllStringSubmatch(cell, -1) {
		out = append(out, found[1])
	}
	return out
}

// rowsOf gives the cells of each line of a table that holds a code word.
func rowsOf(table string) [][]string {
	var out [][]string
	for line := range strings.Lines(table) {
		if cells := strings.Split(strings.TrimSpace(line), " | "); strings.HasPrefix(line, "|") && strings.Contains(line, "`") {
			out = append(out, cells)
		}
	}
	return out
}

func sorted(list []string) []string { return slices.Sorted(slices.Values(list)) }

func TestTheGuideListsEveryKeyThatWorks(t *testing.T) {
	t.Parallel()
	documented := map[string][]string{}
	for section := range strings.SplitSeq(between(t, "keys"), "\n### ") {
		name, table, _ := strings.Cut(section, "\n")
		for _, cells := range rowsOf(table) {
			documented[name] = append(documented[name], words(cells[0])...)
		}
	}
	for _, l := range levels() {
		if got, want := sorted(documented[l.Name]), sorted(l.Known); !slices.Equal(got, want) {
			t.Errorf("%s: the guide has %q, the loader takes %q", l.Name, got, want)
		}
		delete(documented, l.Name)
	}
	for name := range maps.Keys(documented) {
		t.Errorf("the guide has a section %q, which is no level of the format", name)
	}
}

func TestTheGuidesConnectorLoadsAndPassesItsCases(t *testing.T) {
	t.Parallel()
	files := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(guide(t), -1)
	if len(files) == 0 {
		t.Fatal("the guide has no connector")
	}
	for _, file := range files {
		set, findings := Load([]File{{Name: "parcels.yaml", Data: []byte(file[1])}}, nil, Defaults{})
		if len(findings) > 0 {
			t.Fatal(findings.Error())
		}
		if findings := set.RunCases(); len(findings) > 0 {
			t.Error(findings.Error())
		}
	}
}

// names are the code words in the first cells of a section's table.
func names(t *testing.T, section string) []string {
	t.Helper()
	_, rest, found := strings.Cut(guide(t), "\n## "+section+"\n")
	if !found {
		t.Fatalf("docs/connectors.md has no section %q", section)
	}
	body, _, _ := strings.Cut(rest, "\n## ")
	var out []string
	for _, cells := range rowsOf(body) {
		out = append(out, words(cells[0])...)
	}
	return out
}

func TestTheGuideListsEveryVariableAndNoOther(t *testing.T) {
	t.Parallel()
	envs, err := celEnvs()
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]bool{}
	argument := strings.NewReplacer("(v)", "(json)", "(list)", "(json)")
	for _, name := range names(t, "Variables") {
		if strings.HasPrefix(name, ".") {
			continue // A further field of the one before it.
		}
		at := inFound
		switch name {
		case "stored":
			at = inCompare
		case "object":
			at = inUndo
		}
		if _, err := compileExpr(argument.Replace(name), at, parameterValues{"NAME": stringValue("")}); err != nil {
			t.Errorf("the guide's %s does not compile: %v", name, err)
		}
		root, _, _ := strings.Cut(name, ".")
		documented[root] = true
	}
	for _, v := range envs[inFound].Variables() {
		if !documented[v.Name()] && !strings.Contains(v.Name(), ".") && v.Type().Kind() != types.TypeKind {
			t.Errorf("the guide does not name the variable %s", v.Name())
		}
	}
}
