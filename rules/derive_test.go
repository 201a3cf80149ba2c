package rules

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"slices"
	"strings"
	"testing"
)

func TestIdentityIsWhatTheRuleNames(t *testing.T) {
	t.Parallel()
	set, _ := operation(t, `
  - name: make
    match: {method: POST, path: "/v{version}/things/{kind}"}
    effect: mutation
    identity:
      kind: path.kind
      who: header['x-who']
      page: query.page
      name: json.name
      tag: json.?tag
      constant: "'c'"
      sorted: json.to.distinct().sort()
    subkey: json.?n.orValue('')
    reconcile: [{none: why}]
    manual_check: look
`)
	d := derive(t, set, request(t, "POST https://api.test/v2/things/a%20b?page=3&other=x",
		`{"name":12345678901234567890123,"to":["b","a","b"],"n":7}`, "X-Who: me"))
	want := `{"constant":"c","kind":"a b","name":12345678901234567890123,"page":"3","sorted":["a","b"],"who":"me"}`
	if got := identityOf(d); got != want {
		t.Errorf("identity %s, want %s", got, want)
	}
	if d.Subkey != "7" || d.HostGroup != "test" || d.Account != "" || d.Target != "make" {
		t.Errorf("derived %+v", d)
	}
}

func TestAbsentNullAndEmptyAreThreeIdentities(t *testing.T) {
	t.Parallel()
	set, _ := operation(t, `
  - name: make
    match: {method: POST, path: /things}
    effect: mutation
    identity: {name: json.name, tag: json.?tag}
    reconcile: [{none: why}]
    manual_check: look
`)
	seen := map[string]string{}
	for _, body := range []string{`{"name":1}`, `{"name":1,"tag":null}`, `{"name":1,"tag":""}`, `{"name":1,"tag":"null"}`, `{"name":"1"}`} {
		got := identityOf(derive(t, set, request(t, "POST https://api.test/things", body)))
		if other, again := seen[got]; again {
			t.Errorf("%s and %s are one identity: %s", body, other, got)
		}
		seen[got] = body
	}
}

func TestDeriveRefuses(t *testing.T) {
	t.Parallel()
	const op = `
  - name: make
    match: {method: POST, path: "/things"}
    effect: mutation
    identity: {a: IDENTITY}
    reconcile: [{none: why}]
    manual_check: look
`
	const form = "Content-Type: application/x-www-form-urlencoded"
	const json = "Content-Type: application/json"
	cases := []struct {
		name, identity, url, body string
		header                    []string
		problem                   Problem
		part                      string
	}{
		{"missing member", "json.a.b", "", `{"a":{}}`, nil, ProblemIdentity, "json.a.b"},
		{"member of what is no object", "json.a.b", "", `{"a":"x"}`, nil, ProblemIdentity, "json.a.b"},
		{"member of null", "json.a.b", "", `{"a":null}`, nil, ProblemIdentity, "json.a.b"},
		{"index out of range", "json.a[1]", "", `{"a":[0]}`, nil, ProblemIdentity, "json.a[1]"},
		{"no body", "json.a", "", ``, nil, ProblemIdentity, "json.a"},
		{"a body that is no JSON", "json.a", "", `hello`, nil, ProblemIdentity, "json.a"},
		{"all optional and absent", "json.?a", "", `{}`, nil, ProblemIdentity, "none of the values"},
		{"declared as JSON but broken", "json.?a.orValue('x')", "", `{"a":`, []string{json}, ProblemAmbiguous, "can't be parsed"},
		{"repeated member", "json.?b.orValue('x')", "", `{"a":1,"a":2}`, []string{json}, ProblemAmbiguous, "repeats a member"},
		{"repeated query name", "query.?a.orValue('x')", "?a=1&a=2", ``, nil, ProblemAmbiguous, "repeats a name"},
		{"repeated query name behind an or", "has(query.a) || true", "?a=1&a=2", ``, nil, ProblemAmbiguous, "repeats a name"},
		{"repeated query name in an iteration", "query.map(k, k)", "?a=1&a=2", ``, nil, ProblemAmbiguous, "repeats a name"},
		{"repeated form name", "form.a", "", `a=1&a=2`, []string{form}, ProblemAmbiguous, "repeats a name"},
		{"repeated header", "header['x-a']", "", ``, []string{"X-A: 1", "X-A: 2"}, ProblemAmbiguous, "repeats a name"},
		{"semicolon in a form", "form.?a.orValue('')", "", `b=1;a=2`, []string{form}, ProblemAmbiguous, "semicolon"},
		{"broken escape in the query", "query.?a.orValue('')", "?b=%zz", ``, nil, ProblemAmbiguous, "escape"},
		{"number that would lose digits", "json.a", "", `{"a":0.1234567890123456789}`, nil, ProblemIdentity, "more digits"},
		{"number out of range", "json.a", "", `{"a":1e999}`, nil, ProblemAmbiguous, "number"},
		{"unknown encoding", "json.a", "", `{"a":1}`, []string{"Content-Encoding: br"}, ProblemAmbiguous, "Content-Encoding"},
		{"not in its encoding", "json.a", "", `{"a":1}`, []string{"Content-Encoding: gzip"}, ProblemAmbiguous, "not in its declared"},
		{"other charset", "json.a", "", `{"a":1}`, []string{"Content-Type: application/json; charset=latin1"}, ProblemAmbiguous, "charset"},
		{"two content types", "json.a", "", `{"a":1}`, []string{json, form}, ProblemAmbiguous, "more than once"},
		{"endless evaluation", "json.a.map(x, json.a.map(y, json.a.map(z, x)))", "", `{"a":[` + strings.Repeat("1,", 999) + `1]}`, nil, ProblemIdentity, "json.a.map"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			set, op := operation(t, strings.Replace(op, "IDENTITY", `"`+tc.identity+`"`, 1))
			req := request(t, "POST https://api.test/things"+tc.url, tc.body, tc.header...)
			_, refusal := op.Derive(req, set.Match(req))
			wantRefusal(t, refusal, tc.problem, tc.part)
		})
	}
	set, op2 := operation(t, "  - {name: r, match: {method: POST}, effect: read}\n")
	req := request(t, "POST https://api.test/", "")
	_, refusal := op2.Derive(req, set.Match(req))
	wantRefusal(t, refusal, ProblemDenied, "no mutation")
}

func TestPayloadIsEverythingElse(t *testing.T) {
	t.Parallel()
	set, _ := operation(t, `
  - name: make
    match: {method: [POST, PUT], path: "/{version}/things/{kind}"}
    effect: mutation
    identity: {kind: path.kind, name: json.name}
    payload:
      ignore: [path.version, query.trace, "json.items[*].seen"]
      minor: [json.note, "json.tags[*]", query.view, "header['x-mode']"]
      headers: [X-Mode, x-kind]
    native_key: {json: request.key, window: 24h}
    marker: {json: meta.mark}
    reconcile: [{none: why}]
    manual_check: look
`)
	base := request(t, "POST https://api.test/v1/things/a?b=1&a=2", `{"name":"n","amount":5,"items":[{"id":1,"seen":true}]}`, "X-Kind: k")
	cases := []struct {
		name, line, body string
		header           []string
		payload, minor   bool // equal payload, equal but for minor places
	}{
		{"the same", "POST https://api.test/v1/things/a?b=1&a=2", `{"name":"n","amount":5,"items":[{"id":1,"seen":true}]}`, []string{"X-Kind: k"}, true, true},
		{"another order and spelling", "POST https://api.test/v1/things/%61?a=%32&b=1", "{\"items\":[{\"seen\":true,\"id\":1}],\n\"amount\":5.0,\"name\":\"\\u006e\"}", []string{"X-Kind: k"}, true, true},
		{"ignored places", "POST https://api.test/v2/things/a?b=1&a=2&trace=9", `{"name":"n","amount":5,"items":[{"id":1}]}`, []string{"X-Kind: k"}, true, true},
		{"the script's own key and mark", "POST https://api.test/v1/things/a?b=1&a=2", `{"name":"n","amount":5,"items":[{"id":1}],"request":{"key":"r"},"meta":{"mark":"x"}}`, []string{"X-Kind: k"}, false, false},
		{"headers that aren't listed", "POST https://api.test/v1/things/a?b=1&a=2", `{"name":"n","amount":5,"items":[{"id":1}]}`, []string{"X-Kind: k", "Date: now", "Authorization: x"}, true, true},
		{"a minor member", "POST https://api.test/v1/things/a?b=1&a=2", `{"name":"n","amount":5,"items":[{"id":1}],"note":"x"}`, []string{"X-Kind: k"}, false, true},
		{"a minor list, query and header", "POST https://api.test/v1/things/a?b=1&a=2&view=x", `{"name":"n","amount":5,"items":[{"id":1}],"tags":["x"]}`, []string{"X-Kind: k", "X-Mode: m"}, false, true},
		{"another amount", "POST https://api.test/v1/things/a?b=1&a=2", `{"name":"n","amount":6,"items":[{"id":1}]}`, []string{"X-Kind: k"}, false, false},
		{"an amount as text", "POST https://api.test/v1/things/a?b=1&a=2", `{"name":"n","amount":"5","items":[{"id":1}]}`, []string{"X-Kind: k"}, false, false},
		{"another method", "PUT https://api.test/v1/things/a?b=1&a=2", `{"name":"n","amount":5,"items":[{"id":1}]}`, []string{"X-Kind: k"}, false, false},
		{"another query", "POST https://api.test/v1/things/a?b=1&a=3", `{"name":"n","amount":5,"items":[{"id":1}]}`, []string{"X-Kind: k"}, false, false},
		{"another listed header", "POST https://api.test/v1/things/a?b=1&a=2", `{"name":"n","amount":5,"items":[{"id":1}]}`, []string{"X-Kind: l"}, false, false},
	}
	want := derive(t, set, base)
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got := derive(t, set, request(t, tc.line, tc.body, tc.header...))
			if identityOf(got) != identityOf(want) {
				t.Fatalf("identity %s, want %s", identityOf(got), identityOf(want))
			}
			if equal := got.PayloadDigest == want.PayloadDigest; equal != tc.payload {
				t.Errorf("same payload: %v, want %v", equal, tc.payload)
			}
			if equal := got.SignificantDigest == want.SignificantDigest; equal != tc.minor {
				t.Errorf("same significant payload: %v, want %v", equal, tc.minor)
			}
		})
	}
	withKey := func(body string) string {
		return derive(t, set, request(t, "POST https://api.test/v1/things/a", body)).PayloadDigest
	}
	if withKey(`{"name":"n","request":{"key":"1"},"meta":{"mark":"x"}}`) != withKey(`{"name":"n","request":{"key":"2"},"meta":{}}`) {
		t.Error("the script's own native key or marker is payload")
	}
}

func TestPayloadOfFormsAndBytes(t *testing.T) {
	t.Parallel()
	set, _ := operation(t, `
  - name: make
    match: {method: POST, path: /things}
    effect: mutation
    identity: none
    payload: {ignore: ["form['expand[]']"]}
    reconcile: [{none: why}]
    manual_check: look
`)
	digest := func(body string, header ...string) string {
		d := derive(t, set, request(t, "POST https://api.test/things", body, header...))
		if identityOf(d) != "{}" {
			t.Errorf("identity %s, want none", identityOf(d))
		}
		return d.PayloadDigest
	}
	const form = "Content-Type: application/x-www-form-urlencoded"
	if digest("b=1&a=%41", form) != digest("a=A&b=1&expand[]=x", form) {
		t.Error("order, spelling or an ignored name of a form is payload")
	}
	if digest("a=1&a=2", form) == digest("a=2&a=1", form) {
		t.Error("the order of one name's values is not payload")
	}
	query := func(raw string) string {
		d := derive(t, set, request(t, "POST https://api.test/things?"+raw, "a=1", form))
		return d.PayloadDigest
	}
	if query("x=%zz1") == query("x=%zz2") {
		t.Error("two queries that can't be read have one digest")
	}
	if digest("a=1", form) == digest("a=1") {
		t.Error("a form and other bytes are the same payload")
	}
	if digest("hello") == digest("hello ") || digest("hello") != digest("hello", "Content-Type: text/plain") {
		t.Error("bytes are not compared by their digest")
	}
	if digest(`{"a":1,"a":2}`) == digest(`{"a":1,"a":3}`) {
		t.Error("JSON that repeats a name is not compared by its bytes where no rule reads it")
	}
	var zipped, deflated bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, _ = z.Write([]byte(`{"a": 1}`))
	_ = z.Close()
	d := zlib.NewWriter(&deflated)
	_, _ = d.Write([]byte(`{"a": 1}`))
	_ = d.Close()
	if want := digest(`{"a":1}`); digest(zipped.String(), "Content-Encoding: gzip") != want || digest(deflated.String(), "Content-Encoding: deflate") != want {
		t.Error("an encoded body is another payload")
	}
	req := request(t, "POST https://api.test/things", zipped.String()+zipped.String(), "Content-Encoding: gzip")
	m := set.Match(req)
	_, refusal := m.Operation.Derive(req, m)
	wantRefusal(t, refusal, ProblemAmbiguous, "more than one stream")
}

func TestSecretsAreHashedAndNeverShown(t *testing.T) {
	t.Parallel()
	set, op := operation(t, `
  - name: make
    match: {method: POST, path: "/bot{token}/send"}
    effect: mutation
    describe: "send {json.text} by {path.token} and {json.card.number}"
    manual_check: "card {json.card} of {json.text}"
    identity: {bot: path.token, card: json.card.number, text: json.text}
    subkey: json.card.number
    secret: [path.token, json.card]
    reconcile: [{none: why}]
`)
	body := `{"text":"hi","card":{"number":"4242"}}`
	req := request(t, "POST https://api.test/bot99:abc/send", body)
	d := derive(t, set, req)
	if got, want := d.Target, "send hi by <secret> and <secret>"; got != want {
		t.Errorf("target %q, want %q", got, want)
	}
	if got, want := op.ManualCheckText(Env{Request: req}), "card <secret> of hi"; got != want {
		t.Errorf("manual check %q, want %q", got, want)
	}
	all := identityOf(d) + d.Subkey
	if strings.Contains(all, "4242") || strings.Contains(all, "99:abc") || !strings.Contains(all, `"text":"hi"`) {
		t.Errorf("identity and subkey show a secret: %s", all)
	}
	other := derive(t, set, request(t, "POST https://api.test/bot99:abc/send", strings.Replace(body, "4242", "4243", 1)))
	if identityOf(other) == identityOf(d) || other.Subkey == d.Subkey {
		t.Error("another secret is the same identity")
	}
}

func TestAccountAndHostVariablesArePartOfTheKey(t *testing.T) {
	t.Parallel()
	file := strings.Replace(connectorHead, "hosts: [api.test]", "hosts: [\"{zone}.{tenant}.test\"]\nhost_group: group\naccount: header[?'x-tenant'].orValue('own')", 1) + `
  - name: make
    match: {method: POST, path: /things}
    effect: mutation
    identity: {tenant: host.tenant}
    describe: "for {account}"
    reconcile: [{none: why}]
    manual_check: look
`
	set := load(t, file)
	d := derive(t, set, request(t, "POST https://eu.acme.test/things", "", "X-Tenant: t1"))
	if d.Account != "t1" || d.HostGroup != "group" || d.Target != "for t1" || len(d.HostVars) != 1 || d.HostVars["zone"] != "eu" {
		t.Errorf("derived %+v", d)
	}
	if d := derive(t, set, request(t, "POST https://eu.acme.test/things", "")); d.Account != "own" {
		t.Errorf("account %q", d.Account)
	}
	if !set.Connector("test").HasAccount {
		t.Error("HasAccount is false")
	}
}

func TestWhichHeaderFieldsTheAccountReads(t *testing.T) {
	t.Parallel()
	fields := []string{"X-Tenant: t1", "Authorization: a", "Content-Type: application/json", "Date: now"}
	for account, reads := range map[string]string{
		"header[?'x-tenant'].orValue('own')":   "X-Tenant",
		"header['authorization']":              "Authorization",
		"sha256(header['authorization'])":      "Authorization",
		"has(header.date) ? 'yes' : 'no'":      "Date",
		"header[json.name]":                    "X-Tenant Authorization Content-Type Date",
		"json.name":                            "X-Tenant Authorization Content-Type Date",
		"string(size(header))":                 "X-Tenant Authorization Content-Type Date",
		"method + header[?'date'].orValue('')": "Date",
		"'own'":                                "",
	} {
		t.Run(account, func(t *testing.T) {
			t.Parallel()
			file := strings.Replace(connectorHead, "hosts: [api.test]", "hosts: [api.test]\naccount: \""+account+"\"", 1) + `
  - name: make
    match: {method: POST, path: /things}
    effect: mutation
    identity: none
    secret: [header.authorization]
    reconcile: [{none: why}]
    manual_check: look
`
			set := load(t, file)
			of := func(header ...string) (string, bool) {
				req := request(t, "POST https://api.test/things", `{"name":"x-tenant"}`, header...)
				m := set.Match(req)
				account, refusal := m.Operation.Account(req, m)
				d, refused := m.Operation.Derive(req, m)
				if (refusal == nil) != (refused == nil) || refused == nil && d.Account != account {
					t.Errorf("account %q, %v, but derived %+v, %v", account, refusal, d, refused)
				}
				return account, refusal == nil
			}
			whole, _ := of(fields...)
			for i, field := range fields {
				name, _, _ := strings.Cut(field, ":")
				got, want := set.Connector("test").AccountReads(name), slices.Contains(strings.Fields(reads), name)
				if got != want {
					t.Errorf("reads %s: %t, want %t", name, got, want)
				}
				without, told := of(slices.Delete(slices.Clone(fields), i, i+1)...)
				if (without != whole || !told) && !got {
					t.Errorf("without %s it is %q instead of %q, although it doesn't read it", name, without, whole)
				}
			}
		})
	}
}

// What fails in an identity is said. An error may quote a value, so nothing is said where the rule has secrets.
func TestARefusalSaysWhatFailsInAnIdentity(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		secret string
		told   bool
	}{{"", true}, {"    secret: [json.pin]\n", false}} {
		set, _ := operation(t, `
  - name: make
    match: {method: POST, path: /things}
    effect: mutation
    identity: {at: timestamp(json.at)}
`+tc.secret+`    reconcile: [{none: why}]
    manual_check: look
`)
		req := request(t, "POST https://api.test/things", `{"at":"soon"}`)
		m := set.Match(req)
		_, refusal := m.Operation.Derive(req, m)
		if refusal == nil || strings.Contains(refusal.Error(), "soon") != tc.told {
			t.Errorf("secret %q: %v", tc.secret, refusal)
		}
	}
}
