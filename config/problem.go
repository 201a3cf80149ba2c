package config

import (
	"fmt"
	"slices"
	"strings"
)

// Problem is one thing that is wrong with the configuration.
type Problem struct {
	// Source is the file's name, "environment", or the flag, such as --listen.
	Source string `json:"source"`
	// Line and Column say where in the file, from 1; 0 elsewhere.
	Line   int `json:"line,omitzero"`
	Column int `json:"column,omitzero"`
	// Key is the key in dotted form, such as proxy.timeouts.dial. An environment variable that stands for no key has
	// its name here. Empty when the file as a whole is meant.
	Key string `json:"key"`
	// Value is what was given; <secret> in place of a secret.
	Value string `json:"value,omitzero"`
	// Text says what is wrong.
	Text string `json:"text"`
	// Fix says what to write instead.
	Fix string `json:"fix"`
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
	// Read is what could be read, with defaults for what couldn't. It is for those who only look for more problems.
	// Nothing may be started with it.
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

// origin says where a value came from, so that a problem found after merging
// can still point at it.
type origin struct {
	source       string
	line, column int
	value        string
}

// report collects problems and the origin of every value that was given.
type report struct {
	problems []Problem
	origins  map[string]origin
	broken   map[string]bool // keys whose value could not be read
}

func newReport() *report {
	return &report{origins: map[string]origin{}, broken: map[string]bool{}}
}

// unreadable adds a problem with a value that could not be read. Checks that
// involve the key are then left out, since they would judge its default.
func (r *report) unreadable(key string, f *fault) {
	r.broken[key] = true
	r.add(key, r.origins[key], f)
}

// rejected adds a problem with a value that was read. The check involves keys, the one to change first. The problem
// points at the first of them that was set.
func (r *report) rejected(f *fault, keys ...string) {
	if slices.ContainsFunc(keys, r.touchesBroken) {
		return
	}
	for _, key := range keys {
		if at, given := r.lookup(key); given {
			r.add(key, at, f)
			return
		}
	}
	r.add(keys[0], origin{source: "defaults"}, f)
}

func (r *report) add(key string, at origin, f *fault) {
	value := at.value
	if value != "" && isSecretKey(key) {
		value = Redacted
	}
	r.problems = append(r.problems, Problem{
		Source: at.source, Line: at.line, Column: at.column,
		Key: key, Value: value, Text: f.text, Fix: f.fix,
	})
}

// lookup finds the origin of key or of what holds it.
func (r *report) lookup(key string) (origin, bool) { return held(r.origins, key) }

// touchesBroken reports whether key, what holds it, or something inside it
// could not be read.
func (r *report) touchesBroken(key string) bool {
	for b := range r.broken {
		if b == key || within(b, key) || within(key, b) {
			return true
		}
	}
	return false
}

func within(inner, outer string) bool {
	rest, ok := strings.CutPrefix(inner, outer)
	return ok && rest != "" && (rest[0] == '.' || rest[0] == '[')
}

// isSecretKey reports whether what stands at key may hold a credential, even a
// misplaced one.
func isSecretKey(key string) bool {
	return strings.HasPrefix(key, "connectors.settings[") && strings.Contains(key, "].credentials") ||
		strings.HasPrefix(key, "proxy.upstream_proxy") || strings.HasPrefix(key, "notify.webhooks[") ||
		strings.HasPrefix(key, "admin.tokens[") || key == "admin.public_url"
}

// fault is what is wrong with a value and how to mend it.
type fault struct {
	text, fix string
}

// Place is where a value was given: a file, the environment or a flag. Line and
// Column are 0 outside files.
type Place struct {
	Source string
	Line   int `json:"line,omitzero"`
	Column int `json:"column,omitzero"`
}

// Place says where key was given or, inside a list, what holds it; the zero Place
// if neither was. It is for problems that only show when the connectors are read.
func (c Config) Place(key string) Place {
	at, _ := held(c.places, key)
	return at
}

// WithConnectors is c with the connectors of another, what is held against them, and their places.
func (c Config) WithConnectors(of Config) Config {
	c.Connectors, c.Isolate, c.places = of.Connectors, of.Isolate, of.places
	return c
}

// places are the origins without their values, which may be secret; nil for none.
func (r *report) places() map[string]Place {
	if len(r.origins) == 0 {
		return nil
	}
	all := make(map[string]Place, len(r.origins))
	for key, at := range r.origins {
		all[key] = Place{at.source, at.line, at.column}
	}
	return all
}

// held finds what is noted for key or, inside a list, for what holds it. A key that is missing in an entry is a problem
// of the entry. A section is no origin of the keys that it lacks.
func held[T any](noted map[string]T, key string) (T, bool) {
	for {
		if at, ok := noted[key]; ok {
			return at, true
		}
		if !strings.Contains(key, "[") {
			var none T
			return none, false
		}
		key = key[:strings.LastIndexAny(key, ".[")]
	}
}
