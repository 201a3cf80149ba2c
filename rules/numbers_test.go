package rules

import (
	"strings"
	"testing"
)

// identityFor derives the identity {v: json.v} of a body whose member v is text.
func identityFor(tb testing.TB, text string) (string, *Refusal) {
	tb.Helper()
	set, _ := operation(tb, strings.ReplaceAll(simpleMutation, "json.name}\n    reconcile", "json.v, kind: path.kind}\n    reconcile"))
	req := request(tb, "POST https://api.test/things/k", `{"v":`+text+`}`)
	m := set.Match(req)
	if m.Operation == nil {
		tb.Fatalf("match: %+v", m)
	}
	d, refusal := m.Operation.Derive(req, m)
	if refusal != nil {
		return "", refusal
	}
	return identityOf(d), nil
}

func TestValuesThatAreOneIdentityAndThoseThatAreNot(t *testing.T) {
	t.Parallel()
	// RFC 8785 spells 7, 7.0 and 70e-1 alike: as one number they are one intent,
	// and the mistake that is left is a refusal, not a second effect.
	same := [][]string{
		{`7`, `7.0`, `70e-1`, `0.7e1`},
		{`0`, `-0`, `0.0`, `-0.0`, `0e5`},
		{`1e1`, `10`, `1E+1`},
		{`"é"`, `"\u00e9"`},
		{`{"a":1,"b":2}`, `{ "b" : 2, "a" : 1 }`},
		{`9007199254740993`}, {`9007199254740992`}, {`9007199254740994`},
		{`100000000000000000000`, `1e20`}, {`1000000000000000000000`, `1e21`, `1.0E+21`, `1000000000000000000000.0`},
		{`-1000000000000000000000`, `-1e21`}, {`100000000000000000000000`, `1e23`}, {`1000000000000000000001`},
		{`123456789012345678901234567890`}, {`123456789012345678901234567891`},
		{`"7"`}, {`null`}, {`""`}, {`" "`}, {`"null"`}, {`true`}, {`"true"`}, {`false`}, {`[]`}, {`{}`}, {`[7]`}, {`["7"]`},
		{`[1,2]`}, {`[2,1]`}, {`[[1],2]`}, {`"e\u0301"`},
	}
	seen := map[string]string{}
	for _, group := range same {
		first := ""
		for _, text := range group {
			got, refusal := identityFor(t, text)
			if refusal != nil {
				t.Errorf("%s: %v", text, refusal)
				continue
			}
			if first == "" {
				first = got
				if other, again := seen[got]; again {
					t.Errorf("%s and %s are one identity: %s", text, other, got)
				}
				seen[got] = text
			}
			if got != first {
				t.Errorf("%s is %s, not the identity of %s", text, got, group[0])
			}
		}
	}
}

func TestNumbersThatCannotBeToldApartAreNoIdentity(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`0.12345678901234567890`, `9007199254740993.0`, `1e-400`, `[0.12345678901234567890]`, `{"a":[1e-400]}`} {
		_, refusal := identityFor(t, text)
		wantRefusal(t, refusal, ProblemIdentity, "digits")
		if refusal != nil && strings.Contains(refusal.Detail, "123456789") {
			t.Errorf("quotes the value: %s", refusal.Detail)
		}
	}
}

func TestASubkeyOrAccountThatCannotBeToldApartIsRefused(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"subkey", "account"} {
		file := connectorHead + simpleMutation
		if key == "subkey" {
			file += "    subkey: json.n\n"
		} else {
			file = strings.Replace(file, "operations:", "account: json.n\noperations:", 1)
		}
		set := load(t, file)
		req := request(t, "POST https://api.test/things/k", `{"name":"a","n":0.12345678901234567890}`)
		wantRefusal(t, deriveRefusal(t, set, req), ProblemIdentity, key)
	}
}

func TestAMissingValueIsRefusedAndAnOptionalOneIsNot(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name, expr, body, want string
	}{
		{"required and there", "json.a", `{"a":"x"}`, `{"v":"x"}`},
		{"required and null", "json.a", `{"a":null}`, `{"v":null}`},
		{"required and empty", "json.a", `{"a":""}`, `{"v":""}`},
		{"required and missing", "json.a", `{}`, ""},
		{"required below null", "json.a.b", `{"a":null}`, ""},
		{"required below text", "json.a.b", `{"a":"x"}`, ""},
		{"required beyond the list", "json.a[1]", `{"a":[0]}`, ""},
		{"optional and missing alone", "json.?a", `{}`, ""},
		{"one of two, the second", "json.?a.or(json.?b).value()", `{"b":"y"}`, `{"v":"y"}`},
		{"one of two, neither", "json.?a.or(json.?b).value()", `{}`, ""},
		{"a default", "json.?a.orValue('')", `{}`, `{"v":""}`},
		{"required of what is no JSON", "json.a", `a=b`, ""},
		{"an expression that fails", "json.a.trim()", `{"a":5}`, ""},
		{"a division by zero", "1 / json.a", `{"a":0}`, ""},
		{"no finite number", "1.0 / json.a", `{"a":0.0}`, ""},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			set, _ := operation(t, strings.ReplaceAll(simpleMutation, "{name: json.name}", `{v: "`+tc.expr+`"}`))
			req := request(t, "POST https://api.test/things/k", tc.body)
			if tc.want == "" {
				wantRefusal(t, deriveRefusal(t, set, req), ProblemIdentity, "")
				return
			}
			if got := identityOf(derive(t, set, req)); got != tc.want {
				t.Errorf("identity %s, want %s", got, tc.want)
			}
		})
	}
}

// One number is one text too, whatever its size: a script that was written anew may send 4484626.0.
func TestATextOfANumberDoesNotDependOnHowItIsWritten(t *testing.T) {
	t.Parallel()
	e, err := compileExpr("string(json.n)", inRequest)
	if err != nil {
		t.Fatal(err)
	}
	for want, spelt := range map[string][]string{
		"7": {"7", "7.0"}, "0": {"0", "-0", "-0.0"}, "4484626": {"4484626", "4484626.0", "4484626e0", "4.484626e6"}, "-1000000": {"-1000000", "-1e6"},
		"10000000000000000": {"10000000000000000", "1e16"}, "123456789012345680000": {"123456789012345680000", "123456789012345680000.0"},
		"1.5000005e+06": {"1500000.5", "1500000.50"}, "0.5": {"0.5", "5e-1"}, "1e+21": {"1e21", "1000000000000000000000"},
	} {
		for _, n := range spelt {
			v, present, err := e.eval(&scope{req: request(t, "POST https://api.test/x", `{"n":`+n+`}`, jsonHeader)})
			if err != nil || !present || v.kind != jsonString || v.text != want {
				t.Errorf("string() of %s is %q, %v; want %q", n, v.text, err, want)
			}
		}
	}
}
