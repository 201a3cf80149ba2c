package rules

import (
	"strings"
	"testing"
)

// FuzzHostPattern holds two patterns and an authority against each other: whatever both
// match they must be found to overlap for, or one host would belong to two connectors.
func FuzzHostPattern(f *testing.F) {
	f.Add("api.test", "{tenant}.test:443", "API.test", true)
	f.Add("{x}.shop.test", "eu-{y}.shop.test", "eu-1.shop.test:80", false)
	f.Fuzz(func(t *testing.T, one, other, authority string, secure bool) {
		scheme := "http"
		if secure {
			scheme = "https"
		}
		host, port, refusal := normalAuthority(authority, scheme)
		if refusal != nil {
			return
		}
		p, q := hostMatch(t, one, scheme, host, port), hostMatch(t, other, scheme, host, port)
		if p != nil && q != nil && (!p.overlaps(q) || !q.overlaps(p)) {
			t.Fatalf("%q and %q both match %s:%s, and don't overlap", one, other, host, port)
		}
	})
}

// hostMatch is the pattern, if it can be read and matches. Its variables put back into it
// must give the host again.
func hostMatch(t *testing.T, source, scheme, host, port string) *hostPattern {
	t.Helper()
	p, err := parseHostPattern(source)
	if err != nil {
		return nil
	}
	if !p.overlaps(p) {
		t.Fatalf("%q does not overlap itself", source)
	}
	vars, ok := p.match(scheme, host, port)
	if !ok {
		return nil
	}
	var labels []string
	for _, s := range p.labels {
		value, named := vars[s.name]
		if named != (s.name != "") || named && value == "" {
			t.Fatalf("%q gave %q on %s", source, vars, host)
		}
		labels = append(labels, s.prefix+value+s.suffix)
	}
	if again := strings.Join(labels, "."); again != host {
		t.Fatalf("%q matches %s, but with %q it is %s", source, host, vars, again)
	}
	return p
}
