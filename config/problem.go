package config

import (
	"fmt"
	"strings"
)

// Problem is one thing that is wrong with the configuration.
type Problem struct {
	// Source is the file's name, "environment", or the flag, such as --listen.
	Source string
	// Line and Column say where in the file, from 1; 0 elsewhere.
	Line, Column int
	// Key is the key in dotted form, such as proxy.timeouts.dial; for an
	// environment variable that stands for no key it is the variable's name.
	// Empty when the file as a whole is meant.
	Key string
	// Value is what was given; <secret> in place of a secret.
	Value string
	// Text says what is wrong.
	Text string
	// Fix says what to write instead.
	Fix string
}

// String writes the problem on one line.
func (p Problem) String() string {
	var b strings.Builder
	b.WriteString(p.Source)
	if p.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", p.Line, p.Column)
	}
	b.WriteString(": ")
	if p.Key != "" {
		b.WriteString(p.Key)
		if p.Value != "" {
			fmt.Fprintf(&b, " = %q", p.Value)
		}
		b.WriteString(": ")
	}
	b.WriteString(p.Text)
	if p.Fix != "" {
		b.WriteString("; ")
		b.WriteString(p.Fix)
	}
	return b.String()
}

// Error lists every problem found, in the order file, environment, flags.
type Error struct {
	Problems []Problem
	// Read is what could be read, with the default in the place of what couldn't, for those
	// who only look for more problems. Nothing may be started with it.
	Read Config
}

// Error writes one line a problem.
func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}
