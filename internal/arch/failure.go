package arch

import (
	"regexp"
	"slices"
	"strings"
)

// statesFailure matches a package comment that says how the package fails. It has a section of that name with text in
// it, or a paragraph.
var statesFailure = regexp.MustCompile(`(?m)^(# Failure( behaviour)?\n\n[^#\n]|Failure behaviour: \S)`)

// unasked are trees of packages that the program doesn't consist of: tests, and what they
// are judged by.
var unasked = []string{"integration", "internal/fakes", "proof"}

// checkFailure requires of each package of the program that its comment says what happens
// when it fails.
func checkFailure(sources []source) []Finding {
	stated := map[string]bool{}
	for _, s := range sources {
		if s.test || slices.ContainsFunc(unasked, func(tree string) bool { return covers(tree+"/...", s.pkg) }) {
			continue
		}
		stated[s.pkg] = stated[s.pkg] || s.ast.Doc != nil && statesFailure.MatchString(s.ast.Doc.Text())
	}
	var findings []Finding
	for pkg, ok := range stated {
		if !ok {
			findings = append(findings, Finding{File: pkg, Problem: "its package comment doesn't say what happens when it fails, under \"# Failure\""})
		}
	}
	slices.SortFunc(findings, func(a, b Finding) int { return strings.Compare(a.File, b.File) })
	return findings
}
