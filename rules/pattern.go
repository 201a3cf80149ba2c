package rules

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// pathPattern is a compiled path pattern: literals, {x} for one segment and
// {x...} for any number of them.
type pathPattern struct {
	source   string
	segments []segmentPattern
	// rest names the variable of {x...}; hasRest says there is one. It stands before segments[split].
	rest    string
	hasRest bool
	split   int
	// slash says that the path must end in a slash, which is no part of a {x...} before it.
	slash bool
}

// segmentPattern is prefix{name}suffix, or a literal when name is empty.
type segmentPattern struct {
	name           string
	prefix, suffix string
	// hyphen says that the variable has a hyphen in it.
	hyphen bool
}

// parsePathPattern reads a pattern such as /repos/{owner}/{repo}/contents/{file...}.
func parsePathPattern(source string) (*pathPattern, error) {
	if !strings.HasPrefix(source, "/") {
		return nil, errors.New("a path pattern begins with \"/\"")
	}
	if strings.ContainsAny(source, "?#") {
		return nil, errors.New("a path pattern holds no query; use when with query.x")
	}
	p := &pathPattern{source: source}
	if source == "/" {
		p.slash = true
		return p, nil
	}
	body, slash := strings.CutSuffix(source[1:], "/")
	p.slash = slash
	for piece := range strings.SplitSeq(body, "/") {
		if name, ok := restName(piece); ok {
			if p.hasRest {
				return nil, fmt.Errorf("%s is the second variable that takes several segments; keep one of them", piece)
			}
			p.rest, p.hasRest, p.split = name, true, len(p.segments)
			continue
		}
		segment, err := parseSegmentPattern(piece)
		if err != nil {
			return nil, err
		}
		p.segments = append(p.segments, segment)
	}
	return p, unique(p.rest, p.segments)
}

// parts are the segments that a path begins with, and those that it ends with.
func (p *pathPattern) parts() (head, tail []segmentPattern) {
	if !p.hasRest {
		return p.segments, p.segments
	}
	return p.segments[:p.split], p.segments[p.split:]
}

// at is the place of segments[i] in a path that fits; at(p.split) is the first behind {x...}.
func (p *pathPattern) at(i int, in *path) int {
	if p.hasRest && i >= p.split {
		return len(in.segments) - len(p.segments) + i
	}
	return i
}

// unique refuses a variable name that comes twice.
func unique(rest string, segments []segmentPattern) error {
	seen := map[string]bool{rest: true}
	for _, s := range segments {
		if s.name != "" && seen[s.name] {
			return fmt.Errorf("the variable {%s} comes twice", s.name)
		}
		seen[s.name] = true
	}
	return nil
}

// restName reads {x...}.
func restName(piece string) (string, bool) {
	name, ok := strings.CutPrefix(piece, "{")
	if !ok {
		return "", false
	}
	name, ok = strings.CutSuffix(name, "...}")
	return name, ok && isName(name)
}

// parseSegmentPattern reads one segment.
func parseSegmentPattern(piece string) (segmentPattern, error) {
	before, rest, open := strings.Cut(piece, "{")
	if star := strings.Trim(piece, "*") == "" && piece != ""; star || strings.HasPrefix(piece, ":") {
		// Other tools' ways of writing a variable would match only themselves here.
		return segmentPattern{}, fmt.Errorf("%q is no segment pattern; write {name} for one segment, {name...} for the rest of the path, "+
			"or %%2A and %%3A for the characters themselves", piece)
	}
	if !open {
		literal, err := literalSegment(piece)
		return segmentPattern{prefix: literal}, err
	}
	name, after, closed := strings.Cut(rest, "}")
	if !closed || !isName(name) || strings.ContainsAny(after, "{}") {
		return segmentPattern{}, fmt.Errorf("%q is no segment pattern; write a literal, {name}, or {name} with a literal before or after it", piece)
	}
	s := segmentPattern{name: name}
	var err error
	if before != "" {
		if s.prefix, err = literalSegment(before); err != nil {
			return segmentPattern{}, err
		}
	}
	if after != "" {
		s.suffix, err = literalSegment(after)
	}
	return s, err
}

// literalSegment decodes a literal as a request's segment is decoded.
func literalSegment(piece string) (string, error) {
	if strings.Contains(piece, "}") {
		return "", fmt.Errorf("%q has a closing brace without an opening one", piece)
	}
	var wire strings.Builder
	value, refusal := normalSegment(&wire, piece)
	if refusal != nil {
		return "", fmt.Errorf("%q can't be part of a path that is accepted: %s", piece, refusal.Detail)
	}
	return value, nil
}

// match matches a path and returns its variables; nil variables where the pattern
// has none.
func (p *pathPattern) match(at *path) (map[string]string, bool) {
	if !p.fits(at) {
		return nil, false
	}
	return p.variables(at), true
}

// variables are those of a path that fits.
func (p *pathPattern) variables(at *path) map[string]string {
	var vars map[string]string
	set := func(name, value string) {
		if vars == nil {
			vars = make(map[string]string, len(p.segments)+1)
		}
		vars[name] = value
	}
	for i, s := range p.segments {
		if s.name != "" {
			v := at.segments[p.at(i, at)]
			set(s.name, v[len(s.prefix):len(v)-len(s.suffix)])
		}
	}
	if p.hasRest {
		set(p.rest, strings.Join(at.segments[p.split:p.at(p.split, at)], "/"))
	}
	return vars
}

// joinsSlash reports whether a variable that takes several segments would hold a slash of a segment itself. Then two
// paths would have one value.
func (op *Operation) joinsSlash(at *path) bool {
	return slices.ContainsFunc(op.matches, func(m *matcher) bool {
		return m.path != nil && m.path.hasRest && m.path.fits(at) &&
			slices.ContainsFunc(at.segments[m.path.split:m.path.at(m.path.split, at)], func(s string) bool { return strings.Contains(s, "/") })
	})
}

// fits reports whether the path matches.
func (p *pathPattern) fits(at *path) bool {
	if at.wire == "*" || len(at.segments) < len(p.segments) {
		return false
	}
	if !p.hasRest && (len(at.segments) != len(p.segments) || at.slash != p.slash) {
		return false
	}
	if p.hasRest && p.ends() != (at.slash && len(at.segments) > 0) {
		return false
	}
	if p.hasRest && len(at.segments) == len(p.segments)+1 && at.segments[len(p.segments)] == "" {
		return false // Its value would be that of no segment.
	}
	for i, s := range p.segments {
		if !s.fits(at.segments[p.at(i, at)]) {
			return false
		}
	}
	return true
}

// fits reports whether one segment matches; a variable is never empty.
func (s segmentPattern) fits(value string) bool {
	if s.name == "" {
		return value == s.prefix
	}
	return len(value) > len(s.prefix)+len(s.suffix) && (!s.hyphen || strings.Contains(value, "-")) &&
		strings.HasPrefix(value, s.prefix) && strings.HasSuffix(value, s.suffix)
}

// has reports whether the pattern has the variable.
func (p *pathPattern) has(name string) bool {
	return name != "" && (p.rest == name || slices.ContainsFunc(p.segments, func(s segmentPattern) bool { return s.name == name }))
}

// literal reports whether any segment is or holds a literal.
func (p *pathPattern) literal() bool {
	return !p.hasRest && len(p.segments) == 0 || slices.ContainsFunc(p.segments, func(s segmentPattern) bool { return s.prefix+s.suffix != "" })
}

// overlaps reports whether a path could match both. It may say yes where none
// does, never no where one does.
func (p *pathPattern) overlaps(q *pathPattern) bool {
	if !p.hasRest && len(q.segments) > len(p.segments) || !q.hasRest && len(p.segments) > len(q.segments) {
		return false
	}
	pHead, pTail := p.parts()
	qHead, qTail := q.parts()
	n, m := min(len(pHead), len(qHead)), min(len(pTail), len(qTail))
	return p.ends() == q.ends() && slices.EqualFunc(pHead[:n], qHead[:n], segmentPattern.overlaps) &&
		slices.EqualFunc(pTail[len(pTail)-m:], qTail[len(qTail)-m:], segmentPattern.overlaps)
}

// ends reports whether what fits ends in a slash; "/" is a path without segments, not one
// that ends in a slash.
func (p *pathPattern) ends() bool { return p.slash && (p.hasRest || len(p.segments) > 0) }

// overlaps reports whether a segment could match both.
func (s segmentPattern) overlaps(t segmentPattern) bool {
	switch {
	case s.name == "" && t.name == "":
		return s.prefix == t.prefix
	case s.name == "":
		return t.fits(s.prefix)
	case t.name == "":
		return s.fits(t.prefix)
	}
	return (strings.HasPrefix(s.prefix, t.prefix) || strings.HasPrefix(t.prefix, s.prefix)) &&
		(strings.HasSuffix(s.suffix, t.suffix) || strings.HasSuffix(t.suffix, s.suffix))
}

// covers reports whether every path that fits q surely fits p.
func (p *pathPattern) covers(q *pathPattern) bool {
	pHead, pTail := p.parts()
	qHead, qTail := q.parts()
	switch {
	case len(q.segments) < len(p.segments) || len(qHead) < len(pHead) || len(qTail) < len(pTail):
		return false
	case !p.hasRest && (q.hasRest || len(q.segments) != len(p.segments) || q.slash != p.slash):
		return false
	case p.hasRest && p.ends() != q.ends():
		return false
	}
	return slices.EqualFunc(pHead, qHead[:len(pHead)], segmentPattern.covers) &&
		slices.EqualFunc(pTail, qTail[len(qTail)-len(pTail):], segmentPattern.covers)
}

// covers reports whether every segment that fits t fits s.
func (s segmentPattern) covers(t segmentPattern) bool {
	switch {
	case s.name == "":
		return t.name == "" && s.prefix == t.prefix
	case t.name == "":
		return s.fits(t.prefix)
	}
	return strings.HasPrefix(t.prefix, s.prefix) && strings.HasSuffix(t.suffix, s.suffix)
}

// hostPattern is a compiled host pattern: labels, of which any may hold {x}.
type hostPattern struct {
	source string
	labels []segmentPattern
	// tail is what every host of the pattern ends with.
	tail string
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
	p.tail = host[strings.LastIndexByte(host, '}')+1:]
	return p, p.addLabels(host)
}

// addLabels reads the labels of a host that holds variables.
func (p *hostPattern) addLabels(host string) error {
	literal := false
	for label := range strings.SplitSeq(host, ".") {
		s, err := parseLabelPattern(label)
		if err != nil {
			return err
		}
		literal = literal || s.name == ""
		p.labels = append(p.labels, s)
	}
	if !literal {
		return errors.New("at least one label must be a literal")
	}
	return unique("", p.labels)
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
	if !strings.HasSuffix(host, p.tail) {
		return nil, false
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
	return slices.EqualFunc(p.split(), q.split(), segmentPattern.overlaps)
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
