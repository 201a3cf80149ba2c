package admin

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"keep-proxy/admin/wire"
	"keep-proxy/ledger"
)

// object is a JSON object of the OpenAPI document.
type object = map[string]any

// words are those that a member takes which takes a few only, by type and member.
var words = map[string][]string{
	"OpenRun.items":       {"one", "many"},
	"OpenRun.mutations":   {"none", "one", "many"},
	"OpenRun.on_failure":  {"abort", "return"},
	"OpenRun.if_done":     {"skip", "fail", "run"},
	"OpenRun.block_scope": {"workflow", "item", "mutation"},
	"FinishRun.outcome":   {"done", "failed"},
	"Resolve.action":      wire.ActionNames(),
	"Mutation.state":      each(ledger.States(), func(s ledger.State) string { return string(s) }),
	"Blocks.scope":        {"workflow", "item", "mutation"},
}

// schemas collects the schemas of named types.
type schemas struct {
	components object
	// texts describe types and members, see [wire.Texts].
	texts map[string]string
	// err says what has no schema.
	err error
}

// special are the types whose JSON isn't that of their Go kind.
var special = map[reflect.Type]object{
	reflect.TypeFor[time.Time]():     {"type": "string", "format": "date-time"},
	reflect.TypeFor[wire.Duration](): {"type": "string", "examples": []string{"1h30m0s"}},
	reflect.TypeFor[wire.Header](): {"type": "object", "additionalProperties": object{"oneOf": []any{
		object{"type": "string"},
		object{"type": "array", "items": object{"type": "string"}},
	}}},
	reflect.TypeFor[wire.Body](): {"oneOf": []any{
		object{"type": "string"},
		object{
			"type": "object", "required": []string{"base64"},
			"properties": object{"base64": object{"type": "string", "contentEncoding": "base64"}},
		},
		object{
			"type": "object", "required": []string{"missing", "sha256", "size"},
			"properties": object{
				"missing": object{"type": "string", "enum": []string{string(wire.MissingDropped), string(wire.MissingOmitted), string(wire.MissingDamaged)}},
				"sha256":  object{"type": "string"},
				"size":    object{"type": "integer"},
			},
		},
	}},
	reflect.TypeFor[jsontext.Value](): {},
}

// of returns the schema of a type; named structs are referred to.
func (s *schemas) of(t reflect.Type) object {
	if known, ok := special[t]; ok {
		return known
	}
	switch t.Kind() { //nolint:exhaustive // What isn't here has no schema.
	case reflect.String:
		return object{"type": "string"}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Int, reflect.Int64, reflect.Uint16, reflect.Uint64:
		return object{"type": "integer"}
	case reflect.Slice:
		return object{"type": "array", "items": s.of(t.Elem())}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": s.of(t.Elem())}
	case reflect.Pointer:
		return s.of(t.Elem())
	case reflect.Struct:
		return s.ref(t)
	}
	s.err = errors.Join(s.err, fmt.Errorf("no schema for %s", t))
	return nil
}

// ref refers to a struct's schema, which is made at its first use. A list's name is its
// element's and List.
func (s *schemas) ref(t reflect.Type) object {
	base, element, _ := strings.Cut(strings.TrimSuffix(t.Name(), "]"), "[")
	name := element[strings.LastIndexByte(element, '.')+1:] + base
	if s.components[name] == nil {
		s.components[name] = object{}
		properties, required := object{}, []string{}
		s.members(t, base, properties, &required)
		s.components[name] = s.described(object{"type": "object", "properties": properties, "required": required}, base)
	}
	return object{"$ref": "#/components/schemas/" + name}
}

// members adds the fields of the struct that is called owner; those of embedded structs are its own.
func (s *schemas) members(t reflect.Type, owner string, properties object, required *[]string) {
	for f := range t.Fields() {
		if f.Anonymous {
			s.members(f.Type, f.Type.Name(), properties, required)
			continue
		}
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" {
			s.err = errors.Join(s.err, fmt.Errorf("%s.%s has no JSON name", owner, f.Name))
		}
		schema := s.of(f.Type)
		if some := words[owner+"."+name]; some != nil {
			schema = object{"type": "string", "enum": some}
		}
		if options == "" {
			*required = append(*required, name)
			if f.Type.Kind() == reflect.Pointer {
				schema = object{"oneOf": []any{schema, object{"type": "null"}}}
			}
		}
		properties[name] = s.described(schema, owner+"."+name)
	}
}

// described is a schema with the text about it, if there is one.
func (s *schemas) described(schema object, name string) object {
	if text := s.texts[name]; text != "" {
		schema = maps.Clone(schema)
		schema["description"] = text
	}
	return schema
}
