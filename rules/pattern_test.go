package rules

import (
	"maps"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestPathPatterns(t *testing.T) {
	t.Parallel()
	cases := []struct {
		pattern, path string
		want          map[string]string // nil: no match
	}{
		{"/", "/", map[string]string{}},
		{"/", "/a", nil},
		{"/a/b", "/a/b", map[string]string{}},
		{"/a/b", "/a/b/", nil},
		{"/a/b/", "/a/b/", map[string]string{}},
		{"/a/b", "/a/%62", map[string]string{}},
		{"/a/b", "/A/b", nil},
		{"/repos/{owner}/{repo}", "/repos/o/r", map[string]string{"owner": "o", "repo": "r"}},
		{"/repos/{owner}/{repo}", "/repos/o", nil},
		{"/repos/{owner}", "/repos/a%20b%2Fc", map[string]string{"owner": "a b/c"}},
		{"/files/{path...}", "/files", map[string]string{"path": ""}},
		{"/files/{path...}", "/files/a/b", map[string]string{"path": "a/b"}},
		{"/files/{path...}", "/files/a/", nil},
		{"/files/{path...}/", "/files/a/b/", map[string]string{"path": "a/b"}},
		{"/files/{path...}/", "/files/", map[string]string{"path": ""}},
		{"/files/{path...}/", "/files/a", nil},
		{"/{path...}/", "/", nil},
		{"/{path...}", "/", map[string]string{"path": ""}},
		{"/{path...}", "/a", map[string]string{"path": "a"}},
		{"/{group...}/{repo}/push", "/repo/push", map[string]string{"group": "", "repo": "repo"}},
		{"/{group...}/{repo}/push", "/a/b/c/repo/push", map[string]string{"group": "a/b/c", "repo": "repo"}},
		{"/{group...}/{repo}/push", "/push/push/push", map[string]string{"group": "push", "repo": "push"}},
		{"/{group...}/{repo}/push", "/push", nil},
		{"/{group...}/{repo}/push", "/a/b/push/", nil},
		{"/{group...}/{repo}/push", "/a/b/pull", nil},
		{"/x/{group...}/x/", "/x/x/", map[string]string{"group": ""}},
		{"/x/{group...}/x/", "/x/", nil},
		{"/values/{range}:append", "/values/A1:append", map[string]string{"range": "A1"}},
		{"/values/{range}:append", "/values/A1%3Aappend", map[string]string{"range": "A1"}},
		{"/values/{range}:append", "/values/:append", nil},
		{"/bot{token}/send", "/bot123:x/send", map[string]string{"token": "123:x"}},
		{"/bot{token}/send", "/bo/send", nil},
		{"/a/%2A/%3Ab", "/a/*/:b", map[string]string{}},
	}
	for _, tc := range cases {
		p, err := parsePathPattern(tc.pattern)
		if err != nil {
			t.Fatalf("%s: %v", tc.pattern, err)
		}
		req := request(t, "GET https://api.test"+tc.path, "")
		vars, ok := p.match(&req.path)
		if ok != (tc.want != nil) || ok && !maps.Equal(vars, tc.want) {
			t.Errorf("%s on %s: %v %v, want %v", tc.pattern, tc.path, vars, ok, tc.want)
		}
	}
	if p, _ := parsePathPattern("/{path...}"); p.fits(&path{wire: "*"}) {
		t.Error("* is taken for a path")
	}
}

func TestPathPatternsThatAreRefused(t *testing.T) {
	t.Parallel()
	cases := []struct{ pattern, part string }{
		{"a", "begins with"}, {"", "begins with"}, {"/a?b=c", "query"}, {"/a//b", "empty segment"}, {"/{a...}/b/{c...}", "second variable"}, {"/{a...}/{a}", "comes twice"},
		{"/{a}/{a}", "comes twice"}, {"/{a}/{a...}", "comes twice"}, {"/{a", "segment pattern"}, {"/a}", "closing brace"}, {"/{}", "segment pattern"},
		{"/{a}{b}", "segment pattern"}, {"/{a b}", "segment pattern"},
		{"/a/*/b", "{name} for one segment"}, {"/a/**", "{name...} for the rest"}, {"/a/:id", "{name} for one segment"}, {"/..", "dot segment"}, {"/a b", "escaped"},
	}
	for _, tc := range cases {
		if _, err := parsePathPattern(tc.pattern); err == nil || !strings.Contains(err.Error(), tc.part) {
			t.Errorf("%q: %v, want an error about %q", tc.pattern, err, tc.part)
		}
	}
}

// Two patterns that one path fits must be known to overlap, or an ambiguity would
// load.
func TestPatternsThatShareAPathOverlap(t *testing.T) {
	t.Parallel()
	piece := rapid.SampledFrom([]string{"a", "b", "ab", "aa", "{x}", "a{x}", "{x}a", "a{x}b", "{x}ab"})
	rapid.Check(t, func(t *rapid.T) {
		draw := func(label string) *pathPattern {
			var b strings.Builder
			for i := range rapid.IntRange(0, 3).Draw(t, label+" length") {
				b.WriteString("/" + strings.ReplaceAll(piece.Draw(t, label), "x", string(rune('p'+i))))
			}
			b.WriteString(rapid.SampledFrom([]string{"", "/", "/{rest...}", "/{rest...}/"}).Draw(t, label+" end"))
			if strings.HasSuffix(b.String(), "...}") {
				for i := range rapid.IntRange(0, 2).Draw(t, label+" behind") {
					b.WriteString("/" + strings.ReplaceAll(piece.Draw(t, label), "x", string(rune('u'+i))))
				}
			}
			if b.Len() == 0 {
				b.WriteString("/")
			}
			p, err := parsePathPattern(b.String())
			if err != nil {
				t.Fatalf("%s: %v", b.String(), err)
			}
			return p
		}
		p, q := draw("p"), draw("q")
		word := rapid.SampledFrom([]string{"a", "b", "ab", "aa", "aab", "aba", "abab"})
		raw := ""
		for range rapid.IntRange(0, 4).Draw(t, "segments") {
			raw += "/" + word.Draw(t, "segment")
		}
		raw += rapid.SampledFrom([]string{"", "/"}).Draw(t, "slash")
		at, refusal := normalPath("GET", raw)
		if refusal != nil {
			t.Fatal(refusal)
		}
		if p.fits(&at) && q.fits(&at) && (!p.overlaps(q) || !q.overlaps(p)) {
			t.Fatalf("%s fits %s and %s, which are said not to overlap", raw, p.source, q.source)
		}
		if p.covers(q) && q.fits(&at) && !p.fits(&at) {
			t.Fatalf("%s fits %s and not %s, which is said to cover it", raw, q.source, p.source)
		}
	})
}

func TestHostPatterns(t *testing.T) {
	t.Parallel()
	cases := []struct {
		pattern, url string
		want         map[string]string // nil: no match
	}{
		{"api.test", "https://api.test/", map[string]string{}},
		{"API.test", "https://api.test/", map[string]string{}},
		{"api.test", "http://api.test/", map[string]string{}},
		{"api.test", "https://api.test:8443/", nil},
		{"api.test", "http://api.test:443/", nil},
		{"api.test:8443", "https://api.test:8443/", map[string]string{}},
		{"api.test:8443", "https://api.test/", nil},
		{"api.test:443", "https://api.test/", map[string]string{}},
		{"api.test:443", "http://api.test:443/", map[string]string{}},
		{"api.test:443", "http://api.test/", nil},
		{"[::1]:9000", "http://[::1]:9000/", map[string]string{}},
		{"sqs.{region}.test", "https://sqs.eu.test/", map[string]string{"region": "eu"}},
		{"sqs.{region}.test", "https://sqs.a.b.test/", nil},
		{"{name}-api.test", "https://x-api.test/", map[string]string{"name": "x"}},
		{"{name}.test:8443", "https://x.test:8443/", map[string]string{"name": "x"}},
	}
	for _, tc := range cases {
		p, err := parseHostPattern(tc.pattern)
		if err != nil {
			t.Fatalf("%s: %v", tc.pattern, err)
		}
		req := request(t, "GET "+tc.url, "")
		vars, ok := p.match(req.Scheme, req.Host, req.Port)
		if ok != (tc.want != nil) || ok && !maps.Equal(vars, tc.want) {
			t.Errorf("%s on %s: %v %v, want %v", tc.pattern, tc.url, vars, ok, tc.want)
		}
	}
	for _, bad := range []string{"", "https://api.test", "api.test/x", "api.test:", "api.test:0", "{a}.{b}", "{a", "A{x}.test", "a b"} {
		if _, err := parseHostPattern(bad); err == nil {
			t.Errorf("%q is taken for a host", bad)
		}
	}
}

func TestHostPatternsThatOverlap(t *testing.T) {
	t.Parallel()
	cases := []struct {
		a, b string
		want bool
	}{
		{"api.test", "api.test", true}, {"api.test", "api.test:443", true}, {"api.test", "api.test:8443", false},
		{"api.test", "{x}.test", true}, {"a.b.test", "{x}.test", false}, {"{x}-a.test", "b-{x}.test", true}, {"{x}a.test", "{x}b.test", false},
	}
	for _, tc := range cases {
		a, errA := parseHostPattern(tc.a)
		b, errB := parseHostPattern(tc.b)
		if errA != nil || errB != nil {
			t.Fatal(errA, errB)
		}
		if a.overlaps(b) != tc.want || b.overlaps(a) != tc.want {
			t.Errorf("%s and %s: %v, want %v", tc.a, tc.b, a.overlaps(b), tc.want)
		}
	}
}

func FuzzPathPattern(f *testing.F) {
	f.Add("/repos/{owner}/{repo...}", "/repos/a/b")
	f.Add("/v/{x}:append", "/v/a%3Aappend")
	f.Fuzz(func(t *testing.T, pattern, target string) {
		p, err := parsePathPattern(pattern)
		if err != nil {
			return
		}
		if !p.overlaps(p) {
			t.Fatalf("%q does not overlap itself", pattern)
		}
		at, refusal := normalPath("GET", target)
		if refusal != nil {
			return
		}
		if vars, ok := p.match(&at); ok {
			for name := range vars {
				if !p.has(name) {
					t.Fatalf("%q gave the variable %q on %q", pattern, name, target)
				}
			}
		}
	})
}
