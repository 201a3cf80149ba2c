package rules

import (
	"fmt"
	"maps"
	"strings"
)

// OwnHosts says that the hosts are those of the connector's file.
const OwnHosts = "-"

// DeriveAlone derives from a request as if op were the only operation there is: as
// another version of a rule would have read it, of a connector with these hosts (its
// HostsInForce of then). It is nil if the request isn't one of op's, or nothing can be derived:
// no record can be of it. The error is of hosts that can't be read, or aren't known.
func (op *Operation) DeriveAlone(req *Request, hosts string) (*Derived, error) {
	patterns, err := op.Connector.hostsOf(hosts)
	if err != nil {
		return nil, err
	}
	return op.deriveUnder(req, patterns), nil
}

// DeriveAs derives from a request if c, with these hosts, reads it as the operation of that
// name; nil if it reads something else in it, or nothing. The error is of hosts that can't be
// read.
func (c *Connector) DeriveAs(name string, req *Request, hosts string) (*Derived, error) {
	patterns, err := c.hostsOf(hosts)
	if err != nil {
		return nil, err
	}
	return c.deriveUnder(name, req, patterns), nil
}

func (c *Connector) deriveUnder(name string, req *Request, hosts []*hostPattern) *Derived {
	vars, fits := matchHost(hosts, req)
	if !fits {
		return nil
	}
	m := Match{Connector: c, Host: maps.Clone(vars)}
	if c.match(&m, req, false); m.Refusal != nil || m.Operation == nil || m.Operation.Name != name || m.Effect != EffectMutation {
		return nil
	}
	d, refusal := m.Operation.Derive(req, m)
	if refusal != nil {
		return nil
	}
	return d
}

func (op *Operation) deriveUnder(req *Request, hosts []*hostPattern) *Derived {
	vars, fits := matchHost(hosts, req)
	if !fits || op.Effect != EffectMutation {
		return nil
	}
	f := op.fit(req, vars, false)
	if !f.ok || f.needsBody || f.problem != nil {
		return nil
	}
	d, refusal := op.Derive(req, Match{
		Connector: op.Connector, Operation: op, Effect: op.Effect, Path: f.path, Host: maps.Clone(vars),
	})
	if refusal != nil {
		return nil
	}
	return d
}

// hostsOf are the patterns of what was noted with a record. Of what was made before they
// were noted, those of now are all that is known: without what this version reads of a host they don't
// tell what it is.
func (c *Connector) hostsOf(noted string) ([]*hostPattern, error) {
	switch noted {
	case "":
		if c.lacks != "" {
			return nil, fmt.Errorf("the hosts of then were not noted, and those of now have no {%s}, which it reads", c.lacks)
		}
		return c.hosts, nil
	case OwnHosts:
		return c.fileHosts, nil
	}
	var out []*hostPattern
	for source := range strings.FieldsSeq(noted) {
		p, err := parseHostPattern(source)
		if err != nil {
			return nil, fmt.Errorf("the hosts of then: %q: %w", source, err)
		}
		out = append(out, p)
	}
	return out, nil
}

// matchHost finds the variables of a request's host, by the same order as [Set.lookup]: a
// host without variables comes before all patterns.
func matchHost(patterns []*hostPattern, req *Request) (map[string]string, bool) {
	if req.Port == "" {
		for _, p := range patterns {
			if literal, ok := p.exact(); ok && p.port == "" && literal == req.Host {
				return nil, true
			}
		}
	}
	for _, p := range patterns {
		if vars, fits := p.match(req.Scheme, req.Host, req.Port); fits {
			return vars, true
		}
	}
	return nil, false
}
