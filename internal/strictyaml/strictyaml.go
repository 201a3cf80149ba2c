// Package strictyaml reads YAML that people write by hand, and finds every problem in it.
//
// A file is one document. Keys come once. Anchors, aliases, tags and merge keys are refused. With them a file would say
// something else than what is read in it.
//
// # Failure behaviour
//
// What is refused is reported with its place and how to mend it, and reads as missing. Reading goes
// on, so that all problems are found at once. Nothing panics.
package strictyaml

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// MaxFile bounds a file, in bytes. Nobody writes a larger one by hand.
const MaxFile = 1 << 20

// Codes of the problems that are found here.
const (
	CodeTooLarge = "too-large"
	CodeSyntax   = "yaml"
	CodeType     = "type"
	CodeRepeated = "repeated-key"
	CodeUnknown  = "unknown-key"
	CodeNotYet   = "not-yet"
)

// Place is where something stands.
type Place struct {
	// Key is the dotted path. Value is what is written there, if that is one value.
	Key, Value string
	// Line and Column count from 1; 0 for no line.
	Line, Column int
}

// Place is the place itself.
func (p Place) Place() Place { return p }

// Under is a key below this place, whose own line isn't known.
func (p Place) Under(name string) Place {
	p.Key, p.Value = Join(p.Key, name), ""
	return p
}

// Placed is what stands somewhere.
type Placed interface{ Place() Place }

// Value is a value of the document. Without a node it is one that is missing.
type Value struct {
	*yaml.Node
	Key string
	// above is the map in which it is missing.
	above *yaml.Node
}

// Given reports whether the value is there.
func (v Value) Given() bool { return v.Node != nil }

// Is reports whether the value is there and of this kind.
func (v Value) Is(kind yaml.Kind) bool { return v.Node != nil && v.Kind == kind }

// Place is where the value stands, or the map in which it is missing.
func (v Value) Place() Place {
	p := Place{Key: v.Key}
	switch {
	case v.Node != nil:
		p.Line, p.Column = v.Line, v.Column
		if v.Kind == yaml.ScalarNode {
			p.Value = v.Value
		}
	case v.above != nil:
		p.Line, p.Column = v.above.Line, v.above.Column
	}
	return p
}

// asKey is the place of a key, whose text is in the path already.
func (v Value) asKey() Place {
	p := v.Place()
	p.Value = ""
	return p
}

// IsNull reports whether nothing is written where a value should be.
func (v Value) IsNull() bool { return v.Is(yaml.ScalarNode) && v.Tag == "!!null" }

// Map is a map of the document, by its keys.
type Map struct {
	Value
	fields map[string]*yaml.Node
}

// At is the value of a key.
func (m Map) At(name string) Value { return Value{m.fields[name], Join(m.Key, name), m.Node} }

// Has reports whether the key is there.
func (m Map) Has(name string) bool { return m.fields[name] != nil }

// Len is how many known keys are there.
func (m Map) Len() int { return len(m.fields) }

// Level is one kind of map: the keys that work, and those of the format that aren't built yet.
type Level struct {
	Name  string
	Known []string
	Later []string
	// Elsewhere helps with a key that is right in another place; nil for none.
	Elsewhere func(name string) string
}

// Reader reads one file. Report gets every problem.
type Reader struct {
	Report func(code string, at Place, problem, fix string)
}

// Fail reports a problem.
func (r *Reader) Fail(code string, at Placed, problem, fix string) {
	r.Report(code, at.Place(), problem, fix)
}

// Document parses the one document of a file. Of an empty file the value is missing.
func (r *Reader) Document(data []byte) (Value, bool) {
	if len(data) > MaxFile {
		r.Fail(CodeTooLarge, Place{}, "the file is larger than 1 MiB", "split it, or name another file")
		return Value{}, false
	}
	loader, err := yaml.NewLoader(bytes.NewReader(data))
	if err != nil {
		r.syntax(err, data)
		return Value{}, false
	}
	var doc, second yaml.Node
	if err := loader.Load(&doc); errors.Is(err, io.EOF) {
		return Value{}, true
	} else if err != nil {
		r.syntax(err, data)
		return Value{}, false
	}
	if err := loader.Load(&second); err == nil {
		r.Fail(CodeSyntax, Value{Node: &second}, "the file holds more than one YAML document", "keep one document, without ---")
	} else if !errors.Is(err, io.EOF) {
		r.syntax(err, data)
		return Value{}, false
	}
	if len(doc.Content) != 1 {
		return Value{}, true
	}
	return Value{Node: doc.Content[0]}, true
}

// syntax reports what the YAML parser could not read.
func (r *Reader) syntax(err error, data []byte) {
	at, problem := Place{}, "not YAML: "+err.Error()
	fix := "check the indentation; quote values that hold any of : # { [ * &, or give them a line of their own"
	if load, ok := errors.AsType[*yaml.LoadError](err); ok {
		at.Line, at.Column, problem = load.Mark.Line, load.Mark.Column, "not YAML: "+load.Message
		if indentedByTab(data, at.Line) {
			fix = "indent with spaces: this line begins with a tab"
		}
	}
	if line, column, what := unreadable(data); at.Line == 0 && line > 0 {
		at.Line, at.Column, problem = line, column, "not YAML: "+what
		fix = "save the file as UTF-8, and write control characters as \\u escapes in double quotes"
	}
	r.Fail(CodeSyntax, at, problem, fix)
}

// indentedByTab reports whether there is a tab before the text of a line. The parser takes it for
// a character like any other that it can't begin with.
func indentedByTab(data []byte, line int) bool {
	for text := range bytes.Lines(data) {
		if line--; line == 0 {
			return bytes.ContainsRune(text[:len(text)-len(bytes.TrimLeft(text, " \t"))], '\t')
		}
	}
	return false
}

// unreadable finds the first byte or character that no YAML text may hold, which the parser refuses
// without a place. The line is 0 when there is none.
func unreadable(data []byte) (line, column int, what string) {
	line, column = 1, 1
	for len(data) > 0 {
		r, size := utf8.DecodeRune(data)
		switch {
		case r == utf8.RuneError && size == 1:
			return line, column, fmt.Sprintf("byte 0x%02x is no UTF-8", data[0])
		case r == '\n':
			line, column = line+1, 0
		case r < ' ' && r != '\t' && r != '\r', r == 0x7f:
			return line, column, fmt.Sprintf("a control character (U+%04X)", r)
		}
		data, column = data[size:], column+1
	}
	return 0, 0, ""
}

// Plain refuses YAML that isn't data as it stands. It is false for a value that is missing.
func (r *Reader) Plain(v Value) bool {
	switch {
	case !v.Given():
	case v.Kind == yaml.AliasNode || v.Anchor != "":
		r.Fail(CodeSyntax, v, "anchors and aliases are not taken", "write the value out")
	case v.Style&yaml.TaggedStyle != 0:
		r.Fail(CodeSyntax, v, "tags are not taken", "leave the "+v.Tag+" out")
	default:
		return true
	}
	return false
}

// Members visits the members of a map; key is the key as a value. It is false for what is no map, or
// missing.
func (r *Reader) Members(v Value, visit func(name string, key, value Value)) bool {
	if !r.Plain(v) {
		return false
	}
	if v.Kind != yaml.MappingNode {
		problem := "must be a map"
		if v.Key == "" {
			problem = "the file must be a map"
		}
		r.Fail(CodeType, v, problem, "write key: value lines below it")
		return false
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(v.Content); i += 2 {
		k := Value{Node: v.Content[i], Key: v.Key}
		if k.Kind != yaml.ScalarNode || k.Anchor != "" || k.Style&yaml.TaggedStyle != 0 || k.Tag == "!!merge" {
			r.Fail(CodeSyntax, k.asKey(), "a key must be a plain word", "write the key out; anchors, aliases, tags and << are not taken")
			continue
		}
		name := k.Value
		k.Key = Join(v.Key, name)
		if line, again := seen[name]; again {
			r.Fail(CodeRepeated, k.asKey(), fmt.Sprintf("is already on line %d", line), "keep one of them")
			continue
		}
		seen[name] = k.Line
		visit(name, k, Value{Node: v.Content[i+1], Key: k.Key})
	}
	return true
}

// Map reads a map of a level: unknown, repeated and later keys are problems. It is false for what is
// no map, or missing.
func (r *Reader) Map(v Value, l Level) (Map, bool) {
	m := Map{v, map[string]*yaml.Node{}}
	ok := r.Members(v, func(name string, key, value Value) {
		switch {
		case slices.Contains(l.Known, name):
			m.fields[name] = value.Node
		case slices.Contains(l.Later, name):
			r.Fail(CodeNotYet, key.asKey(), "is not built yet", "leave it out; this version refuses it rather than ignore it")
		default:
			r.Fail(CodeUnknown, key.asKey(), "unknown key", l.hint(name))
		}
	})
	return m, ok
}

// hint says what may be meant by an unknown key.
func (l Level) hint(name string) string {
	near := Nearest(name, l.Known)
	if near == "" && l.Elsewhere != nil {
		near = l.Elsewhere(name)
	}
	if near != "" {
		return "did you mean " + near + "?"
	}
	return "the keys of " + l.Name + " are " + strings.Join(slices.Sorted(slices.Values(l.Known)), ", ")
}

// List are the elements of a list. It is false for what is no list, or missing.
func (r *Reader) List(v Value) ([]Value, bool) {
	if !r.Plain(v) {
		return nil, false
	}
	if v.Kind != yaml.SequenceNode {
		r.Fail(CodeType, v, "must be a list", "write it in brackets, [] for none, or as lines that begin with \"- \"")
		return nil, false
	}
	out := make([]Value, len(v.Content))
	for i, item := range v.Content {
		out[i] = Value{Node: item, Key: Index(v.Key, i)}
	}
	return out, true
}

// OneOrMore are the elements of a list, or the value alone; none for a value that is missing.
func (r *Reader) OneOrMore(v Value) []Value {
	if v.Given() && v.Kind != yaml.SequenceNode {
		return []Value{v}
	}
	items, _ := r.List(v)
	return items
}

// Scalar is one value as it is written. It is false for one that is missing.
func (r *Reader) Scalar(v Value) (string, bool) {
	switch {
	case !r.Plain(v):
		return "", false
	case v.IsNull():
		r.Fail(CodeType, v, "must be one value, and there is none", "write it, or leave the key out")
		return "", false
	case v.Kind != yaml.ScalarNode:
		r.Fail(CodeType, v, "must be one value", "write one value on the line; quote it if it holds [ or { or \": \"")
		return "", false
	}
	return v.Value, true
}

// Join puts a key below another.
func Join(key, name string) string {
	if key == "" {
		return name
	}
	return key + "." + name
}

// Index puts an index below a key.
func Index(key string, i int) string { return fmt.Sprintf("%s[%d]", key, i) }
