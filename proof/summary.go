package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// normative is the page that the proof is about; it holds the proof's summary.
const normative = "docs/semantics.md"

// Markers of the summary.
const beginSummary, endSummary = "<!-- begin proof -->\n", "<!-- end proof -->"

// summarize writes what the stages came to into the page of what is promised. The proof's page is
// its source.
func summarize(root, proof string) error {
	path := filepath.Join(root, normative)
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	written, err := summarized(string(text), proof)
	if err != nil {
		return err
	}
	return os.WriteFile(path, []byte(written), 0o644)
}

func summarized(text, proof string) (string, error) {
	before, rest, ok := strings.Cut(text, beginSummary)
	_, after, closed := strings.Cut(rest, endSummary)
	if !ok || !closed {
		return "", errors.New(normative + " has no summary of the proof")
	}
	var b strings.Builder
	b.WriteString(before + beginSummary + "\n| stage | what came of it |\n| --- | --- |\n")
	for _, s := range stages {
		fmt.Fprintf(&b, "| [%s](proof.md#%s) | %s |\n", s.name, s.name, strings.ReplaceAll(came(proof, s.name), "|", `\|`))
	}
	b.WriteString("\n" + endSummary + after)
	return b.String(), nil
}

var timeTaken = regexp.MustCompile(` \(([0-9]+h)?([0-9]+m)?[0-9]+s\)$`)

// came is the first paragraph of a stage's part, and how much of it went wrong.
func came(proof, stage string) string {
	_, part, ok := strings.Cut(proof, "\n### "+stage+"\n\n")
	if !ok {
		return "It has no run that was written down."
	}
	part, _, _ = strings.Cut(part, "\n### ")
	part, _, _ = strings.Cut(part, "\n"+endRun)
	paragraph, _, _ := strings.Cut(part, "\n\n")
	says := timeTaken.ReplaceAllString(strings.Join(strings.Fields(paragraph), " "), "")
	if wrong := strings.Count(part, "**Wrong: "); wrong > 0 {
		says += fmt.Sprintf(" **Found wrong: %d.**", wrong)
	}
	return says
}
