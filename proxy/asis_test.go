package proxy

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
)

// noHost are rules that leave the upstream to no connector.
var noHost = strings.Replace(testRules, `["HOST"]`, `["elsewhere.test"]`, 1)

// asIs are targets that a connector's host would refuse, or get in another spelling.
var asIs = []string{
	"//", "//ad/logo.png", "/a//b", "/web/2020/https://example.com/", "/a;b=c", "/a;b?c;d", "/x/[id]/p.tsx", "/a|b", "//a|b?c|d", "/caf%E9", "/caf%e9",
	"/%2e%2e/x", "/%2E%2E/x", "/a/../b", "/./a", "/..", `/a\b`, `/a\..\b?c\d`, "/%7Euser", "/%5bid%5D", "/a%2fb", "/a%00b", "/%0d%0a", "/p?a=%E9&b[]=1&c=[|]", "/p?", "/?x",
	"/p?q=%zz", "/\"<>^`{}", "/\xc3\xa4?\xc3\xa4", "/p?_method=GET",
}

// bare are targets with what is no escape, and no UTF-8. net/http reads none of them.
var bare = []string{"/100%", "/%zz/x?%", "/caf\xe9?\xff", "//%"}

// heads is an upstream that notes request lines and answers them.
func heads(t *testing.T) (authority string, lines chan string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	lines = make(chan string, 256)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = c.Close() }()
				for in := bufio.NewReader(c); ; {
					line, err := in.ReadString('\n')
					for more := line; err == nil && more != "\r\n"; {
						more, err = in.ReadString('\n')
					}
					if err != nil {
						return
					}
					lines <- strings.TrimSpace(line)
					_, _ = io.WriteString(c, "HTTP/1.1 204 No Content\r\n\r\n")
				}
			}()
		}
	}()
	return l.Addr().String(), lines
}

func TestAReadThatNobodyJudgesGoesOutAsItCame(t *testing.T) {
	t.Parallel()
	up, lines := heads(t)
	w := newWorld(t, created)
	r := w.open("a")
	for name, way := range map[string]func() (c net.Conn, before, head string){
		"in absolute form": func() (net.Conn, string, string) {
			c, err := net.Dial("tcp", w.address)
			if err != nil {
				t.Fatal(err)
			}
			return c, "http://" + up, w.basic(r.token)
		},
		"in a tunnel": func() (net.Conn, string, string) { c, _, _ := r.tunnelTo(up); return c, "", "" },
	} {
		c, before, head := way()
		_ = c.SetDeadline(time.Now().Add(waitLimit))
		in := bufio.NewReader(c)
		for _, target := range append(bare, asIs...) {
			for _, method := range []string{"GET", "HEAD", "OPTIONS"} {
				_, _ = fmt.Fprintf(c, "%s %s%s HTTP/1.1\r\nHost: %s\r\n%s\r\n", method, before, target, up, head)
				resp, err := http.ReadResponse(in, &http.Request{Method: method})
				if err != nil || resp.StatusCode != http.StatusNoContent {
					t.Fatalf("%s: %s %s: %v, %v", name, method, target, resp, err)
				}
				if got, want := <-lines, method+" "+target+" HTTP/1.1"; got != want {
					t.Errorf("%s: sent %q, want %q", name, got, want)
				}
			}
		}
		_ = c.Close()
	}
}

// The same holds with content, and where client and upstream speak HTTP/2.
func TestAReadThatNobodyJudgesGoesOutAsItCameOverHTTP2(t *testing.T) {
	t.Parallel()
	for _, h2 := range []bool{true, false} {
		seen := make(chan string, 1)
		w := newOver(t, h2, noHost, func(rw http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			seen <- r.RequestURI
			rw.WriteHeader(http.StatusNoContent)
		})
		r := w.open("a")
		for _, target := range asIs {
			for content, length := range map[string]string{"": "0", "short": "5", strings.Repeat("x", 20<<10): "20480"} {
				framer := r.h2session()
				fields := [][2]string{{":method", "GET"}, {":scheme", "https"}, {":authority", w.authority}, {":path", target}, {"content-length", length}}
				end := content == ""
				if err := framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block(fields), EndHeaders: true, EndStream: end}); err != nil {
					t.Fatal(err)
				}
				for rest := content; rest != ""; {
					piece := rest[:min(len(rest), 16<<10)]
					rest = rest[len(piece):]
					if err := framer.WriteData(1, rest == "", []byte(piece)); err != nil {
						t.Fatal(err)
					}
				}
				if got := outcomeOf(t, framer); got != "204" {
					t.Fatalf("%s (%s bytes, upstream HTTP/2: %t): %s", target, length, h2, got)
				}
				if got := <-seen; got != target {
					t.Errorf("sent %q, want %q", got, target)
				}
			}
		}
	}
}

// Where something is judged, or may change something, it is as strict as ever.
func TestWhatIsJudgedNeverGoesOutAsItCame(t *testing.T) {
	t.Parallel()
	w := newOver(t, false, testRules, created)
	up, lines := heads(t)
	r := w.open("a")
	ask := func(c net.Conn, host, method, before, target, head string) int {
		_ = c.SetDeadline(time.Now().Add(waitLimit))
		_, _ = fmt.Fprintf(c, "%s %s%s HTTP/1.1\r\nHost: %s\r\n%s\r\n", method, before, target, host, head)
		resp, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: method})
		if err != nil {
			t.Fatalf("%s %s: %v", method, target, err)
		}
		_ = c.Close()
		return resp.StatusCode
	}
	for _, target := range []string{
		"//read", "/read//x", "/read;a=b", "/caf%E9", "/%2e%2e/read", "/read/../x", `/read\x`, `/read?a\b`, "/100%", "/caf\xe9", "/read?\xff", "/read/%00",
	} {
		c, _, _ := r.tunnelTo(w.authority)
		session := tls.Client(c, &tls.Config{RootCAs: w.roots, ServerName: "127.0.0.1", MinVersion: tls.VersionTLS12})
		if got := ask(session, w.authority, "GET", "", target, ""); got != http.StatusUnprocessableEntity {
			t.Errorf("a connector's host: GET %s: %d", target, got)
		}
	}
	dial := func() net.Conn {
		c, err := net.Dial("tcp", w.address)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	for _, c := range []struct {
		method, target, fields string
		status                 int
	}{
		{"POST", "//x", "Content-Length: 0\r\n", 422}, {"DELETE", "/a;b", "", 422}, {"PUT", "/a|b", "Content-Length: 0\r\n", 403},
		{"GET", "/x?_method=DELETE", "", 403}, {"GET", "/x?_method=get&_method=PUT", "", 403}, {"GET", "//x?x-http-method-override=POST", "", 403},
		{"GET", "/x", "X-HTTP-Method-Override: DELETE\r\n", 403}, {"GET", "/x", "X-HTTP-Method: GET\r\nX-HTTP-Method: MERGE\r\n", 403},
		{"GET", "/x", "X-Original-URL: /admin\r\n", 403}, {"GET", "/x?_method=", "", 403}, {"GET", "/x\x01", "", 400}, {"GET", "/x y", "", 400}, {"GET", "/x#y", "", 400},
	} {
		if got := ask(dial(), up, c.method, "http://"+up, c.target, w.basic(r.token)+c.fields); got != c.status {
			t.Errorf("%s %s %s: %d, want %d", c.method, c.target, c.fields, got, c.status)
		}
	}
	for _, fields := range []string{"X-HTTP-Method-Override: GET\r\n", "X-HTTP-Method: HEAD\r\n"} {
		if got := ask(dial(), up, "GET", "http://"+up, "/same", w.basic(r.token)+fields); got != http.StatusNoContent {
			t.Errorf("%s: %d", fields, got)
		}
		<-lines
	}
	if len(lines) > 0 || w.sends.total() > 0 {
		t.Errorf("sent: %d, %q", w.sends.total(), <-lines)
	}
}
