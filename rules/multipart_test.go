package rules

import (
	"net/http"
	"strings"
	"testing"
)

// parted is a form with a file, as clients write it (RFC 7578).
func parted(boundary, end, text string) string {
	lines := []string{
		"--" + boundary, `Content-Disposition: form-data; name="note"`, "", text,
		"--" + boundary, `Content-Disposition: form-data; name="file"; filename="a"`, "Content-Type: text/plain", "", "a\x00b",
		"--" + boundary + "--",
	}
	return strings.Join(lines, end) + end
}

func ofForm(boundary, body string) *content {
	return newRequest(http.Header{"Content-Type": {`multipart/form-data; boundary="` + boundary + `"`}}, body).read()
}

func newRequest(header http.Header, body string) *Request {
	return (&Request{Header: header}).WithBody([]byte(body))
}

func TestABoundaryIsNoPartOfWhatABodySays(t *testing.T) {
	t.Parallel()
	const boundary = "------------------------18260bdc"
	first := ofForm(boundary, parted(boundary, "\r\n", "hi")).digest()
	for _, other := range []string{"b-7", "===============1234==", oneBoundary} {
		c := ofForm(other, parted(other, "\r\n", "hi"))
		if c.digest() != first || hexDigest(c.judged()) != first {
			t.Errorf("with the boundary %q it is another body", other)
		}
	}
	if got := ofForm("b-7", strings.TrimSuffix(parted("b-7", "\n", "hi"), "\n")); got.boundary != "b-7" {
		t.Error("lines that end with LF, and none behind the last one, are not parted")
	}
	if ofForm(boundary, parted(boundary, "\r\n", "ho")).digest() == first {
		t.Error("another text is the same body")
	}
	zipped := http.Header{"Content-Type": {"multipart/form-data; boundary=b-7"}, "Content-Encoding": {"gzip"}}
	if newRequest(zipped, squeeze(t, "gzip", parted("b-7", "\r\n", "hi"))).read().digest() != first {
		t.Error("a compressed one is another body")
	}
}

// What can't be parted for certain counts as it stands.
func TestWhatABoundaryDoesNotPartCountsByItsBytes(t *testing.T) {
	t.Parallel()
	whole := parted("b-1", "\r\n", "hi")
	for _, tc := range []struct{ name, contentType, body string }{
		{"another boundary", "multipart/form-data; boundary=c", whole},
		{"no boundary", "multipart/form-data", whole},
		{"no multipart", "text/plain; boundary=b-1", whole},
		{"the boundary in a text", "multipart/form-data; boundary=b-1", parted("b-1", "\r\n", "not b-1")},
		{"the boundary in a longer line", "multipart/form-data; boundary=b-1", parted("b-1", "\r\n", "a\r\n--b-12")},
		{"no end", "multipart/form-data; boundary=b-1", strings.TrimSuffix(whole, "--b-1--\r\n")},
		{"a line that is cut", "multipart/form-data; boundary=b-1", strings.TrimSuffix(whole, "--\r\n")},
		{"something behind the end", "multipart/form-data; boundary=b-1", whole + whole},
		{"what stands for boundaries", "multipart/form-data; boundary=b-1", parted("b-1", "\r\n", "\r\n--"+oneBoundary+"\r\n")},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c := newRequest(http.Header{"Content-Type": {tc.contentType}}, tc.body).read()
			if c.boundary != "" || c.digest() != hexDigest([]byte(tc.body)) || string(c.judged()) != tc.body {
				t.Errorf("parted at %q", c.boundary)
			}
		})
	}
}

func TestAFormWithAFileIsTheSameMutationAtTheNextRun(t *testing.T) {
	t.Parallel()
	set := load(t, withOperation("identity: {of: body_sha256}", "subkey: body_sha256", "payload: {normalise: {body: whitespace}}"))
	made := func(boundary, text string) *Derived {
		return derive(t, set, request(t, "POST https://api.test/things", parted(boundary, "\r\n", text), "Content-Type: multipart/form-data; boundary="+boundary))
	}
	first, again, other := made("a1", "hi"), made("a2", "hi"), made("a1", "ho")
	if string(first.Identity["of"]) != string(again.Identity["of"]) || first.Subkey != again.Subkey {
		t.Error("another boundary is another mutation")
	}
	if first.PayloadDigest != again.PayloadDigest || first.SignificantDigest != again.SignificantDigest {
		t.Error("another boundary is another payload")
	}
	if first.Subkey == other.Subkey || first.PayloadDigest == other.PayloadDigest {
		t.Error("another text is the same mutation")
	}
}
