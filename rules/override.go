package rules

import (
	"bytes"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"
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

// multipartOverride finds an override among the lines that name a field (RFC 7578 §4.2). It looks at every such line,
// whether a part begins there or not. It reads on where the next line continues one (RFC 5322 §2.2.3). Parsers differ
// on that. A name in pieces (RFC 2231 §3) may come to anything, and counts as one.
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

// Upgrade is what a request asks to change its connection to, in its own order (RFC 9110 §7.8). It is empty for a
// request that asks for no change. Some changes are refused, whatever the rules say. They come with another method than
// GET, with content, or without Upgrade in Connection. An Upgrade field that is no list of protocols is refused too.
func (r Raw) Upgrade() (asked []string, refusal *Refusal) {
	lines := r.Header["Upgrade"]
	if len(lines) == 0 {
		return nil, nil
	}
	const only = "protocol upgrades are refused but for a GET request without content whose rule names the protocol: "
	switch {
	case r.Method != http.MethodGet:
		return nil, refuse(ProblemDenied, only+"this one is "+r.Method)
	case r.HasBody || len(r.Body) > 0:
		return nil, refuse(ProblemDenied, only+"this one has content")
	case !httpguts.HeaderValuesContainsToken(r.Header["Connection"], "upgrade"):
		return nil, refuse(ProblemDenied, only+"this one has the field Upgrade, and no \"Connection: Upgrade\" (RFC 9110 §7.8)")
	}
	asked, sound := Protocols(lines)
	if !sound || len(asked) == 0 {
		return nil, refuse(ProblemDenied, only+"the field Upgrade of this one is no list of protocols")
	}
	return asked, nil
}

// Protocols parts the lines of an Upgrade field (RFC 9110 §7.8). It is not sound if an
// element is no protocol.
func Protocols(lines []string) (protocols []string, sound bool) {
	for _, line := range lines {
		for one := range strings.SplitSeq(line, ",") {
			if one = strings.Trim(one, " \t"); one == "" {
				continue // RFC 9110 §5.6.1.2
			}
			if !isProtocol(one) {
				return nil, false
			}
			protocols = append(protocols, one)
		}
	}
	return protocols, true
}

// isProtocol knows a protocol's name, with or without a version.
func isProtocol(s string) bool {
	name, version, versioned := strings.Cut(s, "/")
	return httpguts.ValidHeaderFieldName(name) && (!versioned || httpguts.ValidHeaderFieldName(version))
}

// Upgrade decides which of asked the request may ask the upstream for: those that its rule names. No rule, or a rule
// that names none of them, is a refusal.
func (m *Match) Upgrade(asked []string) (allowed []string, refusal *Refusal) {
	op := m.Operation
	if op == nil || len(op.Upgrade) == 0 || op.Effect != EffectRead && op.Effect != EffectIgnore {
		return nil, refuse(ProblemDenied, "protocol upgrades are refused where no rule names the protocol (upgrade)")
	}
	if m.Refusal != nil {
		return nil, m.Refusal
	}
	if allowed = op.Upgrades(asked); len(allowed) == 0 {
		return nil, refuse(ProblemDenied, "protocol upgrades are refused where the rule doesn't name the protocol: "+op.Name+" of "+
			op.Connector.Name+" names "+strings.Join(op.Upgrade, ", "))
	}
	return allowed, nil
}

// Upgrades are those of some protocols that the rule names, as they are spelt there.
func (op *Operation) Upgrades(protocols []string) []string {
	var out []string
	for _, one := range protocols {
		if slices.ContainsFunc(op.Upgrade, func(named string) bool { return strings.EqualFold(named, one) }) {
			out = append(out, one)
		}
	}
	return out
}
