package rules

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// jsonKind is the kind of a JSON value. The zero value is null.
type jsonKind uint8

const (
	jsonNull jsonKind = iota
	jsonFalse
	jsonTrue
	jsonNumber
	jsonString
	jsonArray
	jsonObject
)

// jsonValue is a JSON value as it was written: numbers keep their digits, members
// their order.
type jsonValue struct {
	kind jsonKind
	// text is a string's value or a number's literal.
	text string
	// names are an object's member names; items its values, or an array's.
	names []string
	items []jsonValue
	// odd is only set in answers.
	odd oddness
}

// stringValue makes a JSON string.
func stringValue(s string) jsonValue { return jsonValue{kind: jsonString, text: s} }

// boolValue makes a JSON boolean.
func boolValue(b bool) jsonValue {
	if b {
		return jsonValue{kind: jsonTrue}
	}
	return jsonValue{kind: jsonFalse}
}

// count is how many values it holds, itself among them.
func (v *jsonValue) count() int {
	n := 1
	for i := range v.items {
		n += v.items[i].count()
	}
	return n
}

// member finds a member of an object.
func (v *jsonValue) member(name string) (*jsonValue, bool) {
	if v.kind != jsonObject {
		return nil, false
	}
	for i, n := range v.names {
		if n == name {
			return &v.items[i], true
		}
	}
	return nil, false
}

// element finds an element of an array.
func (v *jsonValue) element(i int) (*jsonValue, bool) {
	if v.kind != jsonArray || i < 0 || i >= len(v.items) {
		return nil, false
	}
	return &v.items[i], true
}

// isInteger reports whether a JSON number has neither fraction nor exponent.
func isInteger(literal string) bool { return !strings.ContainsAny(literal, ".eE") }

// exactDigits is how many characters of a decimal fraction a float64 always keeps:
// 15 digits and the point.
const exactDigits = 16

// plainDigits is how many digits an integer below 1e21 has at most. From there on RFC 8785 writes an exponent.
const plainDigits = 21

// canonicalNumber is the canonical spelling of a JSON number, as RFC 8785 §3.2.2.3 writes it. Where that would lose
// digits, an integer keeps them all. Of any other number exact is false then, and the literal is kept.
func canonicalNumber(literal string) (spelling string, exact bool) {
	whole := isInteger(literal)
	switch {
	case literal == "-0":
		return "0", true
	case whole && len(literal) <= plainDigits:
		return literal, true
	}
	f, err := strconv.ParseFloat(literal, 64)
	if err != nil {
		return literal, whole
	}
	if f == 0 {
		f = 0 // RFC 8785 knows no negative zero
	}
	spelling = string(jsontext.AppendFloat(nil, f, 64))
	if len(literal) <= exactDigits && !strings.ContainsAny(literal, "eE") {
		return spelling, true
	}
	if decimalOf(literal) != decimalOf(spelling) {
		return literal, whole
	}
	return spelling, true
}

// decimalOf brings a JSON number to sign, significant digits and exponent, so
// that equal numbers compare equal.
func decimalOf(literal string) string {
	sign := ""
	if rest, ok := strings.CutPrefix(literal, "-"); ok {
		sign, literal = "-", rest
	}
	mantissa, exponent, _ := strings.Cut(strings.ToLower(literal), "e")
	e, _ := strconv.Atoi(strings.TrimPrefix(exponent, "+"))
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	e -= len(fraction)
	trimmed := strings.TrimRight(digits, "0")
	e += len(digits) - len(trimmed)
	if trimmed == "" {
		return "0"
	}
	return fmt.Sprintf("%s%se%d", sign, trimmed, e)
}

// Why a text is not taken as JSON.
var (
	errJSONSyntax = errors.New("invalid JSON")
	// errNumberRange is a number that no float64 can hold.
	errNumberRange = errors.New("a number is out of range")
	// errTooMany is a text of more than maxJSONValues values.
	errTooMany = errors.New("too many values")
	// errTooDeep is a text that is nested beyond maxJSONDepth.
	errTooDeep = fmt.Errorf("%w: nested too deeply", errJSONSyntax)
	// errHalf is a surrogate without the other one (RFC 8259 §8.2).
	errHalf = fmt.Errorf("%w: a text holds half an emoji, such as \\ud83d without its other escape; cut texts between characters", errJSONSyntax)
	// errNoNumber is what Python and JavaScript call numbers, and JSON doesn't have (RFC 8259 §6).
	errNoNumber = fmt.Errorf("%w: NaN and Infinity are no JSON; send null or a text, or leave the member out", errJSONSyntax)
)

// maxJSONDepth bounds nesting, well above what any API sends.
const maxJSONDepth = 1000

// maxJSONValues bounds the values of one text: each takes about a hundred bytes of
// memory, however short it is written.
const maxJSONValues = 1 << 20

// parseJSON reads exactly one JSON value (RFC 8259). Repeated member names
// ([jsontext.ErrDuplicateName]), invalid UTF-8 and numbers out of range are errors.
func parseJSON(text []byte) (*jsonValue, error) {
	return (&jsonParser{Decoder: jsontext.NewDecoder(bytes.NewBuffer(text))}).whole(text)
}

// whole reads the one value, and the end of the text.
func (p *jsonParser) whole(text []byte) (*jsonValue, error) {
	v, err := p.value()
	if err == nil {
		if _, err = p.ReadToken(); errors.Is(err, io.EOF) {
			return &v, nil
		}
	}
	for _, known := range []error{jsontext.ErrDuplicateName, errNumberRange, errTooMany, errTooDeep} {
		if errors.Is(err, known) {
			return nil, fmt.Errorf("%w (at byte %d)", known, p.InputOffset())
		}
	}
	// jsontext's own error may quote the text.
	why := errJSONSyntax
	switch rest := bytes.TrimLeft(text[p.InputOffset():], " \t\r\n,:-"); {
	case bytes.HasPrefix(rest, []byte("NaN")), bytes.HasPrefix(rest, []byte("Infinity")):
		why = errNoNumber
	case err != nil && strings.Contains(err.Error(), "invalid surrogate pair"):
		why = errHalf
	}
	return nil, fmt.Errorf("%w (at byte %d)", why, p.InputOffset())
}

// jsonParser is the state of one parse.
type jsonParser struct {
	*jsontext.Decoder
	count int
	// odd says that values may be odd.
	odd bool
}

// kinds are the kinds of values by what they begin with.
var kinds = [...]jsonKind{
	'n': jsonNull, 'f': jsonFalse, 't': jsonTrue, '0': jsonNumber, '"': jsonString, '[': jsonArray, '{': jsonObject,
}

// value reads the next value.
func (p *jsonParser) value() (jsonValue, error) {
	if p.count++; p.count > maxJSONValues {
		return jsonValue{}, errTooMany
	}
	if p.odd && p.PeekKind() == jsontext.KindString {
		return p.oddText()
	}
	token, err := p.ReadToken()
	if err != nil {
		return jsonValue{}, err
	}
	v := jsonValue{kind: kinds[token.Kind()]}
	switch v.kind {
	case jsonString:
		v.text = token.String()
	case jsonNumber:
		v.text = token.String()
		if f, err := strconv.ParseFloat(v.text, 64); !isInteger(v.text) && (err != nil || math.IsInf(f, 0)) {
			if !p.odd {
				return jsonValue{}, errNumberRange
			}
			v.text, v.odd = "null", oddItself // As JavaScript writes them.
		}
	case jsonArray, jsonObject:
		return v, p.members(&v)
	case jsonNull, jsonFalse, jsonTrue:
	}
	return v, nil
}

// members reads what is in an array or object, and its end.
func (p *jsonParser) members(v *jsonValue) error {
	if p.StackDepth() > maxJSONDepth {
		return errTooDeep
	}
	for k := p.PeekKind(); k != ']' && k != '}'; k = p.PeekKind() {
		if v.kind == jsonObject {
			name, err := p.ReadToken()
			if err != nil {
				return err
			}
			v.names = append(v.names, name.String())
		}
		item, err := p.value()
		if err != nil {
			return err
		}
		v.items = append(v.items, item)
	}
	if p.odd {
		v.markOdd()
	}
	_, err := p.ReadToken()
	return err
}
