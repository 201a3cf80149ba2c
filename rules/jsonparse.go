package rules

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Why a text is not taken as JSON.
var (
	errJSONSyntax = errors.New("invalid JSON")
	// errNumberRange is a number that no float64 can hold.
	errNumberRange = errors.New("a number is out of range")
	// errTooMany is a text of more than maxJSONValues values.
	errTooMany = errors.New("too many values")
)

// maxJSONDepth bounds nesting, well above what any API sends.
const maxJSONDepth = 1000

// maxJSONValues bounds the values of one text: each takes about a hundred bytes of
// memory, however short it is written.
const maxJSONValues = 1 << 20

// manyMembers is from where on a map finds repeated names faster.
const manyMembers = 32

// parseJSON reads exactly one JSON value (RFC 8259). Repeated member names
// ([jsontext.ErrDuplicateName]), invalid UTF-8 and numbers out of range are errors.
//
// Deriving parses every mutation's body; this takes a fifth of the time that a
// tree out of jsontext's tokens takes. A fuzz target holds the two together.
func parseJSON(text []byte) (*jsonValue, error) {
	open, _ := openMembers.Get().(*members)
	defer open.free()
	p := &jsonParser{s: string(text), members: open}
	v, err := p.value()
	if err != nil {
		return nil, fmt.Errorf("%w (at byte %d)", err, p.i)
	}
	if p.space(); p.i < len(p.s) {
		return nil, fmt.Errorf("%w: more than one value", errJSONSyntax)
	}
	return &v, nil
}

// jsonParser is the state of one parse. Strings are parts of s wherever they hold
// no escapes.
type jsonParser struct {
	s     string
	i     int
	depth int
	count int
	*members
}

// members are those of the objects and arrays that are open. Nothing that a parse
// gives out shares their memory.
type members struct {
	names  []string
	values []jsonValue
}

// openMembers spares each parse the memory of its open members.
var openMembers = sync.Pool{New: func() any { return &members{} }}

// maxKept bounds what is kept for the next parse.
const maxKept = 256

// free gives the members back without what they held.
func (m *members) free() {
	if cap(m.names) > maxKept || cap(m.values) > maxKept {
		return
	}
	clear(m.names[:cap(m.names)])
	clear(m.values[:cap(m.values)])
	m.names, m.values = m.names[:0], m.values[:0]
	openMembers.Put(m)
}

// space skips white space.
func (p *jsonParser) space() {
	for p.i < len(p.s) {
		switch p.s[p.i] {
		case ' ', '\t', '\r', '\n':
			p.i++
		default:
			return
		}
	}
}

// next is the next character after white space; 0 at the end.
func (p *jsonParser) next() byte {
	p.space()
	if p.i == len(p.s) {
		return 0
	}
	return p.s[p.i]
}

// value reads the next value.
func (p *jsonParser) value() (jsonValue, error) {
	if p.count++; p.count > maxJSONValues {
		return jsonValue{}, errTooMany
	}
	switch c := p.next(); {
	case c == '{':
		return p.object()
	case c == '[':
		return p.array()
	case c == '"':
		s, err := p.text()
		return stringValue(s), err
	case c == '-' || '0' <= c && c <= '9':
		return p.number()
	}
	for _, literal := range literals {
		if strings.HasPrefix(p.s[p.i:], literal.word) {
			p.i += len(literal.word)
			return jsonValue{kind: literal.kind}, nil
		}
	}
	return jsonValue{}, errJSONSyntax
}

// literals are the three words of JSON.
var literals = [...]struct {
	word string
	kind jsonKind
}{{"null", jsonNull}, {"true", jsonTrue}, {"false", jsonFalse}}

// open enters an object or array.
func (p *jsonParser) open() error {
	p.i++
	if p.depth++; p.depth > maxJSONDepth {
		return fmt.Errorf("%w: nested too deeply", errJSONSyntax)
	}
	return nil
}

// object reads an object.
func (p *jsonParser) object() (jsonValue, error) {
	if err := p.open(); err != nil {
		return jsonValue{}, err
	}
	names, values := len(p.names), len(p.values)
	for more := p.next() != '}'; more; {
		if p.next() != '"' {
			return jsonValue{}, errJSONSyntax
		}
		name, err := p.text()
		if err != nil {
			return jsonValue{}, err
		}
		if p.next() != ':' {
			return jsonValue{}, errJSONSyntax
		}
		p.i++
		v, err := p.value()
		if err != nil {
			return jsonValue{}, err
		}
		p.names, p.values = append(p.names, name), append(p.values, v)
		if more, err = p.goesOn('}'); err != nil {
			return jsonValue{}, err
		}
	}
	p.i++
	p.depth--
	out := jsonValue{kind: jsonObject, names: slices.Clone(p.names[names:]), items: slices.Clone(p.values[values:])}
	p.names, p.values = p.names[:names], p.values[:values]
	if repeats(out.names) {
		return jsonValue{}, jsontext.ErrDuplicateName
	}
	return out, nil
}

// array reads an array.
func (p *jsonParser) array() (jsonValue, error) {
	if err := p.open(); err != nil {
		return jsonValue{}, err
	}
	values := len(p.values)
	for more := p.next() != ']'; more; {
		v, err := p.value()
		if err != nil {
			return jsonValue{}, err
		}
		p.values = append(p.values, v)
		if more, err = p.goesOn(']'); err != nil {
			return jsonValue{}, err
		}
	}
	p.i++
	p.depth--
	out := jsonValue{kind: jsonArray, items: slices.Clone(p.values[values:])}
	p.values = p.values[:values]
	return out, nil
}

// goesOn reads the comma before another member, or stops before end.
func (p *jsonParser) goesOn(end byte) (bool, error) {
	switch p.next() {
	case ',':
		p.i++
		return true, nil
	case end:
		return false, nil
	}
	return false, errJSONSyntax
}

// repeats reports whether a name comes twice.
func repeats(names []string) bool {
	if len(names) > manyMembers {
		seen := make(map[string]bool, len(names))
		for _, n := range names {
			if seen[n] {
				return true
			}
			seen[n] = true
		}
		return false
	}
	for i, n := range names {
		if slices.Contains(names[:i], n) {
			return true
		}
	}
	return false
}

// text reads a string.
func (p *jsonParser) text() (string, error) {
	rest := p.s[p.i:]
	escaped := false
	for i := 1 + plainPrefix(rest[1:]); i < len(rest); i++ {
		switch c := rest[i]; {
		case c == '"':
			p.i += i + 1
			return p.unquoted(rest[:i+1], escaped)
		case c == '\\':
			escaped = true
			i++
		case c < ' ':
			return "", errJSONSyntax
		}
	}
	return "", errJSONSyntax
}

// unquoted is the value of a quoted string.
func (p *jsonParser) unquoted(quoted string, escaped bool) (string, error) {
	if !escaped {
		inner := quoted[1 : len(quoted)-1]
		if !utf8.ValidString(inner) {
			return "", fmt.Errorf("%w: not UTF-8", errJSONSyntax)
		}
		return inner, nil
	}
	plain, err := jsontext.AppendUnquote(nil, quoted)
	if err != nil {
		return "", fmt.Errorf("%w: %w", errJSONSyntax, err)
	}
	return string(plain), nil
}

// number reads a number and checks its range.
func (p *jsonParser) number() (jsonValue, error) {
	start := p.i
	if p.s[p.i] == '-' {
		p.i++
	}
	leading := p.i
	if p.digits() == 0 || p.s[leading] == '0' && p.i-leading > 1 {
		return jsonValue{}, errJSONSyntax
	}
	whole := p.i
	if p.i < len(p.s) && p.s[p.i] == '.' {
		p.i++
		if p.digits() == 0 {
			return jsonValue{}, errJSONSyntax
		}
	}
	if p.i < len(p.s) && (p.s[p.i] == 'e' || p.s[p.i] == 'E') {
		p.i++
		if p.i < len(p.s) && (p.s[p.i] == '+' || p.s[p.i] == '-') {
			p.i++
		}
		if p.digits() == 0 {
			return jsonValue{}, errJSONSyntax
		}
	}
	literal := p.s[start:p.i]
	if p.i > whole {
		if f, err := strconv.ParseFloat(literal, 64); err != nil || math.IsInf(f, 0) {
			return jsonValue{}, errNumberRange
		}
	}
	return jsonValue{kind: jsonNumber, text: literal}, nil
}

// digits skips digits and counts them.
func (p *jsonParser) digits() int {
	start := p.i
	for p.i < len(p.s) && '0' <= p.s[p.i] && p.s[p.i] <= '9' {
		p.i++
	}
	return p.i - start
}
