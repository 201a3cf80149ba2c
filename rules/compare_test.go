package rules

import (
	"fmt"
	"strings"
	"testing"
)

// compared derives two requests of one rule and compares them both ways: by the
// digests that a claim carries, and by what was stored.
func compared(t *testing.T, rule string, a, b *Request) (likeness Likeness, digests string, c Comparison) {
	t.Helper()
	set, op := operation(t, rule)
	x, y := derive(t, set, a), derive(t, set, b)
	switch {
	case x.PayloadDigest == y.PayloadDigest:
		digests = "same"
	case x.SignificantDigest == y.SignificantDigest:
		digests = "covered"
	default:
		digests = "other"
	}
	c = op.Compare(op.Redact(a), b)
	return c.Likeness, digests, c
}

// listedChanges is a comparison's changes on one line each.
func listedChanges(c Comparison) string {
	var b strings.Builder
	for _, change := range c.Changes {
		fmt.Fprintf(&b, "%s %s %s -> %s (%s)\n", change.Kind, change.Place, change.Stored, change.Asked, change.Likeness)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// rule is an operation with something to say about payload.
func rule(payload string, more ...string) string {
	return `
  - name: make
    match: {method: POST, path: "/things/{kind}"}
    effect: mutation
    identity: {name: json.?name}
    payload:
` + "      " + strings.ReplaceAll(payload, "\n", "\n      ") + `
    reconcile: [{none: "no read"}]
    manual_check: "look"
` + strings.Join(more, "\n")
}

func TestPayloadsAreCompared(t *testing.T) {
	t.Parallel()
	const jsonType, formType = "Content-Type: application/json", "Content-Type: application/x-www-form-urlencoded"
	cases := []struct {
		name, payload, stored, asked, header string
		want                                 Likeness
		digests                              string
		changes                              string
	}{
		{"written in another order", "{}", `{"name":"n","a":1,"b":2}`, `{"b":2,"name":"n","a":1}`, jsonType, Equivalent, "same", ""},
		{"nothing given, a space", "{}", `{"name":"n","a":"x"}`, `{"name":"n","a":"x "}`, jsonType, Significant, "other", `changed json.a "x" -> "x " (significant)`},
		{"white space", "normalise: {json.a: whitespace}", `{"name":"n","a":"x  y\n"}`, `{"name":"n","a":" x y"}`, jsonType, Equivalent, "covered", `changed json.a "x  y\n" -> " x y" (equivalent)`},
		{"white space elsewhere", "normalise: {json.a: whitespace}", `{"name":"n","b":"x y"}`, `{"name":"n","b":"x  y"}`, jsonType, Significant, "other", `changed json.b "x y" -> "x  y" (significant)`},
		{"case", "normalise: {json.a: case}", `{"name":"n","a":"STRASSE"}`, `{"name":"n","a":"straße"}`, jsonType, Equivalent, "covered", `changed json.a "STRASSE" -> "straße" (equivalent)`},
		{"numbers", "normalise: {json.a: numbers}", `{"name":"n","a":5}`, `{"name":"n","a":"5.00"}`, jsonType, Equivalent, "covered", `changed json.a 5 -> "5.00" (equivalent)`},
		{"another number", "normalise: {json.a: numbers}", `{"name":"n","a":5}`, `{"name":"n","a":"5.01"}`, jsonType, Significant, "other", `changed json.a 5 -> "5.01" (significant)`},
		{"a number of many digits", "normalise: {json.a: numbers}", `{"name":"n","a":"9007199254740993"}`, `{"name":"n","a":"9007199254740992"}`, jsonType, Significant, "other", `changed json.a "9007199254740993" -> "9007199254740992" (significant)`},
		{"a set", "normalise: {json.a: unordered}", `{"name":"n","a":["x","y",1]}`, `{"name":"n","a":[1,"y","x"]}`, jsonType, Equivalent, "covered", `changed json.a ["x","y",1] -> [1,"y","x"] (equivalent)`},
		{"a set with a repetition", "normalise: {json.a: unordered}", `{"name":"n","a":["x","y"]}`, `{"name":"n","a":["x","y","y"]}`, jsonType, Significant, "other", `added json.a[2]  -> "y" (significant)`},
		{"a set of what has ways of its own", "normalise: {json.a: unordered, 'json.a[*].t': whitespace}\nignore: ['json.a[*].id']",
			`{"name":"n","a":[{"id":1,"t":"b"},{"id":2,"t":"a"}]}`, `{"name":"n","a":[{"id":9,"t":" a"},{"id":8,"t":"b "}]}`, jsonType, Equivalent, "covered",
			`changed json.a [{"id":1,"t":"b"},{"id":2,"t":"a"}] -> [{"id":9,"t":" a"},{"id":8,"t":"b "}] (equivalent)`},
		{"a list in another order", "{}", `{"name":"n","a":["x","y"]}`, `{"name":"n","a":["y","x"]}`, jsonType, Significant, "other",
			"changed json.a[0] \"x\" -> \"y\" (significant)\nchanged json.a[1] \"y\" -> \"x\" (significant)"},
		{"something put into a list", "{}", `{"name":"n","a":["x","y"]}`, `{"name":"n","a":["x","z","y"]}`, jsonType, Significant, "other", `added json.a[1]  -> "z" (significant)`},
		{"HTML", "normalise: {json.a: html}", `{"name":"n","a":"<p class=x id=y>Hi <b>you</b></p>\n<p>there"}`, `{"name":"n","a":"<P id=\"y\" class='x'>\n Hi  <b>you</b>\n</P><p>there</p><!-- c -->"}`,
			jsonType, Equivalent, "covered", ""},
		{"other HTML", "normalise: {json.a: html}", `{"name":"n","a":"<p>Hi <b>you</b></p>"}`, `{"name":"n","a":"<p>Hi <i>you</i></p>"}`, jsonType, Significant, "other",
			`changed json.a "<p>Hi <b>you</b></p>" -> "<p>Hi <i>you</i></p>" (significant)`},
		{"a space between words of HTML", "normalise: {json.a: html}", `{"name":"n","a":"<b>a</b> <b>b</b>"}`, `{"name":"n","a":"<b>a</b><b>b</b>"}`, jsonType, Significant, "other", ""},
		{"a space before an element in the line", "normalise: {json.a: html}", `{"name":"n","a":"pay <big>5</big>"}`, `{"name":"n","a":"pay<big>5</big>"}`, jsonType, Significant, "other", ""},
		{"a space behind an element that nobody knows", "normalise: {json.a: html}", `{"name":"n","a":"<x-user></x-user> 5"}`, `{"name":"n","a":"<x-user></x-user>5"}`, jsonType, Significant, "other", ""},
		{"a space beside what isn't shown", "normalise: {json.a: html}", `{"name":"n","a":"a <style>b</style>c"}`, `{"name":"n","a":"a<style>b</style>c"}`, jsonType, Significant, "other", ""},
		{"a space on the other side of it", "normalise: {json.a: html}", `{"name":"n","a":"a <style>b</style>c"}`, `{"name":"n","a":"a<style>b</style> c"}`, jsonType, Equivalent, "covered", ""},
		{"line ends among what isn't shown", "normalise: {json.a: html}", `{"name":"n","a":"<meta name=m>\n<title>t</title>\n<table><tr><td>x</td></tr></table>\n"}`,
			`{"name":"n","a":"<meta name=m><title>t</title><table>\n<tr>\n<td> x</td></tr></table>"}`, jsonType, Equivalent, "covered", ""},
		{"another thing that isn't shown", "normalise: {json.a: html}", `{"name":"n","a":"<style>a  b</style>"}`, `{"name":"n","a":"<style>a b</style>"}`, jsonType, Significant, "other", ""},
		{"preformatted HTML", "normalise: {json.a: html}", `{"name":"n","a":"<pre>a  b</pre>"}`, `{"name":"n","a":"<pre>a b</pre>"}`, jsonType, Significant, "other", ""},
		{"Markdown", "normalise: {json.a: markdown}", `{"name":"n","a":"Title\n=====\n\n* one\n* __two__\n"}`, `{"name":"n","a":"# Title #\r\n- one\r\n- **two**"}`, jsonType, Equivalent, "covered", ""},
		{"other Markdown", "normalise: {json.a: markdown}", `{"name":"n","a":"one  \ntwo"}`, `{"name":"n","a":"one\ntwo"}`, jsonType, Significant, "other", `changed json.a line 1 "one  " -> "one" (significant)`},
		{"minor", "minor: [json.a]", `{"name":"n","a":1}`, `{"name":"n","a":2}`, jsonType, Minor, "covered", `changed json.a 1 -> 2 (minor)`},
		{"minor and more", "minor: [json.a]", `{"name":"n","a":1,"b":{"c":[1]}}`, `{"name":"n","a":2,"b":{"c":[1,2],"d":null}}`, jsonType, Significant, "other",
			"changed json.a 1 -> 2 (minor)\nadded json.b.c[1]  -> 2 (significant)\nadded json.b.d  -> null (significant)"},
		{"ignored", "ignore: [json.a]", `{"name":"n","a":1}`, `{"name":"n","b":2}`, jsonType, Significant, "other", `added json.b  -> 2 (significant)`},
		{"a form", "normalise: {form.a: numbers, form.b: unordered}", `a=5&b=1&b=2&c=%26`, `b=2&b=1&a=5.0&c=%26`, formType, Equivalent, "covered",
			"changed form.a \"5\" -> \"5.0\" (equivalent)\nchanged form.b [\"1\", \"2\"] -> [\"2\", \"1\"] (equivalent)"},
		{"another form", "{}", `a=5&b=1`, `a=6&c=1`, formType, Significant, "other",
			"changed form.a \"5\" -> \"6\" (significant)\nremoved form.b \"1\" ->  (significant)\nadded form.c  -> \"1\" (significant)"},
		{"a form with lists of several places", "{}", `x=1&i[][sku]=A&i[][qty]=2&i[][sku]=B`, `i[][sku]=A&i[][qty]=2&i[][sku]=B&x=1`, formType, Equivalent, "same", ""},
		{"a place of another element", "{}", `i[][sku]=A&i[][qty]=2&i[][sku]=B`, `i[][sku]=A&i[][sku]=B&i[][qty]=2`, formType, Significant, "other",
			`changed form ["i[][sku]", "i[][qty]", "i[][sku]"] -> ["i[][sku]", "i[][sku]", "i[][qty]"] (significant)`},
		{"a minor place of another element", "minor: [\"form['i[][note]']\"]", `i[][sku]=A&i[][note]=2&i[][sku]=B`, `i[][sku]=A&i[][sku]=B&i[][note]=2`, formType, Minor, "covered",
			`changed form ["i[][sku]", "i[][note]", "i[][sku]"] -> ["i[][sku]", "i[][sku]", "i[][note]"] (minor)`},
		{"a place whose order doesn't count", "normalise: {\"form['i[][tag]']\": unordered}", `i[][sku]=A&i[][tag]=1&i[][tag]=2&i[][sku]=B`, `i[][tag]=2&i[][sku]=A&i[][sku]=B&i[][tag]=1`,
			formType, Equivalent, "covered", `changed form['i[][tag]'] ["1", "2"] -> ["2", "1"] (equivalent)`},
		{"a text", "normalise: {body: whitespace}", "one\ntwo\n", "one two", "Content-Type: text/plain", Equivalent, "covered", `changed body "one\ntwo\n" -> "one two" (equivalent)`},
		{"another text", "{}", "one\ntwo\nthree\n", "one\n2\nthree\n", "Content-Type: text/plain", Significant, "other", `changed body line 2 "two" -> "2" (significant)`},
		{"another kind of body", "{}", `{"a":1}`, `a=1`, formType, Significant, "other", `changed body JSON -> a form (significant)`},
		{"compare says equivalent", `compare: "json.b == stored.json.b ? 'equivalent' : 'significant'"`, `{"name":"n","a":1,"b":2}`, `{"name":"n","a":2,"b":2}`, jsonType, Equivalent, "other", ""},
		{"compare says significant", `compare: "json.b == stored.json.b ? 'equivalent' : 'significant'"`, `{"name":"n","a":1,"b":2}`, `{"name":"n","a":1,"b":3}`, jsonType, Significant, "other", ""},
		{"compare says minor", `compare: "json.a - stored.json.a < 5 ? 'minor' : 'significant'"`, `{"name":"n","a":1}`, `{"name":"n","a":3}`, jsonType, Minor, "other", ""},
		{"compare can't be evaluated", `compare: "stored.json.b == 1 ? 'minor' : 'significant'"`, `{"name":"n","a":1}`, `{"name":"n","a":3}`, jsonType, Significant, "other", ""},
		{"compare gives another word", `compare: "'same'"`, `{"name":"n","a":1}`, `{"name":"n","a":3}`, jsonType, Significant, "other", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			a, b := request(t, "POST https://api.test/things/x", c.stored, c.header), request(t, "POST https://api.test/things/x", c.asked, c.header)
			r := rule(c.payload)
			if c.header != jsonType {
				r = strings.Replace(r, "identity: {name: json.?name}", "identity: {kind: path.kind}", 1)
			}
			got, digests, out := compared(t, r, a, b)
			if got != c.want || digests != c.digests || out.Why == "" {
				t.Errorf("%s (%s), digests %s; want %s, %s", got, out.Why, digests, c.want, c.digests)
			}
			if text := listedChanges(out); c.changes != "" && text != c.changes {
				t.Errorf("changes:\n%s\nwant:\n%s", text, c.changes)
			}
		})
	}
}

func TestOtherPlacesAreCompared(t *testing.T) {
	t.Parallel()
	r := rule("headers: [x-a]\nminor: [query.m]\nignore: [query.i]\nnormalise: {\"header['x-a']\": case, query.q: numbers}")
	a := request(t, "POST https://api.test/things/x?m=1&i=1&q=1", `{"name":"n"}`, "X-A: Yes")
	b := request(t, "POST https://api.test/things/y?m=2&i=2&q=1.0&z=", `{"name":"n"}`, "X-A: YES")
	_, _, out := compared(t, r, a, b)
	want := `changed path.kind "x" -> "y" (significant)
changed query.m "1" -> "2" (minor)
changed query.q "1" -> "1.0" (equivalent)
added query.z  -> "" (significant)
changed header['x-a'] "Yes" -> "YES" (equivalent)`
	if got := listedChanges(out); got != want {
		t.Errorf("changes:\n%s\nwant:\n%s", got, want)
	}
}

func TestSecretsAreNeitherShownNorTakenForAlike(t *testing.T) {
	t.Parallel()
	r := rule("minor: [json.a]", "    secret: [json.pin]")
	a := request(t, "POST https://api.test/things/x", `{"name":"n","pin":"1111","a":1}`)
	b := request(t, "POST https://api.test/things/x", `{"name":"n","pin":"2222","a":2}`)
	got, digests, out := compared(t, r, a, b)
	if text := listedChanges(out) + out.Why; got != Significant || digests != "other" || strings.Contains(text, "1111") || strings.Contains(text, "2222") {
		t.Errorf("%s, %s: %s", got, digests, text)
	}
	if !strings.Contains(out.Why, "secret") {
		t.Errorf("why: %s", out.Why)
	}
}

func TestADifferenceIsBounded(t *testing.T) {
	t.Parallel()
	var a, b strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&a, `,"k%d":"%s"`, i, strings.Repeat("a", 1000))
		fmt.Fprintf(&b, `,"k%d":"%s"`, i, strings.Repeat("b", 1000))
	}
	_, _, out := compared(t, rule("{}"), request(t, "POST https://api.test/things/x", `{"name":"n"`+a.String()+`}`),
		request(t, "POST https://api.test/things/x", `{"name":"n"`+b.String()+`}`))
	if len(out.Changes) != maxChanges || !out.More || len(listedChanges(out)) > maxChanges*(2*maxValue+maxPlace+40) {
		t.Errorf("%d changes, more %v, %d bytes", len(out.Changes), out.More, len(listedChanges(out)))
	}
	x, y := around(strings.Repeat("a", 500)+"x", strings.Repeat("a", 500)+"y")
	if !strings.HasSuffix(x, `aax"`) || !strings.HasSuffix(y, `aay"`) || len(x) > maxValue {
		t.Errorf("a difference far into a text: %s, %s", x, y)
	}
}

func TestProblemsOfPayloadRules(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ payload, more, key, part string }{
		{"normalise: {json.a: upper}", "", "operations[0].payload.normalise.json.a", "not one of"},
		{"normalise: {\"header['x-b']\": case}", "", "operations[0].payload.normalise.header['x-b']", "isn't payload"},
		{"normalise: {json.a: [html, markdown]}", "", "operations[0].payload.normalise.json.a", "either HTML or Markdown"},
		{"normalise: {'stored.a': case}", "", "operations[0].payload.normalise.stored.a", "can't be used here"},
		{"compare: 'stored.json.pin == json.a'", "    secret: [json.pin]", "operations[0].payload.compare", "keeps secret"},
		{"compare: 'json.pin == 1'", "    secret: [json.pin]", "operations[0].payload.compare", "keeps secret"},
		{"compare: 'stored == {}'", "    secret: [json.pin]", "operations[0].payload.compare", "keeps secret"},
		{"compare: 'response.status == 1'", "", "operations[0].payload.compare", "undeclared"},
		{"compare: path.other", "", "operations[0].payload.compare", "no pattern has {other}"},
	} {
		_, findings := Load([]File{{Name: "test.yaml", Data: []byte(connectorHead + rule(c.payload, c.more))}}, nil, Defaults{})
		if len(findings) != 1 || findings[0].Key != c.key || !strings.Contains(findings[0].Problem, c.part) || findings[0].Fix == "" {
			t.Errorf("%s: %v", c.payload, findings)
		}
	}
}

// Whatever markup a script sends, its form is the same each time, and that of an
// equal text.
func FuzzMarkup(f *testing.F) {
	for _, s := range []string{"", "# a\n* b", "<p>a <b>b</b>", "<table><a>", "a\x00b", strings.Repeat("<a>", 300), "[a](b 'c')\n\n|a|b|\n|-|-|\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, n := range []collation{collateHTML, collateMarkdown, collateWhitespace | collateCase | collateNumbers} {
			if once, again := n.text(s), n.text(s); once != again {
				t.Errorf("%d: %q and %q", n, once, again)
			}
		}
	})
}
