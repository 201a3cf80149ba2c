package rules

import (
	"slices"

	"go.yaml.in/yaml/v4"
)

// maxSteps is the most steps that a probe may have.
const maxSteps = 10

// steps reads a probe that is a chain of reads; nil when it has none.
func (d *decoder) steps(n *yaml.Node, m map[string]*yaml.Node, key string, op *Operation) *Probe {
	for name, v := range m {
		if name != "steps" {
			d.fail("value", join(key, name), v, name+" belongs into a step", "write it below the step that it is about")
		}
	}
	key = join(key, "steps")
	items := d.elements(m["steps"], key)
	switch {
	case m["steps"].Kind == yaml.SequenceNode && len(items) == 0:
		d.fail("missing", key, n, "steps is empty", "add a step, or write the probe without steps")
		return nil
	case len(items) > maxSteps:
		d.fail("value", key, m["steps"], "has more steps than a probe may have", "leave some out; ten are the most")
		return nil
	}
	names := make([]string, len(items))
	for i, item := range items {
		names[i] = d.stepName(item, index(key, i), names[:i])
	}
	p := &Probe{op: op}
	for i, item := range items {
		step := &Probe{op: op, name: names[i], index: i}
		if d.read(item, d.object(item, index(key, i), levelStep), index(key, i), step, names[i+1:]) != nil {
			p.steps = append(p.steps, step)
		}
	}
	if len(p.steps) != len(items) {
		return nil // what is wrong with the others was reported
	}
	return p
}

// stepName reads the name of a step without reporting its other keys.
func (d *decoder) stepName(n *yaml.Node, key string, earlier []string) string {
	var v *yaml.Node
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == "name" {
			v = n.Content[i+1]
		}
	}
	if v == nil {
		d.fail("missing", join(key, "name"), n, "the step has no name", "add name: with letters, digits and _")
		return ""
	}
	name, ok := d.text(v, join(key, "name"))
	switch {
	case !ok:
		return ""
	case !isName(name):
		d.fail("value", join(key, "name"), v, quoted(name)+" is no name of a step", "write letters, digits and _, beginning with a letter")
	case slices.Contains(earlier, name):
		d.fail("value", join(key, "name"), v, quoted(name)+" is the name of an earlier step", "give each step a name of its own")
	}
	return name
}

// laterStep is the index of the step that goes on; 0 if there is none of this name
// after p.
func (d *decoder) laterStep(n *yaml.Node, key string, p *Probe, later []string) int {
	name, ok := d.text(n, key)
	if !ok {
		return 0
	}
	i := slices.Index(later, name)
	if i < 0 || name == "" {
		d.fail("value", key, n, quoted(name)+" is no step after this one", "name a step further down; a probe goes forward only")
		return 0
	}
	return p.index + 1 + i
}

// stepNames checks that an answer to a step is read in the steps after it only.
func (d *decoder) stepNames(n *yaml.Node, key string, op *Operation) {
	known := map[*expr][]string{}
	strategies := op.Strategies
	if op.Undo != nil {
		strategies = slices.Concat(strategies, op.Undo.Operation.Strategies)
	}
	for _, s := range strategies {
		if s.Probe == nil {
			continue
		}
		var names []string
		for _, step := range s.Probe.steps {
			for _, e := range step.exprs() {
				known[e] = slices.Clone(names)
			}
			names = append(names, step.name)
		}
	}
	for _, e := range op.exprs() {
		for _, r := range e.refs {
			if r.root != "steps" || len(r.steps) > 0 && slices.Contains(known[e], r.steps[0].name) {
				continue
			}
			at := d.standing(e, n, key)
			d.fail("variable", at.key, at.node, quoted(e.source)+" reads an answer that isn't there yet",
				"read steps.NAME of an earlier step of the same probe, in a later one")
		}
	}
}
