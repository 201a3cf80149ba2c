package rules

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
)

// chain is a plain chain of names (json.a.b[0]) or a constant string. It gives
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
	case "method", "authority", "account", "body_sha256", "object":
		return len(steps) == 0
	case "json", "found":
		return true
	case "path", "host", "query", "form", "header":
		return named
	case "mutation":
		return named && steps[0].name != "kept"
	case "response":
		return len(steps) > 0 && steps[0].name == "json" || named && steps[0].name != "header" ||
			len(steps) == 2 && steps[0].name == "header" && steps[1].kind == stepName
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
	case "account":
		return stringValue(s.account), nil
	case "body_sha256":
		return stringValue(s.bodyDigest()), nil
	case "object":
		if s.mutation == nil || s.mutation.Object == "" {
			return jsonValue{}, errMissing
		}
		return stringValue(s.mutation.Object), nil
	case "json":
		return walk(s.json(), c.steps)
	case "found":
		return walk(s.found, c.steps)
	case "mutation":
		return s.mutation.field(c.steps[0].name)
	case "response":
		return s.resp.field(c.steps)
	}
	if v, ok := s.named(c.root, c.steps[0].name); ok {
		return stringValue(v), nil
	}
	return jsonValue{}, missing(c.root, c.steps[0].name)
}

// String spells the chain.
func (c *chain) String() string {
	words := []string{c.root}
	for _, step := range c.steps {
		words = append(words, step.String())
	}
	return strings.Join(words, "")
}

// missing says what is not there.
func missing(root, name string) error { return fmt.Errorf("%w: %s.%s", errMissing, root, name) }

// walk follows the steps from v. The whole of what is no JSON is an empty map.
func walk(v *jsonValue, steps []placeStep) (jsonValue, error) {
	if v == nil {
		v = &jsonValue{kind: jsonObject}
	}
	for _, step := range steps {
		next, ok := v.step(step)
		if !ok {
			return jsonValue{}, fmt.Errorf("%w: %s", errMissing, step)
		}
		v = next
	}
	return *v, nil
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

// field is one field of the record.
func (m *Mutation) field(name string) (jsonValue, error) {
	if m == nil {
		return jsonValue{}, errMissing
	}
	switch name {
	case "id":
		return stringValue(m.ID), nil
	case "marker":
		return stringValue(m.Marker), nil
	case "vendor_key":
		return stringValue(m.VendorKey), nil
	case "generation":
		return jsonValue{kind: jsonNumber, text: strconv.Itoa(m.Generation)}, nil
	case "claimed_at":
		return stringValue(m.ClaimedAt.UTC().Truncate(time.Second).Format(time.RFC3339)), nil
	}
	return jsonValue{}, missing("mutation", name)
}

// field follows a chain below response.
func (a *answer) field(steps []placeStep) (jsonValue, error) {
	if a == nil {
		return jsonValue{}, errMissing
	}
	switch steps[0].name {
	case "status":
		return jsonValue{kind: jsonNumber, text: strconv.Itoa(a.Status)}, nil
	case "complete":
		return boolValue(a.Complete), nil
	case "header":
		for name, values := range a.Header {
			if strings.ToLower(name) == steps[1].name {
				return stringValue(strings.Join(values, ", ")), nil
			}
		}
		return jsonValue{}, missing("response.header", steps[1].name)
	case "text":
		text, problem := a.text()
		if problem != nil {
			return jsonValue{}, problem
		}
		return stringValue(text), nil
	case "json":
		v, problem := a.json()
		if problem != nil {
			return jsonValue{}, problem
		}
		return walk(v, steps[1:])
	}
	return jsonValue{}, missing("response", steps[0].name)
}
