package rules

import "testing"

// placesRule has places of every kind that don't count, or count little.
const placesRule = connectorHead + `
  - name: make
    match: {method: [POST, PUT], path: "/things/{kind}/{rest...}"}
    effect: mutation
    identity: {name: "header[?'x-name'].orValue('n')"}
    payload:
      ignore: ["json.tags[*]", json.meta.at, "json.lines[*].seen", "json.first[0]", json.whole, "form['expand[]']", query.page, path.kind]
      minor: [json.note, "json.lines[*].note", json.soft, "form['memo']", query.hint, "header['x-hint']", json.meta.maybe]
      headers: [X-Source, X-Hint]
    reconcile: [{none: why}]
    manual_check: look
`

func TestWhichDifferencesOfAPayloadCount(t *testing.T) {
	t.Parallel()
	const (
		equal = iota
		minor
		significant
	)
	form := []string{formHeader}
	cases := []struct {
		name, a, b   string
		headA, headB []string
		lineB        string
		want         int
	}{
		{name: "order of members and white space", a: `{"a":1,"b":[1,2]}`, b: "{ \"b\": [1, 2],\n\"a\": 1 }", want: equal},
		{name: "escapes", a: `{"a":"é/"}`, b: `{"a":"\u00e9\/"}`, want: equal},
		{name: "spelling of a number", a: `{"a":10}`, b: `{"a":1e1}`, want: equal},
		{name: "a number and its text", a: `{"a":10}`, b: `{"a":"10"}`, want: significant},
		{name: "the last digit of a long integer", a: `{"a":12345678901234567890123}`, b: `{"a":12345678901234567890124}`, want: significant},
		{name: "order of elements", a: `{"b":[1,2]}`, b: `{"b":[2,1]}`, want: significant},
		{name: "null and absent", a: `{"a":null}`, b: `{}`, want: significant},
		{name: "empty and absent", a: `{"a":""}`, b: `{}`, want: significant},
		{name: "an empty object and no body", a: `{}`, b: ``, want: significant},
		{name: "JSON under another type", a: `{"a":1}`, b: `{"a":1}`, headB: []string{"Content-Type: text/plain"}, want: equal},
		{name: "elements that are ignored", a: `{"tags":["x"]}`, b: `{"tags":["y","z"]}`, want: equal},
		{name: "elements that are ignored, and none", a: `{"tags":["x"]}`, b: `{}`, want: equal},
		{name: "text where the elements are ignored", a: `{"tags":"x"}`, b: `{"tags":"y"}`, want: significant},
		{name: "a member below that is ignored", a: `{"meta":{"at":1,"x":1}}`, b: `{"meta":{"x":1,"at":2}}`, want: equal},
		{name: "its neighbour", a: `{"meta":{"at":1,"x":1}}`, b: `{"meta":{"at":1,"x":2}}`, want: significant},
		{name: "the same name elsewhere", a: `{"at":1}`, b: `{"at":2}`, want: significant},
		{name: "a member of each element that is ignored", a: `{"lines":[{"seen":1,"n":1}]}`, b: `{"lines":[{"n":1}]}`, want: equal},
		{name: "the number of elements", a: `{"lines":[{"seen":1}]}`, b: `{"lines":[{"seen":1},{"seen":2}]}`, want: significant},
		{name: "one element that is ignored", a: `{"first":[1,2]}`, b: `{"first":[9,2]}`, want: equal},
		{name: "the element after it", a: `{"first":[1,2]}`, b: `{"first":[1,3]}`, want: significant},
		{name: "a whole object that is ignored", a: `{"whole":{"a":[1]}}`, b: `{"whole":7}`, want: equal},
		{name: "a minor member", a: `{"note":"a"}`, b: `{"note":"b"}`, want: minor},
		{name: "a minor member and none", a: `{"note":"a"}`, b: `{}`, want: minor},
		{name: "a minor member of each element", a: `{"lines":[{"note":"a"}]}`, b: `{"lines":[{"note":"b"}]}`, want: minor},
		{name: "minor and ignored members of one element", a: `{"lines":[{"note":"a","seen":1}]}`, b: `{"lines":[{"note":"b","seen":2}]}`, want: minor},
		{name: "minor and ignored members of one object", a: `{"meta":{"maybe":1,"at":1,"x":1}}`, b: `{"meta":{"maybe":2,"at":2,"x":1}}`, want: minor},
		{name: "a minor whole object", a: `{"soft":{"a":1}}`, b: `{"soft":[]}`, want: minor},
		{name: "a minor and a significant difference", a: `{"note":"a","a":1}`, b: `{"note":"b","a":2}`, want: significant},
		{name: "order of fields", a: "a=1&b=2", b: "b=2&a=1", headA: form, headB: form, want: equal},
		{name: "escapes of fields", a: "a=x+y&b=%7e", b: "a=x%20y&b=~", headA: form, headB: form, want: equal},
		{name: "order of one field's values", a: "a=1&a=2", b: "a=2&a=1", headA: form, headB: form, want: significant},
		{name: "an ignored field", a: "a=1&expand[]=x&expand[]=y", b: "a=1", headA: form, headB: form, want: equal},
		{name: "a minor field", a: "a=1&memo=x", b: "a=1&memo=y", headA: form, headB: form, want: minor},
		{name: "a field without a value", a: "a=1&b", b: "a=1&b=", headA: form, headB: form, want: equal},
		{name: "a form and JSON", a: "a=1", b: `{"a":"1"}`, headA: form, want: significant},
		{name: "a listed header field", headA: []string{"X-Source: a"}, headB: []string{"X-Source: b"}, want: significant},
		{name: "a listed header field and none", headA: []string{"X-Source: a"}, want: significant},
		{name: "another header field", headA: []string{"Traceparent: a", "Authorization: a"}, headB: []string{"Traceparent: b"}, want: equal},
		{name: "a minor header field", headA: []string{"X-Hint: a"}, headB: []string{"X-Hint: b"}, want: minor},
		{name: "method", lineB: "PUT https://api.test/things/k/r", want: significant},
		{name: "an ignored path variable", lineB: "POST https://api.test/things/other/r", want: equal},
		{name: "another path variable", lineB: "POST https://api.test/things/k/other", want: significant},
		{name: "an ignored parameter", lineB: "POST https://api.test/things/k/r?page=2", want: equal},
		{name: "a minor parameter", lineB: "POST https://api.test/things/k/r?hint=2", want: minor},
		{name: "another parameter", lineB: "POST https://api.test/things/k/r?x=2", want: significant},
		{name: "an escaped spelling of the path", lineB: "POST https://api.test/things/%6b/%72", want: equal},
	}
	set := load(t, placesRule)
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			lineA := "POST https://api.test/things/k/r"
			lineB := tc.lineB
			if lineB == "" {
				lineB = lineA
			}
			a := derive(t, set, request(t, lineA, tc.a, tc.headA...))
			b := derive(t, set, request(t, lineB, tc.b, tc.headB...))
			got := significant
			switch {
			case a.PayloadDigest == b.PayloadDigest:
				got = equal
			case a.SignificantDigest == b.SignificantDigest:
				got = minor
			}
			if got != tc.want {
				t.Errorf("difference %d, want %d", got, tc.want)
			}
			if a.PayloadDigest == b.PayloadDigest && a.SignificantDigest != b.SignificantDigest {
				t.Error("one payload has two significant digests")
			}
		})
	}
}
