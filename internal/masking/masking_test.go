package masking

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

func TestCredentialsAreMasked(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ secret, text, want string }{
		"the whole value":                   {"Bearer sk_live_123", "sent Bearer sk_live_123 once", "sent <secret> once"},
		"the token without its scheme":      {"Bearer sk_live_123", `{"key":"sk_live_123"}`, `{"key":"<secret>"}`},
		"every occurrence":                  {"sk_live_123", "sk_live_123 sk_live_123", "<secret> <secret>"},
		"a short value is left":             {"abc", "abcdef", "abcdef"},
		"the password":                      {"Basic dXNlci1uYW1lOnBhc3N3b3JkLTE=", "user-name with password-1", "user-name with <secret>"},
		"the pair of a user and a password": {"Basic dXNlci1uYW1lOnBhc3N3b3JkLTE=", "it was dXNlci1uYW1lOnBhc3N3b3JkLTE=", "it was <secret>"},
		"a key in the user's place":         {"Basic c2tfbGl2ZV8xMjM6", "Invalid key: sk_live_123", "Invalid key: <secret>"},
		"what only looks like Base64":       {"Bearer sk_live_123", "user:key", "user:key"},
		"no credential":                     {"", "text", "text"},
		"nothing of it":                     {"sk_live_123", "sk_live_12", "sk_live_12"},
		"in a query":                        {"a b/c+d=e?f", "?k=a+b%2Fc%2Bd%3De%3Ff&x=1", "?k=<secret>&x=1"},
		"in a path":                         {"a b/c+d=e?f", "/v1/a%20b%2fc+d=e%3Ff/x", "/v1/<secret>/x"},
		"in JSON, with slashes escaped":     {"ab/cd/ef/gh", `{"k":"ab\/cd\/ef\/gh"}`, `{"k":"<secret>"}`},
		"in JSON, safe for HTML":            {`"<&>"'<&>`, `["\"\u003c\u0026\u003E\"'\u003c&>"]`, `["<secret>"]`},
		"in JSON, in ASCII":                 {"pass-é-𝄞", `"pass-\u00e9-\ud834\udd1e"`, `"<secret>"`},
		"every letter escaped":              {"abcdefgh", "%61%62%63%64%65%66%67%68", "<secret>"},
		"what looks like an escape":         {"50%25off%", "x 50%25off% y 50%2525off%25 z", "x <secret> y <secret> z"},
		"a half of a pair":                  {"pass-𝄞-x", `pass-\ud834 pass-\ud834x`, `pass-\ud834 pass-\ud834x`},
		"ends in the middle of an escape":   {"abcdefg/", `abcdefg%2 abcdefg\u00`, `abcdefg%2 abcdefg\u00`},
		"begins again within what fits not": {"aaaaaaab", "aaaaaaaa%61aab", "aaaa<secret>"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := Secrets{tc.secret}
			if got := s.Text(tc.text); got != tc.want || s.In(tc.text) != (tc.want != tc.text) {
				t.Errorf("text: got %q, want %q", got, tc.want)
			}
			in := []byte(tc.text)
			if got := s.Bytes(in); string(got) != tc.want || string(in) != tc.text || (tc.want == tc.text) != same(got, in) {
				t.Errorf("content: got %q, want %q", got, tc.want)
			}
			h := http.Header{"X-Echo": {"first", tc.text, tc.text}, "X-Other": {tc.text}, "X-Kept": {"kept"}}
			got := s.Header(h)
			for _, one := range append(got["X-Echo"][1:], got["X-Other"]...) {
				if one != tc.want {
					t.Errorf("header: got %q, want %q", one, tc.want)
				}
			}
			if got["X-Echo"][0] != "first" || got["X-Kept"][0] != "kept" || len(got) != 3 || h["X-Echo"][1] != tc.text || h["X-Other"][0] != tc.text {
				t.Errorf("header: %v became %v", h, got)
			}
		})
	}
	if h := http.Header(nil); Secrets(nil).Header(h) != nil || Secrets(nil).Text("x") != "x" {
		t.Error("without a credential something is changed")
	}
}

// What the standard library spells is found again, and what is masked holds nothing of it.
func FuzzSpellings(f *testing.F) {
	f.Add("Bearer sk_live_123/+=", "before", "after")
	f.Add("a%20b%2525c", "%", "\\")
	f.Add("pass-é-𝄞\"\\<>&", "", "\\u00")
	f.Fuzz(func(t *testing.T, secret, before, after string) {
		if len(secret) < shortest {
			return
		}
		for _, spelt := range []string{secret, url.QueryEscape(secret), url.PathEscape(secret)} {
			if got := (Secrets{secret}).Text(before + spelt + after); !strings.Contains(got, Masked) {
				t.Errorf("%q is not found in %q", secret, before+spelt+after)
			}
		}
		spelt, err := json.Marshal(secret)
		if err != nil || strings.ToValidUTF8(secret, "") != secret {
			return
		}
		if got := (Secrets{secret}).Bytes(spelt); !strings.Contains(string(got), Masked) {
			t.Errorf("%q is not found in %s", secret, spelt)
		}
	})
}
