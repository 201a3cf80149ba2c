package rules

import (
	"maps"
	"slices"

	"go.yaml.in/yaml/v4"
)

// extendedMark begins a bundled file, after the one that extends it.
const extendedMark = "\n--- # extended\n"

// extend adds to a file the bundled one that it says it extends, and gives that. It isn't loaded by itself then.
func (l *loading) extend(d *decoder, root value, f, base File) (File, bool) {
	at := value{Node: memberOf(root.Node, "extends"), Key: "extends"}
	if !at.Given() {
		return File{}, true
	}
	name, _ := d.text(at)
	if !l.pinned {
		base = l.bundled[name]
	}
	if other, twice := l.extended[name]; twice {
		d.Fail("extends", at, other+" extends "+name+" already", "put the operations of both into one file")
	}
	theirs, ok := newDecoder(base.Name, l.pinned).Document(base.Data)
	if !ok || !theirs.Is(yaml.MappingNode) {
		d.Fail("extends", at, "no bundled connector has the name "+quoted(name), meant(name, "bundled ones", slices.Sorted(maps.Keys(l.bundled))))
		return base, false
	}
	l.extended[name] = f.Name
	unplace(theirs.Node)
	merge(root.Node, theirs.Node, true)
	return base, true
}

// merge adds members of a bundled file to those of the file that extends it. The file's own go first, and replace those
// of the same name. Bundled cases are left out where what all cases depend on is the file's own.
func merge(ours, theirs *yaml.Node, whole bool) {
	own := func(name string) bool { return memberOf(ours, name) != nil }
	rebased := whole && slices.ContainsFunc([]string{"hosts", "paths", "reads", "account", "parameters"}, own)
	each(theirs, func(name string, nodes []*yaml.Node) {
		switch {
		case rebased && name == "cases":
		case !own(name):
			ours.Content = append(ours.Content, nodes...)
		case whole && (name == "operations" || name == "cases" || name == "parameters"):
			merge(memberOf(ours, name), nodes[1], false)
		}
	})
}

// each visits the members of a map, or the elements of a list by their names.
func each(n *yaml.Node, visit func(name string, nodes []*yaml.Node)) {
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		visit(n.Content[i].Value, n.Content[i:i+2])
	}
	for i := 0; n.Kind == yaml.SequenceNode && i < len(n.Content); i++ {
		if name := memberOf(n.Content[i], "name"); name != nil {
			visit(name.Value, n.Content[i:i+1])
		}
	}
}

// memberOf is the value of a member, or the element of this name; nil for none.
func memberOf(n *yaml.Node, name string) (found *yaml.Node) {
	each(n, func(key string, nodes []*yaml.Node) {
		if key == name {
			found = nodes[len(nodes)-1]
		}
	})
	return found
}

// unplace takes the lines from a bundled file. They would be taken for lines of the file that extends it.
func unplace(n *yaml.Node) {
	n.Line, n.Column = 0, 0
	for _, below := range n.Content {
		unplace(below)
	}
}

// untold reports whether a bundled case says nothing about this connector: the file that extends it takes its request.
func (c *testCase) untold(k *Connector) bool {
	op := k.Operation(c.expect.operation)
	if req, refusal := Normalise(c.request); refusal == nil && (op == nil || op.at.Line == 0) {
		op = k.matchAt(k.fileHosts, req).Operation
	}
	return c.at.Line == 0 && op != nil && op.at.Line > 0
}
