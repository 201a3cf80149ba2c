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

func TestSecretsBesideARestVariableAreMaskedInTheirPlace(t *testing.T) {
	t.Parallel()
	_, op := operation(t, `
  - name: make
    match: [{method: POST, path: "/a/{where...}/b/{token}"}, {method: PUT, path: "/a/{free...}/b/{token}"}]
    effect: mutation
    identity: {at: path.token}
    secret: [path.where, path.token]
    reconcile: [{none: why}]
    manual_check: look
`)
	for line, want := range map[string]string{
		"POST https://api.test/a/x/y/z/b/t": "/a/%3Csecret%3E/b/%3Csecret%3E",
		"POST https://api.test/a/b/t":       "/a/%3Csecret%3E/b/%3Csecret%3E",
		"PUT https://api.test/a/x/y/b/t":    "/a/x/y/b/%3Csecret%3E",
	} {
		if got := op.Redact(request(t, line, "")).Target(); got != want {
			t.Errorf("%s is stored as %s, want %s", line, got, want)
		}
	}
}

// An operation may take a form or JSON. What is secret in one of them is looked for in that alone.
func TestSecretsOfAFormLeaveJSONAlone(t *testing.T) {
	t.Parallel()
	const json, form = "Content-Type: application/json", "Content-Type: application/x-www-form-urlencoded"
	for _, tc := range []struct{ places, header, body, want string }{
		{"form.token", form, "token=SECRET&a=%7e", "token=%3Csecret%3E&a=%7e"},
		{"form.token", json, `{ "ref": "a", "token": "t" }`, `{ "ref": "a", "token": "t" }`},
		{"form.token", json, `["a"]`, `["a"]`},
		{"form.token", json, `{"token":1,"token":2}`, "<secret>"},
		{"form.token", "Content-Type: text/plain", "token=SECRET", "<secret>"},
		{"form.token, json.token", form, "token=SECRET&a=b", "token=%3Csecret%3E&a=b"},
		{"form.token, json.token", json, `{"token":"SECRET","a":1}`, `{"token":"<secret>","a":1}`},
		{"json.token", form, "token=SECRET", "<secret>"},
	} {
		_, op := operation(t, mutationWith("secret: ["+tc.places+"]"))
		if got := string(op.Redact(request(t, "POST https://api.test/things", tc.body, tc.header)).Body()); got != tc.want {
			t.Errorf("%s of %s is stored as %s, want %s", tc.places, tc.body, got, tc.want)
		}
	}
}

// What stands for a whole body holds no value that could be read, nor lacks one.
func TestOfABodyThatIsMaskedNothingIsRead(t *testing.T) {
	t.Parallel()
	set, op := operation(t, mutationWith("secret: [json.token]\n    subkey: form.?ref.orValue('')"))
	for _, body := range []string{"ref=a&token=SECRET", `"SECRET"`} {
		stored := op.Redact(request(t, "POST https://api.test/things", body))
		if again := string(op.Redact(stored).Body()); strings.Contains(again, "SECRET") {
			t.Errorf("masked twice it is %s", again)
		}
		if deriveRefusal(t, set, stored) == nil {
			t.Errorf("%s is read", stored.Body())
		}
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
		{"repeats a name", answer(`{"token":1,"token":"SECRET"}`, true), `{"token":"<secret>","token":"<secret>"}`},
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

func TestAPathIsMaskedInEveryPatternThatItFits(t *testing.T) {
	t.Parallel()
	_, op := operation(t, `
  - name: make
    match:
      - {method: GET, path: "/{token}/x"}
      - {method: POST, path: "/a/{token}"}
      - {method: PUT, path: "/{token}/x", when: "has(query.q)"}
      - {method: PUT, path: "/bot{key}/{token}"}
      - {method: PATCH, path: "/{where...}", when: "has(query.q)"}
      - {method: PATCH, path: "/p/q/{token}"}
      - {method: DELETE, path: "/{token}z/d", when: "has(query.q)"}
      - {method: DELETE, path: "/b{token}/d"}
    effect: mutation
    identity: none
    secret: [path.token, path.where]
    reconcile: [{none: why}]
    manual_check: look
`)
	for line, want := range map[string]string{
		"POST https://api.test/a/x":     "/a/%3Csecret%3E",
		"GET https://api.test/a/x":      "/%3Csecret%3E/x",
		"PUT https://api.test/bot1/x":   "/%3Csecret%3E/%3Csecret%3E",
		"PUT https://api.test/bot1/y":   "/bot1/%3Csecret%3E",
		"PATCH https://api.test/p/q/r":  "/%3Csecret%3E",
		"DELETE https://api.test/bz/d":  "/%3Csecret%3E/d",
		"DELETE https://api.test/byz/d": "/%3Csecret%3E/d",
		"DELETE https://api.test/by/d":  "/b%3Csecret%3E/d",
		"HEAD https://api.test/a/x":     "/%3Csecret%3E",
	} {
		if got := op.Redact(request(t, line, "")).Target(); got != want {
			t.Errorf("%s is stored as %s, want %s", line, got, want)
		}
	}
}

func TestWhatASecretPlaceCanNotBeFoundInIsMaskedWhole(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ places, body, want string }{
		{`"json.cards[*].number"`, `{"cards":{"number":"4111"},"n":1}`, `{"cards":"<secret>","n":1}`},
		{`"json.cards[*].number"`, `{"cards":["4111",{"number":"4111"},{"n":1},null]}`, `{"cards":["<secret>",{"number":"<secret>"},{"n":1},null]}`},
		{`"json.cards[0].number"`, `{"cards":{"number":"4111"}}`, `{"cards":"<secret>"}`},
		{`"json.cards[0].number"`, `{"cards":[{"number":"4111"},{"n":1}]}`, `{"cards":[{"number":"<secret>"},{"n":1}]}`},
		{`json.password`, `[{"password":"4111"}]`, `"<secret>"`},
		{`json.password`, `"4111"`, `"<secret>"`},
		{`json.card.number`, `{"card":"4111"}`, `{"card":"<secret>"}`},
		{`json.card.number`, `{"card":4111}`, `{"card":"<secret>"}`},
		{`json.card.number`, `{"card":true}`, `{"card":"<secret>"}`},
		{`json.card.number`, `{"card":null,"n":1}`, `{"card":null,"n":1}`},
		{`json.card.number`, `{"card":[],"n":1}`, `{"card":[],"n":1}`},
		{`json.card.number`, `{"n":1}`, `{"n":1}`},
		{`"json.cards[*].number"`, `{"cards":{}}`, `{"cards":{}}`},
		{`"json.cards[*].number"`, `{"n":[1]}`, `{"n":[1]}`},
		{`"json.x[*].a", json.x.b`, `{"x":[{"a":"4111","b":"4111","c":1}]}`, `{"x":[{"a":"<secret>","b":"<secret>","c":1}]}`},
		{`"json.x[*].a", json.x.b`, `{"x":{"a":"4111","b":"4111","c":1}}`, `{"x":{"a":"<secret>","b":"<secret>","c":1}}`},
		{`"json.x[1].a", json.x.b`, `{"x":[{"b":"4111"}]}`, `{"x":"<secret>"}`},
		{`"json.x[1].a", json.x.b`, `{"x":{"a":"4111","b":"4111","c":1}}`, `{"x":{"a":"<secret>","b":"<secret>","c":1}}`},
		{`"json.x[*]", json.x.b`, `{"x":{"a":"4111"}}`, `{"x":"<secret>"}`},
	} {
		_, op := operation(t, mutationWith("secret: ["+tc.places+", "+strings.ReplaceAll(tc.places, "json.", "response.json.")+"]"))
		if got := string(op.Redact(request(t, "POST https://api.test/things", tc.body)).Body()); got != tc.want {
			t.Errorf("%s of %s is stored as %s, want %s", tc.places, tc.body, got, tc.want)
		}
		if got := string(op.RedactResponse(&Response{Status: 200, Body: []byte(tc.body), Complete: true}).Body); got != tc.want {
			t.Errorf("%s of the answer %s is stored as %s, want %s", tc.places, tc.body, got, tc.want)
		}
	}
}
