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
	// raw is how it was spelt.
	raw string
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
		p.list = append(p.list, pair{name: n, value: v, raw: piece})
	}
	return p
}

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

// sorted is the list by name; the values of one name keep their order.
func (p *pairs) sorted() []pair {
	out := slices.Clone(p.list)
	slices.SortStableFunc(out, func(a, b pair) int { return cmp.Compare(a.name, b.name) })
	return out
}

// with returns the spelling with a name set to one value: its first occurrence is
// replaced and the others go; a new one comes last. The other pairs keep their
// spelling.
func (p *pairs) with(name, value string) string {
	spelt := escapePair(name) + "=" + escapePair(value)
	var out []string
	done := false
	for _, one := range p.list {
		if one.name != name {
			out = append(out, one.raw)
			continue
		}
		if !done {
			out = append(out, spelt)
			done = true
		}
	}
	if !done {
		out = append(out, spelt)
	}
	return strings.Join(out, "&")
}
