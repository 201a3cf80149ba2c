package rules

import (
	"net/http"
	"strings"
	"testing"
)

// onPaths is a file of a connector that owns some paths of api.test, with a read on one of them, or on each.
func onPaths(name, paths, path string) File {
	text := "apiVersion: keep/v1\nconnector: " + name + "\nversion: 1\nhosts: [api.test]\nreads: safe-methods\n"
	if paths != "" {
		text += "paths:\n"
	}
	for p := range strings.FieldsSeq(paths) {
		text += "  - \"" + p + "\"\n"
	}
	match := "method: POST"
	if path != "" {
		match += ", path: \"" + path + "\""
	}
	return File{Name: name + ".yaml", Data: []byte(text + "operations:\n  - {name: make, match: {" + match + "}, effect: read}\n")}
}

func TestAHostIsSharedByItsPaths(t *testing.T) {
	t.Parallel()
	set, findings := Load([]File{onPaths("a", "/a/{rest...} /batch", "/a/{id}"), onPaths("b", "/b/v{n}/{rest...}", "/b/v1/{id}")}, nil, Defaults{})
	if set == nil {
		t.Fatal(findings)
	}
	for _, c := range []struct {
		method, target, owner, refused string
	}{
		{"POST", "/a/1", "a", ""},
		{"POST", "/b/v1/1", "b", ""},
		{"POST", "/b/v2/1", "b", "unmatched"},
		{"POST", "/batch", "a", "unmatched"},
		{"POST", "/batch/1", "", ""},
		{"POST", "/b/1", "", ""},
		{"POST", "/", "", ""},
		{"GET", "/c", "", ""},
		{"OPTIONS", "*", "", ""},
		// Servers may take these for owned paths.
		{"POST", "/A/1", "a", "unmatched"},
		{"POST", "/B/V1/1/", "b", "unmatched"},
		{"POST", "/batch/", "a", "unmatched"},
		{"POST", "/%61/1", "a", ""},
		{"POST", "//a/1", "", "ambiguous-request"},
		{"GET", "//a/1", "", "ambiguous-request"},
		{"POST", "/a%2F1", "", "ambiguous-request"},
		{"POST", "/c%2F1", "", "ambiguous-request"},
	} {
		req, refusal := set.Normalise(Raw{Method: c.method, Scheme: "https", Authority: "api.test", Target: c.target, Header: http.Header{}})
		if refusal != nil {
			t.Errorf("%s %s: %v", c.method, c.target, refusal)
			continue
		}
		m := set.Match(req)
		owner, refused := "", ""
		if m.Connector != nil {
			owner = m.Connector.Name
		}
		if m.Refusal != nil {
			refused = string(m.Refusal.Problem)
		}
		if owner != c.owner || refused != c.refused || m.Unmatched != (c.owner == "") || req.AsIs() {
			t.Errorf("%s %s is of %q, refused %q, unmatched %t, as it is %t", c.method, c.target, owner, refused, m.Unmatched, req.AsIs())
		}
	}
	for _, target := range []string{"/c/../a/1", "/c/%2e%2e/a/1", "/c/./1", "/a;x/1", `/c\a`} {
		if _, refusal := set.Normalise(Raw{Method: "GET", Scheme: "https", Authority: "api.test", Target: target, Header: http.Header{}}); refusal == nil {
			t.Errorf("%s passes", target)
		}
	}
	for _, authority := range []string{"api.test", "api.test:443"} {
		if !set.ConnectorHost(authority) || !set.Covers("a", "https", authority) || !set.Covers("b", "https", authority) || set.Covers("c", "https", authority) {
			t.Errorf("%s is not the host of both", authority)
		}
	}
}

// What was let through unread isn't taken for a path of nobody when a connector of the host comes.
func TestAReadThatNobodyTookApartIsNotMatchedByItsPath(t *testing.T) {
	t.Parallel()
	none, _ := Load(nil, nil, Defaults{})
	req, refusal := none.Normalise(Raw{Method: "GET", Scheme: "https", Authority: "api.test", Target: "/c/../a/1", Header: http.Header{}})
	set, findings := Load([]File{onPaths("a", "/a/{rest...}", "/a/{id}")}, nil, Defaults{})
	if refusal != nil || set == nil {
		t.Fatal(refusal, findings)
	}
	if m := set.Match(req); m.Refusal == nil || m.Refusal.Problem != ProblemAmbiguous {
		t.Errorf("it is %+v", m)
	}
}

func TestAStoredVersionKnowsItsPaths(t *testing.T) {
	t.Parallel()
	set, _ := Load([]File{onPaths("a", "/a/{rest...}", "/a/{id}")}, nil, Defaults{})
	c, findings := LoadPinned(set.Connector("a").Content, nil, Defaults{})
	if c == nil {
		t.Fatal(findings)
	}
	for target, unmatched := range map[string]bool{"/a/1": false, "/b/1": true} {
		req, _ := set.Normalise(Raw{Method: "POST", Scheme: "https", Authority: "api.test", Target: target, Header: http.Header{}})
		if m := c.Match(req); m.Unmatched != unmatched {
			t.Errorf("%s: unmatched %t", target, m.Unmatched)
		}
	}
}

func TestPathsOfOneHostDoNotOverlap(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b  string
		finds string
	}{
		{"/a/{rest...}", "/b/{rest...}", ""},
		{"/a/{rest...}", "/b/{x} /a/{y}", "host-overlap"},
		{"/a/{rest...}", "/A/{x}", "host-overlap"},
		{"/a", "/a/", "host-overlap"},
		{"/{x...}", "/b", "host-overlap"},
		{"/a/{rest...}", "", "host-overlap"},
		{"", "/b", "host-overlap"},
	} {
		_, findings := Load([]File{onPaths("a", c.a, ""), onPaths("b", c.b, "")}, nil, Defaults{})
		found := ""
		if len(findings) > 0 {
			found = findings[0].Code
		}
		if found != c.finds {
			t.Errorf("%s and %s: %v", c.a, c.b, findings)
		}
	}
}

func TestAnOperationIsOnThePathsOfItsConnector(t *testing.T) {
	t.Parallel()
	for path, loads := range map[string]bool{"/a/{id}": true, "/{x}/b": true, "/A/{id}": true, "/{rest...}": true, "/b/{id}": false} {
		set, findings := Load([]File{onPaths("a", "/a/{rest...}", path)}, nil, Defaults{})
		if (set != nil) != loads {
			t.Errorf("%s: %v", path, findings)
		}
	}
	if _, findings := Load([]File{onPaths("a", "a /a/*", "/a/{id}")}, nil, Defaults{}); len(findings) != 2 || !strings.HasPrefix(findings[0].Key, "paths") {
		t.Errorf("findings: %v", findings)
	}
}
