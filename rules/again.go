package rules

import "maps"

// DeriveAlone derives from a request as if op were the only operation there is: as
// another version of a rule would have read it. ok is false if the request isn't
// one of op's, or nothing can be derived: no record can be of it.
func (op *Operation) DeriveAlone(req *Request) (d *Derived, ok bool) {
	if op.Effect != EffectMutation {
		return nil, false
	}
	for _, h := range op.Connector.hosts {
		vars, fits := h.match(req.Scheme, req.Host, req.Port)
		if !fits {
			continue
		}
		f := op.fit(req, vars, false)
		if !f.ok || f.needsBody || f.problem != nil {
			return nil, false
		}
		d, refusal := op.Derive(req, Match{
			Connector: op.Connector, Operation: op, Effect: op.Effect, Path: f.path, Host: maps.Clone(vars),
		})
		return d, refusal == nil
	}
	return nil, false
}
