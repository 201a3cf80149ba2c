package rules

import (
	"net/http"
	"reflect"
	"testing"
)

func TestNormaliseBringsSpellingsTogether(t *testing.T) {
	t.Parallel()
	cases := []struct{ name, in, want string }{
		{"upper-case host", "https://API.Test/a", "https://api.test/a"},
		{"trailing dot of the host", "https://api.test./a", "https://api.test/a"},
		{"default port of https", "https://api.test:443/a", "https://api.test/a"},
		{"default port of http", "http://api.test:080/a", "http://api.test/a"},
		{"another port stays", "https://api.test:80/a", "https://api.test:80/a"},
		{"international name", "https://Bücher.test/", "https://xn--bcher-kva.test/"},
		{"international name as A-label", "https://xn--bcher-kva.test/", "https://xn--bcher-kva.test/"},
		{"name with underscore", "https://My_Service.test/", "https://my_service.test/"},
		{"IPv6 address", "https://[2001:DB8:0:0::1]:8443/", "https://[2001:db8::1]:8443/"},
		{"IPv4 address", "https://127.0.0.1/", "https://127.0.0.1/"},
		{"no path", "https://api.test", "https://api.test/"},
		{"no path but a query", "https://api.test?a=b", "https://api.test/?a=b"},
		{"unreserved characters are decoded once", "https://api.test/%61%2D%7e%2541", "https://api.test/a-~%2541"},
		{"escapes are upper case", "https://api.test/a%2fb%c3%a9", "https://api.test/a%2Fb%C3%A9"},
		{"raw UTF-8 is escaped", "https://api.test/é?q=é", "https://api.test/%C3%A9?q=%C3%A9"},
		{"reserved characters stay as they are", "https://api.test/a:b@c+d=e,f", "https://api.test/a:b@c+d=e,f"},
		{"what WHATWG's clients leave bare", "https://api.test/[id]/a|b?c[]=|", "https://api.test/%5Bid%5D/a%7Cb?c[]=|"},
		{"the same, escaped", "https://api.test/%5bid%5d/a%7cb?c[]=|", "https://api.test/%5Bid%5D/a%7Cb?c[]=|"},
		{"a query with an escape that is no UTF-8", "https://api.test/a?b=%E9;c", "https://api.test/a?b=%E9;c"},
		{"slash at the end", "https://api.test/a/", "https://api.test/a/"},
		{"the query keeps its spelling", "https://api.test/a?b=%7e&c=a+b;d", "https://api.test/a?b=%7e&c=a+b;d"},
		{"an empty query stays", "https://api.test/a?", "https://api.test/a?"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			req := request(t, "GET "+tc.in, "")
			if got := req.URL(); got != tc.want {
				t.Errorf("URL() = %q, want %q", got, tc.want)
			}
			again := request(t, "GET "+req.URL(), "")
			if again.URL() != req.URL() {
				t.Errorf("normalised twice: %q", again.URL())
			}
		})
	}
}

func TestNormaliseRefusesWhatParsersReadDifferently(t *testing.T) {
	t.Parallel()
	cases := []struct{ name, line, part string }{
		{"lower-case method", "post https://api.test/", "method"},
		{"empty method", " https://api.test/", "method"},
		{"method with a space", "PO\tST https://api.test/", "method"},
		{"other scheme", "GET ftp://api.test/", "scheme"},
		{"user information", "GET https://api.test@evil.test/", "user information"},
		{"empty host", "GET https:///a", "host"},
		{"host with a space", "GET https://a b/", "host"},
		{"empty label", "GET https://a..b/", "host"},
		{"address in decimal", "GET https://2130706433/", "host"},
		{"short address", "GET https://127.1/", "host"},
		{"address in hexadecimal", "GET https://0x7f000001/", "host"},
		{"IPv6 without brackets", "GET https://::1/", "host"},
		{"IPv6 zone", "GET https://[fe80::1%25eth0]/", "host"},
		{"port 0", "GET https://api.test:0/", "port"},
		{"port too large", "GET https://api.test:65536/", "port"},
		{"port of letters", "GET https://api.test:https/", "port"},
		{"dot segment", "GET https://api.test/a/./b", "dot segment"},
		{"two dots", "GET https://api.test/a/../b", "dot segment"},
		{"escaped dots", "GET https://api.test/a/%2e%2E/b", "dot segment"},
		{"dots behind an escaped slash", "GET https://api.test/a/x%2f..", "dot segment"},
		{"backslash", `GET https://api.test/a\b`, "must be escaped"},
		{"escaped backslash", "GET https://api.test/a%5cb", "backslash"},
		{"NUL", "GET https://api.test/a%00", "control character"},
		{"line feed", "GET https://api.test/a%0a", "control character"},
		{"path parameter", "GET https://api.test/a;v=1", "path parameters"},
		{"half an escape", "GET https://api.test/a%4", "invalid escape"},
		{"wrong escape", "GET https://api.test/a%zz", "invalid escape"},
		{"no UTF-8", "GET https://api.test/a%ff", "UTF-8"},
		{"space", "GET https://api.test/a b", "must be escaped"},
		{"fragment in the path", "GET https://api.test/a#b", "must be escaped"},
		{"fragment in the query", "GET https://api.test/a?b#c", "query"},
		{"space in the query", "GET https://api.test/a?b c", "query"},
		{"backslash in the query", `GET https://api.test/a?b\c`, "query"},
		{"query that is no UTF-8", "GET https://api.test/a?\xff", "query"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			_, refusal := rawRequest(tc.line, "")
			wantRefusal(t, refusal, ProblemAmbiguous, tc.part)
		})
	}
}

func TestNormaliseRefusesAmbiguousHeaders(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name   string
		header http.Header
		part   string
	}{
		{"invalid name", http.Header{"A B": {"x"}}, "invalid name"},
		{"line feed in a value", http.Header{"A": {"x\ny: z"}}, "control character"},
		{"one name in two spellings", http.Header{"X-A": {"1"}, "x-a": {"2"}}, "two spellings"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			_, refusal := Normalise(Raw{Method: "GET", Scheme: "https", Authority: "api.test", Target: "/", Header: tc.header})
			wantRefusal(t, refusal, ProblemAmbiguous, tc.part)
		})
	}
}

func TestAsteriskIsForOptionsOnly(t *testing.T) {
	t.Parallel()
	raw := Raw{Method: "OPTIONS", Scheme: "https", Authority: "api.test", Target: "*"}
	req, refusal := Normalise(raw)
	if refusal != nil || req.Target() != "*" {
		t.Fatalf("OPTIONS *: %v, %v", req, refusal)
	}
	raw.Method = "POST"
	_, refusal = Normalise(raw)
	wantRefusal(t, refusal, ProblemAmbiguous, "not a path")
}

func TestRebuildGivesTheSameRequest(t *testing.T) {
	t.Parallel()
	for _, line := range []string{"POST https://api.test/a%2Fb/c?x=1&y=%20", "POST http://[::1]:8080/", "DELETE https://api.test/a/"} {
		req := request(t, line, `{"a":1}`, "Content-Type: application/json")
		again, refusal := Rebuild(req.Method, req.URL(), req.Header, req.Body())
		if refusal != nil {
			t.Fatalf("%s: %v", line, refusal)
		}
		if again.URL() != req.URL() || string(again.Body()) != string(req.Body()) || !again.BodyLoaded() {
			t.Errorf("%s came back as %s", req.URL(), again.URL())
		}
	}
	_, refusal := Rebuild("GET", "nothing", nil, nil)
	wantRefusal(t, refusal, ProblemAmbiguous, "scheme")
}

func TestARequestWithOtherHeaderFieldsIsTheOneRebuiltWithThem(t *testing.T) {
	t.Parallel()
	req := request(t, "POST https://api.test/a%2Fb/c?x=1", `{"a":1}`, "Content-Type: application/json", "X-Account: 7")
	req = req.WithAccount(&Connector{Head: Head{Hash: "h"}}, "seven")
	before := req.read()
	for name, change := range map[string]func(http.Header){
		"none":                  func(http.Header) {},
		"one that isn't there":  func(h http.Header) { h.Del("X-Account") },
		"the media type":        func(h http.Header) { h.Set("Content-Type", "application/json; charset=us-ascii") },
		"another character set": func(h http.Header) { h.Set("Content-Type", "application/json; charset=latin1") },
		"two media types":       func(h http.Header) { h.Add("Content-Type", "text/plain") },
		"the encoding":          func(h http.Header) { h.Set("Content-Encoding", "gzip") },
		"AWS's encoding":        func(h http.Header) { h.Set("Content-Encoding", "aws-chunked") },
		"its length alone":      func(h http.Header) { h.Set("X-Amz-Decoded-Content-Length", "7") },
		"another spelling":      func(h http.Header) { h["x-other"] = []string{"1"} },
		"an underscore":         func(h http.Header) { h["X_account"] = []string{"8"} },
		"two spellings":         func(h http.Header) { h["x-account"] = []string{"8"} },
		"a control character":   func(h http.Header) { h.Set("X-Account", "7\n8") },
	} {
		header := req.Header.Clone()
		change(header)
		want, wantRefused := Rebuild(req.Method, req.URL(), header, req.Body())
		got, refused := req.WithHeader(header)
		if !reflect.DeepEqual(refused, wantRefused) {
			t.Errorf("%s: refused with %v, want %v", name, refused, wantRefused)
			continue
		}
		if want == nil {
			continue
		}
		want.read()
		got.read()
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
		if (got.content == before) != declaredBy(header).equal(declaredBy(req.Header)) {
			t.Errorf("%s: the body was read again, or wasn't where it says something else now", name)
		}
	}
	unread, _ := Normalise(Raw{Method: "POST", Scheme: "https", Authority: "api.test", Target: "/", HasBody: true})
	later, refused := unread.WithHeader(http.Header{"X-Other": {"1"}})
	if refused != nil || later.WithBody([]byte(`{"a":1}`)).read().json == nil || unread.content != nil {
		t.Errorf("of a body to come nothing is read yet: %v", refused)
	}
}

func TestBodyIsReadOnlyWhenItIsLoaded(t *testing.T) {
	t.Parallel()
	req, refusal := Normalise(Raw{Method: "POST", Scheme: "https", Authority: "api.test", Target: "/", HasBody: true})
	if refusal != nil || !req.HasBody() || req.BodyLoaded() {
		t.Fatalf("a body to come: %v %v", req, refusal)
	}
	wantRefusal(t, req.read().problem, ProblemAmbiguous, "not read yet")
	loaded := req.WithBody([]byte(`{"a":1}`))
	if !loaded.BodyLoaded() || loaded.read().json == nil {
		t.Error("the body that came is not read")
	}
	if empty := req.WithBody(nil); empty.HasBody() || !empty.BodyLoaded() {
		t.Error("an empty body is a body")
	}
}

func FuzzNormalise(f *testing.F) {
	f.Add("GET", "https", "api.test", "/a/%2e/b?c=d")
	f.Add("POST", "http", "[::1]:80", "/%61;x")
	f.Add("PUT", "https", "Bücher.test:443", "/é/")
	f.Fuzz(func(t *testing.T, method, scheme, authority, target string) {
		req, refusal := Normalise(Raw{Method: method, Scheme: scheme, Authority: authority, Target: target})
		if refusal != nil {
			return
		}
		again, refusal := Rebuild(req.Method, req.URL(), req.Header, nil)
		if refusal != nil {
			t.Fatalf("%q is refused when it comes again: %v", req.URL(), refusal)
		}
		if again.URL() != req.URL() {
			t.Fatalf("%q became %q", req.URL(), again.URL())
		}
	})
}
