package proxy

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// FuzzProxyAuthorization holds the reading of Proxy-Authorization against net/http's of
// Authorization, which has the same form (RFC 7617), and item names against their writing.
func FuzzProxyAuthorization(f *testing.F) {
	f.Add("Basic cnVuOnRva2Vu")
	f.Add("basic   cnVuOmE6Yg==")
	f.Add("Bearer cnVuOnRva2Vu")
	f.Add("Basic aW52b2ljZSUyMDE3OnRva2Vu")
	f.Fuzz(func(t *testing.T, value string) {
		if strings.ContainsAny(value, "\r\n") {
			return // No field value has them (RFC 9110 §5.5), and base64 passes over them.
		}
		user, password, ok := basicCredentials([]string{value})
		scheme, rest, _ := strings.Cut(value, " ")
		r := http.Request{Header: http.Header{"Authorization": {scheme + " " + strings.TrimSpace(rest)}}}
		wantUser, wantPassword, want := r.BasicAuth()
		want = want && wantUser != "" && wantPassword != ""
		if ok != want || ok && (user != wantUser || password != wantPassword) {
			t.Fatalf("%q is read as %q, %q, %t; net/http says %q, %q, %t", value, user, password, ok, wantUser, wantPassword, want)
		}
		if _, _, twice := basicCredentials([]string{value, value}); twice {
			t.Fatalf("%q is taken though it is given twice", value)
		}
		if !ok {
			return
		}
		item, err := itemName(user)
		if err != nil {
			return
		}
		if again, err := itemName(url.PathEscape(item)); err != nil || again != item {
			t.Fatalf("the item %q of %q came back as %q, %v", item, value, again, err)
		}
	})
}
