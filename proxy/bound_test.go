package proxy

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// A script that logged in on its connection, as NTLM and Negotiate do, is the only one that its
// upstream takes for it, whatever it speaks with the proxy, and however it is sent.
func TestWhoLogsInOnAConnectionIsAloneOnIt(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	users := map[string]string{}
	answer := func(rw http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if a := r.Header.Get("Authorization"); a != "" {
			users[r.RemoteAddr] = a
		}
		_, _ = io.WriteString(rw, users[r.RemoteAddr])
	}
	w := newWorld(t, answer)
	plain := httptest.NewServer(http.HandlerFunc(answer))
	t.Cleanup(plain.Close)
	items := 0
	for _, h2 := range []bool{false, true} {
		for _, ask := range []struct{ method, target string }{
			{http.MethodGet, w.upstream.URL + "/read"},
			{http.MethodPost, w.upstream.URL + "/again"},
			{http.MethodGet, plain.URL + "/read"},
		} {
			as := func(item, authorization string) func(int, string) {
				r := w.open(item)
				r.client = w.newClient(r.user(), h2)
				return func(n int, want string) {
					t.Helper()
					body, header := "", []string(nil)
					if ask.method == http.MethodPost {
						body = fmt.Sprintf(`{"to":"%s %d"}`, item, n)
					}
					if authorization != "" && n == 0 {
						header = []string{"Authorization", authorization}
					}
					if g := send(r.client, ask.method, ask.target, body, header...); g.body != want || g.err != nil {
						t.Errorf("%s %s, HTTP/2 %t: %s was taken for %q, %v, want %q", ask.method, ask.target, h2, item, g.body, g.err, want)
					}
				}
			}
			items++
			alice, bob := as(fmt.Sprint("alice ", items), "NTLM alice"), as(fmt.Sprint("bob ", items), "")
			bob(0, "")
			alice(0, "NTLM alice")
			bob(1, "")
			alice(1, "NTLM alice")
		}
	}
}
