package main

import (
	"os"
	"strings"
	"testing"
)

func TestTheSummaryIsWhatTheStagesCameTo(t *testing.T) {
	t.Parallel()
	proof := "# The proof\n\n" + beginRun + "\nThe stages were run one by one.\n\n### model\n\n17 checks held\nover every order. (10m9s)\n\n| a |\n| --- |\n| 1 |\n\n" +
		"### bugs\n\n1 of 2 bugs was caught: a|b. (1m0s)\n\n**Wrong: the other**\n\n" + endRun + "\n"
	is, err := summarized("## 13. How\n\n"+beginSummary+"old\n"+endSummary+"\n\nThe end.\n", proof)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"## 13. How\n\n" + beginSummary, "| [model](proof.md#model) | 17 checks held over every order. |\n",
		"| [bugs](proof.md#bugs) | 1 of 2 bugs was caught: a\\|b. **Found wrong: 1.** |\n",
		"| [histories](proof.md#histories) | It has no run that was written down. |\n", endSummary + "\n\nThe end.\n",
	} {
		if strings.Count(is, want) != 1 {
			t.Errorf("the page doesn't hold this once: %q\n%s", want, is)
		}
	}
	if strings.Contains(is, "old") {
		t.Errorf("what was replaced is there still:\n%s", is)
	}
	if _, err := summarized("no markers", proof); err == nil {
		t.Error("a page without the section is written")
	}
}

func TestThePagesHaveTheirSections(t *testing.T) {
	t.Parallel()
	read := func(name string) string {
		text, err := os.ReadFile("../" + name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	proof, err := rewrite(read(page), []part{{stage: "bugs", says: "as a test says"}}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := summarized(read(normative), proof); err != nil {
		t.Error(err)
	}
}
