package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// part is what one stage has to say.
type part struct {
	stage string
	took  time.Duration
	// says is a paragraph: what was done, how often, and what came of it.
	says string
	// header and rows are its table.
	header []string
	rows   [][]string
	// notRun says why the stage could not run here, "" if it did.
	notRun string
	// bad is what it found that should not be, or missed that should.
	bad []string
}

// print writes the part as Markdown.
func (p part) print(out io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "### %s\n\n", p.stage)
	if p.notRun != "" {
		fmt.Fprintf(&b, "Not run: %s.\n\n", p.notRun)
	}
	if p.says != "" {
		fmt.Fprintf(&b, "%s (%s)\n\n", p.says, p.took.Round(time.Second))
	}
	if len(p.rows) > 0 {
		line := func(cells []string) { fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | ")) }
		line(p.header)
		line(strings.Split(strings.Repeat("--- ", len(p.header)-1)+"---", " "))
		for _, row := range p.rows {
			line(row)
		}
		b.WriteString("\n")
	}
	for _, bad := range p.bad {
		fmt.Fprintf(&b, "**Wrong: %s**\n\n", bad)
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// page is the file that holds the last full run.
const page = "docs/proof.md"

// write replaces the parts of those stages in the page's section "last run", and keeps the others.
// The page of what is promised gets a summary of all.
func write(o options, parts []part, took time.Duration) error {
	path := filepath.Join(o.root, page)
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	written, err := rewrite(string(text), parts, took)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, []byte(written), 0o644); err != nil {
		return err
	}
	return summarize(o.root, written)
}

// Markers of the section "last run".
const beginRun, endRun = "<!-- begin last run -->\n", "<!-- end last run -->"

// rewrite is the page with those parts. Parts of another time are kept only if some
// stages were run by themselves, and then the section says so.
func rewrite(text string, parts []part, took time.Duration) (string, error) {
	before, rest, ok := strings.Cut(text, beginRun)
	section, after, closed := strings.Cut(rest, endRun)
	if !ok || !closed {
		return "", errors.New(page + " has no section \"last run\"")
	}
	said := map[string]string{}
	if len(parts) < len(stages) {
		for _, sub := range strings.Split("\n"+section, "\n### ")[1:] {
			name, _, _ := strings.Cut(sub, "\n")
			said[name] = "### " + strings.TrimSpace(sub) + "\n\n"
		}
	}
	for _, p := range parts {
		var b strings.Builder
		if err := p.print(&b); err != nil {
			return "", err
		}
		said[p.stage] = b.String()
	}
	var b strings.Builder
	b.WriteString(before + beginRun + "\n")
	if len(parts) < len(stages) {
		b.WriteString("The stages were run one by one, each for itself.\n\n")
	} else {
		fmt.Fprintf(&b, "All stages were run by one command. It took %s.\n\n", took.Round(time.Second))
	}
	for _, s := range stages {
		if said[s.name] == "" {
			said[s.name] = fmt.Sprintf("### %s\n\nThis stage has no run that was written down.\n\n", s.name)
		}
		b.WriteString(said[s.name])
	}
	return b.String() + endRun + after, nil
}
