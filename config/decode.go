package config

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// decoder reads one source into typed values.
type decoder struct {
	report *report
	source string
	in     reading
}

// scalarForm says which YAML scalars a key takes.
type scalarForm int

const (
	mustBeString scalarForm = iota // numbers and booleans must be quoted
	anyPlain                       // the text decides, whatever YAML takes it for
)

// note records where the value at key stands.
func (d *decoder) note(key string, n *yaml.Node) origin {
	at := origin{source: d.source, line: n.Line, column: n.Column}
	if n.Kind == yaml.ScalarNode {
		at.value = n.Value
	}
	d.report.origins[key] = at
	return at
}

// noteText records a value that has no position.
func (d *decoder) noteText(key, value string) origin {
	at := origin{source: d.source, value: value}
	d.report.origins[key] = at
	return at
}

func readNode[T any](d *decoder, key string, n *yaml.Node, form scalarForm, read scalar[T]) (T, bool) {
	at := d.note(key, n)
	f := scalarFault(n, form)
	var v T
	if f == nil {
		v, f = read(d.in, n.Value)
	}
	if f != nil {
		d.report.unreadable(key, at, f)
		return v, false
	}
	return v, true
}

// scalarFault finds what keeps n from being read as a scalar of the form.
func scalarFault(n *yaml.Node, form scalarForm) *fault {
	if f := nodeFault(n); f != nil {
		return f
	}
	switch {
	case n.Kind == yaml.MappingNode:
		return &fault{"a map where one value is expected", "write the value behind the colon"}
	case n.Kind == yaml.SequenceNode:
		return &fault{"a list where one value is expected", "write one value"}
	case n.Tag == nullTag:
		return &fault{"no value", "write one, or leave the key out for its default"}
	case form == mustBeString && n.Tag != stringTag:
		return &fault{"a number or boolean where text is expected", "put it in quotes"}
	default:
		return nil
	}
}

const (
	nullTag   = "!!null"
	stringTag = "!!str"
)

// nodeFault finds the YAML features that a configuration has no use for and
// that make a file say something other than what is read in it.
func nodeFault(n *yaml.Node) *fault {
	switch {
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		return &fault{"anchors and aliases are not supported", "write the value out where it is used"}
	case n.Style&yaml.TaggedStyle != 0:
		return &fault{"tags are not supported", "remove the " + n.Tag}
	default:
		return nil
	}
}

func readListNode(d *decoder, key string, n *yaml.Node, read scalar[string]) ([]string, bool) {
	at := d.note(key, n)
	if f := listFault(n); f != nil {
		d.report.unreadable(key, at, f)
		return nil, false
	}
	var list []string
	ok := true
	for i, item := range n.Content {
		v, readable := readNode(d, indexed(key, i), item, mustBeString, read)
		list, ok = append(list, v), ok && readable
	}
	return list, ok
}

func listFault(n *yaml.Node) *fault {
	if f := nodeFault(n); f != nil {
		return f
	}
	if n.Kind != yaml.SequenceNode {
		return &fault{"not a list", "write [a, b], [] for none, or one line with a dash for each"}
	}
	return nil
}

func indexed(key string, i int) string { return fmt.Sprintf("%s[%d]", key, i) }

func readOneText[T any](d *decoder, key, value string, read scalar[T]) (T, bool) {
	at := d.noteText(key, value)
	v, f := read(d.in, value)
	if f != nil {
		d.report.unreadable(key, at, f)
		return v, false
	}
	return v, true
}

func readListTexts(d *decoder, key string, values []string, read scalar[string]) ([]string, bool) {
	d.noteText(key, strings.Join(values, ","))
	var list []string
	ok := true
	for i, value := range values {
		v, readable := readOneText(d, indexed(key, i), value, read)
		list, ok = append(list, v), ok && readable
	}
	return list, ok
}

// field reads the value of one key of a map.
type field func(key string, n *yaml.Node)

// object reads a map whose keys are known. later names keys that no version
// knows yet. elsewhere helps with a key that is right in another place.
func (d *decoder) object(key string, n *yaml.Node, fields map[string]field, later []string, elsewhere func(name string) string) {
	at := d.note(key, n)
	if f := objectFault(n); f != nil {
		d.report.unreadable(key, at, f)
		return
	}
	known := make([]string, 0, len(fields))
	for name := range fields {
		known = append(known, name)
	}
	slices.Sort(known)
	d.members(key, n, func(name, full string, k, v *yaml.Node) {
		if read, ok := fields[name]; ok {
			read(full, v)
			return
		}
		d.unknown(full, name, k, known, later, elsewhere)
	})
}

func objectFault(n *yaml.Node) *fault {
	if f := nodeFault(n); f != nil {
		return f
	}
	if n.Kind != yaml.MappingNode {
		return &fault{"not a map", "write its keys below it, indented, or {key: value}"}
	}
	return nil
}

// members calls each for every pair of a map whose key is a plain name that was
// not there before.
func (d *decoder) members(key string, n *yaml.Node, each func(name, full string, k, v *yaml.Node)) {
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		at := origin{source: d.source, line: k.Line, column: k.Column}
		if k.Kind != yaml.ScalarNode || k.Tag != stringTag || nodeFault(k) != nil {
			d.report.add(key, at, &fault{"a key that is not a plain name", "write name: value"})
			continue
		}
		full := joined(key, k.Value)
		if line, twice := seen[k.Value]; twice {
			d.report.add(full, at, &fault{fmt.Sprintf("given twice, first on line %d", line), "remove one of them"})
			continue
		}
		seen[k.Value] = k.Line
		each(k.Value, full, k, v)
	}
}

func joined(section, name string) string {
	if section == "" {
		return name
	}
	return section + "." + name
}

// unknown reports a key that is not known. Its value is not shown: it may be a
// credential that was put in the wrong place.
func (d *decoder) unknown(full, name string, k *yaml.Node, known, later []string, elsewhere func(string) string) {
	at := origin{source: d.source, line: k.Line, column: k.Column}
	if slices.Contains(later, name) {
		d.report.add(full, at, notYet("the key "+name, "remove it"))
		return
	}
	f := &fault{"unknown key", "use " + orList(known)}
	if near := nearest(name, known); near != "" {
		f.fix = "did you mean " + near + "?"
	} else if other := elsewhere(name); other != "" {
		f.fix = "did you mean " + other + "?"
	}
	d.report.add(full, at, f)
}
