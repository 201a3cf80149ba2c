package rules

import (
	"bytes"
	"net/url"
	"slices"
	"strings"
)

// Names under which frameworks take another method than the request's.
var (
	overrideHeaders = []string{"X-Http-Method-Override", "X-Http-Method", "X-Method-Override"}
	overrideNames   = []string{"_method", "x-http-method-override", "x-http-method", "x-method-override", "$httpmethod", "_httpmethod"}
)

// targetHeaders are fields under which servers take another path than the
// request's.
var targetHeaders = []string{"X-Original-Url", "X-Rewrite-Url"}

// override finds a method override that the operation does not match on. It looks
// into bodies that are read anyway: a mutation's, and those that a condition asks
// for. Reads and ignored requests are streamed, so their rule vouches for the body.
func (m *Match) override(req *Request) (found string) {
	if name := m.overrideHeader(req); name != "" {
		return "the header " + name
	}
	if name := m.overrideName("query", req.rawQuery); name != "" {
		return "the query parameter " + name
	}
	if isSafe(req.Method) || !req.HasBody() || m.Unmatched || !req.BodyLoaded() {
		return ""
	}
	mediaType, _ := declaredBy(req.Header).mediaType()
	if m.Effect != EffectMutation && mediaType != formType && !isMultipart(mediaType) && !isJSONType(mediaType) {
		return ""
	}
	return m.overrideBody(req.read(), mediaType)
}

// overrideHeader finds a field that overrides method or path, behind underscores
// too.
func (m *Match) overrideHeader(req *Request) string {
	for _, list := range [][]string{overrideHeaders, targetHeaders} {
		for _, name := range list {
			if len(req.Header[name]) > 0 && !m.matchesOn("header", strings.ToLower(name)) {
				return name
			}
			for _, other := range req.underscored {
				if strings.EqualFold(strings.ReplaceAll(other, "_", "-"), name) {
					return other
				}
			}
		}
	}
	return ""
}

// overrideBody finds an override in a form, at the top of JSON, or among the
// fields of a multipart body.
func (m *Match) overrideBody(c *content, mediaType string) string {
	if c.form != nil {
		if name := m.overrideName("form", c.form.raw); name != "" {
			return "the form field " + name
		}
	}
	if c.json != nil {
		for _, name := range c.json.names {
			if isOverride(name) && !m.matchesOn("json", name) {
				return "the JSON member " + name
			}
		}
	}
	if isMultipart(mediaType) {
		if name := multipartOverride(c.bytes); name != "" {
			return "the multipart field " + name
		}
	}
	return ""
}

// isOverride knows the names of overrides.
func isOverride(name string) bool { return slices.Contains(overrideNames, strings.ToLower(name)) }

// isMultipart knows multipart bodies (RFC 2046 §5.1).
func isMultipart(mediaType string) bool { return strings.HasPrefix(mediaType, "multipart/") }

// multipartOverride finds an override among the lines that name a field (RFC 7578
// §4.2). It looks at every such line, whether a part begins there or not, and goes on
// where the next one continues it (RFC 5322 §2.2.3): parsers differ on that. A name in pieces
// (RFC 2231 §3) may come to anything, and counts as one.
func multipartOverride(body []byte) string {
	const field = "content-disposition"
	for len(body) > 0 {
		line, rest := cutLine(body)
		body = rest
		if len(line) < len(field) || !strings.EqualFold(string(line[:len(field)]), field) {
			continue
		}
		whole := bytes.Clone(line)
		for len(rest) > 0 && (rest[0] == ' ' || rest[0] == '\t') {
			line, rest = cutLine(rest)
			whole = append(whole, line...)
		}
		for param := range strings.SplitSeq(string(whole), ";") {
			if name := overrideParam(param); name != "" {
				return name
			}
		}
	}
	return ""
}

// cutLine cuts the first line off, which ends with LF, CR or both.
func cutLine(body []byte) (line, rest []byte) {
	i := bytes.IndexAny(body, "\r\n")
	if i < 0 {
		return body, nil
	}
	line = body[:i]
	if body[i] == '\r' && i+1 < len(body) && body[i+1] == '\n' {
		i++
	}
	return line, body[i+1:]
}

// overrideParam is the override that a parameter names its field by, "" for none.
func overrideParam(param string) string {
	name, value, _ := strings.Cut(strings.TrimSpace(param), "=")
	name = strings.ToLower(strings.TrimSpace(name))
	if len(name) > len("name*") && strings.HasPrefix(name, "name*") {
		return name
	}
	if name != "name" && name != "name*" {
		return ""
	}
	if i := strings.LastIndex(value, "''"); i >= 0 {
		value = value[i+2:]
	}
	if plain, err := url.PathUnescape(value); err == nil {
		value = plain
	}
	// A quoted pair stands for its second character (RFC 9110 §5.6.4).
	if value = strings.Trim(strings.ReplaceAll(value, `\`, ""), "\"' \t\r\n"); isOverride(value) {
		return value
	}
	return ""
}

// overrideName finds an override among the names of a query or a form.
func (m *Match) overrideName(root, raw string) string {
	for piece := range strings.FieldsFuncSeq(raw, func(r rune) bool { return r == '&' || r == ';' }) {
		name, _, _ := strings.Cut(piece, "=")
		plain, ok := unescapePair(name)
		if ok && isOverride(plain) && !m.matchesOn(root, plain) {
			return plain
		}
	}
	return ""
}

// matchesOn reports whether the operation's conditions read the name.
func (m *Match) matchesOn(root, name string) bool {
	if m.Operation == nil {
		return false
	}
	return slices.ContainsFunc(m.Operation.matches, func(one *matcher) bool {
		return one.when != nil && slices.ContainsFunc(one.when.refs, func(r place) bool {
			return r.root == root && len(r.steps) > 0 && r.steps[0].name == name
		})
	})
}
