package rules

import (
	"slices"
	"strings"
	"testing"
)

// withParameters is a connector whose user may set what it writes to and where.
const withParameters = `apiVersion: keep/v1
connector: fields
version: 1
hosts: [api.test]
reads: ["/{param.base}/about"]
account: param.account
parameters:
  base: {default: v1, description: the path's first part}
  field: {default: "", description: the id of a field}
  account: {default: ""}
  most: {type: number, default: 100}
  strict: {type: boolean, default: false}
  reads: {type: list, default: [get, list]}
operations:
  - name: call.read
    match: {method: POST, path: "/{param.base}/call", when: json.tool in param.reads}
    effect: read
  - name: make
    before: []
    match: {method: POST, path: "/{param.base}/things", when: json.amount <= param.most && !param.strict}
    effect: mutation
    describe: "Make {json.name} below {param.base}"
    identity: {name: json.name, where: param.base}
    payload: {ignore: ["json.fields['{param.field}'].note"]}
    secret: ["json['{param.field}']"]
    marker: {json: "fields['{param.field}'].keep"}
    reconcile:
      - probe:
          get: "/{param.base}/things"
          query: {name: {cel: json.name}, most: {cel: string(param.most)}}
          candidates: response.json.items
          ours: found.fields[param.field].keep == mutation.marker
          tie: unique
          created: found.created
          id: found.id
    manual_check: "Look at {param.base}/{json.name}"
`

func parametersSet(values map[string]Given) Settings {
	return Settings{Connector: "fields", Parameters: values}
}

func one(text string) Given { return Given{Texts: []string{text}} }

func TestAParameterIsAConstantOfTheRule(t *testing.T) {
	t.Parallel()
	set := load(t, withParameters, parametersSet(map[string]Given{
		"base": one("api-v2"), "field": one("its.a"), "account": one("acme"), "most": one("7"), "reads": {List: true, Texts: []string{"look"}},
	}))
	req := request(t, "POST https://api.test/api-v2/things", `{"name":"n","amount":7,"fields":{"its.a":{"note":"x"}}}`, "Content-Type: application/json")
	m := set.Match(req)
	if m.Operation == nil || m.Operation.Name != "make" {
		t.Fatalf("match: %+v", m)
	}
	d, refusal := m.Operation.Derive(req, m)
	if refusal != nil {
		t.Fatal(refusal)
	}
	if d.Account != "acme" || string(d.Identity["where"]) != `"api-v2"` || d.Target != "Make n below api-v2" {
		t.Errorf("derived %+v", d)
	}
	out, refusal := m.Operation.Outgoing(req, caseMutation())
	if refusal != nil || !strings.Contains(string(out.Body()), `"its.a":{"note":"x","keep":"`+CaseMarker+`"}`) {
		t.Errorf("sent %s, %v", out.Body(), refusal)
	}
	asking, err := m.Operation.Strategies[0].Probe.Begin(Env{Request: req, Mutation: caseMutation(), Account: "acme"})
	if err != nil {
		t.Fatal(err)
	}
	if asked, _ := asking.Next(); asked.Target != "/api-v2/things?name=n&most=7" {
		t.Errorf("asks %+v", asked)
	}
	if m := set.Match(request(t, "POST https://api.test/api-v2/things", `{"name":"n","amount":8}`, "Content-Type: application/json")); m.Operation != nil {
		t.Errorf("8 is more than most: %+v", m.Operation.Name)
	}
	if m := set.Match(request(t, "POST https://api.test/api-v2/call", `{"tool":"look"}`, "Content-Type: application/json")); m.Effect != EffectRead {
		t.Errorf("a tool that is listed: %+v", m)
	}
}

func TestAPlaceWithAnEmptyParameterIsLeftOut(t *testing.T) {
	t.Parallel()
	op := load(t, withParameters).Connectors()[0].Operation("make")
	if len(op.markers) > 0 || len(op.secret) > 0 || op.insignificant.tree() != nil {
		t.Errorf("markers %+v, secret %+v", op.markers, op.secret)
	}
	_, findings := Load([]File{{Data: []byte(withParameters)}}, []Settings{parametersSet(map[string]Given{"base": one("")})}, Defaults{})
	if !strings.Contains(findings.Error(), "a parameter in the path is empty") {
		t.Errorf("an empty part of a path: %v", findings)
	}
}

func TestARecordKeepsItsParameters(t *testing.T) {
	t.Parallel()
	values := map[string]Given{"field": one("a\\\n\u00e9\u2028\U0001F600 {x}: #"), "reads": {List: true, Texts: []string{"x", "[y]"}}, "most": one("1e3")}
	was := load(t, withParameters, parametersSet(values)).Connectors()[0]
	plain := load(t, withParameters).Connectors()[0]
	if was.Hash == plain.Hash {
		t.Error("what is set is no part of the version")
	}
	if string(plain.Content) != withParameters {
		t.Error("without anything set the content is more than the file")
	}
	for _, settings := range [][]Settings{nil, {parametersSet(map[string]Given{"field": one("other"), "most": one("no number"), "gone": one("x")})}} {
		now, findings := LoadPinned(was.Content, settings, Defaults{})
		if now == nil {
			t.Fatal(findings)
		}
		if now.Hash != was.Hash || string(now.Content) != string(was.Content) {
			t.Error("a stored version is another one when it is loaded again")
		}
		for name, v := range was.values {
			if got := now.values[name]; string(canonicalValue(&got)) != string(canonicalValue(&v)) {
				t.Errorf("%s is %+v, was %+v", name, got, v)
			}
		}
	}
}

func TestWhatIsSetMustFit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name         string
		file         string
		set          map[string]Given
		key, problem string
		fix          string
	}{
		{"an unknown name", withParameters, map[string]Given{"feild": one("x")}, "fields.parameters.feild", "no parameter", "did you mean field?"},
		{"no number", withParameters, map[string]Given{"most": one("many")}, "fields.parameters.most", "is no number", "decimal"},
		{"more digits than are told apart", withParameters, map[string]Given{"most": one("12345678901234567890123")}, "fields.parameters.most", "is no number", "decimal"},
		{"no boolean", withParameters, map[string]Given{"strict": one("yes")}, "fields.parameters.strict", "neither true nor false", "true or false"},
		{"a list for a text", withParameters, map[string]Given{"base": {List: true, Texts: []string{"a"}}}, "fields.parameters.base", "is a list", "one value"},
		{"a required one", strings.Replace(withParameters, "account: {default: \"\"}", "account: {description: whose it is}", 1), nil, "parameters.account", "whose it is", "connectors.settings"},
		{"none at all", strings.NewReplacer("connector: test", "connector: fields").Replace(connectorHead + simpleMutation), map[string]Given{"x": one("y")}, "fields.parameters.x", "no parameters", "leave it out"},
	} {
		_, findings := Load([]File{{Name: "f.yaml", Data: []byte(c.file)}}, []Settings{parametersSet(c.set)}, Defaults{})
		if !slices.ContainsFunc(findings, func(f Finding) bool {
			return strings.TrimPrefix(f.Key, "connectors.settings.") == c.key && strings.Contains(f.Problem, c.problem) && strings.Contains(f.Fix, c.fix)
		}) {
			t.Errorf("%s: %v", c.name, findings)
		}
	}
}

func TestParametersAreUsedWhereTheyMeanSomething(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, old, with, problem, fix string }{
		{"an unknown one", "account: param.account", "account: param.acount", "no parameter acount", "did you mean account?"},
		{"an unknown one in a place", "marker: {json: \"fields['{param.field}'].keep\"}", "marker: {json: \"fields['{param.fied}'].keep\"}", "no parameter fied", "did you mean field?"},
		{"a list in a place", "marker: {json: \"fields['{param.field}'].keep\"}", "marker: {json: \"fields['{param.reads}'].keep\"}", "holds quotes or brackets", "plain text"},
		{"all of them", "account: param.account", "account: string(param)", "can't be read so", "param.NAME"},
		{"an optional", "account: param.account", "account: param.?account.orValue('')", "can't be read so", "param.NAME"},
		{"another type than its own", "account: param.account", "account: param.most.lowerAscii()", "no matching overload", ""},
		{"a default of another type", "most: {type: number, default: 100}", "most: {type: number, default: many}", "is no number", ""},
		{"a literal", "name: {cel: json.name}", "name: \"{param.base}\"", "is sent literally", "{cel: param.base}"},
		{"none declared", "parameters:", "was: old\nx-parameters:", "the file has no parameters", "declare"},
	} {
		_, findings := Load([]File{{Name: "f.yaml", Data: []byte(strings.Replace(withParameters, c.old, c.with, 1))}}, nil, Defaults{})
		if !slices.ContainsFunc(findings, func(f Finding) bool {
			return strings.Contains(f.Problem, c.problem) && strings.Contains(f.Fix, c.fix) && f.Line > 0
		}) {
			t.Errorf("%s: %v", c.name, findings)
		}
	}
	load(t, connectorHead+strings.Replace(simpleMutation, "name: json.name", "\"n\": \"json.list.filter(param, param.x > 1)\"", 1))
}

func TestACaseSetsWhatItIsWrittenFor(t *testing.T) {
	t.Parallel()
	cases := `cases:
  - name: by default the path begins with v1
    request: {method: POST, url: "https://api.test/v1/things", body: {name: n, amount: 1}}
    expect: {operation: make, account: "", sent: {method: POST, url: "https://api.test/v1/things", body: {name: n, amount: 1}}}
  - name: the marker goes where it is set
    parameters: {base: v2, field: f}
    request: {method: POST, url: "https://api.test/v2/things", body: {name: n, amount: 1}}
    expect: {operation: make, sent: {method: POST, url: "https://api.test/v2/things", body: {name: n, amount: 1, fields: {f: {keep: 0123456789abcdef01234567}}}}}
`
	if findings := load(t, withParameters+cases, parametersSet(map[string]Given{"base": one("mine"), "account": one("a")})).RunCases(); len(findings) > 0 {
		t.Error(findings)
	}
	for set, problem := range map[string]string{"feild: f}": "no parameter feild", "most: many}": "is no number", "base: v3}": "is \"unmatched\""} {
		findings := load(t, withParameters+strings.Replace(cases, "base: v2, field: f}", set, 1)).RunCases()
		if len(findings) == 0 || !strings.Contains(findings[0].Problem, problem) || findings[0].Key != "cases[1]" {
			t.Errorf("%s: %v", set, findings)
		}
	}
}

func TestAMarkerWithAnEmptyParameterIsLeftOut(t *testing.T) {
	t.Parallel()
	file := withOperation("marker: {append: \"json.rows['{param.field}']\", value: {text: {cel: mutation.marker}}}",
		"reconcile: [{probe: {get: /a, candidates: response.json, ours: found.text == mutation.marker, tie: marker, id: found.id}}, {none: \"no mark\"}]")
	file = strings.Replace(file, "\noperations:", "\nparameters: {field: {default: \"\"}}\noperations:", 1)
	for field, sent := range map[string]string{"": `{"name":1}`, "keep": `{"name":1,"rows":{"keep":[{"text":"` + CaseMarker + `"}]}}`} {
		op := load(t, file, Settings{Connector: "test", Parameters: map[string]Given{"field": one(field)}}).Connectors()[0].Operations[0]
		req := request(t, "POST https://api.test/things", `{"name":1}`, "Content-Type: application/json")
		mu := caseMutation()
		if mu.Unmarked = op.Unmarked(req); mu.Unmarked != (field == "") || op.Strategies[0].Blind(mu) != mu.Unmarked {
			t.Errorf("%q: unmarked %v, blind %v", field, mu.Unmarked, op.Strategies[0].Blind(mu))
		}
		if out, refusal := op.Outgoing(req, mu); refusal != nil || string(out.Body()) != sent {
			t.Errorf("%q: sent %s, %v", field, out.Body(), refusal)
		}
	}
}
