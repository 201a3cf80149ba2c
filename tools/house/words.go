package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

var (
	// generated are the parts that a program writes; other marked parts are held against the code only.
	generated = regexp.MustCompile(`(?s)<!-- begin (clients|commands|drawing|h2spec|last run|measured|proof|table|vectors) -->.*?<!-- end [^>]*-->`)
	fenced    = regexp.MustCompile("(?ms)^ *```.*?^ *```")
	link      = regexp.MustCompile(`\]\([^)]*\)`)
	item      = regexp.MustCompile(`(?m)^\s*([-*]|\d+[.)])\s`)
	sentence  = regexp.MustCompile(`[.!?]["')*_]*\s`)
)

// long is the length from which a sentence counts as too long, in words.
const long = 36

// words prints how much text there is, and how its sentences are. Generated parts, code and, in
// sentences, tables and headings don't count.
func words(files []string) error {
	all := 0
	var every []int
	var rows []string
	for _, name := range files {
		if filepath.Ext(name) != ".md" {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		byHand := generated.ReplaceAllString(string(text), "")
		n := count(byHand)
		all += n
		lengths := sentences(byHand)
		every = append(every, lengths...)
		switch {
		case name == "docs/semantics.md":
			rows = append(rows, fmt.Sprintf("| words of %s without tables | %d |", name, count(withoutTables(byHand))))
		case name == "CHANGELOG.md":
			rows = append(rows, fmt.Sprintf("| words of %s | %d |", name, n))
		}
		if n >= 500 {
			rows = append(rows, fmt.Sprintf("| %s: words; sentences over %d; median | %d; %s |", name, long-1, n, shape(lengths)))
		}
	}
	fmt.Printf("| words in Markdown by hand | %d |\n| sentences over %d words; median | %s |\n", all, long-1, shape(every))
	for _, row := range rows {
		fmt.Println(row)
	}
	return nil
}

// count counts words: the marks of tables and lists are none.
func count(text string) (n int) {
	for word := range strings.FieldsSeq(text) {
		if strings.ContainsFunc(word, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
			n++
		}
	}
	return n
}

func withoutTables(text string) string {
	var b strings.Builder
	for line := range strings.Lines(fenced.ReplaceAllString(text, "\n")) {
		if !strings.HasPrefix(strings.TrimSpace(line), "|") && !strings.HasPrefix(line, "#") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// sentences are the lengths, in words, of all of a page's sentences.
func sentences(text string) (lengths []int) {
	text = link.ReplaceAllString(withoutTables(text), "]")
	text = item.ReplaceAllString(text, "\n\n")
	for paragraph := range strings.SplitSeq(text, "\n\n") {
		paragraph = strings.Join(strings.Fields(paragraph), " ") + " "
		for len(paragraph) > 1 {
			end := len(paragraph)
			if at := sentence.FindStringIndex(paragraph); at != nil {
				end = at[1]
			}
			if n := len(strings.Fields(paragraph[:end])); n > 0 {
				lengths = append(lengths, n)
			}
			paragraph = paragraph[end:]
		}
	}
	return lengths
}

// shape is the share of long sentences, and the median length.
func shape(lengths []int) string {
	if len(lengths) == 0 {
		return "–"
	}
	slices.Sort(lengths)
	over := len(lengths) - func() int { n, _ := slices.BinarySearch(lengths, long); return n }()
	return fmt.Sprintf("%.1f %%; %d", 100*float64(over)/float64(len(lengths)), lengths[len(lengths)/2])
}
