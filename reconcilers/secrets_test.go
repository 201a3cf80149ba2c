package reconcilers

import (
	"net/http"
	"strings"
	"testing"
)

func TestSecretsAreMasked(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ secret, text, want string }{
		"the whole value":              {"Bearer sk_live_123", "sent Bearer sk_live_123 once", "sent <secret> once"},
		"the token without its scheme": {"Bearer sk_live_123", `{"key":"sk_live_123"}`, `{"key":"<secret>"}`},
		"every occurrence":             {"sk_live_123", "sk_live_123 sk_live_123", "<secret> <secret>"},
		"a short value is left":        {"abc", "abcdef", "abcdef"},
		"no credential":                {"", "text", "text"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := secrets{tc.secret}
			if got := s.mask(tc.text); got != tc.want {
				t.Errorf("text: got %q, want %q", got, tc.want)
			}
			if got := string(s.body([]byte(tc.text))); got != tc.want {
				t.Errorf("body: got %q, want %q", got, tc.want)
			}
			if got := strings.Join(s.header(http.Header{"X-Echo": {tc.text}})["X-Echo"], ""); got != tc.want {
				t.Errorf("header: got %q, want %q", got, tc.want)
			}
		})
	}
}
