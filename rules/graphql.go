package rules

import (
	"bytes"
	"cmp"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// changing finds the keywords without which a document of GraphQL only reads (October 2021, §2.3). In doubt, as in a
// comment or a text, it finds them too.
var changing = regexp.MustCompile(`\b(mutation|subscription)\b`)

// onlyQueries reports whether the request surely holds nothing but queries of GraphQL. Content that can't be read
// without guessing is a refusal. JSON that is declared as a form, as curl -d does, must be one pair as a form. The name of
// that pair begins with "{", so that no server finds a query in it.
func (r *Request) onlyQueries() (bool, *Refusal) {
	c := r.read()
	switch problem := cmp.Or(c.problem, c.jsonProblem); {
	case problem != nil:
		return false, problem
	case r.Method != http.MethodPost, r.hasQuery, !c.typed && (!c.untyped || bytes.ContainsAny(c.bytes, "&;")), c.json == nil,
		c.json.kind != jsonObject, slices.ContainsFunc(c.json.names, func(name string) bool {
			// GraphQL over HTTP §5.1. Any other may name a stored document.
			return !slices.Contains([]string{"query", "operationName", "variables", "extensions"}, name)
		}):
		return false, nil
	}
	if more, given := c.json.member("extensions"); given && more.kind != jsonNull && (more.kind != jsonObject ||
		slices.ContainsFunc(more.names, func(name string) bool { return strings.Contains(strings.ToLower(name), "persist") })) {
		return false, nil
	}
	document, given := c.json.member("query")
	return given && document.kind == jsonString && document.text != "" && !changing.MatchString(document.text), nil
}

// graphQL reads which requests of GraphQL fit, and checks that it is said of reads by POST.
func (d *decoder) graphQL(m fields, op *Operation, out *matcher) {
	v := m.At("graphql")
	if out.graphQL = v.Given(); !out.graphQL {
		return
	}
	inner, ok := d.Map(v, levelGraphQL)
	if ok && word(d, inner.At("operation"), "", "query") == "" || op.Effect != EffectRead || !slices.Equal(out.methods, []string{http.MethodPost}) {
		d.Fail("value", v, "takes queries by POST, which only read", "write effect: read, method: POST and graphql: {operation: query}")
	}
}
