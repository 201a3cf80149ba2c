package rules

import (
	"bytes"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// methodHeader knows the fields under which frameworks and gateways take another method than the request's, such as
// X-HTTP-Method-Override, X-HTTP-Verb and X-Forwarded-Method.
var methodHeader = regexp.MustCompile(
	`(?i)^((x|http|rest|request|original|forwarded|rewrite|real|tunnell?ed|override)[-_]?)*(method|verb)([-_]?overrides?)?$`)

// overrideNames are those in a query and in content, beside the fields' names with x-.
var overrideNames = []string{"_method", "$httpmethod", "_httpmethod"}

// targetHeaders are fields under which servers take another path than the
// request's.
var targetHeaders = []string{"X-Original-Url", "X-Rewrite-Url"}

// override finds a method override that the operation does not match on. It looks
// into bodies that are read anyway: a mutation's, and those that a condition asks
// for. The start of a streamed one is for [Match.JudgeStart].
func (m *Match) override(req *Request) (found string) {
	if name := m.overrideHeader(req); name != "" {
		return unlessMatched("the header ", "header", name)
	}
	if name := m.overrideName("query", req.rawQuery, func(method string) bool { return !m.idle(req, method) }); name != "" {
		return unlessMatched("the query parameter ", "query", name)
	}
	if isSafe(req.Method) || !req.HasBody() || m.Unmatched || !req.BodyLoaded() {
		return ""
	}
	if m.Effect != EffectMutation || req.read().opaque {
		return m.overrideStart(req, bytes.NewReader(req.body))
	}
	mediaType, _ := declaredBy(req.Header).mediaType()
	return m.overrideBody(req.read(), mediaType)
}

// unlessMatched names an override, and the condition that would allow it.
func unlessMatched(what, root, name string) string {
	place := root + "['" + name + "']"
	if root == "header" {
		place = strings.ToLower(place)
	}
	return what + name + ", and no condition of its operation reads that; a connector's operation may allow it, with effect read or mutation (match.when: " +
		place + " == 'PUT')"
}

// idle reports whether an override to that method leaves the request what it is. Where no rule looks, one to a safe
// method does.
func (m *Match) idle(req *Request, method string) bool {
	method = strings.ToUpper(strings.TrimSpace(method))
	return method == req.Method || m.Unmatched && isSafe(method)
}

// overrideHeader finds a field that overrides method or path, behind underscores
// too.
func (m *Match) overrideHeader(req *Request) string {
	for name, values := range req.Header {
		if isOverrideField(name) && !m.matchesOn("header", strings.ToLower(name)) &&
			slices.ContainsFunc(values, func(method string) bool { return !m.idle(req, method) }) {
			return name
		}
	}
	return ""
}

// overrideEnds end the names of fields that override something.
var overrideEnds = []string{"method", "verb", "override", "overrides", "url"}

// isOverrideField knows the fields that override method or path.
func isOverrideField(name string) bool {
	if !slices.ContainsFunc(overrideEnds, func(end string) bool {
		return len(name) > len(end) && strings.EqualFold(name[len(name)-len(end):], end)
	}) {
		return false // As nearly all.
	}
	name = strings.ReplaceAll(name, "_", "-")
	return strings.Contains(name, "-") && methodHeader.MatchString(name) ||
		slices.ContainsFunc(targetHeaders, func(target string) bool { return strings.EqualFold(name, target) })
}

// overrideBody finds an override in a form, at the top of JSON, or among the
// fields of a multipart body.
func (m *Match) overrideBody(c *content, mediaType string) string {
	if c.form != nil {
		if name := m.overrideName("form", c.form.raw, m.changes); name != "" {
			return unlessMatched("the form field ", "form", name)
		}
	}
	if c.json != nil {
		for i, name := range c.json.names {
			if isOverride(name) && m.changes(c.json.items[i].text) && !m.matchesOn("json", name) {
				return unlessMatched("the JSON member ", "json", name)
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

// phpName is a name as PHP reads it.
var phpName = strings.NewReplacer(" ", "_", ".", "_")

// isOverride knows the names of overrides. PHP skips blanks before a name, and takes " " and "." in it for "_".
func isOverride(name string) bool {
	name = strings.ToLower(phpName.Replace(strings.TrimLeft(name, " ")))
	return slices.Contains(overrideNames, name) || strings.HasPrefix(name, "x") && strings.ContainsAny(name, "-_") && methodHeader.MatchString(name)
}

// changes reports whether an override to that method may change something, or makes a mutation another request.
func (m *Match) changes(method string) bool {
	return m.Effect == EffectMutation || !isSafe(strings.ToUpper(strings.TrimSpace(method)))
}

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

// overrideName finds an override among the names of a query or a form, to a method that counts.
func (m *Match) overrideName(root, raw string, counts func(method string) bool) string {
	for piece := range strings.FieldsFuncSeq(raw, func(r rune) bool { return r == '&' || r == ';' }) {
		name, value, _ := strings.Cut(piece, "=")
		plain, ok := unescapePair(name)
		plain, _, _ = strings.Cut(plain, "\x00")
		if ok && isOverride(plain) && counts(value) && !m.matchesOn(root, plain) {
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
// request that asks for no change, or whose offer is dropped: a server may ignore any. So what comes with another method
// than GET, with content, without Upgrade in Connection, or is no list of protocols, is dropped. For a handshake it is
// refused, since such a request makes no sense without the change.
func (r Raw) Upgrade() (asked []string, refusal *Refusal) {
	lines := r.Header["Upgrade"]
	if len(lines) == 0 {
		return nil, nil
	}
	asked, sound := Protocols(lines)
	var why string
	switch {
	case r.Method != http.MethodGet:
		why = "this one is " + r.Method
	case r.HasBody || len(r.Body) > 0:
		why = "this one has content"
	case !httpguts.HeaderValuesContainsToken(r.Header["Connection"], "upgrade"):
		why = "this one has the field Upgrade, and no \"Connection: Upgrade\" (RFC 9110 §7.8)"
	case !sound || len(asked) == 0:
		why = "the field Upgrade of this one is no list of protocols"
	default:
		return asked, nil
	}
	if !IsHandshake(r.Header) {
		return nil, nil
	}
	return nil, refuse(ProblemDenied, "protocol upgrades are refused but for a GET request without content whose rule names the protocol: "+why)
}

// IsHandshake knows a WebSocket's handshake (RFC 6455 §4.1). Its client can't go on without the change.
func IsHandshake(h http.Header) bool { return len(h["Sec-Websocket-Key"]) > 0 }

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
