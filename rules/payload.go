package rules

import (
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// payloadFormat is the first element of what payload digests are made of.
const payloadFormat = "keep/v1 payload"

// payload computes both digests. The digested form is the canonical JSON array
//
//	[format, method, {path variables}, {host variables}, [[name, value], …], {headers}, body]
//
// without the places that don't count. Where the match has no path, the path variables are {"": whole path}. Query and
// form are ordered by name, but for [listName]. The body is [], ["json", value], ["graphql", value], ["form", [[name, value], …]],
// ["multipart", [[name, value], …]], ["mail", [[name, value], …]], perhaps with the JSON around the mail, or
// ["bytes", SHA-256].
func (op *Operation) payload(s *scope, d *Derived) *Refusal {
	if !op.readableJSON(s) {
		return s.req.read().jsonProblem
	}
	if refusal := op.checkSecrets(s); refusal != nil {
		return refusal
	}
	for _, name := range op.headers {
		if refusal := s.req.unreadable(name); refusal != nil {
			return refusal
		}
	}
	if op.view != "" {
		if problem := s.view(op.view).problem; problem != nil {
			return problem
		}
	}
	kept, _ := payloadBuffers.Get().(*[]byte)
	buf := op.appendPayload((*kept)[:0], s, op.ignored, nil)
	d.PayloadDigest = hexDigest(buf)
	d.SignificantDigest = d.PayloadDigest
	if op.hasMinor || op.collations != nil {
		buf = op.appendPayload(buf[:0], s, op.insignificant, op.collations)
		d.SignificantDigest = hexDigest(buf)
	}
	if cap(buf) <= maxKeptPayload {
		// What a script sends is kept no longer than it must be.
		clear(buf[:cap(buf)])
		*kept = buf
		payloadBuffers.Put(kept)
	}
	return nil
}

// payloadBuffers spare each derivation the memory of its canonical payload.
var payloadBuffers = sync.Pool{New: func() any { return new([]byte) }}

// maxKeptPayload bounds what is kept for the next derivation, in bytes.
const maxKeptPayload = 64 << 10

// readableJSON reports whether the rule's places can be found. A JSON body that parsers could read differently is
// refused where any place is in it.
func (op *Operation) readableJSON(s *scope) bool {
	if s.req.read().jsonProblem == nil {
		return true
	}
	for _, p := range op.secret {
		if p.root == "json" {
			return false
		}
	}
	return op.ignored.json == nil && op.minor.json == nil && op.collations.tree() == nil
}

// appendPayload appends the canonical payload without some places, and with others
// in their form.
func (op *Operation) appendPayload(dst []byte, s *scope, without *placed, n *collations) []byte {
	gone := without.has
	dst = append(appendString(append(dst, '['), payloadFormat), ',')
	dst = append(appendString(dst, s.req.Method), ',')
	for _, root := range []string{"path", "host"} {
		vars := s.path
		if root == "host" {
			vars = s.host
		}
		dst = append(appendVars(dst, vars, root, n, func(name string) bool { return gone(root, name) || op.identifiesWhole(root, name) }), ',')
	}
	dst = append(appendPairs(dst, without.texted("query", s.payloadQuery()), "query", n, func(name string) bool { return gone("query", name) }), ',')
	dst = append(op.appendHeaders(dst, s.req, n, func(name string) bool { return gone("header", name) }), ',')
	return append(op.appendBody(dst, s, without, n), ']')
}

// payloadQuery is the query for the payload; one that can't be read without
// guessing counts by its spelling.
func (s *scope) payloadQuery() *pairs {
	if s.query == nil && s.req.rawQuery == "" {
		return &noPairs
	}
	if s.query == nil {
		p := parsePairs(s.req.rawQuery, "query")
		s.query = &p
	}
	return s.query
}

// noPairs is an empty query; nothing is written to it.
var noPairs pairs

// appendVars appends pattern variables by name.
func appendVars(dst []byte, vars map[string]string, root string, n *collations, gone func(string) bool) []byte {
	dst = append(dst, '{')
	first := true
	var few [8]string
	names := few[:0]
	for name := range vars {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if gone(name) {
			continue
		}
		dst = appendMember(dst, &first, name, n.of(root, name).text(vars[name]))
	}
	return append(dst, '}')
}

// appendMember appends "name":"value" after a comma where one is due.
func appendMember(dst []byte, first *bool, name, value string) []byte {
	if !*first {
		dst = append(dst, ',')
	}
	*first = false
	dst = append(appendString(dst, name), ':')
	return appendString(dst, value)
}

// appendPairs appends a query or a form.
func appendPairs(dst []byte, p *pairs, root string, n *collations, gone func(string) bool) []byte {
	if p.problem != nil {
		return appendString(dst, p.raw)
	}
	dst = append(dst, '[')
	first := true
	for _, one := range n.pairs(root, p.sorted()) {
		if gone(one.name) {
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = append(appendString(append(dst, '['), one.name), ',')
		dst = append(appendString(dst, one.value), ']')
	}
	return append(dst, ']')
}

// appendHeaders appends the header fields that the rule lists.
func (op *Operation) appendHeaders(dst []byte, req *Request, n *collations, gone func(string) bool) []byte {
	dst = append(dst, '{')
	first := true
	for _, name := range op.headers {
		values := headerValues(req.Header, name)
		if len(values) == 0 || gone(name) {
			continue
		}
		dst = appendMember(dst, &first, name, n.of("header", name).text(strings.Join(values, ", ")))
	}
	return append(dst, '}')
}

// comparesJSON reports whether a body counts by what it says as JSON. Declared as something else, and unread by the
// rule, it may be a file that happens to be JSON. So may a lone number or text that is declared as nothing: there 1.10
// is another version than 1.1.
func (op *Operation) comparesJSON(c *content) bool {
	switch {
	case c.json == nil:
		return false
	case c.typed || op.namesJSON:
		return true
	}
	return c.untyped && (c.json.kind == jsonObject || c.json.kind == jsonArray)
}

// comparedGraphQL is what a mutation of GraphQL does, as it is compared; nil for any other content.
func (op *Operation) comparedGraphQL(c *content) *jsonValue {
	if !op.graphQL || c.graphQL() == nil || c.graphQL().root == nil {
		return nil
	}
	return &c.graphQL().compared
}

// appendBody appends the body by what it is. In the form that the rule reads it by, it is [name of the form, pairs].
func (op *Operation) appendBody(dst []byte, s *scope, without *placed, n *collations) []byte {
	c, m := s.req.read(), without.tree()
	gone := func(root string) func(string) bool { return func(name string) bool { return without.has(root, name) } }
	seen := op.viewed(s)
	if seen != nil {
		dst = appendPairs(append(dst, `["`+op.view+`",`...), seen, op.view, n, gone(op.view))
	}
	switch {
	case seen != nil && op.comparesJSON(c): // What is beside a mail counts, too.
		v := n.tree().apply(c.json, m)
		return append(appendCanonical(append(dst, ','), &v, nil), ']')
	case seen != nil && op.view == "mail" && c.form != nil && c.form.problem == nil:
		return append(appendPairs(append(dst, ','), c.form, "form", n, gone("form")), ']')
	case seen != nil:
		return append(dst, ']')
	case len(c.bytes) == 0:
		return append(dst, "[]"...)
	case op.comparedGraphQL(c) != nil:
		v := n.tree().apply(op.comparedGraphQL(c), m)
		return append(appendCanonical(append(dst, `["graphql",`...), &v, nil), ']')
	case op.comparesJSON(c) && n.tree() != nil:
		v := n.tree().apply(c.json, m)
		return append(appendCanonical(append(dst, `["json",`...), &v, nil), ']')
	case op.comparesJSON(c):
		return append(appendCanonical(append(dst, `["json",`...), c.json, m), ']')
	case c.form != nil && c.form.problem == nil:
		return append(appendPairs(append(dst, `["form",`...), without.texted("form", c.form), "form", n, gone("form")), ']')
	case n != nil && n.body != 0 && utf8.Valid(c.bytes):
		return append(appendString(append(dst, `["text",`...), n.body.text(string(c.judged()))), ']')
	}
	return append(appendString(append(dst, `["bytes",`...), c.digest()), ']')
}
