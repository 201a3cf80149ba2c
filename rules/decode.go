package rules

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// decoder reads one connector file strictly and collects every problem.
type decoder struct {
	file     string
	findings Findings
	// undoing says that what is read may name the object that is taken back, pinned that
	// the file is a stored version.
	undoing, pinned bool
	// at is where each expression stands.
	at map[*expr]location
}

// add records a finding at a node; a nil node has no place.
func (d *decoder) add(sev Severity, code, key string, n *yaml.Node, problem, fix string) {
	f := Finding{Severity: sev, Code: code, File: d.file, Key: key, Problem: problem, Fix: fix}
	if n != nil {
		f.Line, f.Column = n.Line, n.Column
		if n.Kind == yaml.ScalarNode {
			f.Value = printable(n.Value)
		}
	}
	d.findings = append(d.findings, f)
}

// fail records an error.
func (d *decoder) fail(code, key string, n *yaml.Node, problem, fix string) {
	d.add(SeverityError, code, key, n, problem, fix)
}

// location is where something stands in the file.
type location struct {
	node *yaml.Node
	key  string
}

// mistaken records an error that a program before this one took, or that settings make which
// are for another version by now. Of a stored version it is advice: a mutation is asked about by
// the rule that it was sent by, mistakes included.
func (d *decoder) mistaken(code, key string, n *yaml.Node, problem, fix string) {
	severity := SeverityError
	if d.pinned {
		severity = SeverityWarning
	}
	d.add(severity, code, key, n, problem, fix)
}

// warn records advice.
func (d *decoder) warn(code, key string, n *yaml.Node, problem, fix string) {
	d.add(SeverityWarning, code, key, n, problem, fix)
}

// document parses the one YAML document of a file.
func (d *decoder) document(data []byte) (*yaml.Node, bool) {
	loader, err := yaml.NewLoader(bytes.NewReader(data))
	if err != nil {
		d.syntax(err, data)
		return nil, false
	}
	var doc, second yaml.Node
	if err := loader.Load(&doc); err != nil {
		d.syntax(err, data)
		return nil, false
	}
	if err := loader.Load(&second); !errors.Is(err, io.EOF) {
		d.fail("yaml", "", &second, "the file holds more than one YAML document", "put each connector into a file of its own")
		return nil, false
	}
	if len(doc.Content) != 1 {
		d.fail("yaml", "", nil, "the file is empty", "begin it with apiVersion: "+APIVersion)
		return nil, false
	}
	return doc.Content[0], true
}

// syntax records what the YAML parser could not read.
func (d *decoder) syntax(err error, data []byte) {
	f := Finding{
		Severity: SeverityError, Code: "yaml", File: d.file, Problem: "not YAML: " + err.Error(),
		Fix: "check the indentation; quote values that hold [ or { or \": \", or give them a line of their own",
	}
	if errors.Is(err, io.EOF) {
		f.Problem, f.Fix = "the file is empty", "begin it with apiVersion: "+APIVersion
	}
	if load, ok := errors.AsType[*yaml.LoadError](err); ok {
		f.Line, f.Column, f.Problem = load.Mark.Line, load.Mark.Column, "not YAML: "+load.Message
		if indentedByTab(data, f.Line) {
			f.Fix = "indent with spaces: this line begins with a tab"
		}
	}
	if line, column, what := unreadable(data); f.Line == 0 && line > 0 {
		f.Line, f.Column, f.Problem = line, column, "not YAML: "+what
		f.Fix = "save the file as UTF-8, and write control characters as \\u escapes in double quotes"
	}
	d.findings = append(d.findings, f)
}

// indentedByTab reports whether there is a tab before the text of a line. The parser
// takes it for a character like any other that it can't begin with.
func indentedByTab(data []byte, line int) bool {
	for text := range bytes.Lines(data) {
		if line--; line == 0 {
			return bytes.ContainsRune(text[:len(text)-len(bytes.TrimLeft(text, " \t"))], '\t')
		}
	}
	return false
}

// unreadable finds the first byte or character that no YAML text may hold, which the
// parser refuses without a place. The line is 0 when there is none.
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

// object reads a map of a level: unknown, repeated and later keys are errors.
func (d *decoder) object(n *yaml.Node, key string, l level) map[string]*yaml.Node {
	out := map[string]*yaml.Node{}
	d.members(n, key, l.name, func(name string, k, v *yaml.Node) {
		switch {
		case slices.Contains(l.known, name):
			out[name] = v
		case slices.Contains(l.later, name):
			d.fail("not-yet", join(key, name), k, fmt.Sprintf("%s is not built yet", name), "leave it out; this version refuses it rather than ignore it")
		default:
			fix := "the keys of " + l.name + " are " + listed(l.known)
			if near := nearest(name, l.known); near != "" {
				fix = "did you mean " + near + "?"
			}
			d.fail("unknown-key", join(key, name), k, "unknown key "+printable(name), fix)
		}
	})
	return out
}

// members visits the members of a map. what names it in findings.
func (d *decoder) members(n *yaml.Node, key, what string, visit func(name string, k, v *yaml.Node)) {
	if !d.plain(n, key) {
		return
	}
	if n.Kind != yaml.MappingNode {
		d.fail("type", key, n, what+" must be a map", "write key: value lines below it")
		return
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		if k.Kind != yaml.ScalarNode || k.Anchor != "" || k.Tag == "!!merge" {
			d.fail("yaml", key, k, "a key must be a plain word", "write the key out; anchors, aliases and << are not taken")
			continue
		}
		if line, again := seen[k.Value]; again {
			d.fail("repeated-key", join(key, k.Value), k, fmt.Sprintf("%s is already on line %d", printable(k.Value), line), "keep one of them")
			continue
		}
		seen[k.Value] = k.Line
		visit(k.Value, k, v)
	}
}

// plain refuses YAML that isn't data as it stands.
func (d *decoder) plain(n *yaml.Node, key string) bool {
	switch {
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		d.fail("yaml", key, n, "anchors and aliases are not taken", "write the value out")
	case n.Style&yaml.TaggedStyle != 0:
		d.fail("yaml", key, n, "tags are not taken", "leave the "+n.Tag+" out")
	default:
		return true
	}
	return false
}

// elements are the elements of a list.
func (d *decoder) elements(n *yaml.Node, key string) []*yaml.Node {
	if !d.plain(n, key) {
		return nil
	}
	if n.Kind != yaml.SequenceNode {
		d.fail("type", key, n, "must be a list", "write it as lines that begin with \"- \", or in brackets")
		return nil
	}
	return n.Content
}

// oneOrMore are the elements of a list, or the node alone.
func (d *decoder) oneOrMore(n *yaml.Node, key string) []*yaml.Node {
	if n.Kind == yaml.SequenceNode {
		return d.elements(n, key)
	}
	return []*yaml.Node{n}
}

// text reads a scalar as it is written. An empty one is an error.
func (d *decoder) text(n *yaml.Node, key string) (string, bool) {
	if n == nil || !d.plain(n, key) {
		return "", false
	}
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		d.fail("type", key, n, "must be text", "write one value on the line; quote it if it holds [ or { or \": \"")
		return "", false
	}
	if n.Value == "" {
		d.fail("empty", key, n, "is empty", "give it a value or leave the key out")
		return "", false
	}
	return n.Value, true
}

// texts reads a list of scalars, or one.
func (d *decoder) texts(n *yaml.Node, key string) []string {
	var out []string
	for i, item := range d.oneOrMore(n, key) {
		if s, ok := d.text(item, index(key, i)); ok {
			out = append(out, s)
		}
	}
	return out
}

// word reads one of the allowed words; "" when it isn't.
func (d *decoder) word(n *yaml.Node, key string, allowed ...string) string {
	s, ok := d.text(n, key)
	if !ok {
		return ""
	}
	if !slices.Contains(allowed, s) {
		d.fail("value", key, n, printable(s)+" is not one of its values", "write "+strings.Join(allowed, " or "))
		return ""
	}
	return s
}

// boolean reads true or false.
func (d *decoder) boolean(n *yaml.Node, key string) bool {
	if n == nil || !d.plain(n, key) {
		return false
	}
	if n.Kind != yaml.ScalarNode || n.Tag != "!!bool" {
		d.fail("type", key, n, "must be true or false", "write true or false without quotes")
		return false
	}
	return strings.EqualFold(n.Value, "true")
}

// number reads an integer within bounds; 0 when it isn't.
func (d *decoder) number(n *yaml.Node, key string, least, most int) int {
	s, ok := d.text(n, key)
	if !ok {
		return 0
	}
	v, err := strconv.Atoi(s)
	if err != nil || n.Tag != "!!int" || v < least || v > most {
		d.fail("value", key, n, "must be a whole number", fmt.Sprintf("write a number from %d to %d", least, most))
		return 0
	}
	return v
}

// duration reads a positive Go duration; 0 when it isn't.
func (d *decoder) duration(n *yaml.Node, key string) time.Duration {
	s, ok := d.text(n, key)
	if !ok {
		return 0
	}
	v, err := time.ParseDuration(s)
	if err != nil || v <= 0 {
		d.fail("value", key, n, "must be a duration above zero", "write a number with its unit, such as 90s, 5m or 24h")
		return 0
	}
	return v
}

// sizeUnits are the units of sizes, longest suffix first.
var sizeUnits = []struct {
	suffix string
	bytes  int64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"B", 1}}

// size reads a positive size in bytes; 0 when it isn't.
func (d *decoder) size(n *yaml.Node, key string) int64 {
	s, ok := d.text(n, key)
	if !ok {
		return 0
	}
	for _, unit := range sizeUnits {
		digits, found := strings.CutSuffix(s, unit.suffix)
		if !found {
			continue
		}
		v, err := strconv.ParseInt(digits, 10, 32)
		if err == nil && v > 0 {
			return v * unit.bytes
		}
	}
	d.fail("value", key, n, "must be a size above zero", "write a number with its unit, such as 64KiB or 10MiB")
	return 0
}

// join puts a key below another.
func join(key, name string) string {
	if key == "" {
		return name
	}
	return key + "." + name
}

// index puts an index below a key.
func index(key string, i int) string { return fmt.Sprintf("%s[%d]", key, i) }
