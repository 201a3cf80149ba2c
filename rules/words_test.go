package rules

import (
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"cel.dev/cel-go/common/types"

	"keep-proxy/internal/strictyaml"
	"keep-proxy/internal/verdict"
)

func TestProblemsHaveTheStatusesThatUsersMeet(t *testing.T) {
	t.Parallel()
	for problem, want := range map[Problem]int{
		ProblemAmbiguous: 422, ProblemIdentity: 422, ProblemOverride: 403, ProblemUnmatched: 403, ProblemDenied: 403, ProblemTooLarge: 413, "unheard-of": 403,
	} {
		if got := problem.Status(); got != want {
			t.Errorf("%s is %d, want %d", problem, got, want)
		}
	}
}

func TestUnknownValuesAreTheSafeWord(t *testing.T) {
	t.Parallel()
	for got, want := range map[string]string{
		Effect(0).String(): "deny", Effect(99).String(): "deny", EffectRead.String(): "read", EffectMutation.String(): "mutation", EffectIgnore.String(): "ignore",
		Seen(0).String(): "retry", Seen(99).String(): "retry", SeenApplied.String(): "applied", SeenAbsent.String(): "absent", SeenDuplicate.String(): "duplicate",
		verdict.OpinionKind(99).String(): "uncertain", verdict.OpinionFailed.String(): "failed",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestReconcilesMeansMoreThanNone(t *testing.T) {
	t.Parallel()
	_, none := operation(t, mutationWith(""))
	_, probe := operation(t, probing(contentProbe))
	if none.Reconciles() || !probe.Reconciles() {
		t.Errorf("none: %v, probe: %v", none.Reconciles(), probe.Reconciles())
	}
}

func TestFindingsReadAsLines(t *testing.T) {
	t.Parallel()
	f := Finding{Severity: SeverityError, Code: "unknown-key", File: "a.yaml", Line: 3, Column: 5, Key: "efect", Problem: "unknown key efect", Fix: "did you mean effect?"}
	if got, want := f.String(), "a.yaml:3:5: error [unknown-key] efect: unknown key efect; did you mean effect?"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	v := Finding{Severity: SeverityError, Code: "value", File: "a.yaml", Line: 3, Column: 10, Key: "version", Value: "one", Problem: "must be a whole number", Fix: "write 1"}
	if got, want := v.String(), `a.yaml:3:10: error [value] version = "one": must be a whole number; write 1`; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	s := Finding{Severity: SeverityWarning, Code: "settings", Key: "k", Problem: "p", Fix: "f"}
	if got, want := (Findings{f, s}).Error(), f.String()+"\nwarning [settings] k: p; f"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if (Findings{s}).Failed() || !(Findings{s, f}).Failed() || !(Findings{{}}).Failed() {
		t.Error("only a known warning does not fail a load")
	}
}

func TestValuesOfTheWrongKindAreNamed(t *testing.T) {
	t.Parallel()
	probe := func(s string) string {
		return withOperation("reconcile: [{probe: {get: /a, observe: [{when: 'true', is: absent}], " + s + "}}]")
	}
	for _, tc := range []struct{ name, file, part string }{
		{"operations as a map", strings.Replace(connectorHead, "operations:\n", "operations: {}\n", 1), "must be a list"},
		{"a boolean as text", probe("absence_is_proof: 'true'"), "must be true or false"},
		{"a boolean as a number", probe("absence_is_proof: 1"), "must be true or false"},
		{"a query as a list", probe("query: [a]"), "must be a map"},
		{"a query as an expression", probe("query: {cel: json.a}"), "must be a map of names"},
		{"a header that is none", withOperation("payload: {headers: ['a b']}"), "no header name"},
		{"a map as text", withOperation("describe: {a: b}"), "must be one value"},
		{"null as text", withOperation("describe: ~"), "must be one value"},
		{"a key that is a list", withOperation("? [a]\n    : b"), "plain word"},
		{"a place without an end", withOperation(`secret: ["json["]`), "no step"},
		{"a host pattern of variables", strings.Replace(withOperation(), "[api.test]", `["{a}.{b}"]`, 1), "must be a literal"},
		{"a file that is too large", strings.Repeat("#", strictyaml.MaxFile+1), "larger than 1 MiB"},
	} {
		_, findings := Load([]File{{Name: "f.yaml", Data: []byte(tc.file)}}, nil, Defaults{})
		if !slices.ContainsFunc(findings, func(f Finding) bool { return strings.Contains(f.Problem, tc.part) && f.Severity == SeverityError }) {
			t.Errorf("%s: %v, want %q", tc.name, findings, tc.part)
		}
	}
}

func TestMapsOfSingleValuesAreMapsToCEL(t *testing.T) {
	t.Parallel()
	m := (&scope{req: request(t, "GET https://api.test/?a=1&b=2", "")}).onceMap("query")
	other := (&scope{req: request(t, "GET https://api.test/?b=2&a=1", "")}).onceMap("query")
	if m.Equal(other) != types.True || m.Size() != types.Int(2) || m.Get(types.String("b")) != types.String("2") {
		t.Errorf("equal %v, size %v, b %v", m.Equal(other), m.Size(), m.Get(types.String("b")))
	}
	if !types.IsError(m.Get(types.String("c"))) || !types.IsError(m.Get(types.Int(1))) || !types.IsError(m.Contains(types.Int(1))) {
		t.Error("a name that is missing or no name has a value")
	}
	native, err := m.ConvertToNative(reflect.TypeFor[map[string]string]())
	if err != nil || native.(map[string]string)["a"] != "1" {
		t.Errorf("native %v, %v", native, err)
	}
	if _, err := m.ConvertToNative(reflect.TypeFor[int]()); err == nil {
		t.Error("a query is a number")
	}
	if m.ConvertToType(types.MapType) != m || !types.IsError(m.ConvertToType(types.IntType)) || m.Value() == nil {
		t.Error("conversions to types")
	}
}

func TestRawDeflateIsRead(t *testing.T) {
	t.Parallel()
	// The raw form of RFC 1951, as some clients send it: {"a":1} in one stored block.
	body := append([]byte{1, 7, 0, 0xf8, 0xff}, `{"a":1}`...)
	c := parseContent(http.Header{"Content-Encoding": {"deflate"}}, body)
	if c.problem != nil || c.json == nil || string(canonicalValue(c.json)) != `{"a":1}` {
		t.Errorf("content %+v", c)
	}
}
