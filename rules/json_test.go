package rules

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

func TestCanonicalJSON(t *testing.T) {
	t.Parallel()
	cases := []struct{ name, in, want string }{
		{"members in the order of UTF-16", "{\"\ufb33\":1,\"\U0001F600\":2,\"b\":3,\"a\":4}", "{\"a\":4,\"b\":3,\"\U0001F600\":2,\"\ufb33\":1}"},
		{"white space goes", " { \"a\" : [ 1 , 2 ] }\n", `{"a":[1,2]}`},
		{"escapes as short as can be", `"\u0041\/\u000a\u001f\u2028\u007f"`, "\"A/\\n\\u001f\u2028\u007f\""},
		{"integers keep all digits", `[9007199254740993,123456789012345678901234567890]`, `[9007199254740993,123456789012345678901234567890]`},
		{"minus zero is zero", `[-0,-0.0]`, `[0,0]`},
		{"fractions are spelt shortest", `[1.50,1e2,0.1,7.0,1E-7,123456789.123]`, `[1.5,100,0.1,7,1e-7,123456789.123]`},
		{"fractions that no float64 holds keep their digits", `[0.12345678901234567890123,9007199254740993.0]`, `[0.12345678901234567890123,9007199254740993.0]`},
		{"empty things", `[{},[],"",null,true,false]`, `[{},[],"",null,true,false]`},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got, err := CanonicalJSON([]byte(tc.in))
			if err != nil || string(got) != tc.want {
				t.Errorf("CanonicalJSON(%s) = %s, %v; want %s", tc.in, got, err, tc.want)
			}
		})
	}
}

func TestJSONThatIsRefused(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name, in string
		want     error
	}{
		{"repeated name", `{"a":1,"b":2,"a":3}`, jsontext.ErrDuplicateName},
		{"repeated name by an escape", `{"a":1,"\u0061":3}`, jsontext.ErrDuplicateName},
		{"repeated name among many", "{" + manyNames(40) + `"n3":0}`, jsontext.ErrDuplicateName},
		{"repeated name inside", `[{"x":{"a":1,"a":1}}]`, jsontext.ErrDuplicateName},
		{"number beyond a float64", `1e400`, errNumberRange},
		{"two values", `1 2`, errJSONSyntax},
		{"nothing", ` `, errJSONSyntax},
		{"comma at the end", `[1,]`, errJSONSyntax},
		{"comma at the end of an object", `{"a":1,}`, errJSONSyntax},
		{"leading zero", `01`, errJSONSyntax},
		{"bare point", `1.`, errJSONSyntax},
		{"bare exponent", `1e+`, errJSONSyntax},
		{"plus sign", `+1`, errJSONSyntax},
		{"NaN", `NaN`, errJSONSyntax},
		{"line feed in a string", "\"a\nb\"", errJSONSyntax},
		{"open string", `"abc`, errJSONSyntax},
		{"escaped end", `"abc\`, errJSONSyntax},
		{"invalid UTF-8", "\"\xff\"", errJSONSyntax},
		{"half a surrogate", `"\ud800"`, errJSONSyntax},
		{"byte order mark", "\ufeff{}", errJSONSyntax},
		{"comment", `{} // no`, errJSONSyntax},
		{"name without quotes", `{a:1}`, errJSONSyntax},
		{"missing colon", `{"a" 1}`, errJSONSyntax},
		{"wrong end", `{"a":1]`, errJSONSyntax},
		{"too deep", strings.Repeat("[", 1001) + strings.Repeat("]", 1001), errJSONSyntax},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if _, err := CanonicalJSON([]byte(tc.in)); !errors.Is(err, tc.want) {
				t.Errorf("error %v, want %v", err, tc.want)
			}
		})
	}
}

// manyNames is n distinct members, each followed by a comma.
func manyNames(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(`"n` + strings.Repeat("x", i) + `":1,`)
	}
	return strings.Replace(b.String(), `"nxxx"`, `"n3"`, 1)
}

// FuzzJSON holds the parser to jsontext: it takes what that takes, but for depth
// and numbers out of range, and both agree on the canonical form.
func FuzzJSON(f *testing.F) {
	for _, seed := range []string{`{"a":[1,2.50,"x\u00e9",null]}`, `"\ud83d\ude00"`, `{"a":1,"a":2}`, `-0.0e+1`, "\"\xff\"", `[1e999]`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		v, err := parseJSON(text)
		valid := jsontext.Value(text).IsValid()
		if err != nil {
			if valid && !errors.Is(err, errNumberRange) && !strings.Contains(err.Error(), "deeply") {
				t.Fatalf("%q is JSON but refused: %v", text, err)
			}
			return
		}
		if !valid {
			t.Fatalf("%q is no JSON but taken", text)
		}
		canonical := appendCanonical(nil, v, nil)
		if !exactNumbers(v) {
			return
		}
		want := jsontext.Value(bytes.Clone(text))
		if err := want.Canonicalize(jsontext.CanonicalizeRawInts(false)); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		// RFC 8785 has no word on integers that keep their digits; -0 is 0 here.
		if got := string(canonical); got != string(want) && !bytes.Contains(want, []byte("-0")) {
			t.Fatalf("%q: canonical %s, want %s", text, got, want)
		}
		again, err := CanonicalJSON(canonical)
		if err != nil || !bytes.Equal(again, canonical) {
			t.Fatalf("%s is not stable: %s, %v", canonical, again, err)
		}
	})
}

func TestEditJSONLeavesEveryOtherByte(t *testing.T) {
	t.Parallel()
	set := func(jsontext.Value) (jsontext.Value, error) { return jsontext.Value(`"new"`), nil }
	cases := []struct{ name, in, place, want string }{
		{"replaces a value", `{ "b" : 1.50 , "a": "x" }`, "json.a", `{ "b" : 1.50 , "a": "new" }`},
		{"replaces an object", `{"a":{"x":[1]},"b":12345678901234567890}`, "json.a", `{"a":"new","b":12345678901234567890}`},
		{"adds to the end", `{"b":1}`, "json.a", `{"b":1,"a":"new"}`},
		{"adds to an empty object", `{ }`, "json.a", `{ "a":"new"}`},
		{"goes down", `{"m":{"k":1, "z":2},"n":3}`, "json.m.k", `{"m":{"k":"new", "z":2},"n":3}`},
		{"makes what is missing on the way", `{"n":3}`, "json.m.k.l", `{"n":3,"m":{"k":{"l":"new"}}}`},
		{"makes what is missing below", `{"m":{}}`, "json.m.k", `{"m":{"k":"new"}}`},
		{"names with escapes", `{"\u0061":1}`, "json.a", `{"\u0061":"new"}`},
		{"names that need quotes", `{}`, "json['a\"b']", `{"a\"b":"new"}`},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			p, err := parsePlace(tc.place)
			if err != nil {
				t.Fatal(err)
			}
			got, err := editJSON([]byte(tc.in), p.steps, set)
			if err != nil || string(got) != tc.want {
				t.Errorf("got %s, %v; want %s", got, err, tc.want)
			}
		})
	}
	for _, in := range []string{`[1]`, `{"m":[1]}`, `{"m":null}`, `"text"`} {
		if got, err := editJSON([]byte(in), []placeStep{{name: "m"}, {name: "k"}}, set); err == nil {
			t.Errorf("%s became %s; there is no object to write into", in, got)
		}
	}
}
