package main

import (
	"strings"
	"testing"
	"time"
)

func TestAStageIsWrittenAndTheOthersAreKept(t *testing.T) {
	t.Parallel()
	was := "# The proof\n\n" + beginRun + "\nOf long ago.\n\n### model\n\nmodel of before\n\n| a |\n| --- |\n| 1 |\n\n### bugs\n\nbugs of before\n\n" +
		endRun + "\n\nThe end.\n"
	is, err := rewrite(was, []part{{stage: "bugs", says: "bugs of now", took: time.Minute}}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"# The proof\n\n" + beginRun + "\nThe stages were run one by one", "### model\n\nmodel of before\n\n| a |\n| --- |\n| 1 |\n\n### histories\n",
		"### bugs\n\nbugs of now (1m0s)\n\n", endRun + "\n\nThe end.\n",
	} {
		if strings.Count(is, want) != 1 {
			t.Errorf("the page doesn't hold this once: %q\n%s", want, is)
		}
	}
	if strings.Contains(is, "bugs of before") || strings.Contains(is, "Of long ago") {
		t.Errorf("what was replaced is there still:\n%s", is)
	}
	again, err := rewrite(is, []part{{stage: "bugs", says: "bugs of now", took: time.Minute}}, time.Hour)
	if err != nil || again != is {
		t.Errorf("the same once more gives another page (%v):\n%s", err, again)
	}
}

func TestAWholeRunKeepsNothingOfBefore(t *testing.T) {
	t.Parallel()
	var parts []part
	for _, s := range stages {
		parts = append(parts, part{stage: s.name, says: s.name + " of now"})
	}
	is, err := rewrite(beginRun+"\nOf long ago.\n\n### gone\n\nold\n\n"+endRun, parts, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(is, "old") || strings.Contains(is, "long ago") || !strings.Contains(is, "It took 1h0m0s.") {
		t.Error(is)
	}
	if _, err := rewrite("no markers", parts, 0); err == nil {
		t.Error("a page without the section is written")
	}
}
