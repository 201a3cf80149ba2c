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
		"{value: response.json.id}": "account: the read makes no request",
		"{get: /me}":                "value: value is missing",
		"{get: '/me/{query.x}', value: response.json.id}":                         "doesn't depend on the request",
		"{get: /me, value: \"'fixed'\"}":                                          "doesn't read the answer",
		"{get: /me, value: \"response.json.id + header.a\"}":                      "reads the request",
		"{get: /me, value: response.json.id, cache: 25h}":                         "longer than a day",
		"{get: '/me?x=1', value: response.json.id}":                               "a path holds no query",
		"{get: /me, value: response.json.id, post: /x}":                           "one request",
		"{get: /me, value: response.json.id, put: x}":                             "unknown key",
		"{post: /me, value: response.json.id, form: {a: {cel: form.b}}}":          "doesn't depend on the request",
		"{post: /me, value: response.json.id, token: {form: token, json: token}}": "is no member",
		"{post: /me, value: response.json.id, token: {json: a.b}}":                "is no member",
		"{post: /me, value: response.json.id, token: {}}":                         "names no place",
		"{get: /me, value: response.json.id, token: {form: token}}":               "is no member",
		"{get: /me, value: response.json.id, given: header.a}":                    "is no text",
		"{get: /me, value: response.json.id, given: \"param.a\"}":                 "has no parameters",
	} {
		_, findings := Load([]File{{Name: "f.yaml", Data: []byte("account: " + account + "\n" + connectorHead + simpleMutation)}}, nil, Defaults{})
		if !findings.Failed() || !strings.Contains(findings.Error(), want) {
			t.Errorf("%s: want %q:\n%v", account, want, findings)
		}
	}
}

func TestAnAccountIsAskedForByPost(t *testing.T) {
	t.Parallel()
	for account, want := range map[string]string{
		`{post: /graphql, json: {query: "{ viewer { id } }"}, value: response.json.data.viewer.id}`: `application/json {"query":"{ viewer { id } }"}`,
		`{post: /auth.test, form: {a: "1 2", b: [x, y]}, value: response.json.user_id}`:             `application/x-www-form-urlencoded a=1%202&b=x&b=y`,
		`{post: /auth.test, value: response.json.user_id}`:                                          ` `,
	} {
		set := load(t, "account: "+account+"\n"+connectorHead+simpleMutation)
		ask, err := set.Connectors()[0].AccountRead.Ask(request(t, "POST https://api.test/things/a", `{"name":"n"}`, "Authorization: t", "Content-Type: application/json"))
		if err != nil || ask.Method != http.MethodPost || ask.Header.Get("Authorization") != "t" {
			t.Fatalf("%+v, %v", ask, err)
		}
		if got := ask.Header.Get("Content-Type") + " " + string(ask.Body); got != want {
			t.Errorf("asked by %s, want %s", got, want)
		}
	}
}

// A client that sends its token in the body asks with it, as it would in a header field. It is stored nowhere.
func TestATokenInABodyIsSentWithTheRead(t *testing.T) {
	t.Parallel()
	set := load(t, "account: {post: /auth.test, form: {v: 2}, token: {form: token}, value: response.json.user_id}\n"+connectorHead+
		strings.Replace(simpleMutation, "json.name", "form.name", 1))
	c := set.Connectors()[0]
	op := c.Operations[0]
	const form = "Content-Type: application/x-www-form-urlencoded"
	digests := map[string]bool{}
	for body, want := range map[string]string{"name=n&token=xoxb-1": "v=2&token=xoxb-1", "name=n&token=xoxb-2": "v=2&token=xoxb-2", "name=n": "v=2"} {
		req := request(t, "POST https://api.test/things/a", body, form)
		ask, err := c.AccountRead.Ask(req)
		if err != nil || string(ask.Body) != want {
			t.Errorf("%s: asked by %q, %v", body, ask.Body, err)
		}
		req = req.WithAccount(c, "ann")
		m := set.Match(req)
		d, refusal := op.Derive(req, m)
		if refusal != nil {
			t.Fatal(refusal)
		}
		digests[d.PayloadDigest] = true
		stored := string(op.Redact(req).Body())
		if strings.Contains(stored, "xoxb") {
			t.Errorf("stored: %s", stored)
		}
		// The record's own request has no token any more. What is configured asks.
		if ask, err := c.AccountRead.Ask(request(t, "POST https://api.test/things/a", stored, form)); err != nil || strings.Contains(string(ask.Body), "token") {
			t.Errorf("asked by %q, %v", ask.Body, err)
		}
	}
	if len(digests) != 1 {
		t.Error("another token is another payload")
	}
	if _, err := c.AccountRead.Ask(request(t, "POST https://api.test/things/a", "token=a&token=b", form)); err == nil || strings.Contains(err.Error(), "token=a") {
		t.Errorf("two tokens: %v", err)
	}
	inJSON := load(t, "account: {post: /me, json: {q: 1}, token: {json: api_token}, value: response.json.id}\n"+connectorHead+simpleMutation).Connectors()[0]
	ask, err := inJSON.AccountRead.Ask(request(t, "POST https://api.test/things/a", `{"name":"n","api_token":"s"}`, "Content-Type: application/json"))
	if err != nil || string(ask.Body) != `{"q":1,"api_token":"s"}` {
		t.Errorf("asked by %s, %v", ask.Body, err)
	}
}

func TestAnAccountThatIsGivenIsNotAskedFor(t *testing.T) {
	t.Parallel()
	file := "parameters: {mine: {default: ''}}\naccount: {get: /me, value: response.json.id, given: param.mine}\n" + connectorHead + simpleMutation
	if c := load(t, file).Connectors()[0]; c.AccountRead == nil {
		t.Error("without it nobody is asked")
	}
	set := load(t, file, Settings{Connector: "test", Parameters: map[string]Given{"mine": {Texts: []string{"ann"}}}})
	if c := set.Connectors()[0]; c.AccountRead != nil || !c.HasAccount {
		t.Error("it is asked for all the same")
	}
	if d := derive(t, set, request(t, "POST https://api.test/things/a", `{"name":"n"}`, "Content-Type: application/json")); d.Account != "ann" {
		t.Errorf("account %q", d.Account)
	}
}
