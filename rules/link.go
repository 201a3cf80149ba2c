package rules

import (
	"errors"
	"net/http"
	"slices"
	"strings"
)

// errLink is a Link field that can't be read. It may hide a next page, so it is
// never taken for none.
var errLink = errors.New("the Link field can't be read")

// nextLink finds the target of rel=next among Link fields (RFC 8288 §3).
func nextLink(h http.Header) (target string, found bool, _ error) {
	for _, line := range h["Link"] {
		for line = skipLinkSpace(line); line != ""; line = skipLinkSpace(line) {
			one, after, ok := strings.Cut(line, ">")
			one, open := strings.CutPrefix(one, "<")
			if !ok || !open {
				return "", false, errLink
			}
			params, rest, err := cutParams(after)
			if err != nil {
				return "", false, err
			}
			if relatesNext(params) {
				return one, true, nil
			}
			line = rest
		}
	}
	return "", false, nil
}

// skipLinkSpace skips what may stand between links.
func skipLinkSpace(s string) string { return strings.TrimLeft(s, " \t,") }

// cutParams splits the parameters of one link from the rest of the line.
func cutParams(s string) (params []string, rest string, _ error) {
	quoted, start := false, 0
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == ';':
			params, start = append(params, s[start:i]), i+1
		case c == ',':
			params, rest = append(params, s[start:i]), s[i+1:]
			return params[1:], rest, beforeParams(params[0])
		}
	}
	if quoted {
		return nil, "", errLink
	}
	params = append(params, s[start:])
	return params[1:], "", beforeParams(params[0])
}

// beforeParams checks that nothing stands between a target and its parameters.
func beforeParams(s string) error {
	if strings.TrimSpace(s) != "" {
		return errLink
	}
	return nil
}

// relatesNext finds next among the relation types of a link.
func relatesNext(params []string) bool {
	for _, param := range params {
		name, value, _ := strings.Cut(param, "=")
		if !strings.EqualFold(strings.TrimSpace(name), "rel") {
			continue
		}
		relations := strings.Fields(strings.ToLower(strings.Trim(strings.TrimSpace(value), "\"'")))
		return slices.Contains(relations, "next")
	}
	return false
}
