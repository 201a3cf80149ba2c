package rules

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
	"strings"
	"testing"
)

// judgeStart matches a request whose content comes later, and judges that. A buffer has all of it.
func judgeStart(t *testing.T, target string, content io.Reader, header map[string][]string) *Refusal {
	t.Helper()
	req, refusal := Normalise(Raw{Method: "POST", Scheme: "https", Authority: "api.test", Target: target, HasBody: true, Header: header})
	if refusal != nil {
		t.Fatal(refusal)
	}
	m := load(t, overriding).Match(req)
	if m.Refusal != nil || m.NeedsBody {
		t.Fatalf("needs the body: %t, %v", m.NeedsBody, m.Refusal)
	}
	if !m.ReadsStart(req) {
		return nil
	}
	if whole, there := content.(*bytes.Buffer); there {
		return m.JudgeWhole(req, whole.Bytes())
	}
	return m.JudgeStart(req, content)
}

func TestOverridesToUnsafeMethodsAreRefusedInWhatIsStreamed(t *testing.T) {
	t.Parallel()
	packed := func(body string, in func(io.Writer) io.WriteCloser) string {
		var out bytes.Buffer
		w := in(&out)
		_, _ = io.WriteString(w, body)
		_ = w.Close()
		return out.String()
	}
	const deleted = `{"_method":"DELETE"}`
	zipped := packed(deleted+strings.Repeat(" ", 1<<20), func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) })
	inflated := packed(deleted, func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) })
	form, long := "application/x-www-form-urlencoded", strings.Repeat("x", 60<<10)
	for _, tc := range []struct {
		name, kind, coding, body string
		passes                   bool
	}{
		{name: "a form", kind: form, body: "a=b&_method=DELETE"},
		{name: "a form, in lower case", kind: form, body: "_method=delete"},
		{name: "a form, as PHP reads it", kind: form, body: "+.method=PATCH"},
		{name: "a form, before a NUL", kind: form, body: "_method%00x=PATCH"},
		{name: "a form, by a field's name", kind: form, body: "X-HTTP-Verb=PUT"},
		{name: "a form, by a gateway's name", kind: form, body: "x_forwarded_method=PUT"},
		{name: "a form, of a method that nobody knows", kind: form, body: "_method=MERGE"},
		{name: "a form, of none", kind: form, body: "_method="},
		{name: "a form, the second time", kind: form, body: "_method=GET&_method=PUT"},
		{name: "a long form", kind: form, body: "a=" + long + "&_method=DELETE&b=" + long},
		{name: "JSON", kind: "application/json", body: `{"a":{"b":[1]},"_method":"DELETE"}`},
		{name: "JSON, escaped", kind: "application/vnd.api+json", body: "{\"\\u005fmethod\":\"DEL\\u0045TE\"}"},
		{name: "JSON, escaped so that no word is seen", kind: "application/json", body: "{\"_\\u006dethod\":\"DELETE\"}"},
		{name: "a form, escaped so that no word is seen", kind: form, body: "_%6dethod=DELETE"},
		{name: "a multipart body, in pieces", kind: "multipart/form-data; boundary=b", body: upload(`Content-Disposition: form-data; name*0="_met"; name*1="hod"`)},
		{name: "JSON behind a mark", kind: "application/json", body: "\xef\xbb\xbf" + deleted},
		{name: "JSON whose method is no text", kind: "application/json", body: `{"_method":["DELETE"]}`},
		{name: "JSON whose method comes late", kind: "application/json", body: `{"_method":` + strings.Repeat(" ", 70<<10) + `"DELETE"}`},
		{name: "long JSON", kind: "application/json", body: `{"a":"` + long + `","_method":"DELETE","b":"` + long + `"}`},
		{name: "JSON in gzip", kind: "application/json", coding: "gzip", body: zipped},
		{name: "JSON in gzip that is cut", kind: "application/json", coding: "gzip", body: zipped[:100]},
		{name: "JSON in deflate", kind: "application/json", coding: "deflate", body: inflated},
		{name: "JSON of two kinds", kind: "text/x-json", body: deleted},
		{name: "a multipart body", kind: "multipart/form-data; boundary=b", body: upload(`Content-Disposition: form-data; name="_method"`)},
		{name: "a form to a safe method", kind: form, body: "_method=get&a=b", passes: true},
		{name: "JSON to a safe method", kind: "application/json", body: `{"_method":"HEAD"}`, passes: true},
		{name: "JSON below the top", kind: "application/json", body: `{"a":{"_method":"DELETE"}}`, passes: true},
		{name: "JSON that logs requests", kind: "application/json", body: `{"request_method":"DELETE","method":"x","http_method":"PUT"}`, passes: true},
		{name: "a list", kind: "application/json", body: "[" + deleted + "]", passes: true},
		{name: "what comes behind 64 KiB", kind: form, body: "a=" + strings.Repeat(long, 2) + "&_method=DELETE", passes: true},
		{name: "no type, which may go both ways at once", body: deleted, passes: true},
		{name: "another type", kind: "application/x-protobuf", body: deleted, passes: true},
		{name: "no gzip", kind: "application/json", coding: "gzip", body: deleted, passes: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			header := map[string][]string{}
			if tc.kind != "" {
				header["Content-Type"] = []string{tc.kind}
			}
			if tc.coding != "" {
				header["Content-Encoding"] = []string{tc.coding}
			}
			for _, target := range []string{"/search", "/telemetry"} {
				for _, content := range []io.Reader{strings.NewReader(tc.body), bytes.NewBufferString(tc.body)} {
					f := judgeStart(t, target, content, header)
					if f == nil != tc.passes || f != nil && (f.Problem != ProblemOverride || strings.Contains(f.Detail, "DELETE")) {
						t.Errorf("%s, %T: %v", target, content, f)
					}
				}
			}
		})
	}
}

// What goes both ways at once isn't waited for longer than it takes.
func TestTheStartOfWhatIsStreamedIsReadNoFurtherThanNeeded(t *testing.T) {
	t.Parallel()
	for _, first := range []string{`{"a":1}`, "\x00\x00\x00\x00\x07{", `["a",`, "not JSON"} {
		more := errors.New("more was wanted")
		content := io.MultiReader(strings.NewReader(first), reads(func([]byte) (int, error) { t.Errorf("%q: %v", first, more); return 0, more }))
		if f := judgeStart(t, "/search", content, map[string][]string{"Content-Type": {"application/connect+json"}}); f != nil {
			t.Errorf("%q: %v", first, f)
		}
	}
}

type reads func([]byte) (int, error)

func (f reads) Read(b []byte) (int, error) { return f(b) }

func TestFieldsThatOverrideTheMethod(t *testing.T) {
	t.Parallel()
	for name, overrides := range map[string]bool{
		"X-Http-Method-Override": true, "X-Http-Method": true, "X-Method-Override": true, "X-Http-Verb": true, "X-Forwarded-Method": true,
		"X-Original-Method": true, "X-Http-Verb-Override": true, "X-Verb": true, "X-Rest-Method": true, "X-Tunneled-Method": true,
		"X_forwarded_method": true, "Http-Method-Override": true, "X-Original-Url": true, "X_rewrite_url": true,
		"Method": false, "Access-Control-Request-Method": false, "X-Payment-Method": false, "X-Forwarded-Proto": false, "X-Verbose": false,
		"X-Auth-Method": false, "X-Original-Uri": false, "X-Request-Id": false,
	} {
		if got := isOverrideField(name); got != overrides {
			t.Errorf("%s overrides: %t", name, got)
		}
	}
}
