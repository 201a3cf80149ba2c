package admin

import (
	"errors"
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
	s := &schemas{components: object{}, texts: texts}
	paths := map[string]object{}
	for _, rt := range routes {
		if paths[rt.path] == nil {
			paths[rt.path] = object{}
		}
		paths[rt.path][strings.ToLower(rt.method)] = s.operation(rt)
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
	if err = errors.Join(s.err, err); err != nil {
		return nil, fmt.Errorf("OpenAPI document: %w", err)
	}
	document := jsontext.Value(content)
	return document, document.Indent(jsontext.WithIndent("  "))
}

// operation is one route's entry.
func (s *schemas) operation(rt route) object {
	media := object{}
	if rt.response != nil {
		media["schema"] = s.of(reflect.TypeOf(rt.response))
	}
	responses := object{strconv.Itoa(rt.status): object{
		"description": http.StatusText(rt.status),
		"content":     object{rt.media: media},
	}}
	for status, names := range rt.refusals() {
		responses[strconv.Itoa(status)] = object{
			"description": strings.Join(names, ", "),
			"content":     object{wire.ProblemContentType: object{"schema": s.of(reflect.TypeFor[wire.Problem]())}},
		}
	}
	op := object{"operationId": rt.id, "summary": rt.summary, "responses": responses, "security": []any{}}
	if rt.guarded() {
		op["security"] = []any{object{"token": []any{}}}
		op["description"] = "Needs a token with the role " + joined(rt.roles, " or ") + "."
	}
	if p := rt.parameters(); len(p) > 0 {
		op["parameters"] = p
	}
	if rt.request != nil {
		op["requestBody"] = object{
			"required": !rt.optional,
			"content":  object{"application/json": object{"schema": s.of(reflect.TypeOf(rt.request))}},
		}
	}
	return op
}

// refusals are the problems that a route answers, by status.
func (rt route) refusals() map[int][]string {
	names := append([]string{"misdirected", "browser", "bad-request", "internal"}, rt.problems...)
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

// parameters are those of the path, the query and the header.
func (rt route) parameters() (list []object) {
	for _, found := range pathParameter.FindAllStringSubmatch(rt.path, -1) {
		list = append(list, object{"name": found[1], "in": "path", "required": true, "schema": object{"type": "string"}})
	}
	add := func(in string, parameters []parameter) {
		for _, p := range parameters {
			list = append(list, object{"name": p.name, "in": in, "description": p.about, "schema": object{"type": "string"}})
		}
	}
	add("query", rt.query)
	add("header", rt.headers)
	return list
}
