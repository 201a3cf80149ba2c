package main

import (
	"regexp"
	"strings"
)

// plainWord matches what a shell takes as it is.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)

// quoted writes a word as a POSIX shell, and fish, read it back.
func quoted(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// fishQuoted writes a word as fish reads it back: inside its single quotes a
// backslash escapes a quote and itself.
func fishQuoted(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(word) + "'"
}

// dotenvQuoted writes a value as the common readers of .env files take it. They agree on what
// single quotes hold, which is itself, and on little else: what a backslash does in double
// quotes they see differently, so that one stands only where nothing else would do.
func dotenvQuoted(value string) string {
	switch {
	case value == "" || plainWord.MatchString(value):
		return value
	case !strings.ContainsAny(value, "'\n\r"):
		return "'" + value + "'"
	case !strings.ContainsAny(value, "\"\\$`\n\r"):
		return `"` + value + `"`
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", `\$`, "\n", `\n`, "\r", `\r`).Replace(value) + `"`
}
