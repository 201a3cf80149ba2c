package data

import (
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"

	"keep-proxy/internal/fakes/server"
)

// readGraphQL gives graphql: operation, field, alias and args of the first field that the request asks for. It is null for
// what can't be parsed. An argument whose variable isn't sent is null.
func readGraphQL(_ *server.Request, v values) {
	v["graphql"] = nil
	body, _ := v["json"].(map[string]any)
	text, _ := body["query"].(string)
	name, _ := body["operationName"].(string)
	sent, _ := body["variables"].(map[string]any)
	document, err := parser.ParseQuery(&ast.Source{Input: text})
	if err != nil {
		return
	}
	op := document.Operations.ForName(name)
	if op == nil || len(op.SelectionSet) == 0 {
		return
	}
	field, ok := op.SelectionSet[0].(*ast.Field)
	if !ok {
		return
	}
	args := map[string]any{}
	for _, a := range field.Arguments {
		if value, err := a.Value.Value(sent); err == nil {
			args[a.Name] = value
		}
	}
	v["graphql"] = map[string]any{"operation": string(op.Operation), "field": field.Name, "alias": field.Alias, "args": args}
}
