package rules

import "slices"

// paths reads which paths of its hosts are the connector's. The text before operations: tells them, so they take no
// parameters.
func (d *decoder) paths(v value, h *Head) {
	for _, item := range d.OneOrMore(v) {
		s, ok := d.text(item)
		if !ok {
			continue
		}
		p, err := parsePathPattern(s)
		if err != nil {
			d.Fail("path", item, quoted(s)+" is no path pattern: "+err.Error(), "write it like /calendar/v3/{rest...}")
			continue
		}
		h.Paths, h.paths = append(h.Paths, s), append(h.paths, p.folded())
	}
}

// owns reports whether a path of the connector's hosts is its own. So is what servers may take for such a path: in another
// case, or with a slash at its end. Any path is meant by nil.
func (h *Head) owns(at *path) bool {
	return at == nil || len(h.paths) == 0 || slices.ContainsFunc(h.paths, func(p *pathPattern) bool {
		_, fits := p.nearly(at)
		return fits
	})
}

// covers finds the variables of the host, where the request is on one of these hosts and the path is the connector's.
func (h *Head) covers(hosts []*hostPattern, req *Request) (map[string]string, bool) {
	vars, fits := matchHost(hosts, req)
	return vars, fits && h.owns(&req.path)
}

// sharesPath reports whether one path could be both connectors'.
func (h *Head) sharesPath(other *Head) bool {
	return len(h.paths) == 0 || slices.ContainsFunc(h.paths, other.mayOwn)
}

// mayOwn reports whether a path that fits the pattern could be the connector's.
func (h *Head) mayOwn(p *pathPattern) bool {
	return len(h.paths) == 0 || slices.ContainsFunc(h.paths, p.folded().overlaps)
}

// folded is the pattern with its literals in lower case, whether or not it ends in a slash.
func (p *pathPattern) folded() *pathPattern {
	out := *p
	out.segments, out.slash = slices.Clone(p.segments), false
	for i, s := range out.segments {
		out.segments[i].prefix, out.segments[i].suffix = lowerASCII(s.prefix), lowerASCII(s.suffix)
	}
	return &out
}
