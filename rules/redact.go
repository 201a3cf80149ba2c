package rules

import (
	"maps"
	"net/http"
	"slices"
	"strings"
)

// Redact returns the request as it may be stored: secret places, and header fields and query
// members that usually hold credentials, are masked. Where nothing of path, query or body
// is masked, the stored request can be sent again once credentials are added. One in
// which there is nothing to mask is the request itself.
func (op *Operation) Redact(req *Request) *Request {
	header, masked := maskHeader(req.Header, op.HidesField)
	query := op.maskQuery(req.rawQuery)
	if len(op.secret) == 0 && !masked && query == req.rawQuery {
		return req
	}
	next := req.copy()
	next.Header, next.rawQuery = header, query
	if op.HidesPath() {
		next.path = op.maskPath(req)
	}
	op.redactBody(req, next)
	return next
}

// HidesPath reports whether a part of the path is a secret place.
func (op *Operation) HidesPath() bool {
	return slices.ContainsFunc(op.secret, func(p place) bool { return p.root == "path" })
}

// maskHeader masks the fields that are hidden, in a copy if there are any.
func maskHeader(h http.Header, hidden func(name string) bool) (out http.Header, masked bool) {
	out = h
	for name, values := range h {
		if len(values) == 0 || !hidden(name) {
			continue
		}
		if !masked {
			out, masked = maps.Clone(h), true
		}
		out[name] = []string{secretShown}
	}
	return out, masked
}

// maskPath masks the secret variables of the path in every pattern that the request's method and path fit. Which of
// them was meant may depend on a condition. That isn't asked again here.
func (op *Operation) maskPath(req *Request) path {
	segments, masked := slices.Clone(req.path.segments), make([]bool, len(req.path.segments))
	cut, keep := len(segments)+1, len(segments)
	for _, p := range op.patternsOf(req) {
		for i, s := range p.segments {
			if !op.secretVariable(s.name) {
				continue
			}
			i = p.at(i, &req.path)
			shown := s.prefix + secretShown + s.suffix
			if masked[i] && segments[i] != shown {
				shown = secretShown // A literal of one pattern is secret in another.
			}
			segments[i], masked[i] = shown, true
		}
		if p.hasRest && op.secretVariable(p.rest) {
			cut, keep = min(cut, p.split), min(keep, len(p.segments)-p.split)
		}
	}
	if cut <= len(segments) {
		segments = slices.Concat(segments[:cut], []string{secretShown}, segments[len(segments)-keep:])
	}
	return pathOf(segments, req.path.slash)
}

// patternsOf are the path patterns by which the request can be one of the operation. Where its method says that it is
// none, they are all that its path fits.
func (op *Operation) patternsOf(req *Request) []*pathPattern {
	var out, other []*pathPattern
	for _, m := range op.matches {
		switch {
		case m.path == nil || !m.path.fits(&req.path):
		case len(m.methods) == 0 || slices.Contains(m.methods, req.Method):
			out = append(out, m.path)
		default:
			other = append(other, m.path)
		}
	}
	if len(out) == 0 {
		return other
	}
	return out
}

// secretVariable reports whether a path variable is a secret place.
func (op *Operation) secretVariable(name string) bool {
	return name != "" && slices.ContainsFunc(op.secret, func(p place) bool {
		secret, ok := p.name()
		return ok && p.root == "path" && secret == name
	})
}

// pathOf is the path of these decoded segments.
func pathOf(segments []string, slash bool) path {
	escaped := make([]string, len(segments))
	for i, segment := range segments {
		escaped[i] = escapeSegment(segment)
	}
	wire := "/" + strings.Join(escaped, "/")
	if slash && len(segments) > 0 {
		wire += "/"
	}
	out, refusal := normalPath(http.MethodGet, wire)
	if refusal != nil {
		return path{wire: "/", slash: true}
	}
	return out
}

// maskQuery masks the values of the members that are hidden. A query that can't be parsed is masked whole, if it may
// hold one.
func (op *Operation) maskQuery(raw string) string {
	p := parsePairs(raw, "query")
	switch {
	case p.problem == nil:
	case len(op.hiddenQuery(&p)) > 0:
		return maskedPair
	default:
		return raw
	}
	for _, name := range pairNames(&p) {
		if op.hidesQuery(name) {
			p = parsePairs(p.with(name, secretShown), "query")
		}
	}
	return p.raw
}

// hiddenQuery are the values of the members that are hidden. One that can't be parsed is read as any server might.
func (op *Operation) hiddenQuery(p *pairs) (values []string) {
	if p.problem == nil {
		for _, one := range p.list {
			if op.hidesQuery(one.name) {
				values = append(values, one.value)
			}
		}
		return values
	}
	for piece := range strings.FieldsFuncSeq(p.raw, func(c rune) bool { return c == '&' || c == ';' }) {
		spelt, value, _ := strings.Cut(piece, "=")
		if name, ok := unescapePair(spelt); ok && !op.hidesQuery(name) {
			continue
		}
		if plain, ok := unescapePair(value); ok {
			value = plain
		}
		values = append(values, value)
	}
	return values
}

// maskedPair is what stands in a query for a value that is masked.
const maskedPair = "%3Csecret%3E"

// redactBody masks the secret places of the body. A body in which they can't be
// looked for is not kept at all. JSON holds none where all of them are a form's.
func (op *Operation) redactBody(req, next *Request) {
	tree, names := op.secretBody("")
	if tree == nil && len(names) == 0 || !req.HasBody() {
		return
	}
	body := []byte(secretShown)
	c := req.read()
	switch {
	case c.problem != nil || c.jsonProblem != nil:
	case c.json != nil && tree == nil:
		return
	case c.json != nil:
		body = appendMasked(nil, c.json, tree)
	case c.form != nil && c.form.problem == nil && len(names) > 0:
		p := *c.form
		for _, name := range names {
			if len(p.values(name)) > 0 {
				p = parsePairs(p.with(name, secretShown), "form")
			}
		}
		body = []byte(p.raw)
	case len(c.bytes) == 0:
		body = nil
	}
	next.body, next.hasBody, next.loaded = body, len(body) > 0, true
	next.Header = maps.Clone(next.Header)
	delete(next.Header, "Content-Encoding")
	delete(next.Header, "Content-Length")
}

// secretBody collects the secret places of a body: of the request for under "",
// of the answer for "response".
func (op *Operation) secretBody(under string) (tree *mask, form []string) {
	for _, p := range op.secret {
		switch {
		case under == "" && p.root == "json":
			if tree == nil {
				tree = &mask{}
			}
			tree.at(p.steps).drop = true
		case under == "" && p.root == "form":
			form = append(form, p.steps[0].name)
		case under == "response" && p.root == under && p.steps[0].name == "json":
			if tree == nil {
				tree = &mask{}
			}
			tree.at(p.steps[1:]).drop = true
		}
	}
	return tree, form
}

// appendMasked appends v as it was written, but for white space, with the places
// of m masked.
func appendMasked(dst []byte, v *jsonValue, m *mask) []byte {
	m, whole := m.meeting(v)
	if whole {
		return appendString(dst, secretShown)
	}
	switch v.kind {
	case jsonArray:
		dst = append(dst, '[')
		for i := range v.items {
			if i > 0 {
				dst = append(dst, ',')
			}
			sub, _ := m.element(i, &v.items[i])
			dst = appendMasked(dst, &v.items[i], sub)
		}
		return append(dst, ']')
	case jsonObject:
		dst = append(dst, '{')
		for i := range v.items {
			if i > 0 {
				dst = append(dst, ',')
			}
			sub, _ := m.member(v.names[i], &v.items[i])
			dst = append(appendString(dst, v.names[i]), ':')
			dst = appendMasked(dst, &v.items[i], sub)
		}
		return append(dst, '}')
	case jsonNumber:
		return append(dst, v.text...)
	case jsonNull, jsonFalse, jsonTrue, jsonString:
	}
	return appendCanonical(dst, v, nil)
}

// SecretAnswer reports whether the rule declares a secret place in the answer.
func (op *Operation) SecretAnswer() bool {
	return slices.ContainsFunc(op.secret, func(p place) bool { return p.root == "response" })
}

// RedactResponse returns the answer as it may be stored. A body is not kept at all if it should hold a secret place and
// that can't be found.
func (op *Operation) RedactResponse(resp *Response) *Response {
	if !op.SecretAnswer() {
		return resp
	}
	next := &Response{Status: resp.Status, Header: maps.Clone(resp.Header), Trailer: resp.Trailer, Body: resp.Body, Complete: resp.Complete}
	for _, p := range op.secret {
		if p.root == "response" && p.steps[0].name == "header" {
			hidden := func(name string) bool { return sameField(name, p.steps[1].name) }
			next.Header, _ = maskHeader(next.Header, hidden)
			next.Trailer, _ = maskHeader(next.Trailer, hidden)
		}
	}
	tree, _ := op.secretBody("response")
	if tree == nil || len(resp.Body) == 0 {
		return next
	}
	next.Body = nil
	c := parseAnswer(resp.Header, resp.Body)
	if resp.Complete && c.problem == nil && c.json != nil {
		next.Body = appendMasked(nil, c.json, tree)
		if media, _, more := strings.Cut(next.Header.Get("Content-Type"), ";"); more {
			next.Header.Set("Content-Type", media) // JSON is UTF-8, whatever its charset was.
		}
	}
	delete(next.Header, "Content-Encoding")
	delete(next.Header, "Content-Length")
	return next
}
