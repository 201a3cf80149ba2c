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
	if rest, wild := strings.CutPrefix(host, "*."); wild {
		return nil, fmt.Errorf("there is no *; write \"{x}.%s\", in quotes, for one label in its place", printable(rest))
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
	return p, p.addLabels(host)
}

// addLabels reads the labels of a host that holds variables.
func (p *hostPattern) addLabels(host string) error {
	literal := false
	seen := map[string]bool{}
	for label := range strings.SplitSeq(host, ".") {
		s, err := parseLabelPattern(label)
		if err != nil {
			return err
		}
		if s.name != "" && seen[s.name] {
			return fmt.Errorf("the variable {%s} comes twice", s.name)
		}
		seen[s.name] = true
		literal = literal || s.name == ""
		p.labels = append(p.labels, s)
	}
	if !literal {
		return errors.New("at least one label must be a literal")
	}
	return nil
}

// parseLabelPattern reads one label. Its literals must be spelt as a normalised
// host is, or they would match none.
func parseLabelPattern(label string) (segmentPattern, error) {
	s, err := parseSegmentPattern(label)
	if err != nil {
		return segmentPattern{}, err
	}
	before, rest, _ := strings.Cut(label, "{")
	_, after, _ := strings.Cut(rest, "}")
	if literal := before + after; literal != "" {
		if literal != strings.ToLower(literal) {
			return segmentPattern{}, fmt.Errorf("%q is not in lower case", label)
		}
		for _, c := range []byte(literal) {
			if !isHostChar(c) {
				return segmentPattern{}, fmt.Errorf("%q holds other than the characters of a host; write international names as xn--…", label)
			}
		}
	}
	return s, nil
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
