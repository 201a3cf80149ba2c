package rules

import (
	"slices"
	"strings"
	"testing"
)

const misplaced = `apiVersion: keep/v1
connector: api
version: 1
hosts: [api.test]
reads: safe-methods
operations:
  - name: order
    match: {method: POST, path: /orders}
    effect: mutation
    identity: {ref: json.ref}
    marker: {json: metadata.keep_id}
    reconcile:
      - probe:
          get: /orders
          query: {ref: QUERY}
          candidates: response.json
          ours: found.metadata.keep_id == mutation.marker
          tie: marker
          id: string(found.id)
          absence_is_proof: true
          result: {status: 200, json: RESULT}
`

// A probe that asks for the expression's text finds nothing, and its absence would
// be believed.
func TestAnExpressionWhereYAMLIsLiteralIsRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		query, result string
		refused       bool
	}{
		"in braces, as in a text":       {`"{json.ref}"`, "{cel: found}", true},
		"in braces, inside other words": {`"ref:{json.ref}"`, "{cel: found}", true},
		"a bare chain of names":         {`json.ref`, "{cel: found}", true},
		"a bare chain with an index":    {`"json.refs[0]"`, "{cel: found}", true},
		"a bare chain in a result":      {`{cel: json.ref}`, `{order: found.id}`, true},
		"a name in braces":              {`{cel: json.ref}`, `"{found}"`, true},
		"the whole object as a word":    {`{cel: json.ref}`, `found`, true},
		"a name in braces of a field":   {`{cel: json.ref}`, `{found: "{ found }"}`, true},
		"an expression cut at a comma":  {`{cel: json.ref}`, `{cel: merge(found, found)}`, true},
		"one in quotes, with a comma":   {`{cel: json.ref}`, `{cel: "[found, found]"}`, false},
		"a header field":                {`header.x-ref`, "{cel: found}", true},
		"a word of a field":             {`{cel: json.ref}`, `{state: found}`, false},
		"a cel expression":              {`{cel: json.ref}`, "{cel: found}", false},
		"the text itself, by cel":       {`{cel: "'json.ref'"}`, "{cel: found}", false},
		"a word that is no expression":  {`open`, "{cel: found}", false},
		"a root's name alone":           {`json`, "{cel: found}", false},
		"a file name":                   {`report.json`, "{cel: found}", false},
		"braces of another language":    {`"query { orders(first: 1) { id } }"`, "{cel: found}", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := strings.NewReplacer("QUERY", c.query, "RESULT", c.result).Replace(misplaced)
			_, findings := Load([]File{{Name: "api.yaml", Data: []byte(text)}}, nil, Defaults{})
			refused := false
			for _, f := range findings {
				refused = refused || f.Code == "literal" && f.Severity == SeverityError && f.Line > 0 && strings.Contains(f.Fix, "{cel: ")
			}
			if refused != c.refused {
				t.Errorf("refused: %t, findings %v", refused, findings)
			}
			if !c.refused && findings.Failed() {
				t.Errorf("doesn't load: %v", findings)
			}
		})
	}
}

// A marker that is written where nobody looks for it is never found, and what it
// marks counts as absent.
func TestAMarkerIsWrittenWhereItIsLookedFor(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		marker, code string
		severity     Severity
	}{
		"the root again":           {"{json: json.metadata.keep_id}", "place", SeverityError},
		"the root of a form again": {`{form: "form['keep_id']"}`, "place", SeverityError},
		"the name that ours reads": {"{json: metadata.keep_id}", "", ""},
		"the same name of a form":  {`{form: "metadata[keep_id]"}`, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := strings.NewReplacer("QUERY", "{cel: json.ref}", "RESULT", "{cel: found}", "{json: metadata.keep_id}", c.marker).Replace(misplaced)
			_, findings := Load([]File{{Name: "api.yaml", Data: []byte(text)}}, nil, Defaults{})
			hit := false
			for _, f := range findings {
				about := f.Code == "place" || f.Code == "tie"
				hit = hit || about && (c.code == "" || f.Code == c.code && f.Severity == c.severity && f.Fix != "")
			}
			if hit != (c.code != "") {
				t.Errorf("findings %v", findings)
			}
		})
	}
}

// What is suggested is taken as it stands.
func TestTheMendOfALiteralLoads(t *testing.T) {
	t.Parallel()
	for literal, want := range map[string]string{
		`"{json.ref}"`:                     `{cel: json.ref}`,
		`"reference:{json.ref}"`:           `{cel: "'reference:' + json.ref"}`,
		`"status=open AND ref={json.ref}"`: `{cel: "'status=open AND ref=' + json.ref"}`,
		`"{json.a}-{json.b} it's \"so\""`:  `{cel: "json.a + '-' + json.b + ' it\\'s \"so\"'"}`,
		`"ref:{json.?a.orValue('x')}"`:     `{cel: "'ref:' + (json.?a.orValue('x'))"}`,
		`"json.refs[0]"`:                   `{cel: "json.refs[0]"}`,
		`header.x-ref`:                     `{cel: "header['x-ref']"}`,
		"\"a\\\\b {json.ref}\"":            `{cel: "'a\\\\b ' + json.ref"}`,
	} {
		file := func(query string) []File {
			text := strings.NewReplacer("QUERY", query, "RESULT", "{cel: found}").Replace(misplaced)
			return []File{{Name: "api.yaml", Data: []byte(text)}}
		}
		_, findings := Load(file(literal), nil, Defaults{})
		i := slices.IndexFunc(findings, func(f Finding) bool { return f.Code == "literal" })
		if i < 0 || !strings.HasPrefix(findings[i].Fix, "write "+want+"; if the text itself") {
			t.Errorf("%s: %v, want %s", literal, findings, want)
		}
		if set, findings := Load(file(want), nil, Defaults{}); set == nil {
			t.Errorf("%s: %v", want, findings)
		}
	}
}

func TestAnExpressionInBracesIsMended(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{
		`"{json.ref}"`:        "no braces here: write json.ref",
		`"a:{json.ref}"`:      `no braces here: write "'a:' + json.ref"`,
		`"{jsn.ref}"`:         "",
		`"{'a': json.ref}.b"`: "",
	} {
		_, findings := Load([]File{{Name: "f.yaml", Data: []byte(withOperation("identity: {a: " + source + "}"))}}, nil, Defaults{})
		if i := slices.IndexFunc(findings, func(f Finding) bool { return f.Code == "expression" && f.Fix == want }); (i >= 0) != (want != "") {
			t.Errorf("%s: %v, want %q", source, findings, want)
		}
	}
}
