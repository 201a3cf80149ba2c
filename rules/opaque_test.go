package rules

import (
	"fmt"
	"strings"
	"testing"
)

// byBytes are operations of which some know the body by its bytes alone.
const byBytes = `
  - {name: put, match: {method: PUT, path: "/o/{key...}"}, effect: mutation, identity: {key: path.key, content: body_sha256}, reconcile: [{none: why}], manual_check: look}
  - {name: up, match: {method: POST, path: /up}, effect: mutation, identity: {content: body_sha256}, reconcile: [{none: why}], manual_check: look}
  - {name: named, match: {method: PUT, path: /named}, effect: mutation, identity: {name: json.name}, reconcile: [{none: why}], manual_check: look}
  - {name: asked, match: {method: PUT, path: /asked, when: "json.?a.orValue(1) == 1"}, effect: mutation, identity: {c: body_sha256}, reconcile: [{none: why}], manual_check: look}
  - {name: formed, match: {method: PUT, path: /formed}, effect: mutation, identity: {c: body_sha256}, payload: {ignore: [form.x]}, reconcile: [{none: why}], manual_check: look}
  - {name: spaced, match: {method: PUT, path: /spaced}, effect: mutation, identity: {c: body_sha256}, payload: {normalise: {body: whitespace}}, reconcile: [{none: why}], manual_check: look}
  - {name: secret, match: {method: PUT, path: /secret}, effect: mutation, identity: {c: body_sha256}, secret: [json.pin], reconcile: [{none: why}], manual_check: look}
  - {name: keyed, match: {method: PUT, path: /keyed}, effect: mutation, identity: {c: body_sha256}, native_key: {json: key, window: 24h}, reconcile: [{none: why}], manual_check: look}
  - {name: judged, match: {method: PUT, path: /judged}, effect: mutation, identity: {c: body_sha256}, success: "response.status == 200 && json.a == 1", reconcile: [{none: why}], manual_check: look}
`

func TestABodyThatCannotBeReadCountsByItsBytes(t *testing.T) {
	t.Parallel()
	set, op := operation(t, byBytes)
	zipped := squeeze(t, "gzip", "plain")
	const octets = "Content-Type: application/octet-stream"
	chunked := "5;chunk-signature=%s\r\n%s\r\n0;chunk-signature=%[1]s\r\n\r\n"
	for name, c := range map[string]struct {
		target, body string
		header       []string
		// counts is what the digest is of.
		counts string
	}{
		"brotli":                         {"PUT /o/a.js", "\x0b\x02", []string{octets, "Content-Encoding: br"}, "\x0b\x02"},
		"zstd, declared as JSON":         {"PUT /o/a.json", "\x28\xb5", []string{"Content-Type: application/json", "Content-Encoding: zstd"}, "\x28\xb5"},
		"no coding at all":               {"PUT /o/a", "x", []string{"Content-Encoding: utf-8"}, "x"},
		"what isn't gzip":                {"PUT /o/a", `{"a":1}`, []string{"Content-Encoding: gzip"}, `{"a":1}`},
		"gzip":                           {"PUT /o/a", zipped, []string{"Content-Encoding: gzip"}, "plain"},
		"gzip with more behind":          {"PUT /o/a", zipped + "x", []string{"Content-Encoding: gzip"}, zipped + "x"},
		"two codings":                    {"PUT /o/a", zipped, []string{"Content-Encoding: gzip, br"}, zipped},
		"aws-chunked that is none":       {"PUT /o/a", "noise", []string{"Content-Encoding: aws-chunked"}, "noise"},
		"aws-chunked":                    {"PUT /o/a", fmt.Sprintf(chunked, "aa", "12345"), []string{"Content-Encoding: aws-chunked", "X-Amz-Decoded-Content-Length: 5"}, "12345"},
		"aws-chunked around brotli":      {"PUT /o/a", fmt.Sprintf(chunked, "bb", "12345"), []string{"Content-Encoding: aws-chunked,br", "X-Amz-Decoded-Content-Length: 5"}, "12345"},
		"the same, named behind":         {"PUT /o/a", fmt.Sprintf(chunked, "cc", "12345"), []string{"Content-Encoding: br, aws-chunked", "X-Amz-Decoded-Content-Length: 5"}, "12345"},
		"another charset":                {"PUT /o/a.txt", "caf\xe9", []string{"Content-Type: text/plain; charset=iso-8859-1"}, "caf\xe9"},
		"a form in a PUT":                {"PUT /o/a", "\x0b", []string{formHeader, "Content-Encoding: br"}, "\x0b"},
		"a POST that is no form or JSON": {"POST /up", "\x0b", []string{octets, "Content-Encoding: br"}, "\x0b"},
		"plain JSON of a POST":           {"POST /up", `{"a":1}`, []string{"Content-Type: application/json", "Content-Encoding: UTF-8"}, `{"a":1}`},
		"a bomb":                         {"PUT /o/a", squeeze(t, "gzip", strings.Repeat(" ", maxDecoded+1)), []string{"Content-Encoding: gzip"}, squeeze(t, "gzip", strings.Repeat(" ", maxDecoded+1))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			method, target, _ := strings.Cut(c.target, " ")
			req := request(t, method+" https://api.test"+target, c.body, c.header...)
			d := derive(t, set, req)
			if got, want := string(d.Identity["content"]), `"`+hexDigest([]byte(c.counts))+`"`; got != want {
				t.Errorf("content is %s, want %s", got, want)
			}
			m := set.Match(req)
			out, refusal := m.Operation.Outgoing(req, Mutation{ID: "i"})
			if refusal != nil || string(out.Body()) != c.body || out.Header.Get("Content-Encoding") != req.Header.Get("Content-Encoding") {
				t.Errorf("sent: %v, %v", out, refusal)
			}
			if stored := m.Operation.Redact(req); string(stored.Body()) != c.body {
				t.Errorf("stored as %q", stored.Body())
			}
			other := request(t, method+" https://api.test"+target, c.body+"y", c.header...)
			if got := op.Compare(req, req); got.Likeness != Equivalent {
				t.Errorf("compared with itself: %+v", got)
			}
			if o, refusal := m.Operation.Derive(other, m); refusal == nil && o.PayloadDigest == d.PayloadDigest {
				t.Error("another body has the same payload")
			}
		})
	}
}

func TestWhatARuleReadsMustBeReadable(t *testing.T) {
	t.Parallel()
	set, _ := operation(t, byBytes)
	for name, c := range map[string]struct {
		target, body, coding, kind string
	}{
		"the identity":                  {"PUT /named", "\x0b", "br", "application/json"},
		"a condition of the match":      {"PUT /asked", "\x0b", "br", "application/json"},
		"an ignored place":              {"PUT /formed", "\x0b", "zstd", "application/octet-stream"},
		"a body that is normalised":     {"PUT /spaced", "a", "latin1", "text/plain"},
		"a secret place":                {"PUT /secret", "a", "gzip", "application/json"},
		"a place that is written":       {"PUT /keyed", "a", "br", "application/json"},
		"a condition on the answer":     {"PUT /judged", "a", "br", "application/json"},
		"a form of a POST":              {"POST /up", "\x0b", "br", "application/x-www-form-urlencoded"},
		"JSON of a POST":                {"POST /up", "\x0b", "zstd", "application/json"},
		"multipart content of a POST":   {"POST /up", "\x0b", "br", "multipart/form-data; boundary=x"},
		"an unread charset of a POST":   {"POST /up", "_method=x", "identity", "text/plain; charset=utf-16"},
		"chunks that are broken":        {"PUT /o/a", "5;chunk-signature=aa\r\n123", "aws-chunked", "text/plain"},
		"chunks around another coding":  {"PUT /o/a", "5\r\n123", "aws-chunked,br", "text/plain"},
		"chunks of no declared length":  {"PUT /o/a", "3\r\n123\r\n0\r\n\r\n", "aws-chunked", "text/plain"},
		"a body that is masked already": {"PUT /o/a", secretShown, "br", "text/plain"},
		"UTF-8 around another coding":   {"PUT /named", "\x0b", "br, utf-8", "application/json"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			method, target, _ := strings.Cut(c.target, " ")
			req := request(t, method+" https://api.test"+target, c.body, "Content-Type: "+c.kind, "Content-Encoding: "+c.coding)
			m := set.Match(req)
			refusal := m.Refusal
			if refusal == nil {
				_, refusal = m.Operation.Derive(req, m)
			}
			wantRefusal(t, refusal, ProblemAmbiguous, "")
		})
	}
}

func TestAContentCodingOfUTF8IsNone(t *testing.T) {
	t.Parallel()
	set, _ := operation(t, byBytes)
	plain := derive(t, set, request(t, "PUT https://api.test/named", `{"name":"n"}`, "Content-Type: application/json"))
	for _, coding := range []string{"utf-8", "UTF-8"} {
		req := request(t, "PUT https://api.test/named", `{ "name": "n" }`, "Content-Type: application/json", "Content-Encoding: "+coding)
		if d := derive(t, set, req); string(d.Identity["name"]) != string(plain.Identity["name"]) || d.PayloadDigest != plain.PayloadDigest {
			t.Errorf("%s: %s, another payload: %t", coding, d.Identity, d.PayloadDigest != plain.PayloadDigest)
		}
	}
}

func TestAnOverrideInABodyThatCountsByItsBytes(t *testing.T) {
	t.Parallel()
	set, _ := operation(t, byBytes)
	for kind, body := range map[string]string{"application/json": `{"_method":"DELETE"}`, "application/x-www-form-urlencoded": "_method=DELETE", "multipart/form-data; boundary=b": upload(`Content-Disposition: form-data; name="_method"`)} {
		m := set.Match(request(t, "POST https://api.test/up", body, "Content-Type: "+kind, "Content-Encoding: utf-8"))
		wantRefusal(t, m.Refusal, ProblemOverride, "_method")
	}
}
