package rules

import (
	"slices"
	"strings"
	"testing"
)

const writtenRule = `
  - name: make
    match: {method: POST, path: /things}
    effect: mutation
    identity: {ref: json.ref}
    reconcile:
      - probe:
          post: /search
          query: {a: V, b: [V, V], c: "V"}
          header: {x-a: V}
          json: {a: J, "on": yes, off: [2026-01-02, no]}
          candidates: response.json
          pages: {more: "true", set: {page: V}, max: 2}
          ours: found.ref == json.ref
          tie: unique
          id: found.id
          created: found.at
          result: {header: {x-b: V}, json: {a: J}}
`

func TestTextIsWhatIsWritten(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"7.10", "007", "0x10", "0o17", "1e3", "1_000", ".5", "+1", "on", "yes", "no", "off", "y", "True", "FALSE", "2026-01-02", "2026-01-02T03:04:05Z",
		"12:30:45", ".inf", ".nan", "100000000000000000000000", "7.0", "-0", "1.0e+2",
	} {
		_, op := operation(t, strings.NewReplacer("V", text, "J", "7.10").Replace(writtenRule))
		req := request(t, "POST https://api.test/things", `{"ref":"r"}`, "Content-Type: application/json")
		asking, err := op.Strategies[0].Probe.Begin(Env{Request: req, Mutation: caseMutation()})
		if err != nil {
			t.Fatal(err)
		}
		ask, _ := asking.Next()
		spelt := escapeSegment(text)
		if want := "/search?a=" + spelt + "&b=" + spelt + "&b=" + spelt + "&c=" + spelt; ask.Target != want || ask.Header.Get("X-A") != text {
			t.Errorf("%s: %s %v", text, ask.Target, ask.Header)
		}
		if want := `{"a":7.10,"on":"yes","off":["2026-01-02","no"]}`; string(ask.Body) != want {
			t.Errorf("%s: %s", text, ask.Body)
		}
		asking.Answer(declaredAnswer("", `[{"ref":"r","id":"1","at":"2026-01-02T03:04:06Z"}]`))
		if next, _ := asking.Next(); next == nil || !strings.HasSuffix(next.Target, "&page="+spelt) {
			t.Errorf("%s: %+v", text, next)
		}
		asking.Answer(declaredAnswer("", `[]`))
		if r := asking.found[0].result; r.Header.Get("X-B") != text || string(r.Body) != `{"a":7.10}` {
			t.Errorf("%s: %+v %s", text, r, r.Body)
		}
	}
}

func TestNumbersKeepTheirDigitsInJSON(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"7.10": "7.10", "1e3": "1e3", "-0": "-0", "100000000000000000000000": "100000000000000000000000", "true": "true", "True": "true", "~": "null",
		"on": `"on"`, "2026-01-02": `"2026-01-02"`, `"7.10"`: `"7.10"`,
	} {
		_, op := operation(t, strings.NewReplacer("V", "v", "J", text).Replace(writtenRule))
		req := request(t, "POST https://api.test/things", `{"ref":"r"}`, "Content-Type: application/json")
		asking, err := op.Strategies[0].Probe.Begin(Env{Request: req, Mutation: caseMutation()})
		if err != nil {
			t.Fatal(err)
		}
		if ask, _ := asking.Next(); !strings.HasPrefix(string(ask.Body), `{"a":`+want+`,`) {
			t.Errorf("%s: %s", text, ask.Body)
		}
	}
}

func TestWhatIsNoTextWhereTextMustBeIsAFinding(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"~", "null", "", "{x: y}", "[[a]]", "[a, ~]", "[{x: y}]", "{}"} {
		for _, at := range []string{"query: {a: V,", "header: {x-a: V}", "set: {page: V}", "result: {header: {x-b: V}"} {
			file := strings.Replace(writtenRule, at, strings.Replace(at, "V", text, 1), 1)
			file = connectorHead + strings.NewReplacer("V", "v", "J", "1").Replace(file)
			_, findings := Load([]File{{Name: "f.yaml", Data: []byte(file)}}, nil, Defaults{})
			if !slices.ContainsFunc(findings, func(f Finding) bool { return f.Code == "type" && f.Line > 0 && f.Column > 0 && f.Fix != "" }) {
				t.Errorf("%s with %q: %v", at, text, findings)
			}
		}
	}
}

// A version that records are pinned to is loaded with the mistakes of its time.
func TestAStoredVersionMayHaveNull(t *testing.T) {
	t.Parallel()
	file := connectorHead + strings.NewReplacer("V", "~", "J", "1").Replace(writtenRule)
	if _, findings := LoadPinned([]byte(file), nil, Defaults{}); findings.Failed() {
		t.Error(findings)
	}
}
