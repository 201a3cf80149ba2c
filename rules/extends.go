package rules

import (
	"slices"

	"go.yaml.in/yaml/v4"
)

// extendedMark begins a bundled file, after the one that extends it.
const extendedMark = "\n--- # extended\n"

// extendedLines are added to the lines of a bundled file, which tells them from those of the file that extends it.
const extendedLines = 1 << 24

// Locate says which file a line of the connector is of, and which line of it.
func (c *Connector) Locate(line int) (file string, own int) {
	if line > extendedLines {
		return c.extended.Name, line - extendedLines
	}
	return c.File, line
}

// extend reads the file that a file says it extends, and adds it. A bundled file isn't loaded by itself then.
// Changed says that the file changes what bundled cases depend on.
func (l *loading) extend(d *decoder, root value, f, base File) (_ File, changed, ok bool) {
	at := value{Key: "extends"}
	each(root.Node, func(name string, nodes []*yaml.Node) {
		if name == "extends" {
			at.Node = nodes[1]
		}
		changed = changed || slices.Contains([]string{"hosts", "reads", "account", "parameters"}, name)
	})
	if !at.Given() {
		return File{}, false, true
	}
	name, _ := d.text(at)
	var names []string
	for _, one := range l.files {
		if one.Bundled == name {
			base = one
		}
		if one.Bundled != "" {
			names = append(names, one.Bundled)
		}
	}
	switch other, twice := l.extended[name]; {
	case l.pinned:
	case base.Bundled == "":
		d.Fail("extends", at, "no bundled connector has the name "+quoted(name), meant(name, "bundled ones", names))
		return base, false, false
	case twice:
		d.Fail("extends", at, other+" extends "+name+" already", "put the operations of both into one file")
	}
	l.extended[name], d.extended = f.Name, base
	of := newDecoder(base.Name, l.pinned)
	theirs, ok := of.Document(base.Data)
	l.findings = append(l.findings, of.findings...)
	if ok = ok && theirs.Is(yaml.MappingNode); ok {
		moved(theirs.Node)
		extend(root.Node, theirs.Node, true)
	}
	return base, changed, ok
}

// inherited are the keys whose members are added one by one.
var inherited = []string{"operations", "cases", "parameters"}

// extend adds members of a bundled file to those of the file that extends it. The file's own go first, and replace those
// of the same name.
func extend(ours, theirs *yaml.Node, whole bool) {
	own := map[string]*yaml.Node{}
	each(ours, func(name string, nodes []*yaml.Node) { own[name] = nodes[len(nodes)-1] })
	each(theirs, func(name string, nodes []*yaml.Node) {
		switch mine := own[name]; {
		case mine == nil:
			ours.Content = append(ours.Content, nodes...)
		case whole && slices.Contains(inherited, name):
			extend(mine, nodes[1], false)
		}
	})
}

// each visits the members of a map, or the elements of a list by their names.
func each(n *yaml.Node, visit func(name string, nodes []*yaml.Node)) {
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		visit(n.Content[i].Value, n.Content[i:i+2])
	}
	for i := 0; n.Kind == yaml.SequenceNode && i < len(n.Content); i++ {
		name := ""
		each(n.Content[i], func(key string, nodes []*yaml.Node) {
			if key == "name" {
				name = nodes[1].Value
			}
		})
		visit(name, n.Content[i:i+1])
	}
}

// moved moves the lines of a bundled file.
func moved(n *yaml.Node) {
	n.Line += extendedLines
	for _, below := range n.Content {
		moved(below)
	}
}

// untold reports whether a bundled case says nothing about this connector. The file that extends it may take its
// request, or say otherwise what all cases depend on.
func (c *testCase) untold(connector *Connector) bool {
	own := func(at Where) bool { return at.Line <= extendedLines }
	if own(c.at) {
		return false
	}
	if connector.rebased {
		return true
	}
	if op := connector.Operation(c.expect.operation); op != nil && own(op.at) {
		return true
	}
	req, refusal := Normalise(c.request)
	if refusal != nil {
		return false
	}
	m := connector.matchAt(connector.fileHosts, req)
	return m.Operation != nil && own(m.Operation.at)
}
