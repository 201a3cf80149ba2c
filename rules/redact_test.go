package rules

import (
	"strings"
	"testing"
)

func TestRedactedRequestsHoldNoSecret(t *testing.T) {
	t.Parallel()
	_, op := operation(t, `
  - name: make
    match: {method: POST, path: "/bot{token}/{kind}/{rest...}"}
    effect: mutation
    identity: {kind: path.kind}
    secret: [path.token, query.key, header.passphrase, json.card, "json.users[*].password"]
    reconcile: [{none: why}]
    manual_check: look
`)
	req := request(t, "POST https://api.test/botSECRET/send/a/b?key=SECRET&x=%7e&key=SECRET",
		`{"n":1.50,"card":{"no":"SECRET"},"users":[{"id":1,"password":"SECRET"}]}`,
		"Authorization: Bearer SECRET", "Cookie: SECRET", "X-API-Key: SECRET", "Passphrase: SECRET", "X-Other: kept")
	got := op.Redact(req)
	all := got.URL() + string(got.Body())
	for name, values := range got.Header {
		all += name + ":" + strings.Join(values, ",")
	}
	if strings.Contains(all, "SECRET") {
		t.Errorf("stored with a secret: %s", all)
	}
	if want := "https://api.test/bot%3Csecret%3E/send/a/b?key=%3Csecret%3E&x=%7e"; got.URL() != want {
		t.Errorf("URL %s, want %s", got.URL(), want)
	}
	if want := `{"n":1.50,"card":"<secret>","users":[{"id":1,"password":"<secret>"}]}`; string(got.Body()) != want {
		t.Errorf("body %s, want %s", got.Body(), want)
	}
	if got.Header.Get("X-Other") != "kept" || req.Header.Get("Authorization") != "Bearer SECRET" {
		t.Error("more than the secrets changed, or the request itself did")
	}
	again, refusal := Rebuild(got.Method, got.URL(), got.Header, got.Body())
	if refusal != nil || again.URL() != got.URL() {
		t.Errorf("the stored request can't be read again: %v", refusal)
	}
	if s := op.bind(again); s.path["kind"] != "send" || s.path["rest"] != "a/b" {
		t.Errorf("path variables of the stored request: %v", s.path)
	}
	broken := op.Redact(request(t, "POST https://api.test/bot1/send/a", `card=SECRET`))
	if strings.Contains(string(broken.Body()), "SECRET") {
		t.Errorf("a body in which secrets can't be found is stored: %s", broken.Body())
	}
}

func TestRedactedFormsAndRestVariables(t *testing.T) {
	t.Parallel()
	_, op := operation(t, `
  - name: make
    match: {method: POST, path: "/hook/{where...}"}
    effect: mutation
    identity: {at: path.where}
    secret: [path.where, form.password]
    reconcile: [{none: why}]
    manual_check: look
`)
	const form = "Content-Type: application/x-www-form-urlencoded"
	got := op.Redact(request(t, "POST https://api.test/hook/T0/SECRET", "a=%7e&password=SECRET&password=SECRET", form))
	if got.Target() != "/hook/%3Csecret%3E" || string(got.Body()) != "a=%7e&password=%3Csecret%3E" {
		t.Errorf("stored as %s %s", got.Target(), got.Body())
	}
	got = op.Redact(request(t, "POST https://api.test/hook/x", "password=SECRET;a=b", form))
	if strings.Contains(string(got.Body()), "SECRET") {
		t.Errorf("stored as %s", got.Body())
	}
	if got := op.Redact(request(t, "POST https://api.test/hook/x", "")); got.HasBody() {
		t.Errorf("no body became %s", got.Body())
	}
}

func TestRedactResponse(t *testing.T) {
	t.Parallel()
	_, op := operation(t, mutationWith(`secret: [response.json.token, "response.header['x-session']", "response.json.list[*].key"]`))
	answer := func(body string, complete bool) *Response {
		return &Response{Status: 200, Header: map[string][]string{"X-Session": {"SECRET"}, "X-Other": {"kept"}}, Trailer: map[string][]string{"X-Session": {"SECRET"}, "X-Sum": {"7"}}, Body: []byte(body), Complete: complete}
	}
	if !op.SecretAnswer() {
		t.Error("SecretAnswer is false")
	}
	cases := []struct {
		name string
		in   *Response
		want string
	}{
		{"places masked", answer(`{"id":1.50,"token":"SECRET","list":[{"key":"SECRET","n":1}]}`, true), `{"id":1.50,"token":"<secret>","list":[{"key":"<secret>","n":1}]}`},
		{"cut", answer(`{"id":1,"token":"SEC`, false), ""},
		{"no JSON", answer(`token SECRET`, true), ""},
		{"repeats a name", answer(`{"token":1,"token":"SECRET"}`, true), ""},
		{"empty", answer(``, true), ""},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got := op.RedactResponse(tc.in)
			if got.Trailer.Get("X-Session") != "<secret>" || got.Trailer.Get("X-Sum") != "7" || tc.in.Trailer.Get("X-Session") != "SECRET" {
				t.Errorf("behind it is stored %v", got.Trailer)
			}
			if string(got.Body) != tc.want || got.Header.Get("X-Session") != "<secret>" || got.Header.Get("X-Other") != "kept" {
				t.Errorf("stored as %v %s, want %s", got.Header, got.Body, tc.want)
			}
		})
	}
	_, plain := operation(t, mutationWith(""))
	in := answer("x", false)
	if plain.SecretAnswer() || plain.RedactResponse(in) != in {
		t.Error("an answer without secrets is changed")
	}
}
