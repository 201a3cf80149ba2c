package rules

import (
	"strings"
	"testing"
)

// Two spellings that reach one server must be one host here, or a script could
// walk around a connector by spelling.
func TestNoSpellingOfAHostWalksAroundItsConnector(t *testing.T) {
	t.Parallel()
	set := load(t, connectorHead+simpleMutation)
	cases := []struct{ name, host string }{
		{"upper case", "API.TEST"},
		{"trailing dot", "api.test."},
		{"default port with leading zeros", "api.test:00443"},
		{"full-width letters", "ａｐｉ.test"},
		{"ideographic full stop", "api。test"},
		{"soft hyphen, which mapping drops", "api\u00ad.test"},
		{"punycode of what needs none", "xn--api-.test"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			req, refusal := rawRequest("POST https://"+tc.host+"/things/a", `{"name":"n"}`)
			if refusal != nil {
				wantRefusal(t, refusal, ProblemAmbiguous, "host")
				return
			}
			if m := set.Match(req); m.Operation == nil {
				t.Errorf("the host %q passes the connector as %q: %+v", tc.host, req.Host, m)
			}
		})
	}
}

func TestHostsThatResolversReadDifferentlyAreRefused(t *testing.T) {
	t.Parallel()
	cases := []struct{ name, authority, part string }{
		{"two trailing dots", "api.test..", "host"},
		{"an ideographic full stop at the end", "api.test。", "host"},
		{"an IPv4 address as IPv6", "[::ffff:127.0.0.1]", "host"},
		{"an address with a zone", "[fe80::1%25eth0]", "host"},
		{"an IPv4 address in brackets", "[127.0.0.1]", "host"},
		{"an open bracket", "[::1", "host"},
		{"something after the bracket", "[::1]x", "host"},
		{"an address with leading zeros", "127.0.0.01", "host"},
		{"an address with a trailing dot", "127.0.0.1.", "host"},
		{"full-width digits", "１２７.0.0.1", "host"},
		{"an address in octal", "0177.0.0.1", "host"},
		{"a percent escape", "api%2etest", "host"},
		{"a slash of full width", "api.test／x", "host"},
		{"broken punycode", "xn--\x80.test", "host"},
		{"punycode that decodes to nothing valid", "xn--a.test", "host"},
		{"invalid UTF-8", "api\xff.test", "host"},
		{"a label of 64 characters", strings.Repeat("a", 64) + ".test", "host"},
		{"a name of 254 characters", strings.Repeat("a.", 126) + "ab", "host"},
		{"user information without a password", "user@api.test", "user information"},
		{"an empty user", "@api.test", "user information"},
		{"port zero", "api.test:0", "port"},
		{"a port above 65535", "api.test:65536", "port"},
		{"a signed port", "api.test:+443", "port"},
		{"a port by name", "api.test:https", "port"},
		{"two ports", "api.test:80:443", "host"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			req, refusal := Normalise(Raw{Method: "POST", Scheme: "https", Authority: tc.authority, Target: "/"})
			if refusal == nil {
				t.Fatalf("taken as %q", req.Host)
			}
			wantRefusal(t, refusal, ProblemAmbiguous, tc.part)
		})
	}
}

func TestConfusablesAreOtherHosts(t *testing.T) {
	t.Parallel()
	set := load(t, connectorHead+simpleMutation)
	for _, host := range []string{"аpi.test", "api-test", "api.test.evil.test", "xapi.test"} {
		req := request(t, "POST https://"+host+"/things/a", `{"name":"n"}`)
		if m := set.Match(req); !m.Unmatched || m.Operation != nil {
			t.Errorf("%s is taken for the connector's host", host)
		}
	}
}

// A pattern that no normalised host can match would leave its API without a
// connector, and say nothing.
func TestHostPatternsThatCouldNeverMatchAreRefused(t *testing.T) {
	t.Parallel()
	for pattern, part := range map[string]string{
		"bücher.{x}.test":  "characters of a host",
		"a%41.{x}.test":    "characters of a host",
		"a b.{x}.test":     "must be escaped",
		"{x}.a$.test":      "characters of a host",
		"{x}.{x}.test":     "twice",
		"API.{x}.test":     "lower case",
		"{x}..test":        "",
		"{x}.test:0":       "port",
		"https://api.test": "neither scheme nor path",
		"api.test:":        "port is missing",
		"{x}":              "at least one label",
	} {
		_, err := parseHostPattern(pattern)
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%s: %v, want …%s…", pattern, err, part)
		}
	}
}
