package rules

import (
	"cmp"
	"net/http"
	"slices"

	"github.com/vektah/gqlparser/v2/ast"
)

// graphQLMatch says which requests of GraphQL fit.
type graphQLMatch struct {
	operation ast.Operation
	// fields are those of a mutation, none for any; persisted are names of stored documents.
	fields, persisted []string
}

// fit reports whether the request is of this kind. A problem is of one that may be.
func (m *graphQLMatch) fit(req *Request) (bool, *Refusal) {
	c := req.read()
	if problem := cmp.Or(c.problem, c.jsonProblem); problem != nil {
		return true, problem
	}
	switch g := c.graphQL(); {
	case g == nil || g.operation != "" && g.operation != m.operation:
		return false, nil
	case req.hasQuery:
		return true, refuseGraphQL("the URL has a query, which may hold another document; leave it out")
	case g.persisted != "":
		return slices.Contains(m.persisted, g.persisted), nil
	default:
		return g.problem != nil || len(m.fields) == 0 || slices.Contains(m.fields, g.root.Name), g.problem
	}
}

// covers reports whether all that fits the other surely fits this. A nil match takes what isn't GraphQL, too.
func (m *graphQLMatch) covers(other *graphQLMatch) bool {
	beyond := func(field string) bool { return !slices.Contains(m.fields, field) }
	return m == nil || other != nil && m.operation == other.operation && len(other.persisted) == 0 &&
		(len(m.fields) == 0 || len(other.fields) > 0 && !slices.ContainsFunc(other.fields, beyond))
}

// overlaps reports whether a request may fit both.
func (m *graphQLMatch) overlaps(other *graphQLMatch) bool {
	shares := func(a, b []string) bool {
		return slices.ContainsFunc(a, func(one string) bool { return slices.Contains(b, one) })
	}
	return m == nil || other == nil || shares(m.persisted, other.persisted) ||
		m.operation == other.operation && (len(m.fields) == 0 || len(other.fields) == 0 || shares(m.fields, other.fields))
}

// named is what is asked for, for people.
func (g *graphQL) named() string {
	if g.root == nil {
		return string(g.operation)
	}
	return string(g.operation) + " " + printable(g.root.Name)
}

// graphQL reads which requests of GraphQL fit.
func (d *decoder) graphQL(m fields, op *Operation, out *matcher) {
	v := m.At("graphql")
	inner, ok := d.Map(v, levelGraphQL)
	if !ok {
		return
	}
	out.graphQL = &graphQLMatch{
		operation: word(d, d.need(inner, "operation"), "", ast.Query, ast.Mutation),
		fields:    d.texts(inner.At("field")), persisted: d.texts(inner.At("persisted")),
	}
	switch {
	case !slices.Equal(out.methods, []string{http.MethodPost}):
		d.Fail("value", v, "takes requests by POST alone", "write method: POST")
	case out.graphQL.operation == ast.Query && (inner.Has("field") || op.Effect == EffectMutation):
		d.Fail("value", v, "a query may ask for many fields, and changes nothing", "leave field out, and write effect: read")
	}
}

// argument checks that what is written into a request of GraphQL is an argument.
func (d *decoder) argument(v value, at place, op *Operation) {
	if at.root != "header" && at.root != "query" && (at.root == "graphql") != op.graphQL {
		d.Fail("place", v, "what a rule writes into a request of GraphQL is an argument of its field", "write graphql: input.id, with match.graphql")
	}
}
