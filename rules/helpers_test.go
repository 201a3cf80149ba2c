package rules

import (
	"net/http"
	"strings"
	"testing"
)

// connectorHead begins a connector file for api.test; operations follow.
const connectorHead = `apiVersion: keep/v1
connector: test
version: 1
hosts: [api.test]
reads: safe-methods
operations:
`

// simpleMutation is an operation that needs no more than a body.
const simpleMutation = `
  - name: make
    match: {method: POST, path: "/things/{kind}"}
    effect: mutation
    identity: {name: json.name}
    reconcile: [{none: "no read"}]
    manual_check: "look at {json.name}"
`

// load loads one file and fails the test on any error.
func load(tb testing.TB, file string, settings ...Settings) *Set {
	tb.Helper()
	set, findings := Load([]File{{Name: "test.yaml", Data: []byte(file)}}, settings, Defaults{})
	if set == nil {
		tb.Fatalf("load:\n%v", findings)
	}
	return set
}

// operation loads a file with one operation and returns that.
func operation(tb testing.TB, body string) (*Set, *Operation) {
	tb.Helper()
	set := load(tb, connectorHead+body)
	return set, set.Connectors()[0].Operations[0]
}

// request makes a normalised request from "METHOD URL", header lines and a body.
func request(tb testing.TB, line, body string, header ...string) *Request {
	tb.Helper()
	req, refusal := rawRequest(line, body, header...)
	if refusal != nil {
		tb.Fatalf("%s: %v", line, refusal)
	}
	return req
}

// rawRequest is request with its refusal.
func rawRequest(line, body string, header ...string) (*Request, *Refusal) {
	method, url, _ := strings.Cut(line, " ")
	scheme, authority, target, _ := splitURL(url, method)
	h := http.Header{}
	for _, line := range header {
		name, value, _ := strings.Cut(line, ": ")
		h.Add(name, value)
	}
	return Normalise(Raw{Method: method, Scheme: scheme, Authority: authority, Target: target, Header: h, Body: []byte(body), HasBody: body != ""})
}

// derive matches and derives, and fails the test on a refusal.
func derive(tb testing.TB, set *Set, req *Request) *Derived {
	tb.Helper()
	m := set.Match(req)
	if m.Refusal != nil || m.Operation == nil {
		tb.Fatalf("match: %+v", m)
	}
	d, refusal := m.Operation.Derive(req, m)
	if refusal != nil {
		tb.Fatalf("derive: %v", refusal)
	}
	return d
}

// identityOf is the identity as canonical JSON text.
func identityOf(d *Derived) string { return string(identityText(d.Identity)) }

// wantRefusal checks problem and a part of the sentence.
func wantRefusal(tb testing.TB, got *Refusal, problem Problem, part string) {
	tb.Helper()
	switch {
	case got == nil:
		tb.Errorf("not refused, want %s (%s)", problem, part)
	case got.Problem != problem || !strings.Contains(got.Detail, part):
		tb.Errorf("refused with %q, want %s (…%s…)", got.Error(), problem, part)
	}
}
