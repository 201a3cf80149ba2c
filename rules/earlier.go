package rules

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Earlier is what a stored version makes of a request. In its zero value that version reads no such mutation in it.
type Earlier struct {
	// Derived is nil where nothing can be derived.
	*Derived
	// Unsure says why a record of that version may be the request's, and how to say whether it is. It is empty
	// where that is known.
	Unsure string
}

// was reports whether c is, or says that it was, the connector of this name.
func (h *Head) was(name string) bool { return h.Name == name || slices.Contains(h.Was, name) }

// Concerns reports whether the request may be one of c, a stored version with its hosts of then. now is the connector
// that the request is of. The error is of hosts that can't be read.
func (c *Connector) Concerns(now *Connector, req *Request, hosts string) (bool, error) {
	patterns, err := c.hostsOf(hosts)
	if err != nil {
		return false, err
	}
	_, covers := c.covers(patterns, req)
	return covers || now.was(c.Name), nil
}

// Under derives from a request of op what it is as then, an operation of a stored version, with the connector's hosts
// of then. With gone the connector of then has no version in force, whatever its name is now. The error is of hosts that
// can't be read.
func (op *Operation) Under(then *Operation, hosts string, req *Request, gone bool) (Earlier, error) {
	patterns, err := then.Connector.hostsOf(hosts)
	if err != nil || then.Effect != EffectMutation {
		return Earlier{}, err
	}
	heir, said := op.Connector.was(then.Connector.Name), slices.Contains(op.Was, then.Name)
	named := said || op.Name == then.Name
	vars, covers := then.Connector.covers(patterns, req)
	m := Match{Connector: then.Connector, Host: maps.Clone(vars)}
	if covers {
		if f := then.fit(req, vars, false); heir && named && f.ok && !f.needsBody && f.problem == nil {
			m.Path = f.path
			return op.readAs(then, req, m, true), nil
		}
		then.Connector.match(&m, req, false)
		switch taken := m.Operation != nil || m.Refusal == nil && !m.NeedsBody; {
		case m.Operation == then && m.Refusal == nil:
			return op.readAs(then, req, m, true), nil
		case taken && (!heir || !said):
			return Earlier{}, nil // That version took it for something else.
		}
	}
	// An operation may have been renamed if now's file has none of its name, and its own had none of the name of now.
	renamed := (heir || covers) && op.NoIdentity == then.NoIdentity && !op.Connector.knows(then.Name) && then.Connector.Operation(op.Name) == nil
	if !named && !renamed || !heir && !covers && !gone {
		return Earlier{}, nil
	}
	// It is taken for the operation of now, so what it reads of paths is taken from where they have it now.
	out := Earlier{Unsure: "The hosts of then had variables, and this one doesn't fit them. Finish the item by hand, or begin it anew."}
	if m.Path = op.bind(req).path; covers || !slices.ContainsFunc(patterns, (*hostPattern).variable) {
		out = op.readAs(then, req, m, false)
	}
	if !named && out.Derived == nil {
		return Earlier{}, nil
	}
	if say, otherwise := op.renameOf(then, heir, named); say != "" {
		out.Unsure = "If it is, say " + say + ". Otherwise " + otherwise + "."
	}
	return out, nil
}

// renameOf tells what to say where op is what then was, and what to do where it isn't; "" where the file says it.
func (op *Operation) renameOf(then *Operation, heir, named bool) (say, otherwise string) {
	var was []string
	if !heir {
		was = append(was, "was: "+then.Connector.Name+" at the top of the file of "+op.Connector.Name)
		otherwise = "give its operation " + op.Name + " another name"
	}
	if !named {
		was = append(was, "was: "+then.Name+" in its operation "+op.Name)
		otherwise = "keep an operation " + then.Name + " in the file"
	}
	return strings.Join(was, " and "), otherwise
}

// knows reports whether an operation has or had this name.
func (c *Connector) knows(operation string) bool {
	return slices.ContainsFunc(c.Operations, func(op *Operation) bool { return op.Name == operation || slices.Contains(op.Was, operation) })
}

// readAs derives by the words of then. Values of now stand for what they don't find, if their names are the same: keys
// are made of names. Of a request that doesn't fit, variables that it lacks are no absent ones.
func (op *Operation) readAs(then *Operation, req *Request, m Match, fits bool) Earlier {
	why := "it reads variables of the path or host which those of now don't have"
	if fits || !then.lacks(m) {
		d, refusal := then.Derive(req, m)
		if refusal == nil {
			return Earlier{Derived: d}
		}
		why = refusal.Detail
	}
	now := op.bind(req)
	d, refusal := op.Derive(req, Match{Path: now.path, Host: now.host})
	if refusal == nil && slices.Equal(op.identityNames(), then.identityNames()) &&
		(op.Connector.HasAccount || !then.Connector.HasAccount) && (d.Subkey != "" || then.subkey == nil && then.SubkeyHeader != SubkeyRequired) {
		d.HostGroup, d.HostVars = then.Connector.HostGroup, maps.Clone(m.Host)
		maps.DeleteFunc(d.HostVars, func(name, _ string) bool { return then.identifies("host", name) })
		if !then.Connector.HasAccount {
			d.Account = ""
		}
		return Earlier{Derived: d}
	}
	return Earlier{Unsure: fmt.Sprintf("By version %d of the connector %s nothing says whether it is: %s. "+
		"Keep the names that tell mutations of %s apart as they were there (identity: %s), wherever their values come from now.",
		then.Connector.Version, then.Connector.Name, why, op.Name, strings.Join(then.identityNames(), ", "))}
}

// lacks reports whether what tells mutations apart reads a variable that the match doesn't have.
func (op *Operation) lacks(m Match) bool {
	return slices.ContainsFunc(op.telling(), func(e namedExpr) bool {
		return slices.ContainsFunc(e.refs, func(r place) bool {
			vars, known := map[string]map[string]string{"path": m.Path, "host": m.Host}[r.root]
			if !known || len(r.steps) == 0 {
				return known
			}
			_, has := vars[r.steps[0].name]
			return !has
		})
	})
}

// identityNames are the names of the identity's values, in order.
func (op *Operation) identityNames() (out []string) {
	for _, e := range op.identity {
		out = append(out, e.name)
	}
	slices.Sort(out)
	return out
}

// variable reports whether hosts that fit have variables.
func (p *hostPattern) variable() bool {
	return slices.ContainsFunc(p.labels, func(s segmentPattern) bool { return s.name != "" })
}
