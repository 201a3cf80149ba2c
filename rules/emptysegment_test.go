package rules

import (
	"net/http"
	"testing"
)

// keptSegments are operations of an object store, one of which keeps empty segments.
const keptSegments = `
  - name: put
    match: {method: PUT, path: "/s/{bucket}/{key...}"}
    effect: mutation
    empty_segments: keep
    identity: {bucket: path.bucket, key: path.key}
    reconcile: [{probe: {get: "/s/{path.bucket}/{path.key...}", expect: "response.status in [200, 404]", observe: [{when: response.status == 404, is: absent}]}}]
    manual_check: look
  - name: merged
    match: {method: POST, path: "/s/{bucket}/{key...}"}
    effect: mutation
    identity: {bucket: path.bucket, key: path.key}
    reconcile: [{none: why}]
    manual_check: look
  - {name: dir, match: {method: PUT, path: "/d/{key...}/"}, effect: mutation, empty_segments: keep, identity: {key: path.key}, reconcile: [{none: why}], manual_check: look}
  - {name: list, match: {method: GET, path: /d/all/}, effect: deny}
  - {name: purge, before: [look], match: {method: GET, path: /s/b/purge}, effect: deny}
  - {name: look, match: {method: [GET, HEAD], path: "/s/{bucket}/{key...}"}, effect: read, empty_segments: keep}
`

func TestARuleMayKeepEmptySegments(t *testing.T) {
	t.Parallel()
	set, op := operation(t, keptSegments)
	keys, digests := map[string]string{}, map[string]string{}
	for target, key := range map[string]string{
		"/s/b/2026//r.txt": "2026//r.txt", "/s/b/2026/r.txt": "2026/r.txt", "/s/b//r.txt": "/r.txt", "/s/b/2026///r.txt": "2026///r.txt", "/s/b///r.txt": "//r.txt",
	} {
		req := request(t, "PUT https://api.test"+target, "x")
		d := derive(t, set, req)
		if got := string(d.Identity["key"]); got != `"`+key+`"` || req.Target() != target {
			t.Errorf("%s: key %s, sent as %s", target, got, req.Target())
		}
		if other := keys[string(d.Identity["key"])]; other != "" {
			t.Errorf("%s and %s are one", target, other)
		}
		keys[string(d.Identity["key"])], digests[d.PayloadDigest] = target, target
		again, refusal := Rebuild(req.Method, req.URL(), req.Header, req.Body())
		if refusal != nil || again.URL() != req.URL() || string(derive(t, set, again).Identity["key"]) != string(d.Identity["key"]) {
			t.Errorf("%s: rebuilt as %v, %v", target, again, refusal)
		}
		// What became of it is asked at its own address.
		a, err := op.Strategies[0].Probe.Begin(Env{Request: req, Mutation: sample()})
		if err != nil {
			t.Errorf("%s: %v", target, err)
			continue
		}
		if ask, _ := a.Next(); ask.Target != target {
			t.Errorf("%s is asked about at %s", target, ask.Target)
		}
	}
	// So does a read that has no operation of its own: the connector's reads let it pass.
	for _, line := range []string{"GET https://api.test/s/b/2026//r.txt", "GET https://api.test/d/a//b/", "HEAD https://api.test/d//b/"} {
		if m := set.Match(request(t, line, "")); m.Refusal != nil || m.Effect != EffectRead {
			t.Errorf("%s: %+v", line, m)
		}
	}
}

func TestEmptySegmentsAreRefusedWhereNoRuleKeepsThem(t *testing.T) {
	t.Parallel()
	set, _ := operation(t, keptSegments)
	for _, line := range []string{
		"POST https://api.test/s/b/2026//r.txt", "POST https://api.test/s/b//", "GET https://api.test/other//x", "GET https://api.test/d/a//b", "DELETE https://api.test/d/a//b/", "DELETE https://api.test/s//x",
		"PUT https://api.test//s/b/x", "PUT https://api.test/s//b/x", "PUT https://api.test/s/b//", "PUT https://api.test//", "PUT https://api.test/d//", "POST https://elsewhere.test//x", "GET https://api.test//",
	} {
		m := set.Match(request(t, line, ""))
		wantRefusal(t, m.Refusal, ProblemAmbiguous, "empty_segments: keep")
		if m.Effect != EffectDeny {
			t.Errorf("%s: %v", line, m.Effect)
		}
	}
	// A server that merges slashes would take it for what is denied.
	for _, line := range []string{"GET https://api.test/s/b//purge", "HEAD https://api.test/s//b/purge", "GET https://api.test/s/b/purge", "GET https://api.test/d//all/"} {
		m := set.Match(request(t, line, ""))
		if m.Refusal == nil || m.Effect != EffectDeny {
			t.Errorf("%s: %+v", line, m)
		}
	}
	if _, refusal := rawRequest("PUT https://api.test/s/b/a//../x", ""); refusal == nil {
		t.Error("a dot segment passes")
	}
}

// What is read of a target without a rule has a set that is asked once more.
func TestATargetThatNobodyJudgedMeetsNoConnector(t *testing.T) {
	t.Parallel()
	set, _ := operation(t, keptSegments)
	other := load(t, "apiVersion: keep/v1\nconnector: other\nversion: 1\nhosts: [other.test]\nreads: safe-methods\naccount: \"''\"\noperations:\n  - {name: x, match: {path: /x}, effect: read}\n")
	req, refusal := other.Normalise(Raw{Method: http.MethodGet, Scheme: "https", Authority: "api.test", Target: "/s//x;y", Header: http.Header{}})
	if refusal != nil || !req.AsIs() || req.Target() != "/s//x;y" {
		t.Fatalf("%v, %v", req, refusal)
	}
	if m := other.Match(req); !m.Unmatched || m.Refusal != nil {
		t.Errorf("of no connector: %+v", m)
	}
	if m := set.Match(req); m.Refusal == nil || m.Effect != EffectDeny {
		t.Errorf("of a connector by then: %+v", m)
	}
}
