package admin

import (
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"keep-proxy/admin/wire"
)

// document is the part of an OpenAPI document that is checked here.
type document struct {
	OpenAPI    string                          `json:"openapi"`
	Paths      map[string]map[string]operation `json:"paths"`
	Components struct {
		Schemas map[string]schema `json:"schemas"`
	} `json:"components"`
}

type operation struct {
	OperationID string                   `json:"operationId"`
	Summary     string                   `json:"summary"`
	Responses   map[string]struct{}      `json:"responses"`
	Security    []map[string][]string    `json:"security"`
	RequestBody *struct{ Required bool } `json:"requestBody"`
}

type schema struct {
	Description string         `json:"description"`
	Properties  map[string]any `json:"properties"`
	Required    []string       `json:"required"`
}

func parsed(t *testing.T) document {
	t.Helper()
	content, err := openAPI(routes())
	if err != nil {
		t.Fatal(err)
	}
	var d document
	if err := json.Unmarshal(content, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestOpenAPIHoldsEveryRoute(t *testing.T) {
	t.Parallel()
	d := parsed(t)
	if d.OpenAPI != "3.1.0" {
		t.Errorf("version %s", d.OpenAPI)
	}
	ids, operations := map[string]bool{}, 0
	for _, methods := range d.Paths {
		operations += len(methods)
	}
	for _, rt := range routes() {
		if rt.id == "" {
			t.Errorf("%s %s is in no document", rt.method, rt.path)
			continue
		}
		operations--
		op, ok := d.Paths[rt.path][strings.ToLower(rt.method)]
		if !ok || op.OperationID != rt.id || !strings.HasSuffix(op.Summary, ".") || ids[rt.id] {
			t.Errorf("%s %s: %+v", rt.method, rt.path, op)
		}
		ids[rt.id] = true
		if (len(op.Security) > 0) != strings.HasPrefix(rt.path, "/v1/") {
			t.Errorf("%s %s: a token is needed exactly under /v1", rt.method, rt.path)
		}
		if _, ok := op.Responses[strconv.Itoa(rt.status)]; !ok {
			t.Errorf("%s %s: no success", rt.method, rt.path)
		}
		if (op.RequestBody != nil) != (rt.request != nil) {
			t.Errorf("%s %s: body %v", rt.method, rt.path, op.RequestBody)
		}
	}
	if operations != 0 {
		t.Errorf("the document holds %d operations that are no routes", operations)
	}
}

func TestEveryProblemOfARouteIsKnown(t *testing.T) {
	t.Parallel()
	used := map[string]bool{"method": true} // answered for every path, by no route
	for _, rt := range routes() {
		for status, names := range rt.refusals() {
			for _, name := range names {
				if used[name] = true; problemTypes[name].status != status || status == 0 {
					t.Errorf("%s %s: %q is no problem of status %d", rt.method, rt.path, name, status)
				}
			}
		}
	}
	for _, r := range refusals {
		if _, ok := problemTypes[r.name]; !ok {
			t.Errorf("%v leads to the unknown problem %q", r.err, r.name)
		}
		used[r.name] = true
	}
	for name, kind := range problemTypes {
		if !used[name] || kind.title == "" || http.StatusText(kind.status) == "" {
			t.Errorf("problem %s: %+v, used %t", name, kind, used[name])
		}
	}
}

func TestUnknownProblemsAreInternal(t *testing.T) {
	t.Parallel()
	if p := refuse("surprise", "x"); p.Status != 500 || p.Name() != "internal" {
		t.Errorf("got %+v", p)
	}
}

func TestOpenAPISchemasAreTheWireTypes(t *testing.T) {
	t.Parallel()
	d := parsed(t)
	for _, c := range []struct {
		name     string
		of       any
		required []string
		optional []string
	}{
		{"OpenRun", wire.OpenRun{}, []string{"workflow"}, []string{"item", "once", "attempt", "ttl", "labels"}},
		{"Resolve", wire.Resolve{}, []string{"action", "reason", "actor", "version"}, []string{"force", "new_key", "result", "no_result"}},
		{"FinishRun", wire.FinishRun{}, []string{"outcome"}, []string{"keep_open"}},
		{"MutationList", wire.List[wire.Mutation]{}, []string{"items"}, []string{"next"}},
		{"Stopped", wire.Stopped{}, []string{"scope", "name", "mutation", "state", "since"}, nil},
		{"Problem", wire.Problem{}, []string{"type", "title", "status", "detail"}, []string{"actions", "errors"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, ok := d.Components.Schemas[c.name]
			if !ok {
				t.Fatalf("no schema of that name")
			}
			if !slices.Equal(s.Required, c.required) {
				t.Errorf("required %v, want %v", s.Required, c.required)
			}
			for _, name := range append(c.required, c.optional...) {
				if s.Properties[name] == nil {
					t.Errorf("no member %s", name)
				}
			}
			if got, want := len(s.Properties), len(membersOf(reflect.TypeOf(c.of))); got != want {
				t.Errorf("%d members, the type has %d", got, want)
			}
		})
	}
}

// membersOf lists a type's JSON members, those of embedded structs included.
func membersOf(t reflect.Type) []string {
	var names []string
	for _, f := range reflect.VisibleFields(t) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
			names = append(names, name)
		}
	}
	return names
}

func TestWordsNameMembers(t *testing.T) {
	t.Parallel()
	schemas := parsed(t).Components.Schemas
	for name := range words {
		owner, member, _ := strings.Cut(name, ".")
		if schemas[owner].Properties[member] == nil {
			t.Errorf("no member is called %s", name)
		}
	}
}

func TestSchemaRefusesWhatHasNoJSONName(t *testing.T) {
	t.Parallel()
	for name, v := range map[string]any{
		"a field without a name": struct{ A string }{},
		"a channel":              make(chan int),
		"a list of functions":    []func(){},
	} {
		s := &schemas{components: object{}}
		if s.of(reflect.TypeOf(v)); s.err == nil {
			t.Errorf("%s has a schema", name)
		}
	}
}

// Each type has a comment, and it is what describes the type to people.
func TestOpenAPIDescribesTypesAndMembers(t *testing.T) {
	t.Parallel()
	schemas := parsed(t).Components.Schemas
	for name, s := range schemas {
		if s.Description == "" {
			t.Errorf("%s has no description", name)
		}
	}
	for member, want := range map[string]bool{"once": true, "title": false} {
		described, _ := schemas["OpenRun"].Properties[member].(map[string]any)
		if text, there := described["description"].(string); there != want || strings.Contains(text, "Once") {
			t.Errorf("%s of OpenRun: %q", member, text)
		}
	}
}

func TestOpenAPIIsServed(t *testing.T) {
	t.Parallel()
	want, err := openAPI(routes())
	if err != nil {
		t.Fatal(err)
	}
	routes := routes()
	rt := routes[slices.IndexFunc(routes, func(rt route) bool { return rt.path == "/openapi.json" })]
	w := httptest.NewRecorder()
	err = rt.serve(&Server{openapi: func() ([]byte, error) { return want, nil }}, w, nil, rt)
	if err != nil || w.Body.String() != string(want) || w.Header().Get("Content-Type") != "application/json" {
		t.Errorf("%v, %v", err, w.Header())
	}
}
