package admin

import (
	"fmt"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"keep-proxy/admin/wire"
)

// apiVersion is the version of the API, which /v1 stands for.
const apiVersion = "1"

// openAPI makes the OpenAPI 3.1 document from the routes and the wire types.
func openAPI(routes []route) ([]byte, error) {
	texts, err := wire.Texts()
	if err != nil {
		return nil, err
	}
	s := &schemas{components: object{}, used: map[string]bool{}, texts: texts}
	problem, err := s.of(reflect.TypeFor[wire.Problem]())
	if err != nil {
		return nil, err
	}
	paths := object{}
	for _, rt := range routes {
		if rt.id == "" {
			continue
		}
		operation, err := s.operation(rt, problem)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", rt.method, rt.path, err)
		}
		methods, ok := paths[rt.path].(object)
		if !ok {
			methods = object{}
			paths[rt.path] = methods
		}
		methods[strings.ToLower(rt.method)] = operation
	}
	content, err := marshal(object{
		"openapi": "3.1.0",
		"info": object{
			"title": "keep-proxy admin API", "version": apiVersion,
			"description": "Runs, the ledger, and people's decisions. Errors are problem+json (RFC 9457).",
		},
		"paths": paths,
		"components": object{
			"schemas":         s.components,
			"securitySchemes": object{"token": object{"type": "http", "scheme": "bearer"}},
		},
	})
	if err != nil {
		return nil, err
	}
	document := jsontext.Value(content)
	return document, document.Indent(jsontext.WithIndent("  "))
}

// operation is one route's entry.
func (s *schemas) operation(rt route, problem object) (object, error) {
	success, err := s.success(rt)
	if err != nil {
		return nil, err
	}
	responses := object{strconv.Itoa(rt.status): success}
	for status, names := range rt.refusals() {
		responses[strconv.Itoa(status)] = object{
			"description": strings.Join(names, ", "),
			"content":     object{wire.ProblemContentType: object{"schema": problem}},
		}
	}
	op := object{"operationId": rt.id, "summary": rt.summary, "responses": responses, "security": []any{}}
	if rt.guarded() {
		op["security"] = []any{object{"token": []any{}}}
		op["description"] = "Needs a token with the role " + orRoles(rt.roles) + "."
	}
	if p := rt.parameters(); len(p) > 0 {
		op["parameters"] = p
	}
	if rt.request != nil {
		schema, err := s.of(reflect.TypeOf(rt.request))
		if err != nil {
			return nil, err
		}
		op["requestBody"] = object{
			"required": !rt.optional,
			"content":  object{"application/json": object{"schema": schema}},
		}
	}
	return op, nil
}

// success is the answer of a route that does what it is asked.
func (s *schemas) success(rt route) (object, error) {
	media := object{}
	if rt.response != nil {
		schema, err := s.of(reflect.TypeOf(rt.response))
		if err != nil {
			return nil, err
		}
		media["schema"] = schema
	}
	return object{
		"description": http.StatusText(rt.status),
		"content":     object{rt.media: media},
	}, nil
}

// refusals are the problems that a route answers, by status.
func (rt route) refusals() map[int][]string {
	names := slices.Clone(rt.problems)
	names = append(names, "misdirected", "browser", "bad-request", "internal")
	if rt.guarded() {
		names = append(names, "token", "role", "ledger-unavailable", "ledger-damaged")
	}
	if rt.request != nil {
		names = append(names, "too-large", "media-type")
	}
	byStatus := map[int][]string{}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		status := problemTypes[name].status
		byStatus[status] = append(byStatus[status], name)
	}
	return byStatus
}

// pathParameter finds the parameters of a path.
var pathParameter = regexp.MustCompile(`\{(\w+)\}`)

// parameters are those of the path, the query and, for opening a run, the header.
func (rt route) parameters() []any {
	var list []any
	for _, found := range pathParameter.FindAllStringSubmatch(rt.path, -1) {
		list = append(list, object{"name": found[1], "in": "path", "required": true, "schema": object{"type": "string"}})
	}
	for _, p := range rt.query {
		list = append(list, object{"name": p.name, "in": "query", "description": p.about, "schema": object{"type": "string"}})
	}
	for _, p := range rt.headers {
		list = append(list, object{"name": p.name, "in": "header", "description": p.about, "schema": object{"type": "string"}})
	}
	return list
}
