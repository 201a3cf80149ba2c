package rules

import (
	"slices"
	"testing"

	"keep-proxy/internal/strictyaml"
)

// An order the wrong way round lets every payment pass unrecorded.
func TestOperationsThatNothingGetsToAreFound(t *testing.T) {
	t.Parallel()
	const mutation = ", effect: mutation, identity: {id: query.id}, reconcile: [{none: why}], manual_check: look"
	op := func(name, match, more string) string {
		return "  - {name: " + name + ", match: " + match + more + "}\n"
	}
	for _, c := range []struct {
		name, first, second string
		found               bool
	}{
		{"a read before all mutations", op("a", "{method: POST, path: '/v1/{x...}'}", ", effect: read, before: [b]"), op("b", "{method: POST, path: /v1/pay}", mutation), true},
		{"telemetry before what is denied", op("a", "{path: '/v1/{x}'}", ", effect: ignore, before: b"), op("b", "{method: [PUT, POST], path: '/v1/pay-{x}'}", ", effect: deny"), true},
		{"a condition before itself", op("a", "{method: POST, when: query.a == 'x'}", ", effect: read, before: b"), op("b", "{method: POST, path: /p, when: query.a == 'x'}", mutation), true},
		{"all of a list", op("a", "[{method: POST, path: /p}, {method: PUT}]", ", effect: read, before: b"), op("b", "[{method: PUT, path: /p}, {method: POST, path: /p}]", mutation), true},
		{"some of a list", op("a", "{method: POST, path: /p}", ", effect: read, before: b"), op("b", "[{method: PUT, path: /p}, {method: POST, path: /p}]", mutation), false},
		{"a condition before the rest", op("a", "{method: POST, when: query.a == 'x'}", ", effect: read, before: b"), op("b", "{method: POST, path: /p}", mutation), false},
		{"one method before all", op("a", "{method: GET, path: '/{x}'}", ", effect: read, before: b"), op("b", "{path: /p}", ", effect: deny"), false},
		{"several segments before a slash at the end", op("a", "{method: POST, path: '/{x...}'}", ", effect: read, before: b"), op("b", "{method: POST, path: /p/}", mutation), false},
		{"a part before the whole", op("a", "{method: POST, path: '/p-{x}'}", ", effect: read, before: b"), op("b", "{method: POST, path: '/{x}'}", mutation), false},
		{"the right way round", op("a", "{method: POST, path: /p}", mutation+", before: b"), op("b", "{method: POST, path: '/{x}'}", ", effect: read"), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			// The order of the file says nothing.
			for i, file := range []string{c.first + c.second, c.second + c.first} {
				set, findings := Load([]File{{Name: "t.yaml", Data: []byte(connectorHead + file)}}, nil, Defaults{})
				found := slices.IndexFunc(findings, func(f Finding) bool { return f.Code == "unreached" })
				switch {
				case !c.found && found < 0 && set != nil:
				case !c.found || found < 0:
					t.Errorf("findings: %v", findings)
				case findings[found].Line != 8-i || findings[found].Key != strictyaml.Index("operations", 1-i)+".match":
					t.Errorf("finding: %+v", findings[found])
				}
			}
		})
	}
}
