package rules

import "testing"

func TestRefusedStreamsAreTrustedUnlessTheFileOptsOut(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		line string
		want bool
	}{
		"nothing said": {"", true},
		"trusted":      {"trust_refused: true\n", true},
		"opted out":    {"trust_refused: false\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := "apiVersion: keep/v1\nconnector: api\nversion: 1\nhosts: [api.example]\nreads: safe-methods\n" + c.line + "operations: []\n"
			set, findings := Load([]File{{Name: "api.yaml", Data: []byte(text)}}, nil, Defaults{})
			if set == nil {
				t.Fatal(findings)
			}
			if got := set.Connector("api").TrustRefused; got != c.want {
				t.Errorf("trusted: %t, want %t", got, c.want)
			}
		})
	}
}
