package rules

import (
	"slices"
	"testing"
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
		severity            Severity // "": nothing is found
	}{
		{"a read before all mutations", op("a", "{method: POST, path: '/v1/{x...}'}", ", effect: read, before: [b]"), op("b", "{method: POST, path: /v1/pay}", mutation), SeverityError},
		{"telemetry before what is denied", op("a", "{path: '/v1/{x}'}", ", effect: ignore, before: b"), op("b", "{method: [PUT, POST], path: '/v1/pay-{x}'}", ", effect: deny"), SeverityError},
		{"a condition before itself", op("a", "{method: POST, when: query.a == 'x'}", ", effect: read, before: b"), op("b", "{method: POST, path: /p, when: query.a == 'x'}", mutation), SeverityError},
		{"all of a list", op("a", "[{method: POST, path: /p}, {method: PUT}]", ", effect: read, before: b"), op("b", "[{method: PUT, path: /p}, {method: POST, path: /p}]", mutation), SeverityError},
		{"a mutation before a read", op("a", "{method: POST, path: '/{x}'}", mutation+", before: b"), op("b", "{method: POST, path: /p}", ", effect: read"), SeverityWarning},
		{"a mutation before another", op("a", "{method: POST, path: '/{x}/'}", mutation+", before: b"), op("b", "{method: POST, path: /p/}", mutation), SeverityWarning},
		{"some of a list", op("a", "{method: POST, path: /p}", ", effect: read, before: b"), op("b", "[{method: PUT, path: /p}, {method: POST, path: /p}]", mutation), ""},
		{"a condition before the rest", op("a", "{method: POST, when: query.a == 'x'}", ", effect: read, before: b"), op("b", "{method: POST, path: /p}", mutation), ""},
		{"one method before all", op("a", "{method: GET, path: '/{x}'}", ", effect: read, before: b"), op("b", "{path: /p}", ", effect: deny"), ""},
		{"several segments before a slash at the end", op("a", "{method: POST, path: '/{x...}'}", ", effect: read, before: b"), op("b", "{method: POST, path: /p/}", mutation), ""},
		{"a part before the whole", op("a", "{method: POST, path: '/p-{x}'}", ", effect: read, before: b"), op("b", "{method: POST, path: '/{x}'}", mutation), ""},
		{"the right way round", op("a", "{method: POST, path: /p}", mutation+", before: b"), op("b", "{method: POST, path: '/{x}'}", ", effect: read"), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			// The order of the file says nothing.
			for i, file := range []string{c.first + c.second, c.second + c.first} {
				set, findings := Load([]File{{Name: "t.yaml", Data: []byte(connectorHead + file)}}, nil, Defaults{})
				found := slices.IndexFunc(findings, func(f Finding) bool { return f.Code == "unreached" })
				switch {
				case c.severity == "" && found < 0 && set != nil:
				case c.severity == "" || found < 0:
					t.Errorf("findings: %v", findings)
				case findings[found].Severity != c.severity || findings[found].Line != 8-i || findings[found].Key != index("operations", 1-i)+".match":
					t.Errorf("finding: %+v", findings[found])
				}
			}
		})
	}
}
