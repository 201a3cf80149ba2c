package rules

import (
	"strings"
	"testing"
)

// overriding is a connector with every effect, and with two operations that match
// on overrides.
const overriding = connectorHead + `
  - name: make
    match: {method: POST, path: /things}
    effect: mutation
    identity: {of: body_sha256}
    reconcile: [{none: why}]
    manual_check: look
  - name: search
    match: {method: POST, path: /search}
    effect: read
  - name: telemetry
    match: {method: POST, path: /telemetry}
    effect: ignore
  - name: header
    match: {method: POST, path: /header, when: "header['x-http-method-override'] == 'PUT'"}
    effect: mutation
    identity: {of: body_sha256}
    reconcile: [{none: why}]
    manual_check: look
  - name: verb
    match: {method: POST, path: /verb, when: "header['x-http-verb'] == 'PUT'"}
    effect: read
  - name: form
    match: {method: POST, path: /form, when: "form['_method'] == 'DELETE'"}
    effect: ignore
  - name: json
    match: {method: POST, path: /json, when: json._method == 'PUT'}
    effect: mutation
    identity: {of: body_sha256}
    reconcile: [{none: why}]
    manual_check: look
`

// upload is a multipart body with one field.
func upload(disposition string) string {
	return "--b\r\nContent-Type: text/plain\r\n" + disposition + "\r\n\r\nDELETE\r\n--b--\r\n"
}

const multipartHeader = "Content-Type: multipart/form-data; boundary=b"

func TestOverridesAreRefusedWhereverServersLook(t *testing.T) {
	t.Parallel()
	set := load(t, overriding)
	cases := []struct {
		name, target, body, part string
		header                   []string
	}{
		{"in a header field", "/things", "", "X-Http-Method-Override", []string{"X-HTTP-Method-Override: DELETE"}},
		{"in an empty header field", "/things", "", "X-Http-Method", []string{"X-HTTP-Method: "}},
		{"in a header field's third name", "/things", "", "X-Method-Override", []string{"X-Method-Override: DELETE"}},
		{"in a header field behind underscores", "/things", "", "X_http_method_override", []string{"X_HTTP_Method_Override: DELETE"}},
		{"in a gateway's header field", "/search", "", "X-Forwarded-Method", []string{"X-Forwarded-Method: DELETE"}},
		{"of the path, in a header field", "/things", "", "X-Original-Url", []string{"X-Original-URL: /admin"}},
		{"of the path, in the other header field", "/search", "", "X-Rewrite-Url", []string{"X-Rewrite-URL: /admin"}},
		{"in the query", "/things?_method=DELETE", "", "_method", nil},
		{"in the query, in capitals and escaped", "/things?%5FMETHOD=DELETE", "", "_METHOD", nil},
		{"in the query behind a semicolon", "/things?a=b;_method=DELETE", "", "_method", nil},
		{"in the query without a value", "/search?a=b&_method", "", "_method", nil},
		{"in the query as Salesforce's", "/things?_HttpMethod=PATCH", "", "_HttpMethod", nil},
		{"in the query as OData's", "/things?$httpMethod=DELETE", "", "$httpMethod", nil},
		{"in a form", "/things", "a=b&_method=DELETE", "form field", []string{formHeader}},
		{"in a form that can't be read", "/things", "_method=DELETE&a=%zz", "form field", []string{formHeader}},
		{"in a read's form", "/search", "_method=DELETE", "form field", []string{formHeader}},
		{"in an ignored request's form", "/telemetry", "_method=DELETE", "form field", []string{formHeader}},
		{"in JSON", "/things", `{"a":1,"_method":"DELETE"}`, "JSON member", []string{jsonHeader}},
		{"in JSON, in capitals", "/things", `{"_Method":"DELETE"}`, "JSON member", nil},
		{"in JSON declared as a form", "/things", `{"_method":"DELETE"}`, "JSON member", []string{formHeader}},
		{"in a read's JSON", "/search", `{"_method":"DELETE"}`, "JSON member", []string{jsonHeader}},
		{"in JSON with a name of a header field", "/things", `{"X-HTTP-Method-Override":"DELETE"}`, "JSON member", nil},
		{"in a multipart body", "/things", upload(`Content-Disposition: form-data; name="_method"`), "multipart", []string{multipartHeader}},
		{"in a multipart body without quotes", "/things", upload(`content-disposition:form-data;name=_METHOD`), "multipart", []string{multipartHeader}},
		{"in a multipart body with a charset", "/things", upload(`Content-Disposition: form-data; name*=utf-8''%5Fmethod`), "multipart", []string{multipartHeader}},
		{"in a multipart body on a line that goes on", "/things", upload("Content-Disposition: form-data;\r\n name=\"_method\""), "multipart", []string{multipartHeader}},
		{"in a multipart body on a line that goes on with a tab", "/things", upload("Content-Disposition: form-data;\n\tname=_method"), "multipart", []string{multipartHeader}},
		{"in a multipart body as a quoted pair", "/things", upload(`Content-Disposition: form-data; name="_me\thod"`), "multipart", []string{multipartHeader}},
		{"in a multipart body in pieces", "/things", upload(`Content-Disposition: form-data; name*0="_met"; name*1="hod"`), "multipart", []string{multipartHeader}},
		{"in a multipart body with lines that end in CR", "/things", "--b\rContent-Disposition: form-data; name=_method\r\rx\r--b--", "multipart", []string{multipartHeader}},
		{"in a read's multipart body", "/search", upload(`Content-Disposition: form-data; filename=a; name="_method"`), "multipart", []string{multipartHeader}},
		{"in another place than the rule matches on", "/header?_method=DELETE", "", "_method", []string{"X-HTTP-Method-Override: PUT"}},
		{"below another name than the rule matches on", "/json", `{"_method":"PUT","x-http-method":"DELETE"}`, "x-http-method", nil},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			req := request(t, "POST https://api.test"+tc.target, tc.body, tc.header...)
			m := set.Match(req)
			wantRefusal(t, m.Refusal, ProblemOverride, tc.part)
			if m.Effect != EffectDeny {
				t.Errorf("effect %v", m.Effect)
			}
			if m.Refusal != nil && strings.Contains(m.Refusal.Detail, "DELETE") {
				t.Errorf("quotes a value: %s", m.Refusal.Detail)
			}
		})
	}
}

func TestWhatOnlyLooksLikeAnOverridePasses(t *testing.T) {
	t.Parallel()
	set := load(t, overriding)
	cases := []struct {
		name, target, body, operation string
		header                        []string
	}{
		{"matched on in a header field", "/header", "", "header", []string{"X-HTTP-Method-Override: PUT"}},
		{"matched on in a read's header field", "/verb", "", "verb", []string{"X-HTTP-Verb: PUT"}},
		{"matched on in an ignored request's form", "/form", "_method=DELETE", "form", []string{formHeader}},
		{"to a safe method in a read's form", "/search", "_method=GET", "search", []string{formHeader}},
		{"matched on in JSON", "/json", `{"_method":"PUT"}`, "json", nil},
		{"further down in JSON", "/things", `{"a":{"_method":"x"}}`, "make", nil},
		{"as a value", "/things?a=_method", `{"a":"_method"}`, "make", nil},
		{"as a part of a name", "/things?payment_method=card", "payment_method=card", "make", []string{formHeader}},
		{"as a multipart field of a longer name", "/things", upload(`Content-Disposition: form-data; name="payment_method"`), "make", []string{multipartHeader}},
		{"as text in a multipart body", "/things", upload("X-Note: 1") + `name="_method"`, "make", []string{multipartHeader}},
		{"in a body that is neither", "/telemetry", `{"_method":"DELETE"}`, "telemetry", []string{"Content-Type: application/x-protobuf"}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			m := set.Match(request(t, "POST https://api.test"+tc.target, tc.body, tc.header...))
			if m.Refusal != nil || m.Operation == nil || m.Operation.Name != tc.operation {
				t.Errorf("%+v (%v)", m.Operation, m.Refusal)
			}
		})
	}
}

// Reads are streamed, never buffered, whatever their content is declared to be.
func TestOverridesDoNotMakeAReadWait(t *testing.T) {
	t.Parallel()
	set := load(t, overriding)
	for _, contentType := range []string{
		"application/x-www-form-urlencoded", "application/json", "multipart/form-data; boundary=b", "application/octet-stream", "",
	} {
		raw := Raw{Method: "POST", Scheme: "https", Authority: "api.test", Target: "/search", HasBody: true, Header: map[string][]string{"Content-Type": {contentType}}}
		req, refusal := Normalise(raw)
		if refusal != nil {
			t.Fatal(refusal)
		}
		if m := set.Match(req); m.NeedsBody || m.Effect != EffectRead {
			t.Errorf("%q: needs the body: %t, effect %s", contentType, m.NeedsBody, m.Effect)
		}
	}
}

// What real clients send: Google's send a long GET as POST, SharePoint wants an update as one.
const byOverride = connectorHead + `
  - name: long
    before: [create, update]
    match: {method: POST, path: "/v3/{what...}", when: "header[?'x-http-method-override'].orValue('') == 'GET'"}
    effect: read
  - name: create
    match: {method: POST, path: /v3/items}
    effect: mutation
    identity: {ref: json.ref}
    reconcile: [{none: why}]
    manual_check: look
  - name: update
    match: {method: POST, path: "/v3/items/{id}", when: "header[?'x-http-method'].orValue('') == 'MERGE'"}
    effect: mutation
    identity: {item: path.id, ref: json.ref}
    reconcile: [{none: why}]
    manual_check: look
`

func TestARuleAllowsAnOverrideThatItReads(t *testing.T) {
	t.Parallel()
	set := load(t, byOverride)
	long := "q=" + strings.Repeat("a", 3000)
	for name, c := range map[string]struct {
		target, body string
		header       []string
		operation    string
	}{
		"a long GET":                          {"/v3/search", long, []string{"X-HTTP-Method-Override: GET", formHeader}, "long"},
		"a long GET of what is created there": {"/v3/items", long, []string{"X-HTTP-Method-Override: GET", formHeader}, "long"},
		"MERGE":                               {"/v3/items/7", `{"ref":"r"}`, []string{"X-HTTP-Method: MERGE", jsonHeader}, "update"},
		"one to its own method":               {"/v3/items", `{"ref":"r"}`, []string{"X-HTTP-Method: POST", jsonHeader}, "create"},
		"another method":                      {"/v3/search", long, []string{"X-HTTP-Method-Override: DELETE", formHeader}, ""},
		"another of an update":                {"/v3/items/7", `{"ref":"r"}`, []string{"X-HTTP-Method: DELETE", jsonHeader}, ""},
		"one of what is created":              {"/v3/items", `{"ref":"r"}`, []string{"X-HTTP-Method: MERGE", jsonHeader}, ""},
		"two methods":                         {"/v3/items", `{"ref":"r"}`, []string{"X-HTTP-Method: POST", "X-HTTP-Method: DELETE", jsonHeader}, ""},
		"another field beside it":             {"/v3/search", long, []string{"X-HTTP-Method-Override: GET", "X-HTTP-Method: PUT", formHeader}, ""},
		"a form field beside it":              {"/v3/search", long + "&_method=DELETE", []string{"X-HTTP-Method-Override: GET", formHeader}, ""},
	} {
		req := request(t, "POST https://api.test"+c.target, c.body, c.header...)
		m := set.Match(req)
		if m.Refusal == nil && m.Effect == EffectRead {
			m.Refusal = m.JudgeWhole(req, []byte(c.body))
		}
		switch {
		case c.operation == "" && m.Refusal == nil:
			t.Errorf("%s: passes as %+v", name, m)
		case c.operation == "":
		case m.Refusal != nil || m.Operation == nil || m.Operation.Name != c.operation:
			t.Errorf("%s: %+v", name, m)
		case m.Effect == EffectMutation:
			derive(t, set, req)
		}
	}
}
