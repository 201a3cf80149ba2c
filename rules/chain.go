package rules

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
)

// chain is a plain chain of names (json.a.b[0]) of the request or of an object found, or a constant string. It gives
// what CEL would give, without CEL; a test runs both.
type chain struct {
	root  string
	steps []placeStep
	// constant is set instead of root.
	constant *string
}

// chainOf takes a parsed expression as a chain; nil when it is more than one.
func chainOf(e ast.Expr) *chain {
	if e.Kind() == ast.LiteralKind {
		if s, ok := e.AsLiteral().(types.String); ok {
			text := string(s)
			return &chain{constant: &text}
		}
		return nil
	}
	if !isPlain(e) {
		return nil
	}
	root, steps, ok := accessOf(e)
	if !ok || !nativeShape(root, steps) {
		return nil
	}
	return &chain{root: root, steps: steps}
}

// spellings are functions that leave nothing out but how a value is spelt.
var spellings = []string{"lowerAscii", "upperAscii", "trim", "string"}

// wholeOf is the chain of an expression that only spells its value anew.
func wholeOf(e ast.Expr) *chain {
	for e.Kind() == ast.CallKind && slices.Contains(spellings, e.AsCall().FunctionName()) {
		switch c := e.AsCall(); {
		case c.IsMemberFunction() && len(c.Args()) == 0:
			e = c.Target()
		case !c.IsMemberFunction() && len(c.Args()) == 1:
			e = c.Args()[0]
		default:
			return nil
		}
	}
	return chainOf(e)
}

// isPlain refuses optional steps and presence tests anywhere in the chain.
func isPlain(e ast.Expr) bool {
	switch e.Kind() {
	case ast.IdentKind:
		return true
	case ast.SelectKind:
		return !e.AsSelect().IsTestOnly() && isPlain(e.AsSelect().Operand())
	case ast.CallKind:
		c := e.AsCall()
		return c.FunctionName() == operators.Index && isPlain(c.Args()[0])
	default:
		return false
	}
}

// nativeShape knows which chains end in a value that is held natively.
func nativeShape(root string, steps []placeStep) bool {
	named := len(steps) == 1 && steps[0].kind == stepName
	switch root {
	case "method", "authority", "body_sha256", "body_md5":
		return len(steps) == 0
	case "json", "graphql", "found", "multipart", "jsonrpc", "mail", "aws":
		return true
	case "path", "host", "query", "form", "header":
		return named
	}
	return false
}

// eval computes the chain.
func (c *chain) eval(s *scope) (jsonValue, error) {
	if c.constant != nil {
		return stringValue(*c.constant), nil
	}
	switch c.root {
	case "method":
		return stringValue(s.req.Method), nil
	case "authority":
		return stringValue(s.req.Authority()), nil
	case "body_sha256":
		return stringValue(s.bodyDigest()), nil
	case "body_md5":
		return stringValue(s.bodyMD5()), nil
	case "json", "graphql", "multipart", "jsonrpc", "mail", "aws":
		return walk(s.tree(c.root), c.steps)
	case "found":
		return walk(s.found, c.steps)
	}
	if v, ok := s.named(c.root, c.steps[0].name); ok {
		return stringValue(v), nil
	}
	return jsonValue{}, fmt.Errorf("%w: %s.%s", errMissing, c.root, c.steps[0].name)
}

// String spells the chain.
func (c *chain) String() string {
	words := []string{c.root}
	for _, step := range c.steps {
		words = append(words, step.String())
	}
	return strings.Join(words, "")
}

// walk follows the steps from v. The whole of what is no JSON is an empty map.
func walk(v *jsonValue, steps []placeStep) (jsonValue, error) {
	if v == nil {
		v = &jsonValue{kind: jsonObject}
	}
	for i := 0; v.odd != oddItself; i++ {
		if i == len(steps) {
			return *v, nil
		}
		next, ok := v.step(steps[i])
		if !ok {
			return jsonValue{}, fmt.Errorf("%w: %s", errMissing, steps[i])
		}
		v = next
	}
	return jsonValue{}, refusedOdd
}

// step follows one step.
func (v *jsonValue) step(step placeStep) (*jsonValue, bool) {
	if step.kind == stepIndex {
		return v.element(step.index)
	}
	return v.member(step.name)
}

// String is the step as it is written.
func (s placeStep) String() string {
	switch s.kind {
	case stepAll:
		return "[*]"
	case stepIndex:
		return "[" + strconv.Itoa(s.index) + "]"
	case stepName:
	}
	if isName(s.name) {
		return "." + s.name
	}
	return "['" + s.name + "']"
}
