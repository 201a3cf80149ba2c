package rules

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"
)

// pair is one name and value of a query or a form.
type pair struct {
	name, value string
}

// pairs is a parsed query or form. When problem is set nothing may be read from
// it, and its canonical form is its spelling.
type pairs struct {
	list    []pair
	raw     string
	problem *Refusal
}

// parsePairs reads application/x-www-form-urlencoded. what names it in refusals.
func parsePairs(raw, what string) pairs {
	p := pairs{raw: raw}
	if strings.ContainsRune(raw, ';') {
		// Some servers split at semicolons too.
		p.problem = refuse(ProblemAmbiguous, "the "+what+" holds an unescaped semicolon, which some servers read as a separator; write %3B")
		return p
	}
	if strings.ContainsFunc(raw, isControl) {
		p.problem = refuse(ProblemAmbiguous, "the "+what+" holds an unescaped control character, such as a line break; escape it or leave it out")
		return p
	}
	for piece := range strings.SplitSeq(raw, "&") {
		if piece == "" {
			continue
		}
		name, value, _ := strings.Cut(piece, "=")
		n, ok1 := unescapePair(name)
		v, ok2 := unescapePair(value)
		if !ok1 || !ok2 {
			p.problem = refuse(ProblemAmbiguous, "the "+what+" holds an invalid escape or is no UTF-8")
			return p
		}
		p.list = append(p.list, pair{name: n, value: v})
	}
	return p
}

// isControl knows the control characters of ASCII.
func isControl(c rune) bool { return c < ' ' || c == 0x7f }

// unescapePair decodes one name or value.
func unescapePair(s string) (string, bool) {
	if strings.IndexByte(s, '%') < 0 && strings.IndexByte(s, '+') < 0 {
		return s, utf8.ValidString(s)
	}
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch c {
		case '+':
			c = ' '
		case '%':
			d, ok := unhex(s, i)
			if !ok {
				return "", false
			}
			c = d
			i += 2
		}
		out = append(out, c)
	}
	return string(out), utf8.Valid(out)
}

// escapePair encodes one name or value.
func escapePair(s string) string {
	return strings.ReplaceAll(escapeSegment(s), "%20", "+")
}

// values are all values of a name, in order.
func (p *pairs) values(name string) []string {
	var out []string
	for _, one := range p.list {
		if one.name == name {
			out = append(out, one.value)
		}
	}
	return out
}

// sorted is the list by name. The values of one name keep their order. So do names whose order says to which element of
// a list they belong.
func (p *pairs) sorted() []pair {
	out := slices.Clone(p.list)
	slices.SortStableFunc(out, func(a, b pair) int { return cmp.Compare(listName(a.name), listName(b.name)) })
	return out
}

// listName is the list that holds a name such as items[][sku], and any other name as it is. PHP, Rack and qs begin
// another element where such a name comes again. So the order alone says to which element items[][qty]=2 belongs.
func listName(name string) string {
	if i := strings.Index(name, "[]"); i >= 0 {
		return name[:i+len("[]")]
	}
	return name
}

// with returns the spelling with a name set to one value. Its first occurrence is replaced and the others go; a new one
// comes last. Everything else keeps its spelling, empty pieces between two "&" too.
func (p *pairs) with(name, value string) string {
	spelt := escapePair(name) + "=" + escapePair(value)
	var out []string
	done := false
	rest := p.list
	for piece := range strings.SplitSeq(p.raw, "&") {
		if piece == "" {
			out = append(out, piece)
			continue
		}
		one := rest[0]
		rest = rest[1:]
		if one.name == name && done {
			continue
		}
		if one.name == name {
			piece, done = spelt, true
		}
		out = append(out, piece)
	}
	switch last := len(out) - 1; {
	case done:
	case out[last] == "":
		out[last] = spelt
	default:
		out = append(out, spelt)
	}
	return strings.Join(out, "&")
}

// variant finds a name that differs from the given one only in case.
func (p *pairs) variant(name string) bool {
	return slices.ContainsFunc(p.list, func(one pair) bool { return isVariant(one.name, name) })
}
