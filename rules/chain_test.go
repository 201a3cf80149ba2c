package rules

import (
	"net/http"
	"testing"
)

// chainSources are plain chains that exist, are missing, or lead through a value
// of another kind.
var chainSources = []string{
	"json", "json.a", "json.a.b", "json.a.b[0]", "json.a.b[1].c", "json.a.b[9]", "json['a']['b']", "json.gone", "json.gone.x",
	"json.text", "json.text.x", "json['null']", "json['null'].x", "json.list[0]", "json.list['x']", "json.a[0]", "json.yes", "json.no",
	"json.int", "json.negative", "json.uint", "json.big", "json.fraction", "json.whole", "json.exact", "json.zero", "json.empty", "json.none",
	"json['with space']", "json['with.dot']",
	"query.a", "query['b[c]']", "query.gone", "query.twice", "form.a", "header.host", "header['x-a']", "header['X-A']", "header['x-twice']",
	"path.id", "path.gone", "host.region", "host.gone", "method", "authority", "body_sha256", "'constant'", `"it's"`,
	"found", "found.id", "found.gone",
}

// chainScope is a fresh scope for one evaluation.
func chainScope(t *testing.T, req *Request) *scope {
	t.Helper()
	found, err := parseJSON([]byte(`{"id":"f1"}`))
	if err != nil {
		t.Fatal(err)
	}
	mu := sample()
	return &scope{
		req: req, path: map[string]string{"id": "p"}, host: map[string]string{"region": "eu"}, account: "acc", mutation: &mu, found: found,
		resp: newAnswer(&Response{Status: 201, Header: http.Header{"X-B": {"1", "2"}}, Body: []byte(`{"ok":true}`), Complete: true}),
	}
}

func TestChainsGiveWhatCELGives(t *testing.T) {
	t.Parallel()
	body := `{"a":{"b":["x",{"c":1}]},"text":"t","null":null,"list":[[]],"yes":true,"no":false,"int":9007199254740993,"negative":-5,
		"uint":18446744073709551615,"big":123456789012345678901234567890,"fraction":1.50,"whole":7.0,"exact":0.1234567890123456789,"zero":-0,"empty":"",
		"none":{},"with space":1,"with.dot":2}`
	requests := map[string]*Request{
		"JSON": request(t, "POST https://api.test/x?a=1&b%5Bc%5D=2&twice=1&twice=2", body, "X-A: v", "X-Twice: 1", "X-Twice: 2"),
		"list": request(t, "POST https://api.test/x", `[1]`),
		"form": request(t, "POST https://api.test/x", `a=1`, "Content-Type: application/x-www-form-urlencoded"),
		"none": request(t, "GET https://api.test/x", ""),
		"bad":  request(t, "POST https://api.test/x?a=%zz", `{"a":1,"a":2}`),
	}
	for _, source := range chainSources {
		e, err := compileExpr(source, inFound)
		if err != nil {
			t.Errorf("%s: %v", source, err)
			continue
		}
		if e.chain == nil {
			t.Errorf("%s does not run natively", source)
			continue
		}
		for _, req := range requests {
			likeCEL(t, e, req)
		}
	}
}

// What is taken back has a name in the scope of an undo alone: without one it is an error, never an empty name.
func TestTheObjectOfAnUndoIsThereOrMissing(t *testing.T) {
	t.Parallel()
	e, err := compileExpr("object", inUndo)
	if err != nil {
		t.Fatal(err)
	}
	req := request(t, "GET https://api.test/x", "")
	for name, c := range map[string]struct {
		mutation *Mutation
		want     string
	}{
		"of an undo":         {&Mutation{Object: "t1"}, `"t1"`},
		"of no undo":         {&Mutation{ID: "m-1"}, ""},
		"without a mutation": {nil, ""},
	} {
		s := chainScope(t, req)
		s.mutation = c.mutation
		v, present, err := e.eval(s)
		if (err == nil && present) != (c.want != "") || err == nil && present && string(canonicalValue(&v)) != c.want {
			t.Errorf("%s: %s, %t, %v; want %q", name, canonicalValue(&v), present, err, c.want)
		}
	}
}

func TestWhatIsMoreThanAChainRunsByCEL(t *testing.T) {
	t.Parallel()
	for _, source := range []string{"json.?a", "json[?'a']", "has(json.a)", "json.a.trim()", "json.a + 'x'", "json[json.a]", "1", "query", "header", "form", "response", "mutation", "response.header"} {
		e, err := compileExpr(source, inFound)
		if err != nil {
			t.Errorf("%s: %v", source, err)
		} else if e.chain != nil {
			t.Errorf("%s is taken for a plain chain", source)
		}
	}
}

func TestHelpers(t *testing.T) {
	t.Parallel()
	cases := []struct{ source, want string }{
		{`addresses('Bob <B@x.Test>, a@x.test, b@X.test')`, `["a@x.test","b@x.test"]`},
		{`addresses(['a@x.test', 'A <a@x.test>'])`, `["a@x.test"]`},
		{`addresses('no address')`, ""}, {`addresses(1)`, ""}, {`addresses([1])`, ""},
		{`last([1, 2, 3])`, `3`}, {`last([])`, ""}, {`last('x')`, ""},
		{`sha256('abc')`, `"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"`}, {`sha256(b'abc') == sha256('abc')`, `true`}, {`sha256(1)`, ""},
		{`base64url(b'\xff\xfe\xfd?')`, `"__79Pw"`}, {`base64url(null)`, ""},
		{`git_blob_sha('hello\n')`, `"ce013625030ba8dba906f756967f9e9ca394464a"`},
		{`header_of(response, 'X-B')`, `"1, 2"`}, {`header_of(response, 'gone')`, `""`},
		{`json.big == json.big && json.big != json.int`, `true`}, {`string(json.big)`, `"123456789012345678901234567890"`}, {`int(json.big)`, ""}, {`[json.big][0]`, `123456789012345678901234567890`},
		{`json.fraction == 1.5 && json.int > 5`, `true`}, {`timestamp('2026-01-02T03:04:05Z')`, `"2026-01-02T03:04:05Z"`}, {`b'ab'`, `"YWI="`}, {`{'b': 1, 'a': json.?gone}`, `{"b":1}`},
		{`[json.?gone, 1]`, `[1]`}, {`{1: 2}`, ""}, {`0.0/0.0`, ""}, {`duration('1s')`, ""}, {`string(mutation.claimed_at - duration('10m'))`, `"2026-01-02T02:54:05Z"`},
		{`query_all.twice`, `["1","2"]`}, {`form_all.?x.orValue([])`, `[]`}, {`query.exists(k, k == 'a')`, `true`}, {`header.size()`, `1`},
		{`'a' in query && !('gone' in query)`, `true`}, {`type(query) == map`, `true`},
	}
	for _, tc := range cases {
		e, err := compileExpr(tc.source, inFound)
		if err != nil {
			t.Errorf("%s: %v", tc.source, err)
			continue
		}
		req := request(t, "POST https://api.test/x?a=1&twice=1&twice=2", `{"big":123456789012345678901234567890,"int":9007199254740993,"fraction":1.5}`, "X-A: v")
		v, _, err := e.eval(chainScope(t, req))
		switch {
		case tc.want == "" && err == nil:
			t.Errorf("%s = %s, want an error", tc.source, canonicalValue(&v))
		case tc.want != "" && (err != nil || string(canonicalValue(&v)) != tc.want):
			t.Errorf("%s = %s, %v; want %s", tc.source, canonicalValue(&v), err, tc.want)
		}
	}
}

func TestWhatAnExpressionReads(t *testing.T) {
	t.Parallel()
	cases := []struct {
		source, secret string
		want           bool
	}{
		{"json.card", "json.card", true},
		{"json.?card.?number.orValue('')", "json.card.number", true},
		{"json", "json.card", true},
		{"json.exists(k, k == 'x')", "json.card", true},
		{"json.list.map(e, e.card)", "json.list[*].card", true},
		{"sha256(json.card)", "json.card", true},
		{"[json.a, {'x': json.card}]", "json.card", true},
		{"json[json.which]", "json.card", true},
		{"has(json.card)", "json.card", true},
		{"body_sha256", "json.card", true},
		{"body_sha256", "form.card", true},
		{"form_all.x", "form.card", true},
		{"query_all.x", "query.card", true},
		{"json.cart", "json.card", false},
		{"body_sha256", "query.card", false},
		{"response.json.card", "response.json.card", false},
	}
	for _, tc := range cases {
		e, err := compileExpr(tc.source, inAnswer)
		if err != nil {
			t.Fatal(err)
		}
		p, err := parsePlace(tc.secret)
		if err != nil {
			t.Fatal(err)
		}
		if got := e.readsSecret([]place{p}); got != tc.want {
			t.Errorf("%s reads %s: %v, want %v", tc.source, tc.secret, got, tc.want)
		}
	}
}
