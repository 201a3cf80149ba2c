package rules

import (
	"errors"
	"fmt"
	"strings"
)

// hostPattern is a compiled host pattern: labels, of which any may hold {x}.
type hostPattern struct {
	source string
	labels []segmentPattern
	// port is empty for the scheme's default port.
	port string
}

// anyScheme has no default port, so that a written port is kept.
const anyScheme = ""

// parseHostPattern reads host or host:port.
func parseHostPattern(source string) (*hostPattern, error) {
	if strings.Contains(source, "/") {
		return nil, errors.New("a host has neither scheme nor path")
	}
	host, port := source, ""
	if i := strings.LastIndexByte(source, ':'); i >= 0 && !strings.HasSuffix(source, "]") {
		host, port = source[:i], source[i+1:]
		if port == "" {
			return nil, errors.New("the port is missing")
		}
	}
	if !strings.Contains(host, "{") {
		return literalHost(source, host, port)
	}
	p := &hostPattern{source: source}
	if port != "" {
		_, normal, refusal := normalAuthority("x:"+port, anyScheme)
		if refusal != nil {
			return nil, errors.New(refusal.Detail)
		}
		p.port = normal
	}
	literal := false
	for label := range strings.SplitSeq(host, ".") {
		s, err := parseSegmentPattern(label)
		if err != nil {
			return nil, err
		}
		literal = literal || s.name == ""
		if s.prefix != strings.ToLower(s.prefix) || s.suffix != strings.ToLower(s.suffix) {
			return nil, fmt.Errorf("%q is not in lower case", label)
		}
		p.labels = append(p.labels, s)
	}
	if !literal {
		return nil, errors.New("at least one label must be a literal")
	}
	return p, nil
}

// literalHost makes the pattern of one host.
func literalHost(source, host, port string) (*hostPattern, error) {
	authority := host
	if port != "" {
		authority += ":" + port
	}
	normal, number, refusal := normalAuthority(authority, anyScheme)
	if refusal != nil {
		return nil, errors.New(refusal.Detail)
	}
	return &hostPattern{source: source, labels: []segmentPattern{{prefix: normal}}, port: number}, nil
}

// exact is the host of a pattern without variables.
func (p *hostPattern) exact() (string, bool) {
	return p.labels[0].prefix, len(p.labels) == 1 && p.labels[0].name == ""
}

// match matches a normalised host and port under a scheme and returns the
// variables. A pattern without a port means the scheme's default port.
func (p *hostPattern) match(scheme, host, port string) (map[string]string, bool) {
	if p.port != port && (port != "" || p.port != defaultPort(scheme)) {
		return nil, false
	}
	if literal, ok := p.exact(); ok {
		return nil, literal == host
	}
	labels := strings.Split(host, ".")
	if len(labels) != len(p.labels) {
		return nil, false
	}
	vars := map[string]string{}
	for i := range p.labels {
		s := &p.labels[i]
		if !s.fits(labels[i]) {
			return nil, false
		}
		if s.name != "" {
			vars[s.name] = labels[i][len(s.prefix) : len(labels[i])-len(s.suffix)]
		}
	}
	return vars, true
}

// overlaps reports whether a host could match both.
func (p *hostPattern) overlaps(q *hostPattern) bool {
	if p.port != q.port && !p.defaults(q) && !q.defaults(p) {
		return false
	}
	a, b := p.split(), q.split()
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !a[i].overlaps(&b[i]) {
			return false
		}
	}
	return true
}

// defaults reports whether p leaves the port to the scheme and q names a default.
func (p *hostPattern) defaults(q *hostPattern) bool {
	return p.port == "" && (q.port == defaultPort("http") || q.port == defaultPort("https"))
}

// split is the pattern label by label, for literals too.
func (p *hostPattern) split() []segmentPattern {
	host, ok := p.exact()
	if !ok {
		return p.labels
	}
	var out []segmentPattern
	for label := range strings.SplitSeq(host, ".") {
		out = append(out, segmentPattern{prefix: label})
	}
	return out
}
