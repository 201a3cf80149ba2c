package proxy

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// RFC 9110 §7.6.2: OPTIONS ends where Max-Forwards is 0.
func TestMaxForwards(t *testing.T) {
	t.Parallel()
	seen := make(chan string, 1)
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		seen <- r.Header.Get(headerMaxForwards)
		created(rw, r)
	})
	r := w.open("a")
	if g := send(r.client, http.MethodOptions, w.upstream.URL+"/read", "", headerMaxForwards, "0"); g.err != nil || g.status != http.StatusOK || g.body != "" {
		t.Errorf("at the last hop: %d %q, %v", g.status, g.body, g.err)
	}
	w.wantSends("/read", 0)
	if g := send(r.client, http.MethodOptions, w.upstream.URL+"/read", "", headerMaxForwards, "3"); g.status != http.StatusCreated {
		t.Errorf("with hops left: %d, %v", g.status, g.err)
	}
	if left := <-seen; left != "2" {
		t.Errorf("3 were left, and it goes out with %q", left)
	}
	w.wantSends("/read", 1)
}

// A client of HTTP/1.0 gets no Transfer-Encoding (RFC 9112 §6.1), and its connection is
// not kept (§9.3), whatever it asks for. An answer to HEAD has no content.
func TestAClientOfHTTP10(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/sized" {
			rw.Header().Set("Content-Length", "9")
		}
		_, _ = io.WriteString(rw, "some")
		_ = http.NewResponseController(rw).Flush()
		_, _ = io.WriteString(rw, " more")
	})
	r := w.open("a")
	ask := func(method, path string) string {
		// What is said ahead must not be heard.
		text := method + " " + w.upstream.URL + path + " HTTP/1.0\r\nConnection: keep-alive\r\n" + w.basic(r.token) + "\r\n"
		return string(w.talk(text + text))
	}
	for method, content := range map[string]string{http.MethodGet: "some more", http.MethodHead: ""} {
		for _, path := range []string{"/read", "/sized"} {
			head, body, _ := strings.Cut(ask(method, path), "\r\n\r\n")
			if body != content || strings.Contains(head, "Transfer-Encoding") || !strings.Contains(head, "\r\nConnection: close") {
				t.Errorf("%s %s: %s\n\n%s", method, path, head, body)
			}
			if path == "/sized" && !strings.Contains(head, "\r\nContent-Length: 9") {
				t.Errorf("%s: the length is gone: %s", method, head)
			}
		}
	}
	w.wantSends("/read", 2)
	w.wantSends("/sized", 2)
}
