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

// write replaces the page's section "last run".
func write(o options, parts []part, took time.Duration) error {
	path := filepath.Join(o.root, page)
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	const begin, end = "<!-- begin last run -->\n", "<!-- end last run -->"
	before, rest, ok := strings.Cut(string(text), begin)
	_, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		return errors.New(page + " has no section \"last run\"")
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s%s\nIt took %s.\n\n", before, begin, took.Round(time.Second))
	for _, p := range parts {
		if err := p.print(&b); err != nil {
			return err
		}
	}
	b.WriteString(end + after)
	return os.WriteFile(path, []byte(b.String()), 0o644)
}
