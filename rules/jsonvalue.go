package rules

import (
	"fmt"
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

// isInteger reports whether a JSON number has neither fraction nor exponent.
func isInteger(literal string) bool { return !strings.ContainsAny(literal, ".eE") }

// exactDigits is how many characters of a decimal fraction a float64 always keeps:
// 15 digits and the point.
const exactDigits = 16

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
	if f == 0 {
		f = 0 // RFC 8785 knows no negative zero
	}
	spelling = string(jsontext.AppendFloat(nil, f, 64))
	if len(literal) <= exactDigits && !strings.ContainsAny(literal, "eE") {
		return spelling, true
	}
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
