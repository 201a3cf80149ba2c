package rules

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// CanonicalJSON returns the RFC 8785 form of a JSON text, except for some numbers: one that a float64 would round keeps
// all its digits. Repeated names, invalid UTF-8 and fractions or exponents that no float64 can hold are errors.
func CanonicalJSON(text []byte) ([]byte, error) {
	v, err := parseJSON(text)
	if err != nil {
		return nil, fmt.Errorf("canonical JSON: %w", err)
	}
	return appendCanonical(nil, v, nil), nil
}

// appendCanonical appends the canonical form of v without what m takes out.
func appendCanonical(dst []byte, v *jsonValue, m *mask) []byte {
	switch v.kind {
	case jsonNull:
		return append(dst, "null"...)
	case jsonFalse:
		return append(dst, "false"...)
	case jsonTrue:
		return append(dst, "true"...)
	case jsonNumber:
		n, _ := canonicalNumber(v.text)
		return append(dst, n...)
	case jsonString:
		return appendString(dst, v.text)
	case jsonArray:
		return appendArray(dst, v, m)
	case jsonObject:
		return appendObject(dst, v, m)
	}
	return append(dst, "null"...)
}

// appendArray appends the elements that m leaves in.
func appendArray(dst []byte, v *jsonValue, m *mask) []byte {
	dst = append(dst, '[')
	first := true
	for i := range v.items {
		sub, drop := m.element(i, &v.items[i])
		if drop {
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = appendCanonical(dst, &v.items[i], sub)
	}
	return append(dst, ']')
}

// appendObject appends the members that m leaves in, ordered as RFC 8785 §3.2.3
// does.
func appendObject(dst []byte, v *jsonValue, m *mask) []byte {
	var few [16]int
	order := few[:0]
	for i := range v.names {
		order = append(order, i)
	}
	slices.SortFunc(order, func(a, b int) int { return compareUTF16(v.names[a], v.names[b]) })
	dst = append(dst, '{')
	first := true
	for _, i := range order {
		sub, drop := m.member(v.names[i], &v.items[i])
		if drop {
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = append(appendString(dst, v.names[i]), ':')
		dst = appendCanonical(dst, &v.items[i], sub)
	}
	return append(dst, '}')
}

// appendString appends a JSON string with the fewest escapes. Values come from
// parsers that checked UTF-8; anything else is replaced.
func appendString(dst []byte, s string) []byte {
	out, err := jsontext.AppendQuote(dst, s)
	if err != nil {
		out, _ = jsontext.AppendQuote(dst, strings.ToValidUTF8(s, "\uFFFD"))
	}
	return out
}

// compareUTF16 orders strings by their UTF-16 code units (RFC 8785 §3.2.3). That differs from the order of bytes only
// above the surrogates.
func compareUTF16(a, b string) int {
	n := min(len(a), len(b))
	i := 0
	for i < n && a[i] == b[i] {
		i++
	}
	if i == n || a[i] < utf8.RuneSelf && b[i] < utf8.RuneSelf {
		return strings.Compare(a[i:], b[i:])
	}
	return slices.Compare(utf16.Encode([]rune(a)), utf16.Encode([]rune(b)))
}

// canonicalValue is the canonical form as the public type.
func canonicalValue(v *jsonValue) jsontext.Value { return appendCanonical(nil, v, nil) }
