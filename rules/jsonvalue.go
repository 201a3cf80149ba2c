package rules

import (
	"bytes"
	"errors"
	"fmt"
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

// errNumberRange is a number that no float64 can hold.
var errNumberRange = errors.New("a number is out of range")

// maxJSONDepth bounds nesting, well above what any API sends.
const maxJSONDepth = 1000

// parseJSON reads exactly one JSON value. Repeated member names
// ([jsontext.ErrDuplicateName]), invalid UTF-8 and numbers out of range are errors.
func parseJSON(text []byte) (*jsonValue, error) {
	dec := jsontext.NewDecoder(bytes.NewBuffer(text))
	v, err := readJSON(dec)
	if err != nil {
		return nil, err
	}
	if rest := bytes.TrimLeft(text[dec.InputOffset():], " \t\r\n"); len(rest) > 0 {
		return nil, errors.New("more than one JSON value")
	}
	return &v, nil
}

// readJSON reads the next value.
func readJSON(dec *jsontext.Decoder) (jsonValue, error) {
	tok, err := dec.ReadToken()
	if err != nil {
		return jsonValue{}, err
	}
	switch tok.Kind() {
	case jsontext.KindFalse:
		return jsonValue{kind: jsonFalse}, nil
	case jsontext.KindTrue:
		return jsonValue{kind: jsonTrue}, nil
	case jsontext.KindString:
		return stringValue(tok.String()), nil
	case jsontext.KindNumber:
		return numberValue(tok.String())
	case jsontext.KindBeginObject:
		return readObject(dec)
	case jsontext.KindBeginArray:
		return readArray(dec)
	default:
		return jsonValue{kind: jsonNull}, nil
	}
}

// readObject reads members up to the closing brace.
func readObject(dec *jsontext.Decoder) (jsonValue, error) {
	if dec.StackDepth() > maxJSONDepth {
		return jsonValue{}, errors.New("nested too deeply")
	}
	v := jsonValue{kind: jsonObject}
	for dec.PeekKind() != jsontext.KindEndObject {
		name, err := dec.ReadToken()
		if err != nil {
			return jsonValue{}, err
		}
		text := name.String()
		item, err := readJSON(dec)
		if err != nil {
			return jsonValue{}, err
		}
		v.names = append(v.names, text)
		v.items = append(v.items, item)
	}
	_, err := dec.ReadToken()
	return v, err
}

// readArray reads elements up to the closing bracket.
func readArray(dec *jsontext.Decoder) (jsonValue, error) {
	if dec.StackDepth() > maxJSONDepth {
		return jsonValue{}, errors.New("nested too deeply")
	}
	v := jsonValue{kind: jsonArray}
	for dec.PeekKind() != jsontext.KindEndArray {
		item, err := readJSON(dec)
		if err != nil {
			return jsonValue{}, err
		}
		v.items = append(v.items, item)
	}
	_, err := dec.ReadToken()
	return v, err
}

// numberValue checks that a literal is in the range of a float64.
func numberValue(literal string) (jsonValue, error) {
	if !isInteger(literal) {
		if f, err := strconv.ParseFloat(literal, 64); err != nil || math.IsInf(f, 0) {
			return jsonValue{}, errNumberRange
		}
	}
	return jsonValue{kind: jsonNumber, text: literal}, nil
}

// isInteger reports whether a JSON number has neither fraction nor exponent.
func isInteger(literal string) bool { return !strings.ContainsAny(literal, ".eE") }

// canonicalNumber is the canonical spelling of a JSON number: integers keep their
// digits, others are spelt as RFC 8785 §3.2.2.3 does. exact is false when that
// would lose digits; the literal is kept then.
func canonicalNumber(literal string) (spelling string, exact bool) {
	if isInteger(literal) {
		if literal == "-0" {
			return "0", true
		}
		return literal, true
	}
	f, err := strconv.ParseFloat(literal, 64)
	if err != nil {
		return literal, false
	}
	spelling = string(jsontext.AppendFloat(nil, f, 64))
	if decimalOf(literal) != decimalOf(spelling) {
		return literal, false
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
