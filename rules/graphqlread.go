package rules

import (
	"net/http"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v4"
)

// plainChange is a document of GraphQL that changes something, and says so at once.
const plainChange = "mutation B { b }"

// veiledChanges are documents that change something as well: operationName may name any operation
// of a document, and white space, commas and comments stand wherever they like (GraphQL, October
// 2021, §2.1, §6.1).
var veiledChanges = []string{
	"query A { a } mutation B { b }", "{ a } mutation B { b }", "fragment F on T { f } mutation B { b }", "\n  mutation B { b }", ",mutation B { b }",
	"# b\nmutation B { b }",
}

// passedChanges warns of an operation that tells queries of GraphQL from changes by how a document
// begins, and so lets some that change something pass unrecorded.
func (d *decoder) passedChanges(n *yaml.Node, key string, op *Operation) {
	if !op.Effect.passes() {
		return
	}
	plain := askedByGraphQL(plainChange)
	for _, m := range op.matches {
		if m.when == nil || !m.when.readsName("json", "query") {
			continue
		}
		if holds, err := m.when.test(plain()); err != nil || holds {
			continue // it isn't about what documents do
		}
		for _, document := range veiledChanges {
			veiled := askedByGraphQL(document)
			if holds, err := m.when.test(veiled()); err != nil || !holds || op.yields(m, veiled) {
				continue
			}
			at := d.standing(m.when, n, join(key, "match"))
			d.warn("graphql", at.key, at.node, "lets pass unrecorded what changes something, such as "+strconv.Quote(document)+" with operationName B",
				"look for the keyword anywhere, as !json.query.contains('mutation') does, or compare whole documents by sha256(json.query)")
			return
		}
	}
}

// yields reports whether an operation that goes before this one takes such a request, or may.
func (op *Operation) yields(m *matcher, request func() *scope) bool {
	return slices.ContainsFunc(op.Connector.Operations, func(other *Operation) bool {
		return other != op && other.goesBefore(op) && slices.ContainsFunc(other.matches, func(first *matcher) bool {
			if !first.overlaps(m) {
				return false
			}
			if first.when == nil {
				return true
			}
			holds, err := first.when.test(request())
			return err != nil || holds
		})
	})
}

// askedByGraphQL makes the scope of a request that holds the document.
func askedByGraphQL(document string) func() *scope {
	body := `{"query":` + strconv.Quote(document) + `,"operationName":"B","variables":{}}`
	return func() *scope {
		s := emptyScope()
		s.req = (&Request{Method: http.MethodPost, Header: http.Header{"Content-Type": {"application/json"}}}).WithBody([]byte(body))
		return s
	}
}
