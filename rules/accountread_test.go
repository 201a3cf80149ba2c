package rules

import (
	"net/http"
	"strings"
	"testing"
)

const askingHead = "account: {get: /v1/me, value: response.json.email, cache: 10m}\n" + connectorHead

func TestAnAccountIsAskedForOfTheAPI(t *testing.T) {
	t.Parallel()
	set := load(t, askingHead+simpleMutation)
	c := set.Connectors()[0]
	req, refusal := Normalise(Raw{
		Method: "POST", Scheme: "https", Authority: "api.test", Target: "/things/a?x=1",
		Header: http.Header{
			"Authorization": {"Bearer t"}, "Content-Type": {"application/json"}, "If-Match": {"e"}, "Traceparent": {"00-1"},
			"X-Tenant": {"b"}, "Accept": {"text/html"},
		},
		Body: []byte(`{"name":"n"}`), HasBody: true,
	})
	if refusal != nil {
		t.Fatal(refusal)
	}
	req = req.WithBody([]byte(`{"name":"n"}`))
	m := set.Match(req)
	if _, refusal := m.Operation.Derive(req, m); refusal == nil || refusal.Problem != ProblemAccount || refusal.Problem.Status() != 502 {
		t.Fatalf("without the account it derives: %v", refusal)
	}
	ask, err := c.AccountRead.Ask(req)
	if err != nil || ask.Method != http.MethodGet || ask.Authority != "api.test" || ask.Target != "/v1/me" {
		t.Fatalf("%+v, %v", ask, err)
	}
	if len(ask.Header) != 3 || ask.Header.Get("Authorization") != "Bearer t" || ask.Header.Get("X-Tenant") != "b" || ask.Header.Get("Accept") != "application/json" {
		t.Errorf("asked with %v", ask.Header)
	}
	if h := carried(http.Header{"X-Http-Method-Override": {"DELETE"}, "X-Original-Url": {"/things/a"}, "Accept": {"text/html"}}); len(h) != 1 {
		t.Errorf("carried %v, which makes another request of it", h)
	}
	known := req.WithAccount(c, "ann").WithBody([]byte(`{"name":"n"}`))
	d, refusal := m.Operation.Derive(known, m)
	if refusal != nil || d.Account != "ann" {
		t.Fatalf("%+v, %v", d, refusal)
	}
	for body, want := range map[string]string{
		`{"email":"a@b"}`: "a@b", `{"email":7}`: "7", `{"email":""}`: "no name", `{"email":null}`: "no name", `{"email":["a"]}`: "no name",
		`{}`: "doesn't tell", `x`: "doesn't tell", `{"email":"` + strings.Repeat("a", 2000) + `"}`: "no name",
	} {
		got, err := c.AccountRead.Account(req, &Response{Status: 200, Header: http.Header{}, Body: []byte(body), Complete: true})
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, want) {
			t.Errorf("%.40s tells %q, want %q", body, got, want)
		}
	}
	for _, resp := range []*Response{nil, {Status: 200, Body: []byte(`{"email":"a"}`)}, {Status: 401, Complete: true}} {
		if got, err := c.AccountRead.Account(req, resp); err == nil {
			t.Errorf("%+v tells %q", resp, got)
		}
	}
}

func TestProblemsOfAnAccountThatIsAskedFor(t *testing.T) {
	t.Parallel()
	for account, want := range map[string]string{
		"{value: response.json.id}": "get: get is missing",
		"{get: /me}":                "value: value is missing",
		"{get: '/me/{query.x}', value: response.json.id}":    "doesn't depend on the request",
		"{get: /me, value: \"'fixed'\"}":                     "doesn't read the answer",
		"{get: /me, value: \"response.json.id + header.a\"}": "reads the request",
		"{get: /me, value: response.json.id, cache: 25h}":    "longer than a day",
		"{get: '/me?x=1', value: response.json.id}":          "a path holds no query",
		"{get: /me, value: response.json.id, post: x}":       "unknown key",
	} {
		_, findings := Load([]File{{Name: "f.yaml", Data: []byte("account: " + account + "\n" + connectorHead + simpleMutation)}}, nil, Defaults{})
		if !findings.Failed() || !strings.Contains(findings.Error(), want) {
			t.Errorf("%s: want %q:\n%v", account, want, findings)
		}
	}
}
