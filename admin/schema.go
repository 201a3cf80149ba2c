package admin

import (
	"fmt"
	"maps"
	"reflect"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"keep-proxy/admin/wire"
)

// object is a JSON object of the OpenAPI document.
type object = map[string]any

// enums are the values of the members that take a few words only, by type and
// member.
var enums = map[string][]string{
	"OpenRun.mutations":   {"none", "one", "many"},
	"OpenRun.on_failure":  {"abort", "return"},
	"OpenRun.block_scope": {"workflow", "item", "mutation"},
	"FinishRun.outcome":   {"done", "failed"},
	"Resolve.action":      wire.ActionNames(),
	"Mutation.state":      {"in_flight", "applied", "failed", "needs_reconcile", "indeterminate", "skipped"},
	"Blocks.scope":        {"workflow", "item", "mutation"},
}

// schemas collects the schemas of named types.
type schemas struct {
	components object
	used       map[string]bool
	// texts describe types and members, see [wire.Texts].
	texts map[string]string
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
func (s *schemas) of(t reflect.Type) (object, error) {
	if known, ok := special[t]; ok {
		return known, nil
	}
	switch t.Kind() {
	case reflect.String:
		return object{"type": "string"}, nil
	case reflect.Bool:
		return object{"type": "boolean"}, nil
	case reflect.Int, reflect.Int64, reflect.Uint64:
		return object{"type": "integer"}, nil
	case reflect.Slice:
		items, err := s.of(t.Elem())
		return object{"type": "array", "items": items}, err
	case reflect.Map:
		values, err := s.of(t.Elem())
		return object{"type": "object", "additionalProperties": values}, err
	case reflect.Pointer:
		return s.of(t.Elem())
	case reflect.Struct:
		return s.ref(t)
	default:
		return nil, fmt.Errorf("no schema for %s", t)
	}
}

// ref refers to a struct's schema, which is made at its first use.
func (s *schemas) ref(t reflect.Type) (object, error) {
	name := schemaName(t)
	ref := object{"$ref": "#/components/schemas/" + name}
	if s.components[name] != nil {
		return ref, nil
	}
	s.components[name] = object{}
	properties, required := object{}, []string{}
	if err := s.members(t, name, properties, &required); err != nil {
		return nil, err
	}
	base, _, _ := strings.Cut(t.Name(), "[")
	s.components[name] = s.described(object{"type": "object", "properties": properties, "required": required}, base)
	return ref, nil
}

// members adds a struct's fields; those of embedded structs are its own.
func (s *schemas) members(t reflect.Type, owner string, properties object, required *[]string) error {
	for f := range t.Fields() {
		if f.Anonymous {
			if err := s.members(f.Type, schemaName(f.Type), properties, required); err != nil {
				return err
			}
			continue
		}
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" {
			return fmt.Errorf("%s.%s has no JSON name", owner, f.Name)
		}
		schema, err := s.member(f.Type, owner+"."+name, options == "")
		if err != nil {
			return err
		}
		base, _, _ := strings.Cut(t.Name(), "[")
		properties[name] = s.described(schema, base+"."+name)
		if options == "" {
			*required = append(*required, name)
		}
	}
	return nil
}

// described is a schema with the text about it, if there is one.
func (s *schemas) described(schema object, name string) object {
	text := s.texts[name]
	if text == "" {
		return schema
	}
	schema = maps.Clone(schema)
	schema["description"] = text
	return schema
}

// member is a field's schema; a pointer that is always present may be null.
func (s *schemas) member(t reflect.Type, name string, present bool) (object, error) {
	schema, err := s.of(t)
	if err != nil {
		return nil, err
	}
	if words := enums[name]; words != nil {
		s.used[name] = true
		return object{"type": "string", "enum": words}, nil
	}
	if t.Kind() == reflect.Pointer && present {
		return object{"oneOf": []any{schema, object{"type": "null"}}}, nil
	}
	return schema, nil
}

// schemaName is a type's name; a list's is its element's and List.
func schemaName(t reflect.Type) string {
	name := t.Name()
	if base, element, ok := strings.Cut(strings.TrimSuffix(name, "]"), "["); ok {
		return element[strings.LastIndexByte(element, '.')+1:] + base
	}
	return name
}
