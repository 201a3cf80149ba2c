package rules

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/parser"
)

// maxGraphQLTokens bounds the documents of one request. A whole introspection has 500.
const maxGraphQLTokens = 20_000

// The values of variables come to as many bytes as so many bodies, or so many bytes, at most.
const minVariableUses, sharedVariableUses = 20, 1 << 20

// graphQL is what a request of GraphQL asks for (October 2021). It is read without a schema, and doesn't change.
type graphQL struct {
	// operation is query, mutation or subscription; "" where that can't be told.
	operation ast.Operation
	// problem says why the rest can't be told.
	problem *Refusal
	// persisted is the name of a stored document that is sent instead of one. Nothing else is known then.
	persisted string
	// value is what expressions see: operation, name, and of a mutation field, alias and args. The last three are
	// compared.
	value, compared jsonValue
	// root is a mutation's only field, and args are its arguments as an object.
	root      *ast.Field
	fields    []*ast.Field
	args      *ast.Value
	document  *ast.QueryDocument
	defined   ast.VariableDefinitionList
	variables *jsonValue
	// uses is how often variables may still be used: each use may hold all of the body.
	uses int
}

// graphQL is what the body asks for; nil where it is no request of GraphQL.
func (c *content) graphQL() *graphQL { return c.view("graphql", c.parseGraphQL).graphQL }

// parseGraphQL reads the body. JSON that is declared as a form, as curl -d does, must be one pair as a form. The name of
// that pair begins with "{", so that no server finds a query in it.
func (c *content) parseGraphQL() (v view) {
	var g *graphQL
	switch v.problem = cmp.Or(c.problem, c.jsonProblem); {
	case v.problem != nil || c.json == nil || !c.typed && (!c.untyped || bytes.ContainsAny(c.bytes, "&;")):
	case c.json.kind == jsonArray:
		g = readBatch(c.json.items)
	case c.json.kind == jsonObject:
		g = readGraphQL(c.json, maxGraphQLTokens, minVariableUses+sharedVariableUses/len(c.bytes))
	}
	if g != nil {
		v = view{tree: &g.value, graphQL: g, problem: g.problem}
	}
	return v
}

// refuseGraphQL is what can't be told without guessing.
func refuseGraphQL(why ...string) *Refusal {
	return refuse(ProblemAmbiguous, "GraphQL: "+strings.Join(why, ""))
}

// fail notes the first problem.
func (g *graphQL) fail(why ...string) { g.problem = cmp.Or(g.problem, refuseGraphQL(why...)) }

// readBatch reads several requests in one. They pass if all are queries; nil if the first is no request of GraphQL.
func readBatch(items []jsonValue) (last *graphQL) {
	for i := range items {
		one := readGraphQL(&items[i], maxGraphQLTokens/len(items), 0)
		if one == nil && i == 0 {
			return nil
		}
		if one == nil || one.problem != nil || one.operation != ast.Query {
			return &graphQL{problem: refuseGraphQL("the request is a list of calls, and passes only if all are queries; send mutations one by one")}
		}
		last = one
	}
	return last
}

// readGraphQL reads one request (GraphQL over HTTP §5); nil where it is none. Any member beside those of the
// specification may name a stored document.
func readGraphQL(v *jsonValue, tokens, uses int) *graphQL {
	var by, stored string
	for i, name := range v.names {
		item := &v.items[i]
		switch name {
		case "query", "operationName", "variables":
			continue
		case "extensions":
			persists := func(name string) bool { return strings.Contains(strings.ToLower(name), "persist") }
			if item.kind == jsonNull || item.kind == jsonObject && !slices.ContainsFunc(item.names, persists) {
				continue
			}
			hash, _ := walk(item, []placeStep{{name: "persistedQuery"}, {name: "sha256Hash"}})
			stored = strings.ToLower(hash.text)
		case "documentId", "id", "doc_id":
			stored = item.text
		}
		by = name
	}
	g := &graphQL{uses: uses}
	switch text, _ := v.member("query"); {
	case text == nil || text.kind == jsonNull || text.kind == jsonString && text.text == "":
		if stored == "" {
			return nil
		}
		g.persisted = stored
		g.problem = refuse(ProblemUnmatched, "GraphQL: the document is named by "+quoted(printable(stored))+
			" alone, so what it does can't be seen; send the document, or name it in match.graphql.persisted")
	case by != "":
		g.fail("the member ", quoted(printable(by)), " may name another document than the one that is sent; leave it out")
	case text.kind != jsonString:
		g.fail("query is no text")
	default:
		g.read(v, text.text, tokens)
	}
	return g
}

// read parses the document, and finds what the chosen operation does. The parser's error may quote the document.
func (g *graphQL) read(v *jsonValue, text string, tokens int) {
	document, err := parser.ParseQueryWithTokenLimit(&ast.Source{Input: text}, tokens)
	if err != nil {
		g.fail("the document is too long, or can't be parsed ", fmt.Sprint(gqlerror.WrapIfUnwrapped(err).Locations))
		return
	}
	name, _ := v.member("operationName")
	ops := document.Operations
	if name != nil && name.text != "" && len(ops) > 1 {
		ops = slices.DeleteFunc(slices.Clone(ops), func(op *ast.OperationDefinition) bool { return op.Name != name.text })
	}
	if len(ops) != 1 || name != nil && name.kind != jsonNull && name.kind != jsonString {
		g.fail("it isn't plain which operation of the document is meant; send one, or name it by operationName")
		return
	}
	g.document, g.operation = document, ops[0].Operation
	g.value.set("operation", stringValue(string(g.operation)))
	if ops[0].Name != "" {
		g.value.set("name", stringValue(ops[0].Name))
	}
	if g.variables, _ = v.member("variables"); g.variables == nil || g.variables.kind == jsonNull {
		g.variables = &jsonValue{kind: jsonObject}
	}
	if g.operation == ast.Mutation {
		g.mutation(ops[0])
	}
}

// mutation finds the one field of a mutation, and its arguments.
func (g *graphQL) mutation(op *ast.OperationDefinition) {
	if g.variables.kind != jsonObject {
		g.fail("variables are no object")
	}
	g.defined = op.VariableDefinitions
	for i, one := range g.defined {
		if g.defined[:i].ForName(one.Variable) != nil {
			g.fail("the variable $", one.Variable, " is defined twice")
		}
	}
	g.included(op.Directives)
	g.collect(op.SelectionSet, map[string]bool{})
	if len(g.fields) > 1 {
		g.fail("the mutation makes several changes (", g.fields[0].Name, ", ", g.fields[1].Name, "), which may end differently; send one at a time")
	} else if len(g.fields) == 0 {
		g.fail("the mutation has no field left")
	}
	if g.problem != nil {
		return
	}
	root := g.fields[0]
	g.args = &ast.Value{Kind: ast.ObjectValue}
	for _, arg := range root.Arguments {
		g.args.Children = append(g.args.Children, &ast.ChildValue{Name: arg.Name, Value: arg.Value})
	}
	args, _ := g.resolve(g.args)
	for _, v := range []*jsonValue{&g.value, &g.compared} {
		v.set("field", stringValue(root.Name))
		v.set("alias", stringValue(root.Alias))
		v.set("args", args)
	}
	if g.problem == nil {
		g.root = root
	}
}

// collect finds the fields of a mutation, with those of its fragments (§6.3.2). In seen are names of fragments, with true
// while one is read. Fields that begin with __ are of introspection.
func (g *graphQL) collect(set ast.SelectionSet, seen map[string]bool) {
	for _, s := range set {
		switch s := s.(type) {
		case *ast.Field:
			if g.included(s.Directives) && !strings.HasPrefix(s.Name, "__") {
				g.fields = append(g.fields, s)
			}
		case *ast.InlineFragment:
			if g.included(s.Directives) {
				g.collect(s.SelectionSet, seen)
			}
		case *ast.FragmentSpread:
			reading, read := seen[s.Name]
			if reading {
				g.fail("the fragment ", s.Name, " holds itself")
			}
			if g.included(s.Directives) && !read {
				seen[s.Name] = true
				g.collect(g.fragment(s.Name), seen)
				seen[s.Name] = false
			}
		}
	}
}

// fragment finds a fragment of the document.
func (g *graphQL) fragment(name string) ast.SelectionSet {
	var found []*ast.FragmentDefinition
	for _, f := range g.document.Fragments {
		if f.Name == name {
			found = append(found, f)
		}
	}
	if len(found) != 1 || len(found[0].Directives) > 0 || len(found[0].VariableDefinition) > 0 {
		g.fail("the fragment ", name, " isn't there once, or has directives or variables of its own")
		return nil
	}
	return found[0].SelectionSet
}

// included evaluates @skip and @include (§3.13).
func (g *graphQL) included(directives ast.DirectiveList) bool {
	included := true
	for _, d := range directives {
		condition := jsonValue{}
		if (d.Name == "skip" || d.Name == "include") && len(d.Arguments) == 1 && d.Arguments[0].Name == "if" {
			condition, _ = g.resolve(d.Arguments[0].Value)
		}
		if condition.kind != jsonTrue && condition.kind != jsonFalse {
			g.fail("what the directive @", d.Name, " makes of the mutation can't be told; leave it out")
		}
		included = included && (condition.kind == jsonTrue) == (d.Name == "include")
	}
	return included
}

// resolve is the value of an argument, with variables and their defaults (§6.4.1). A variable without a value leaves its
// argument or member out; in a list it is null.
func (g *graphQL) resolve(v *ast.Value) (out jsonValue, present bool) {
	switch v.Kind {
	case ast.Variable:
		defined := g.defined.ForName(v.Raw)
		given, sent := g.variables.member(v.Raw)
		switch g.uses--; {
		case g.uses < 0:
			g.fail("variables are used too often for a body of this size; send one variable for an argument")
		case defined == nil:
			g.fail("the variable $", v.Raw, " is not defined")
		case sent:
			out = *given
		case defined.DefaultValue != nil:
			return g.resolve(defined.DefaultValue)
		default:
			return out, false
		}
	case ast.IntValue, ast.FloatValue:
		number, err := parseJSON([]byte(v.Raw))
		if err != nil {
			g.fail("a number can't be read without guessing; send it as a variable")
		} else {
			out = *number
		}
	case ast.StringValue, ast.BlockValue, ast.EnumValue:
		if out = stringValue(v.Raw); strings.ContainsRune(v.Raw, '\uFFFD') {
			g.fail("a text holds half an emoji; send it as a variable")
		}
	case ast.BooleanValue:
		out = boolValue(v.Raw == "true")
	case ast.ListValue:
		out.kind = jsonArray
		for _, child := range v.Children {
			item, _ := g.resolve(child.Value)
			out.items = append(out.items, item)
		}
	case ast.ObjectValue:
		out.kind = jsonObject
		for i, child := range v.Children {
			if v.Children[:i].ForName(child.Name) != nil {
				g.fail("the argument or member ", child.Name, " is there twice")
			}
			if member, present := g.resolve(child.Value); present {
				out.set(child.Name, member)
			}
		}
	case ast.NullValue:
	}
	return out, true
}

// objectOf makes an object of one member.
func objectOf(name string, v jsonValue) jsonValue {
	return jsonValue{kind: jsonObject, names: []string{name}, items: []jsonValue{v}}
}

// set adds a member to an object.
func (v *jsonValue) set(name string, member jsonValue) {
	v.kind, v.names, v.items = jsonObject, append(v.names, name), append(v.items, member)
}

// source is the place in the request's JSON that an argument comes from. It must be in a variable, since the document is
// sent as it is.
func (g *graphQL) source(at place) (place, *Refusal) {
	var v *ast.Value
	if g != nil {
		v = g.args
	}
	for i := 1; v != nil && i < len(at.steps); i++ { // Behind args.
		if v = v.Children.ForName(at.steps[i].name); v == nil || v.Kind != ast.Variable {
			continue
		}
		if _, given := g.variables.member(v.Raw); !given && i+1 < len(at.steps) {
			break
		}
		return place{source: at.source, root: "json", steps: append([]placeStep{{name: "variables"}, {name: v.Raw}}, at.steps[i+1:]...)}, nil
	}
	return place{}, refuse(ProblemIdentity, "the rule writes "+at.source+
		", which the document spells out or leaves to a default; send it, or the object that holds it, as a variable")
}
