package data

import (
	"crypto/sha1" //nolint:gosec // git names blobs by SHA-1; nothing is authenticated with it
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"cel.dev/cel-go/ext"
	"go.yaml.in/yaml/v4"
)

// variables are the names that expressions may read. docs/fakes.md says when each has a value.
var variables = []string{
	"method", "host", "base", "url", "path", "query", "query_all", "header", "body", "body_sha256", "form", "form_all", "json",
	"now", "scope", "settings", "with", "all", "n", "id", "each", "object", "items", "more", "next", "total", "offset",
}

// environment is made once; that costs some milliseconds.
var environment = sync.OnceValues(func() (*cel.Env, error) {
	options := []cel.EnvOption{
		cel.OptionalTypes(), ext.Strings(), ext.Lists(), ext.Encoders(), ext.Bindings(), ext.Math(), ext.Sets(), cel.DefaultUTCTimeZone(true),
		function("nested", 2, func(a []any) (any, error) { return nestedForm(a[0], a[1]) }),
		function("merge", 2, func(a []any) (any, error) { return merged(a[0], a[1]), nil }),
		function("only", 2, func(a []any) (any, error) { return only(a[0], a[1], true), nil }),
		function("without", 2, func(a []any) (any, error) { return only(a[0], a[1], false), nil }),
		function("sum", 1, func(a []any) (any, error) {
			total := int64(0)
			list, _ := a[0].([]any)
			for _, n := range list {
				if n, ok := n.(int64); ok {
					total += n
				}
			}
			return total, nil
		}),
		function("parse_json", 1, func(a []any) (any, error) { return parseJSON([]byte(fmt.Sprint(a[0]))) }),
		function("to_json", 1, func(a []any) (any, error) {
			text, err := json.Marshal(a[0])
			return string(text), err
		}),
		function("sha256", 1, func(a []any) (any, error) {
			sum := sha256.Sum256([]byte(fmt.Sprint(a[0])))
			return hex.EncodeToString(sum[:]), nil
		}),
		function("git_blob_sha", 1, func(a []any) (any, error) {
			content := fmt.Sprint(a[0])
			sum := sha1.Sum(fmt.Appendf(nil, "blob %d\x00%s", len(content), content)) //nolint:gosec // as above
			return hex.EncodeToString(sum[:]), nil
		}),
		function("rfc3339", 1, func(a []any) (any, error) { return formatted(a[0], time.RFC3339) }),
		function("rfc2822", 1, func(a []any) (any, error) { return formatted(a[0], time.RFC1123Z) }),
		function("millis", 1, func(a []any) (any, error) {
			at, ok := a[0].(time.Time)
			if !ok {
				return nil, errors.New("millis of something other than a time")
			}
			return at.UnixMilli(), nil
		}),
	}
	for _, name := range variables {
		options = append(options, cel.Variable(name, cel.DynType))
	}
	return cel.NewEnv(options...)
})

// function declares a function of plain values.
func function(name string, arguments int, do func([]any) (any, error)) cel.EnvOption {
	of := make([]*cel.Type, arguments)
	for i := range of {
		of[i] = cel.DynType
	}
	return cel.Function(name, cel.Overload(name+"_values", of, cel.DynType, cel.FunctionBinding(func(values ...ref.Val) ref.Val {
		plain := make([]any, len(values))
		for i, v := range values {
			plain[i] = native(v)
		}
		out, err := do(plain)
		if err != nil {
			return types.NewErr("%s: %v", name, err)
		}
		return types.DefaultTypeAdapter.NativeToValue(out)
	})))
}

func formatted(v any, layout string) (any, error) {
	at, ok := v.(time.Time)
	if !ok {
		return nil, errors.New("not a time")
	}
	return at.UTC().Format(layout), nil
}

// merged is a with the members of b, at every depth. A null of b stays.
func merged(a, b any) any {
	left, one := a.(map[string]any)
	right, two := b.(map[string]any)
	if !one || !two {
		return b
	}
	out := maps.Clone(left)
	for name, v := range right {
		if before, ok := out[name]; ok {
			v = merged(before, v)
		}
		out[name] = v
	}
	return out
}

// only is a map with the named members alone, or without them.
func only(m, names any, keep bool) any {
	wanted := map[string]bool{}
	list, _ := names.([]any)
	for _, name := range list {
		wanted[fmt.Sprint(name)] = true
	}
	out := map[string]any{}
	members, _ := m.(map[string]any)
	for name, v := range members {
		if wanted[name] == keep {
			out[name] = v
		}
	}
	return out
}

// absent stands for an optional value that isn't there.
type absent struct{}

// native is a value of CEL as Go's JSON has it. Times stay times until they are written.
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
			out[fmt.Sprint(name.Value())] = native(v.Get(name))
		}
		return out
	case traits.Lister:
		out := []any{}
		for it := v.Iterator(); it.HasNext() == types.True; {
			out = append(out, native(it.Next()))
		}
		return out
	}
	return v.Value()
}

// expr is an expression.
type expr struct {
	text    string
	program cel.Program
}

func compile(text string) (*expr, error) {
	env, err := environment()
	if err != nil {
		return nil, err
	}
	ast, issues := env.Compile(text)
	if issues.Err() != nil {
		return nil, fmt.Errorf("expression %q: %w", text, issues.Err())
	}
	program, err := env.Program(ast)
	return &expr{text, program}, err
}

// UnmarshalYAML compiles the expression. Plain true, false and numbers are expressions too.
func (e *expr) UnmarshalYAML(n *yaml.Node) error {
	made, err := compile(n.Value)
	if err != nil {
		return fmt.Errorf("line %d: %w", n.Line, err)
	}
	*e = *made
	return nil
}

// values are the values of the variables, by their names.
type values map[string]any

// eval computes the expression.
func (e *expr) eval(v values) (any, error) {
	all := make(map[string]any, len(variables))
	for _, name := range variables {
		if value, ok := v[name]; ok {
			all[name] = value
		}
	}
	out, _, err := e.program.Eval(all)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", e.text, err)
	}
	return native(out), nil
}

// holds computes a condition; a nil one holds.
func (e *expr) holds(v values) (bool, error) {
	if e == nil {
		return true, nil
	}
	out, err := e.eval(v)
	if err != nil {
		return false, err
	}
	yes, ok := out.(bool)
	if !ok {
		return false, fmt.Errorf("%s: %v is no condition", e.text, out)
	}
	return yes, nil
}

// str computes a text; "" for nil and for what is absent.
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

// lets are values that a route names, in the order of the file.
type lets []struct {
	name string
	expr expr
}

// UnmarshalYAML reads a map, whose order counts.
func (l *lets) UnmarshalYAML(n *yaml.Node) error {
	for i := 0; i+1 < len(n.Content); i += 2 {
		made, err := compile(n.Content[i+1].Value)
		if err != nil {
			return fmt.Errorf("line %d: %w", n.Content[i+1].Line, err)
		}
		*l = append(*l, struct {
			name string
			expr expr
		}{n.Content[i].Value, *made})
	}
	return nil
}

// compute gives a value to with. What can't be computed has none: it may read objects, which Identity doesn't know.
func (l lets) compute(v values) {
	let := map[string]any{}
	v["with"] = let
	for _, one := range l {
		if value, err := one.expr.eval(v); err == nil {
			let[one.name] = value
		}
	}
}

// text is text with {expressions} in it; {{ is a brace.
type text []part

type part struct {
	literal string
	expr    *expr
}

// UnmarshalYAML reads the parts.
func (t *text) UnmarshalYAML(n *yaml.Node) error {
	rest := n.Value
	for rest != "" {
		open := strings.IndexByte(rest, '{')
		switch {
		case open < 0:
			*t, rest = append(*t, part{literal: rest}), ""
			continue
		case strings.HasPrefix(rest[open:], "{{"):
			*t, rest = append(*t, part{literal: rest[:open+1]}), rest[open+2:]
			continue
		}
		length := closing(rest[open:])
		if length < 0 {
			return fmt.Errorf("line %d: %q: a { is not closed; write {{ for a brace", n.Line, n.Value)
		}
		made, err := compile(rest[open+1 : open+length])
		if err != nil {
			return fmt.Errorf("line %d: %w", n.Line, err)
		}
		*t = append(*t, part{literal: rest[:open]}, part{expr: made})
		rest = rest[open+length+1:]
	}
	return nil
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

func (t text) build(v values) (string, error) {
	var out strings.Builder
	for _, p := range t {
		out.WriteString(p.literal)
		if p.expr != nil {
			said, err := p.expr.str(v)
			if err != nil {
				return "", err
			}
			out.WriteString(said)
		}
	}
	return out.String(), nil
}

// template is a value in which {cel: EXPRESSION} stands for what it computes. The zero template is nil.
type template struct {
	literal any
	expr    *expr
	names   []string
	members map[string]template
	list    []template
	given   bool
}

// UnmarshalYAML reads the value.
func (t *template) UnmarshalYAML(n *yaml.Node) error {
	t.given = true
	switch n.Kind {
	case yaml.MappingNode:
		if len(n.Content) == 2 && n.Content[0].Value == "cel" {
			t.expr = &expr{}
			return t.expr.UnmarshalYAML(n.Content[1])
		}
		t.members = map[string]template{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			var member template
			if err := member.UnmarshalYAML(n.Content[i+1]); err != nil {
				return err
			}
			t.names = append(t.names, n.Content[i].Value)
			t.members[n.Content[i].Value] = member
		}
		return nil
	case yaml.SequenceNode:
		t.list = make([]template, len(n.Content))
		for i, item := range n.Content {
			if err := t.list[i].UnmarshalYAML(item); err != nil {
				return err
			}
		}
		return nil
	case yaml.ScalarNode:
		return n.Decode(&t.literal)
	}
	return fmt.Errorf("line %d: anchors and aliases are not taken", n.Line)
}

// build computes the value. An absent member of a map or a list is left out.
func (t template) build(v values) (any, error) {
	switch {
	case t.expr != nil:
		return t.expr.eval(v)
	case t.members != nil:
		out := map[string]any{}
		for _, name := range t.names {
			value, err := t.members[name].build(v)
			if err != nil {
				return nil, err
			}
			if value != (absent{}) {
				out[name] = value
			}
		}
		return out, nil
	case t.list != nil:
		out := []any{}
		for _, item := range t.list {
			value, err := item.build(v)
			if err != nil {
				return nil, err
			}
			if value != (absent{}) {
				out = append(out, value)
			}
		}
		return out, nil
	}
	return t.literal, nil
}
