package rules

import (
	"bytes"
	"net/url"
	"strings"
	"testing"
)

// What is sent is what the script sent, with the marker in it, in JSON and in a form's JSON text.
func FuzzMergedMarker(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"metadata":{"event_type":"a","event_payload":{"keep_id":1,"n":[1.50]}},"x":"\ud83c\udf08"}`, `{"metadata":null}`, `[]`, `{"a":1,"a":2}`,
		`{"metadata":{"Event_Type":1}}`, ` { "metadata" : { } } `, `{"":{"":0}}`, `{"metadata":[{}]}`, `{"x":` + strings.Repeat("[", 1100),
	} {
		f.Add(seed)
	}
	_, op := operation(f, mutationWith(slackMarker))
	f.Fuzz(func(t *testing.T, text string) {
		for _, form := range []bool{false, true} {
			body, header := text, jsonHeader
			if form {
				body, header = "a=b&metadata="+url.QueryEscape(text), formHeader
			}
			req, refusal := rawRequest("POST https://api.test/things", body, header)
			if refusal != nil {
				continue
			}
			out, refusal := op.Outgoing(req, sample())
			if refusal != nil || body == "" {
				continue
			}
			sent, steps := out.Body(), []placeStep{{name: "metadata"}, {name: "event_payload"}, {name: "keep_id"}}
			if form {
				fields, err := url.ParseQuery(string(sent))
				if err != nil || fields.Get("a") != "b" || len(fields) != 2 {
					t.Fatalf("%q is sent as %q", body, sent)
				}
				sent, steps = []byte(fields.Get("metadata")), steps[1:]
			}
			before, err := parseJSON([]byte(text))
			after, other := parseJSON(sent)
			if err != nil || other != nil {
				t.Fatalf("%q is sent as %q: %v, %v", body, sent, err, other)
			}
			if got, _ := walk(after, steps); got.text != CaseMarker {
				t.Fatalf("%q is sent without the marker: %q", body, sent)
			}
			for i, name := range before.names {
				if was, is := &before.items[i], must(after.member(name)); name != steps[0].name && !bytes.Equal(canonicalValue(was), canonicalValue(is)) {
					t.Fatalf("%q is sent as %q", body, sent)
				}
			}
			if again, refusal := op.Outgoing(out, sample()); refusal != nil || string(again.Body()) != string(out.Body()) {
				t.Fatalf("%q is sent as %q, and then %v", body, out.Body(), refusal)
			}
		}
	})
}

func must(v *jsonValue, ok bool) *jsonValue {
	if !ok {
		return &jsonValue{}
	}
	return v
}
