package rules

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// manyOperations is a connector with every effect.
const manyOperations = `apiVersion: keep/v1
connector: test
version: 1
hosts: ["{region}.api.test"]
reads: ["/public/{x...}"]
operations:
  - {name: special, before: [general], match: {method: POST, path: /things/special}, effect: read}
  - {name: general, match: {method: POST, path: "/things/{kind}"}, effect: ignore}
  - {name: forbidden, match: {method: DELETE, path: "/{x...}"}, effect: deny}
  - {name: by-body, match: {method: PUT, path: /rpc, when: json.call == 'get'}, effect: read}
  - name: by-body-too
    match: {method: PUT, path: /rpc, when: json.call == 'set'}
    effect: mutation
    identity: {key: json.key}
    reconcile: [{none: why}]
    manual_check: look
  - name: tunnelled
    match: {method: PATCH, path: /rpc, when: "header[?'x-http-method-override'].orValue('PATCH') == 'PATCH'"}
    effect: read
  - {name: keeps, match: {method: POST, path: "/kept/{x}"}, encoded_slash: keep, effect: read}
  - name: form
    match: [{method: POST, path: /form}, {method: PUT, path: /form}]
    effect: read
`

func TestMatchTakesTheOperationThatGoesFirst(t *testing.T) {
	t.Parallel()
	set := load(t, manyOperations)
	cases := []struct {
		name, line, body string
		operation        string
		effect           Effect
	}{
		{"named in before", "POST https://eu.api.test/things/special", "", "special", EffectRead},
		{"the rest", "POST https://eu.api.test/things/other", "", "general", EffectIgnore},
		{"by a condition", "PUT https://eu.api.test/rpc", `{"call":"get"}`, "by-body", EffectRead},
		{"by the other condition", "PUT https://eu.api.test/rpc", `{"call":"set","key":1}`, "by-body-too", EffectMutation},
		{"escaped slash where it is kept", "POST https://eu.api.test/kept/a%2Fb", "", "keeps", EffectRead},
		{"by the second of two matches", "PUT https://eu.api.test/form", "", "form", EffectRead},
		{"declared read", "GET https://eu.api.test/public/a/b", "", "", EffectRead},
		{"declared read by HEAD", "HEAD https://eu.api.test/public", "", "", EffectRead},
		{"escaped slash of a read", "GET https://eu.api.test/public/a%2fb", "", "", EffectRead},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			m := set.Match(request(t, tc.line, tc.body))
			if m.Refusal != nil || m.NeedsBody || m.Unmatched {
				t.Fatalf("match: %+v", m)
			}
			name := ""
			if m.Operation != nil {
				name = m.Operation.Name
			}
			if name != tc.operation || m.Effect != tc.effect || !maps.Equal(m.Host, map[string]string{"region": "eu"}) {
				t.Errorf("%s %v %v, want %s %v", name, m.Effect, m.Host, tc.operation, tc.effect)
			}
		})
	}
	if m := set.Match(request(t, "POST https://eu.api.test/things/a%20b", "")); m.Path["kind"] != "a b" {
		t.Errorf("path variables: %v", m.Path)
	}
}

func TestMatchRefuses(t *testing.T) {
	t.Parallel()
	set := load(t, manyOperations)
	cases := []struct {
		name, line, body string
		header           []string
		problem          Problem
		part             string
	}{
		{"what a rule denies", "DELETE https://eu.api.test/a", "", nil, ProblemDenied, "forbidden"},
		{"a mutation that nothing declares", "POST https://eu.api.test/a", "", nil, ProblemUnmatched, "no operation of the connector test"},
		{"a read that nothing declares", "GET https://eu.api.test/a", "", nil, ProblemUnmatched, "not among its reads"},
		{"TRACE anywhere", "TRACE https://elsewhere.test/", "", nil, ProblemDenied, "TRACE"},
		{"CONNECT inside", "CONNECT https://elsewhere.test/", "", nil, ProblemDenied, "CONNECT"},
		{"a condition that can't be evaluated", "PUT https://eu.api.test/rpc", `{}`, nil, ProblemIdentity, "json.call == 'get'"},
		{"a condition on JSON that repeats a name", "PUT https://eu.api.test/rpc", `{"call":"get","call":"set"}`, nil, ProblemAmbiguous, "repeats"},
		{"escaped slash", "POST https://eu.api.test/things/a%2Fb", "", nil, ProblemAmbiguous, "escaped slash"},
		{"escaped slash elsewhere", "POST https://elsewhere.test/a%2Fb", "", nil, ProblemAmbiguous, "escaped slash"},
		{"method override in a header", "POST https://eu.api.test/things/x", "", []string{"X-HTTP-Method-Override: DELETE"}, ProblemOverride, "X-Http-Method-Override"},
		{"method override of a read", "GET https://eu.api.test/public/x", "", []string{"X-Method-Override: DELETE"}, ProblemOverride, "X-Method-Override"},
		{"method override elsewhere", "GET https://elsewhere.test/x", "", []string{"X-HTTP-Method: PUT"}, ProblemOverride, "X-Http-Method"},
		{"method override in the query", "GET https://elsewhere.test/x?a=b&_METHOD=delete", "", nil, ProblemOverride, "_METHOD"},
		{"method override behind a semicolon", "GET https://elsewhere.test/x?a=b;_method=delete", "", nil, ProblemOverride, "_method"},
		{"method override in escapes", "GET https://elsewhere.test/x?%5fmethod=delete", "", nil, ProblemOverride, "_method"},
		{"method override in a form", "POST https://eu.api.test/form", "a=b&_method=delete", []string{"Content-Type: application/x-www-form-urlencoded"}, ProblemOverride, "form field _method"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			m := set.Match(request(t, tc.line, tc.body, tc.header...))
			wantRefusal(t, m.Refusal, tc.problem, tc.part)
			if m.Effect != EffectDeny {
				t.Errorf("effect %v with a refusal", m.Effect)
			}
		})
	}
}

func TestAnOverrideThatIsMatchedOnPasses(t *testing.T) {
	t.Parallel()
	set := load(t, manyOperations)
	m := set.Match(request(t, "PATCH https://eu.api.test/rpc", "", "X-HTTP-Method-Override: PATCH"))
	if m.Refusal != nil || m.Operation == nil || m.Operation.Name != "tunnelled" {
		t.Errorf("match: %+v", m)
	}
	m = set.Match(request(t, "PATCH https://eu.api.test/rpc", "", "X-HTTP-Method-Override: DELETE"))
	wantRefusal(t, m.Refusal, ProblemUnmatched, "PATCH")
}

func TestMatchAsksForTheBodyWhenItDecides(t *testing.T) {
	t.Parallel()
	set := load(t, manyOperations)
	pending := func(line string, header ...string) *Request {
		req := request(t, line, "", header...)
		raw := req.Raw()
		raw.HasBody = true
		req, _ = Normalise(raw)
		return req
	}
	const form = "Content-Type: application/x-www-form-urlencoded"
	cases := []struct {
		name  string
		req   *Request
		needs bool
	}{
		{"condition on the body", pending("PUT https://eu.api.test/rpc"), true},
		{"no condition", pending("POST https://eu.api.test/things/x"), false},
		{"a form that is streamed", pending("POST https://eu.api.test/form", form), false},
		{"elsewhere", pending("POST https://elsewhere.test/form", form), false},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			m := set.Match(tc.req)
			if m.NeedsBody != tc.needs || m.Refusal != nil || tc.needs && m.Effect != EffectDeny {
				t.Errorf("match: %+v, want NeedsBody %v", m, tc.needs)
			}
		})
	}
	if m := set.Match(pending("PUT https://eu.api.test/rpc").WithBody([]byte(`{"call":"get"}`))); m.NeedsBody || m.Operation == nil {
		t.Errorf("with the body: %+v", m)
	}
}

func TestOtherHostsAreUnmatched(t *testing.T) {
	t.Parallel()
	set := load(t, manyOperations)
	for _, line := range []string{"GET https://elsewhere.test/", "POST https://eu.api.test:8443/things/x", "POST https://api.test/things/x"} {
		if m := set.Match(request(t, line, "")); !m.Unmatched || m.Connector != nil || m.Effect != EffectDeny || m.Refusal != nil {
			t.Errorf("%s: %+v", line, m)
		}
	}
	for authority, want := range map[string]bool{"eu.api.test:443": true, "EU.api.test.": true, "eu.api.test:80": true, "eu.api.test:8443": false, "elsewhere.test": false, "a b": true} {
		if got := set.ConnectorHost(authority); got != want {
			t.Errorf("ConnectorHost(%q) = %v, want %v", authority, got, want)
		}
	}
}

func TestPortsAreThoseOfEveryHostInForce(t *testing.T) {
	t.Parallel()
	const file = "apiVersion: keep/v1\nconnector: test\nversion: 1\nhosts: [a.test]\nreads: safe-methods\noperations: []\n"
	for hosts, want := range map[string][]uint16{
		"a.test":     {80, 443},
		"{r}.a.test": {80, 443},
		"a.test:443": {443},
		"a.test:8443 {x}.a.test:7000 b.test:8443": {7000, 8443},
		"[2001:db8::1]:9200 a.test":               {80, 443, 9200},
	} {
		set := load(t, file, Settings{Connector: "test", Hosts: strings.Fields(hosts)})
		if got := set.Ports(); !slices.Equal(got, want) {
			t.Errorf("%s: ports %v, want %v", hosts, got, want)
		}
	}
	if got := load(t, file).Ports(); !slices.Equal(got, []uint16{80, 443}) {
		t.Errorf("the file's own host: ports %v", got)
	}
	if got := new(Set).Ports(); len(got) > 0 {
		t.Errorf("without connectors: ports %v", got)
	}
}

func TestTwoOperationsThatFitWithoutAnOrderDeny(t *testing.T) {
	t.Parallel()
	// Loading refuses this; matching does not rely on it.
	set := load(t, manyOperations)
	c := set.Connector("test")
	c.Operation("special").before = nil
	m := set.Match(request(t, "POST https://eu.api.test/things/special", ""))
	wantRefusal(t, m.Refusal, ProblemDenied, "both special and general")
}

func TestExplainTellsWhyNotTheOthers(t *testing.T) {
	t.Parallel()
	set := load(t, manyOperations)
	e := set.Explain(request(t, "PUT https://eu.api.test/rpc", `{"call":"set","key":1}`))
	if e.Match.Operation == nil || e.Match.Operation.Name != "by-body-too" {
		t.Fatalf("match: %+v", e.Match)
	}
	want := map[string]string{
		"special": "its method is POST", "forbidden": "its method is DELETE", "by-body": "its condition is false: json.call == 'get'",
		"by-body-too": "method, path and condition fit", "form": "its path is /form",
	}
	for _, c := range e.Candidates {
		if part, ok := want[c.Operation]; ok && (!strings.Contains(c.Reason, part) || c.Matched != (c.Operation == "by-body-too")) {
			t.Errorf("%s: %v %q, want %q", c.Operation, c.Matched, c.Reason, part)
		}
	}
	if len(e.Candidates) != 8 {
		t.Errorf("%d candidates, want all 8", len(e.Candidates))
	}
}
