package upstream

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

const ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

func TestH1Answers(t *testing.T) {
	t.Parallel()
	whole := Evidence{Head: true, Status: 200, BodyComplete: true}
	cut := Evidence{Head: true, Status: 200, ErrorClass: ErrorEOF}
	lost := func(c ErrorClass) Evidence { return Evidence{ErrorClass: c} }
	interim := "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
	for name, tc := range map[string]struct {
		answer  string
		want    Evidence
		content string
	}{
		"whole":                      {ok, whole, "ok"},
		"no content":                 {"HTTP/1.1 204 No Content\r\n\r\n", Evidence{Head: true, Status: 204, BodyComplete: true}, ""},
		"empty content":              {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", whole, ""},
		"chunked":                    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", whole, "ok"},
		"up to the end, HTTP/1.0":    {"HTTP/1.0 200 OK\r\n\r\nok", whole, "ok"},
		"a 500":                      {"HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n", Evidence{Head: true, Status: 500, BodyComplete: true}, ""},
		"a redirect":                 {"HTTP/1.1 307 Elsewhere\r\nLocation: /b\r\nContent-Length: 0\r\n\r\n", Evidence{Head: true, Status: 307, BodyComplete: true}, ""},
		"100 Continue before it":     {"HTTP/1.1 100 Continue\r\n\r\n" + ok, whole, "ok"},
		"eight interim responses":    {strings.Repeat(interim, 8) + ok, whole, "ok"},
		"nine interim responses":     {strings.Repeat(interim, 9) + ok, whole, "ok"},
		"interim without end":        {strings.Repeat(interim, 300) + ok, lost(ErrorTooBig), ""},
		"chunked over HTTP/1.0":      {"HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", lost(ErrorMalformed), ""},
		"chunked with a length":      {"HTTP/1.1 200 OK\r\nContent-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", whole, "ok"},
		"extra bytes after it":       {ok + "stray", whole, "ok"},
		"two heads":                  {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n" + ok, whole, ""},
		"closed before the head":     {"", lost(ErrorEOF), ""},
		"closed inside the head":     {"HTTP/1.1 200 OK\r\nContent-Le", lost(ErrorEOF), ""},
		"closed after an interim":    {interim, lost(ErrorEOF), ""},
		"cut length":                 {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nok", cut, "ok"},
		"cut chunk":                  {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nok", cut, "ok"},
		"cut before the last chunk":  {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n", cut, "ok"},
		"cut inside the trailers":    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nA: b", cut, "ok"},
		"broken chunk":               {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nok", Evidence{Head: true, Status: 200, ErrorClass: ErrorMalformed}, ""},
		"not HTTP":                   {"220 smtp.example ESMTP\r\n\r\n", lost(ErrorMalformed), ""},
		"a field without a colon":    {"HTTP/1.1 200 OK\r\nnonsense\r\n\r\n", lost(ErrorMalformed), ""},
		"two lengths that disagree":  {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nok", lost(ErrorMalformed), ""},
		"a negative length":          {"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", lost(ErrorMalformed), ""},
		"unasked switch of protocol": {"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", lost(ErrorMalformed), ""},
		"a status below 100":         {"HTTP/1.1 042 What\r\nContent-Length: 0\r\n\r\n", lost(ErrorMalformed), ""},
		"another major version":      {"HTTP/2.0 200 OK\r\nContent-Length: 0\r\n\r\n", lost(ErrorMalformed), ""},
		"an endless head":            {"HTTP/1.1 200 OK\r\nA: " + strings.Repeat("a", 9000), lost(ErrorTooBig), ""},
		"a head just over the limit": {headOf(8193), lost(ErrorTooBig), ""},
		"a head of just the limit":   {headOf(8192), whole, ""},
		"interim and head together":  {"HTTP/1.1 103 Hints\r\nA: " + strings.Repeat("a", 5000) + "\r\n\r\n" + headOf(5000), lost(ErrorTooBig), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, body := range []string{"", "a body"} {
				u := serve(t, nil, answering(tc.answer))
				s := sender(t, Config{MaxHead: 8192})
				g := send(t, s, post(u.url("http", "/m"), body))
				g.check(t, tc.want)
				if g.content != tc.content {
					t.Errorf("content %q, want %q", g.content, tc.content)
				}
				if n := u.sends.Load(); n != 1 {
					t.Errorf("the upstream read %d requests, want 1", n)
				}
				if n := u.bytes.Load(); n != g.ev.BytesWritten || !g.ev.RequestComplete {
					t.Errorf("the upstream read %d bytes, the evidence says %d (complete: %v)", n, g.ev.BytesWritten, g.ev.RequestComplete)
				}
			}
		})
	}
}

// headOf is a head of n bytes without content.
func headOf(n int) string {
	const start, end = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nA: ", "\r\n\r\n"
	return start + strings.Repeat("a", n-len(start)-len(end)) + end
}

func TestH1RequestIsRebuilt(t *testing.T) {
	t.Parallel()
	heads := make(chan string, 1)
	u := serve(t, nil, func(p *peer) {
		var head strings.Builder
		for !strings.HasSuffix(head.String(), "\r\n\r\n") {
			b, err := p.br.ReadByte()
			if err != nil {
				break
			}
			head.WriteByte(b)
		}
		heads <- head.String()
		p.say(ok)
	})
	for name, tc := range map[string]struct {
		method string
		header http.Header
		body   Body
		want   string
	}{
		"fields in order, repeated ones kept": {"POST", http.Header{"B": {"2"}, "A": {"1", "3"}}, Bytes("xy"), "A: 1\r\nA: 3\r\nB: 2\r\nContent-Length: 2\r\n"},
		"POST without a body":                 {"POST", nil, nil, "Content-Length: 0\r\n"},
		"POST with an empty body":             {"POST", nil, Bytes(""), "Content-Length: 0\r\n"},
		"DELETE without a body":               {"DELETE", nil, nil, ""},
		"fields of the hop are left out": {"PUT", http.Header{
			"Connection": {"x-hop, close"}, "X-Hop": {"1"}, "Keep-Alive": {"5"}, "Te": {"trailers"}, "Trailer": {"T"}, "Upgrade": {"h2c"},
			"Transfer-Encoding": {"chunked"}, "Content-Length": {"77"}, "content-length": {"78"}, "Host": {"evil.example"}, "Expect": {"100-continue"},
			"Proxy-Authorization": {"Basic x"}, "Proxy-Connection": {"close"}, "X-End": {"2"},
		}, Bytes("xyz"), "X-End: 2\r\nContent-Length: 3\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			r := &Request{Method: tc.method, URL: u.url("http", "/a b"), Host: "api.example", Header: tc.header, Body: tc.body}
			r.URL.RawQuery = "q=1"
			send(t, sender(t, Config{FreshFor: -1}), r).check(t, Evidence{Head: true, Status: 200, BodyComplete: true})
			want := tc.method + " /a%20b?q=1 HTTP/1.1\r\nHost: api.example\r\n" + tc.want + "\r\n"
			if got := <-heads; got != want {
				t.Errorf("head\n got %q\nwant %q", got, want)
			}
		})
	}
}

func TestH1TrailersAreRead(t *testing.T) {
	t.Parallel()
	for _, announced := range []string{"Trailer: X-Sum\r\n", ""} {
		u := serve(t, nil, answering("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n"+announced+"\r\n2\r\nok\r\n0\r\nX-Sum: 7\r\n\r\n"))
		g := send(t, sender(t, Config{}), post(u.url("http", "/"), "x"))
		g.check(t, Evidence{Head: true, Status: 200, BodyComplete: true})
		if v := g.Trailer.Get("X-Sum"); v != "7" {
			t.Errorf("announced by %q: trailer X-Sum = %q, want 7", announced, v)
		}
	}
}

func TestH1UnframedContentOverTLSNeedsTheClosingAlert(t *testing.T) {
	t.Parallel()
	for name, alert := range map[string]bool{"with the alert it is whole": true, "without it is cut": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := serve(t, serverTLS("http/1.1"), func(p *peer) {
				if _, _, read := p.request(); !read {
					return
				}
				p.say("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nok")
				if alert {
					_ = p.Close()
				}
			})
			want := Evidence{Head: true, Status: 200, BodyComplete: alert}
			if !alert {
				want.ErrorClass = ErrorEOF
			}
			g := send(t, sender(t, Config{}), post(u.url("https", "/"), "x"))
			g.check(t, want)
			if g.content != "ok" {
				t.Errorf("content %q, want ok", g.content)
			}
		})
	}
}

func TestH1EarlyAnswerIsReadWhileTheBodyIsWritten(t *testing.T) {
	t.Parallel()
	for _, status := range []int{200, 413} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			u := serve(t, nil, func(p *peer) {
				r, err := http.ReadRequest(p.br)
				if err != nil {
					return
				}
				p.say(fmt.Sprintf("HTTP/1.1 %d X\r\nContent-Length: 2\r\n\r\nno", status))
				if status == 200 {
					_, _ = io.Copy(io.Discard, r.Body)
				}
				p.wait()
			})
			r := post(u.url("http", "/"), "")
			r.Body = zeros(64 << 20)
			if status == 200 {
				// More than sockets buffer, and so little that it goes out within lastWords on a
				// busy machine, too.
				r.Body = zeros(8 << 20)
			}
			g := send(t, sender(t, Config{}), r)
			g.check(t, Evidence{Head: true, Status: status, BodyComplete: true})
			if g.ev.RequestComplete != (status == 200) {
				t.Errorf("request complete: %v after %d", g.ev.RequestComplete, status)
			}
		})
	}
}
