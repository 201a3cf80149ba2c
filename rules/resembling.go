package rules

import (
	"net/http"
	"slices"
)

// resembling finds the operation for which servers may take a request that would pass
// unrecorded: one that records what it resembles, or denies it. Many servers answer
// HEAD by doing what GET does (RFC 9110 §9.3.2), and take a path in another case or with a
// slash at its end for the same. taken is the operation that it fits, which that one must go
// before; nil for none. nil says that there is none.
func (c *Connector) resembling(req *Request, host map[string]string, taken *Operation) *Operation {
	switch req.Method {
	case http.MethodOptions:
		return nil
	case http.MethodHead:
		req = req.copy()
		req.Method = http.MethodGet
	}
	i := slices.IndexFunc(c.Operations, func(op *Operation) bool {
		return !op.Effect.passes() && (taken == nil || op.goesBefore(taken)) &&
			slices.ContainsFunc(op.matches, func(m *matcher) bool { return m.resembles(req, host) })
	})
	if i < 0 {
		return nil
	}
	return c.Operations[i]
}

// refuseResembling is the refusal of a request that servers may take for one of op.
func refuseResembling(req *Request, op *Operation) *Refusal {
	return refuse(ProblemUnmatched, "servers may take this "+req.Method+" for "+op.Name+" of the connector "+op.Connector.Name+
		", and it would pass unrecorded: they may treat HEAD as GET, and a path in another case or with a slash at its end as the same; "+
		"send what that operation matches, or add an operation with effect: read for this to the file")
}

// resembles reports whether a server may take the request for one that fits. A condition that
// can't be evaluated may hold.
func (m *matcher) resembles(req *Request, host map[string]string) bool {
	if len(m.methods) > 0 && !slices.Contains(m.methods, req.Method) {
		return false
	}
	vars, ok := m.variables(req)
	if m.path != nil {
		vars, ok = m.path.nearly(&req.path)
	}
	if !ok || m.when == nil {
		return ok
	}
	if m.when.readsBody() && !req.BodyLoaded() {
		return true
	}
	holds, err := m.when.test(&scope{req: req, path: vars, host: host})
	return holds || err != nil
}

// nearly is match, whatever the case of literals and whether or not there is a slash at the end.
func (p *pathPattern) nearly(at *path) (map[string]string, bool) {
	lower, loose := *p, path{wire: at.wire, slash: p.slash}
	lower.segments = slices.Clone(p.segments)
	for i, s := range lower.segments {
		lower.segments[i].prefix, lower.segments[i].suffix = lowerASCII(s.prefix), lowerASCII(s.suffix)
	}
	for _, s := range at.segments {
		loose.segments = append(loose.segments, lowerASCII(s))
	}
	if !lower.fits(&loose) {
		return nil, false
	}
	return p.variables(&path{wire: at.wire, segments: at.segments, slash: p.slash}), true
}
