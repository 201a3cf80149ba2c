package proxy

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"testing"

	"keep-proxy/proxy/strict"
	"keep-proxy/rules"
)

// judged reads the first request of a text as the proxy does: past the scanner, by
// net/http, into its judged form. ok is false if it is refused or not whole.
func judged(text []byte) (req *rules.Request, body []byte, ok bool) {
	var s strict.Scanner
	skip, pass, f := s.Scan(text)
	if f != nil || s.Connected() {
		return nil, nil, false
	}
	r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(text[skip : skip+pass])))
	if err != nil {
		return nil, nil, false
	}
	if body, err = io.ReadAll(r.Body); err != nil {
		return nil, nil, false
	}
	r.URL.Scheme = "http"
	if r.URL.Host == "" {
		r.URL.Host = r.Host
	}
	raw := rawRequest(r)
	raw.Header.Del("Content-Length")
	raw.HasBody, raw.Body = len(body) > 0, body
	req, refusal := rules.Normalise(raw)
	return req, body, refusal == nil
}

// FuzzTheRebuiltRequestIsTheJudgedOne: what is written from the judged form is read as
// the same, by the scanner, net/http and the rules: host, target, fields and content.
func FuzzTheRebuiltRequestIsTheJudgedOne(f *testing.F) {
	for _, text := range []string{
		"GET http://h/a%41?q#=% HTTP/1.1\r\nHost: h\r\n\r\n",
		"GET /%7ea/%2Fb?x=%zz HTTP/1.1\r\nHost: H.:80\r\nX-A: \t b \r\nx-a: c\r\n\r\n",
		"POST /\xc3\xa4 HTTP/1.1\r\nHost: [::1]:080\r\nTransfer-Encoding: chunked\r\n\r\n3;a=b\r\nabc\r\n0\r\nX: y\r\n\r\n",
		"OPTIONS * HTTP/1.0\r\nHost: 127.0.0.1\r\nContent-Length: 1\r\n\r\nx",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		first, body, ok := judged(text)
		if !ok || first.Target() == "*" {
			return // OPTIONS of everything has no URL that net/url reads.
		}
		out, err := http.NewRequestWithContext(t.Context(), first.Method, first.URL(), bytes.NewReader(body))
		if err != nil {
			t.Fatalf("the judged form is no request: %v", err)
		}
		out.Host, out.Header = first.Authority(), first.Header.Clone()
		if out.Header.Get("User-Agent") == "" {
			out.Header["User-Agent"] = nil
		}
		var wire bytes.Buffer
		if err := out.Write(&wire); err != nil {
			t.Fatalf("%s %s can't be written: %v", first.Method, first.URL(), err)
		}
		second, again, ok := judged(wire.Bytes())
		if !ok {
			t.Fatalf("the rebuilt request is refused: %q", wire.Bytes())
		}
		if first.Method != second.Method || first.URL() != second.URL() || !bytes.Equal(body, again) {
			t.Fatalf("%s %s with %q became %s %s with %q", first.Method, first.URL(), body, second.Method, second.URL(), again)
		}
		for name, values := range first.Header {
			if name == "User-Agent" && values[0] == "" {
				continue
			}
			if len(second.Header[name]) != len(values) {
				t.Fatalf("%s: %q became %q", name, values, second.Header[name])
			}
		}
	})
}
