package rules

import (
	"bytes"
	"compress/gzip"
	"testing"
	"time"
)

// sample is the record that tests write into requests: that of cases, claimed at a whole second.
func sample() Mutation {
	m := caseMutation()
	m.ClaimedAt = m.ClaimedAt.Truncate(time.Second)
	return m
}

func TestOutgoingWritesKeyAndMarkerAndNothingElse(t *testing.T) {
	t.Parallel()
	const form = "Content-Type: application/x-www-form-urlencoded"
	cases := []struct {
		name, keys, line, body string
		header                 []string
		wantURL, wantBody      string
		wantHeader             map[string]string
	}{
		{"neither", "", "POST https://api.test/things?a=%7e", `{"name": 1.50}`, nil, "https://api.test/things?a=%7e", `{"name": 1.50}`, nil},
		{"key in a header", "native_key: {header: Idempotency-Key}", "POST https://api.test/things", `{ "name":"n" }`, nil,
			"https://api.test/things", `{ "name":"n" }`, map[string]string{"Idempotency-Key": CaseVendorKey}},
		{"key in place of the script's own", "native_key: {header: Idempotency-Key}", "POST https://api.test/things", `{"name":"n"}`, []string{"Idempotency-Key: mine"},
			"https://api.test/things", `{"name":"n"}`, map[string]string{"Idempotency-Key": CaseVendorKey}},
		{"key in the query", "native_key: {query: requestId}", "POST https://api.test/things?b=%7e&requestId=mine&c=+", `{"name":"n"}`, nil,
			"https://api.test/things?b=%7e&requestId=" + CaseVendorKey + "&c=+", `{"name":"n"}`, nil},
		{"key into an empty query", "native_key: {query: requestId}", "POST https://api.test/things", `{"name":"n"}`, nil,
			"https://api.test/things?requestId=" + CaseVendorKey, `{"name":"n"}`, nil},
		{"key and marker in JSON", "native_key: {json: request.id}\n    marker: {json: meta.keep}", "POST https://api.test/things", `{"name":"n","big":123456789012345678901234567890, "meta":{"a":1}}`, nil,
			"https://api.test/things", `{"name":"n","big":123456789012345678901234567890, "meta":{"a":1,"keep":"` + CaseMarker + `"},"request":{"id":"` + CaseVendorKey + `"}}`, nil},
		{"marker in a form", "marker: {form: 'metadata[keep]'}", "POST https://api.test/things", `name=a+b&metadata[keep]=old`, []string{form},
			"https://api.test/things", `name=a+b&metadata%5Bkeep%5D=` + CaseMarker, nil},
		{"marker into no form", "marker: {form: keep}", "POST https://api.test/things", "", nil,
			"https://api.test/things", "keep=" + CaseMarker, map[string]string{"Content-Type": "application/x-www-form-urlencoded"}},
		{"key and marker in a form", "native_key: {form: key}\n    marker: {form: keep}", "POST https://api.test/things", "a=&&name=x&", []string{form},
			"https://api.test/things", "a=&&name=x&key=" + CaseVendorKey + "&keep=" + CaseMarker, nil},
		{"marker appended", `marker: {append: json.body, text: "\n<{mutation.marker}>"}`, "POST https://api.test/things", `{"name":"n","body":"caf\u00e9"}`, nil,
			"https://api.test/things", `{"name":"n","body":"caf\u00e9\n<` + CaseMarker + `>"}`, nil},
		{"marker appended to null", `marker: {append: json.body, text: "<{mutation.marker}>"}`, "POST https://api.test/things", `{"name":"n","body":null}`, nil,
			"https://api.test/things", `{"name":"n","body":"<` + CaseMarker + `>"}`, nil},
		{"marker appended to nothing", `marker: {append: json.body, text: "<{mutation.marker}>"}`, "POST https://api.test/things", `{"name":"n"}`, nil,
			"https://api.test/things", `{"name":"n","body":"<` + CaseMarker + `>"}`, nil},
		{"marker with more in its text", `marker: {json: ref, text: "{json.name}/{mutation.marker}"}`, "POST https://api.test/things", `{"name":"n"}`, nil,
			"https://api.test/things", `{"name":"n","ref":"n/` + CaseMarker + `"}`, nil},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			_, op := operation(t, mutationWith(tc.keys))
			req := request(t, tc.line, tc.body, tc.header...)
			before := req.URL() + string(req.Body())
			out, refusal := op.Outgoing(req, sample())
			if refusal != nil {
				t.Fatal(refusal)
			}
			if out.URL() != tc.wantURL || string(out.Body()) != tc.wantBody {
				t.Errorf("sends %s %s\nwant  %s %s", out.URL(), out.Body(), tc.wantURL, tc.wantBody)
			}
			for name, want := range tc.wantHeader {
				if got := out.Header.Values(name); len(got) != 1 || got[0] != want {
					t.Errorf("%s: %v, want %q", name, got, want)
				}
			}
			if req.URL()+string(req.Body()) != before {
				t.Error("the judged request was changed")
			}
		})
	}
}

// mutationWith is an operation without identity and with more keys.
func mutationWith(keys string) string {
	return "  - name: make\n    match: {method: POST, path: /things}\n    effect: mutation\n    identity: none\n" +
		"    reconcile: [{none: why}]\n    manual_check: look\n    " + keys + "\n"
}

func TestOutgoingRefuses(t *testing.T) {
	t.Parallel()
	const jsonKey = "native_key: {json: id}"
	cases := []struct {
		name, keys, body string
		header           []string
		mu               Mutation
		problem          Problem
		part             string
	}{
		{"no key", "native_key: {header: K}", `{}`, nil, Mutation{}, ProblemIdentity, "no usable key"},
		{"a key that is no header value", "native_key: {header: K}", `{}`, nil, Mutation{VendorKey: "a\nb"}, ProblemIdentity, "no usable key"},
		{"the script's own key where it isn't taken", "native_key: {header: K, when_present: refuse}", `{}`, []string{"K: mine"}, sample(), ProblemAmbiguous, "brings its own"},
		{"the script's own key in JSON", "native_key: {json: id, when_present: refuse}", `{"id":1}`, nil, sample(), ProblemAmbiguous, "brings its own"},
		{"a body that is no JSON", jsonKey, `hello`, nil, sample(), ProblemIdentity, "no JSON"},
		{"a body that is a list", jsonKey, `[1]`, nil, sample(), ProblemIdentity, "no object at that place"},
		{"JSON that repeats a name", jsonKey, `{"a":1,"a":2}`, nil, sample(), ProblemAmbiguous, "repeats"},
		{"a body that is no form", "marker: {form: keep}", `{"a":1}`, nil, sample(), ProblemIdentity, "no form"},
		{"no marker", "marker: {json: keep}", `{"a":1}`, nil, Mutation{}, ProblemIdentity, "no marker"},
		{"a marker appended to a number", `marker: {append: json.a, text: "{mutation.marker}"}`, `{"a":1}`, nil, sample(), ProblemIdentity, "other than a text"},
		{"a marker text without value", `marker: {json: a, text: "{json.b}{mutation.marker}"}`, `{"a":1}`, nil, sample(), ProblemIdentity, "no value"},
		{"a digest of the body", jsonKey, `{"a":1}`, []string{"Content-Digest: sha-256=:x:"}, sample(), ProblemAmbiguous, "Content-Digest"},
		{"an unknown encoding", jsonKey, `{"a":1}`, []string{"Content-Encoding: zstd"}, sample(), ProblemAmbiguous, "Content-Encoding"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			_, op := operation(t, mutationWith(tc.keys))
			_, refusal := op.Outgoing(request(t, "POST https://api.test/things", tc.body, tc.header...), tc.mu)
			wantRefusal(t, refusal, tc.problem, tc.part)
		})
	}
}

func TestOutgoingSendsAChangedBodyWithoutItsEncoding(t *testing.T) {
	t.Parallel()
	_, op := operation(t, mutationWith("native_key: {json: id}"))
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, _ = z.Write([]byte(`{"a":1}`))
	_ = z.Close()
	req := request(t, "POST https://api.test/things", zipped.String(), "Content-Encoding: gzip", "Content-Length: 99")
	out, refusal := op.Outgoing(req, sample())
	if refusal != nil {
		t.Fatal(refusal)
	}
	if string(out.Body()) != `{"a":1,"id":"`+CaseVendorKey+`"}` || out.Header.Get("Content-Encoding")+out.Header.Get("Content-Length") != "" {
		t.Errorf("sends %v %s", out.Header, out.Body())
	}
	if req.Header.Get("Content-Encoding") != "gzip" {
		t.Error("the judged request was changed")
	}
}

func TestClientKey(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name, keys, line, body string
		header                 []string
		want                   string
	}{
		{"in a header", "native_key: {header: Idempotency-Key}", "POST https://api.test/things", "", []string{"Idempotency-Key: mine"}, "mine"},
		{"none", "native_key: {header: Idempotency-Key}", "POST https://api.test/things", "", nil, ""},
		{"two", "native_key: {header: Idempotency-Key}", "POST https://api.test/things", "", []string{"Idempotency-Key: a", "Idempotency-Key: b"}, ""},
		{"empty", "native_key: {header: Idempotency-Key}", "POST https://api.test/things", "", []string{"Idempotency-Key: "}, ""},
		{"in the query", "native_key: {query: k}", "POST https://api.test/things?k=q", "", nil, "q"},
		{"in JSON", "native_key: {json: a.k}", "POST https://api.test/things", `{"a":{"k":"j"}}`, nil, "j"},
		{"a list in JSON", "native_key: {json: a.k}", "POST https://api.test/things", `{"a":{"k":[]}}`, nil, ""},
		{"an API without a key", "", "POST https://api.test/things", "", []string{"Idempotency-Key: mine"}, ""},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			_, op := operation(t, mutationWith(tc.keys))
			got, ok := op.ClientKey(request(t, tc.line, tc.body, tc.header...))
			if got != tc.want && ok || ok != (tc.want != "") {
				t.Errorf("ClientKey = %q, %v; want %q", got, ok, tc.want)
			}
		})
	}
}
