package rules

import (
	"bytes"
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"keep-proxy/internal/verdict"
)

// leaky is an operation with a secret in every place that can hold one.
const leaky = `
  - name: make
    match: {method: [POST, PUT], path: "/things/{token}/x/{tail...}"}
    effect: mutation
    describe: "{path.token} {query.key} {json.card.number} {header['x-pass']} {json} {body_sha256} {json.name}"
    identity: {name: json.name, card: json.card.number}
    subkey: query.?key.orValue('')
    secret: [path.token, query.key, form.pin, "json.card.number", "json.keys[*].value", "header['x-pass']", response.json.token, "response.json.list[*].s", "response.header['x-new']"]
    payload: {headers: [X-Pass]}
    marker: {append: json.note, text: "{json.name.trim()} {mutation.marker}"}
    outcome:
      - {when: "response.status == 418 && int(response.json.token) > 0", then: applied}
    reconcile: [{none: why}]
    manual_check: "{path.token} {query.key} {json.card.number} {header['x-pass']} {json.keys} {mutation.marker}"
`

// secretWord is what must be seen nowhere.
const secretWord = "5ECRET"

// leakyRequest is a request that has it everywhere.
func leakyRequest(tb testing.TB, body string) *Request {
	tb.Helper()
	return request(tb, "POST https://api.test/things/"+secretWord+"/x/y?key="+secretWord+"&a=1", body,
		"X-Pass: "+secretWord, "Authorization: Bearer "+secretWord, "Cookie: s="+secretWord, "X-Kept: kept")
}

const leakyBody = `{"name":"n","note":"t","card":{"number":"` + secretWord + `"},"keys":[{"value":"` + secretWord + `","id":9007199254740993}]}`

func TestNothingThatIsKeptOrShownHoldsASecret(t *testing.T) {
	t.Parallel()
	set, op := operation(t, leaky)
	req := leakyRequest(t, leakyBody)
	d := derive(t, set, req)
	stored := op.Redact(req)
	env := Env{Request: stored, Mutation: caseMutation(), Account: d.Account}
	kept, err := json.Marshal([]any{d, stored.URL(), stored.Header, string(stored.Body()), op.Describe(env), op.ManualCheckText(env),
		op.Describe(Env{Request: req}), op.ManualCheckText(Env{Request: req}), set.Explain(req).Candidates})
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(kept, []byte(secretWord)) {
		t.Errorf("a secret is kept:\n%s", kept)
	}
	for _, part := range []string{"kept", "9007199254740993", `\"name\":\"n\"`, "a=1"} {
		if !bytes.Contains(kept, []byte(part)) {
			t.Errorf("%s is gone:\n%s", part, kept)
		}
	}
	if !strings.Contains(string(req.Body()), secretWord) || !strings.Contains(req.URL(), secretWord) || req.Header.Get("X-Pass") != secretWord {
		t.Error("the request that is sent was masked")
	}
}

func TestDifferentSecretsAreDifferentKeysAndPayloads(t *testing.T) {
	t.Parallel()
	set, _ := operation(t, leaky)
	one := derive(t, set, leakyRequest(t, leakyBody))
	again := derive(t, set, leakyRequest(t, leakyBody))
	other := derive(t, set, leakyRequest(t, strings.Replace(leakyBody, `"number":"`+secretWord, `"number":"other`, 1)))
	if identityOf(one) != identityOf(again) || one.PayloadDigest != again.PayloadDigest {
		t.Error("one request is two")
	}
	if identityOf(one) == identityOf(other) || one.PayloadDigest == other.PayloadDigest {
		t.Error("two secrets are one")
	}
}

func TestRefusalsAndReasonsQuoteNoValue(t *testing.T) {
	t.Parallel()
	set, op := operation(t, leaky)
	for name, body := range map[string]string{
		"no JSON":             `{"` + secretWord,
		"a repeated name":     `{"` + secretWord + `":1,"` + secretWord + `":2}`,
		"a name as a number":  `{"name":["` + secretWord + `"],"card":{"number":1},"note":"x"}`,
		"a missing value":     `{"card":{"number":"` + secretWord + `"}}`,
		"a note that's none":  `{"name":"n","card":{"number":"x"},"note":["` + secretWord + `"]}`,
		"another spelling":    `{"Name":"` + secretWord + `","card":{"number":"x"}}`,
		"a secret's spelling": `{"name":"n","card":{"number":"x"},"keys":[{"Value":"` + secretWord + `"}]}`,
	} {
		refusal := deriveRefusal(t, set, leakyRequest(t, body))
		if refusal == nil || strings.Contains(refusal.Detail, secretWord) {
			t.Errorf("%s: %v", name, refusal)
		}
	}
	resp := &Response{Status: 418, Complete: true, Body: []byte(`{"token":"` + secretWord + `"}`)}
	if o := op.Judge(leakyRequest(t, leakyBody), "", caseMutation(), resp); o.Kind != verdict.OpinionUncertain || strings.Contains(o.Reason, secretWord) {
		t.Errorf("%+v", o)
	}
}

func TestStoredAnswersHoldNoSecret(t *testing.T) {
	t.Parallel()
	_, op := operation(t, leaky)
	const body = `{"token":"` + secretWord + `","list":[{"s":"` + secretWord + `"},{"s":["` + secretWord + `"]}],"id":9007199254740993}`
	cases := []struct {
		name, body string
		complete   bool
		header     map[string][]string
		want       string
	}{
		{"whole", body, true, nil, `{"token":"<secret>","list":[{"s":"<secret>"},{"s":"<secret>"}],"id":9007199254740993}`},
		{"cut where it still parses", body, false, nil, ""},
		{"cut", body[:40], true, nil, ""},
		{"no JSON", secretWord, true, nil, ""},
		{"repeated names", `{"token":"` + secretWord + `","token":1}`, true, nil, `{"token":"<secret>","token":"<secret>"}`},
		{"compressed", squeeze(t, "gzip", body), true, map[string][]string{"Content-Encoding": {"gzip"}, "Content-Length": {"1"}},
			`{"token":"<secret>","list":[{"s":"<secret>"},{"s":"<secret>"}],"id":9007199254740993}`},
		{"in an unknown coding", secretWord, true, map[string][]string{"Content-Encoding": {"br"}}, ""},
		{"empty", "", true, nil, ""},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			header := map[string][]string{"X-New": {secretWord}, "X-Kept": {"kept"}}
			maps.Copy(header, tc.header)
			resp := &Response{Status: 200, Header: header, Body: []byte(tc.body), Complete: tc.complete}
			got := op.RedactResponse(resp)
			if string(got.Body) != tc.want || got.Header.Get("X-New") != "<secret>" || got.Header.Get("X-Kept") != "kept" {
				t.Errorf("%q %v", got.Body, got.Header)
			}
			if tc.body != "" && (got.Header.Get("Content-Encoding") != "" || got.Header.Get("Content-Length") != "") {
				t.Errorf("declares what it isn't: %v", got.Header)
			}
			if resp.Header.Get("X-New") != secretWord || string(resp.Body) != tc.body {
				t.Error("the answer that is delivered was masked")
			}
		})
	}
}

// A body that is changed no longer has the length, coding or digest that were
// declared for it.
func TestAChangedBodyDeclaresNothingOfTheOldOne(t *testing.T) {
	t.Parallel()
	_, op := operation(t, simpleMutation+"    marker: {json: m}\n")
	req := request(t, "POST https://api.test/things/k", squeeze(t, "gzip", `{"name":"n"}`), "Content-Encoding: gzip", "Content-Length: 9", "X-Kept: kept")
	out, refusal := op.Outgoing(req, caseMutation())
	if refusal != nil {
		t.Fatal(refusal)
	}
	if got := string(out.Body()); got != `{"name":"n","m":"`+CaseMarker+`"}` {
		t.Errorf("body %s", got)
	}
	if out.Header.Get("Content-Encoding")+out.Header.Get("Content-Length") != "" || out.Header.Get("X-Kept") != "kept" {
		t.Errorf("%v", out.Header)
	}
	if _, refusal := op.Outgoing(req, Mutation{VendorKey: "k"}); refusal == nil {
		t.Error("sent without a marker")
	}
}

func TestAWrittenNameBesideAVariantIsRefused(t *testing.T) {
	t.Parallel()
	for keys, line := range map[string]string{
		"native_key: {query: key}": "POST https://api.test/things/k?KEY=x", "native_key: {form: key}": "POST https://api.test/things/k",
	} {
		_, op := operation(t, simpleMutation+"    "+keys+"\n")
		_, refusal := op.Outgoing(request(t, line, "Key=x", formHeader), caseMutation())
		wantRefusal(t, refusal, ProblemAmbiguous, "only in case")
	}
}

func TestSecretNamesInAnotherCaseAreRefused(t *testing.T) {
	t.Parallel()
	set, _ := operation(t, `
  - name: make
    match: {method: POST, path: /things}
    effect: mutation
    identity: none
    secret: [form.pin, query.key]
    reconcile: [{none: why}]
    manual_check: look
`)
	for _, line := range []string{"POST https://api.test/things?Key=x", "POST https://api.test/things"} {
		wantRefusal(t, deriveRefusal(t, set, request(t, line, "PIN=1", formHeader)), ProblemAmbiguous, "only in case")
	}
}

func TestFormsThatCannotBeReadAreToldApartByTheirBytes(t *testing.T) {
	t.Parallel()
	set, _ := operation(t, strings.ReplaceAll(simpleMutation, "{name: json.name}", "{kind: path.kind}"))
	one := derive(t, set, request(t, "POST https://api.test/things/k", "a=\xff", formHeader))
	other := derive(t, set, request(t, "POST https://api.test/things/k", "a=\xfe", formHeader))
	if one.PayloadDigest == other.PayloadDigest {
		t.Error("two bodies have one digest")
	}
}

// What is identity is no payload too: a spelling that the rule brings together
// would contradict itself.
func TestAPathVariableThatIsIdentityIsNoPayload(t *testing.T) {
	t.Parallel()
	set, _ := operation(t, `
  - name: make
    match: {method: POST, path: "/{owner}/{part}"}
    effect: mutation
    identity: {owner: path.owner.lowerAscii()}
    reconcile: [{none: why}]
    manual_check: look
`)
	one := derive(t, set, request(t, "POST https://api.test/Octo/a", ""))
	same := derive(t, set, request(t, "POST https://api.test/octo/a", ""))
	other := derive(t, set, request(t, "POST https://api.test/octo/b", ""))
	if identityOf(one) != identityOf(same) || one.PayloadDigest != same.PayloadDigest {
		t.Errorf("the spelling of the owner is payload")
	}
	if one.PayloadDigest == other.PayloadDigest {
		t.Error("a variable that is not identity is no payload")
	}
}
