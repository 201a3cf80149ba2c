package data

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"cel.dev/cel-go/ext"
	"go.yaml.in/yaml/v4"
)

// variables are the names that expressions may read. docs/fakes.md says when each has a value.
var variables = []string{
	"method", "host", "base", "url", "path", "query", "query_all", "header", "body", "body_sha256", "form", "form_all", "json", "graphql",
	"now", "scope", "settings", "with", "all", "n", "id", "each", "object", "items", "more", "next", "total", "offset",
}

// environment is made once; that costs some milliseconds.
var environment = sync.OnceValues(func() (*cel.Env, error) {
	options := []cel.EnvOption{
		cel.OptionalTypes(), ext.Strings(), ext.Lists(), ext.Encoders(), ext.Bindings(), ext.Math(), ext.Sets(), cel.DefaultUTCTimeZone(true),
	}
	for _, name := range variables {
		options = append(options, cel.Variable(name, cel.DynType))
	}
	for name, f := range functions {
		of := make([]*cel.Type, f.arguments)
		for i := range of {
			of[i] = cel.DynType
		}
		options = append(options, cel.Function(name, cel.Overload(name+"_values", of, cel.DynType, cel.FunctionBinding(func(given ...ref.Val) ref.Val {
			plain := make([]any, len(given))
			for i, v := range given {
				plain[i] = native(v)
			}
			out, err := f.do(plain)
			if err != nil {
				return types.NewErr("%s: %v", name, err)
			}
			return types.DefaultTypeAdapter.NativeToValue(out)
		}))))
	}
	return cel.NewEnv(options...)
})

// absent stands for an optional value that isn't there.
type absent struct{}

// native is a value of CEL as Go's JSON has it, without absent members. Times stay times until they are written.
func native(v ref.Val) any {
	switch v := v.(type) {
	case *types.Optional:
		if !v.HasValue() {
			return absent{}
		}
		return native(v.GetValue())
	case types.Null:
		return nil
	case types.Bytes:
		return string(v)
	case traits.Mapper:
		out := map[string]any{}
		for it := v.Iterator(); it.HasNext() == types.True; {
			name := it.Next()
			if member := native(v.Get(name)); member != (absent{}) {
				out[fmt.Sprint(name.Value())] = member
			}
		}
		return out
	case traits.Lister:
		out := []any{}
		for it := v.Iterator(); it.HasNext() == types.True; {
			if item := native(it.Next()); item != (absent{}) {
				out = append(out, item)
			}
		}
		return out
	}
	return v.Value()
}

// values are the values of the variables, by their names.
type values map[string]any

// expr is an expression.
type expr struct {
	source  string
	program cel.Program
}

// UnmarshalYAML compiles the expression.
func (e *expr) UnmarshalYAML(n *yaml.Node) error { return e.compile(n, n.Value) }

func (e *expr) compile(n *yaml.Node, source string) error {
	env, err := environment()
	if err != nil {
		return err
	}
	if _, issues := env.Compile(source); issues.Err() != nil {
		return fmt.Errorf("line %d: expression %s: %w", n.Line, source, issues.Err())
	}
	// Without types: what the checker makes of one member of a map must not bind the others.
	ast, _ := env.Parse(source)
	e.source = source
	e.program, err = env.Program(ast)
	return err
}

// eval computes the expression.
func (e *expr) eval(v values) (any, error) {
	out, _, err := e.program.Eval(map[string]any(v))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", e.source, err)
	}
	return native(out), nil
}

// holds computes a condition; a nil one holds.
func (e *expr) holds(v values) (bool, error) {
	if e == nil {
		return true, nil
	}
	out, err := e.eval(v)
	yes, ok := out.(bool)
	if err == nil && !ok {
		err = fmt.Errorf("%s: %v is no condition", e.source, out)
	}
	return yes, err
}

// str computes a text; "" for nil and for what is absent or null.
func (e *expr) str(v values) (string, error) {
	if e == nil {
		return "", nil
	}
	out, err := e.eval(v)
	if err != nil || out == nil || out == (absent{}) {
		return "", err
	}
	return fmt.Sprint(out), nil
}

// text is text with {expressions} in it; {{ is a brace. It is compiled as one expression.
type text struct{ expr }

// UnmarshalYAML reads the parts.
func (t *text) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind != yaml.ScalarNode {
		return fmt.Errorf("line %d: this is no text; a text that begins with a brace needs quotes", n.Line)
	}
	source, rest := `""`, n.Value
	for rest != "" {
		literal, inside := rest, ""
		open := strings.IndexByte(rest, '{')
		switch {
		case open < 0:
			rest = ""
		case strings.HasPrefix(rest[open:], "{{"):
			literal, rest = rest[:open+1], rest[open+2:]
		default:
			length := closing(rest[open:])
			if length < 0 {
				return fmt.Errorf("line %d: %q: a { is not closed; write {{ for a brace", n.Line, n.Value)
			}
			literal, inside, rest = rest[:open], rest[open+1:open+length], rest[open+length+1:]
		}
		source += " + " + quoted(literal)
		if inside != "" {
			source += " + text(" + inside + ")"
		}
	}
	return t.compile(n, source)
}

// quoted is a text as a literal of CEL, as which JSON's will do.
func quoted(s string) string {
	out, _ := json.Marshal(s) //nolint:errchkjson // A text can always be encoded.
	return string(out)
}

// closing is where the brace that the text begins with is closed; texts in quotes don't count.
func closing(s string) int {
	depth, quote := 0, rune(0)
	for i, c := range s {
		switch {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"':
			quote = c
		case c == '{':
			depth++
		case c == '}':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// template is a value in which {cel: EXPRESSION} stands for what it computes. It is compiled as one expression.
type template struct{ expr }

// UnmarshalYAML reads the value.
func (t *template) UnmarshalYAML(n *yaml.Node) error {
	source, err := literal(n)
	if err != nil {
		return err
	}
	return t.compile(n, source)
}

// literal is a value as an expression.
func literal(n *yaml.Node) (string, error) {
	var parts []string
	switch n.Kind { //nolint:exhaustive // The others are decoded as they are, or refused.
	case yaml.MappingNode:
		if len(n.Content) == 2 && n.Content[0].Value == "cel" {
			return "(" + n.Content[1].Value + ")", nil
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			member, err := literal(n.Content[i+1])
			if err == nil && n.Content[i].Value == "cel" {
				err = fmt.Errorf("line %d: cel stands beside other members; an expression with a comma needs quotes: {cel: \"f(a, b)\"}", n.Content[i].Line)
			}
			if err != nil {
				return "", err
			}
			parts = append(parts, quoted(n.Content[i].Value)+": "+member)
		}
		return "{" + strings.Join(parts, ", ") + "}", nil
	case yaml.SequenceNode:
		for _, item := range n.Content {
			one, err := literal(item)
			if err != nil {
				return "", err
			}
			parts = append(parts, one)
		}
		return "[" + strings.Join(parts, ", ") + "]", nil
	}
	var plain any
	if err := n.Decode(&plain); err != nil {
		return "", err
	}
	out, err := json.Marshal(plain)
	return string(out), err
}
