package rules

import (
	"net/http"
	"strings"
	"testing"
)

// inKey are the places of a rule that become part of the key; FIELD is what they read.
var inKey = map[string]struct{ file, key string }{
	"the identity": {withOperation("identity: {who: FIELD}"), "operations[0].identity.who"},
	"the subkey":   {withOperation("subkey: FIELD"), "operations[0].subkey"},
	"the account":  {strings.Replace(withOperation(), "operations:", "account: FIELD\noperations:", 1), "account"},
}

// errorsOf are the errors of a file, and of the same file as a stored version.
func errorsOf(file string) (now, pinned Findings) {
	only := func(all Findings) (out Findings) {
		for _, f := range all {
			if f.Severity == SeverityError {
				out = append(out, f)
			}
		}
		return out
	}
	_, now = Load([]File{{Name: "test.yaml", Data: []byte(file)}}, nil, Defaults{})
	_, pinned = LoadPinned([]byte(file), nil, Defaults{})
	return only(now), only(pinned)
}

func TestEveryCredentialFieldIsMaskedHoweverItIsSpelt(t *testing.T) {
	t.Parallel()
	_, op := operation(t, mutationWith("payload: {minor: [\"header['x-other']\"]}"))
	for _, name := range credentialHeaders {
		for _, spelling := range []string{name, strings.ToUpper(name), strings.ReplaceAll(name, "-", "_")} {
			req := request(t, "POST https://api.test/things", "", spelling+": "+secretWord, "X-Other: kept")
			got := op.Redact(req)
			for field, values := range got.Header {
				if strings.Contains(strings.Join(values, ","), secretWord) {
					t.Errorf("%s is stored in clear", field)
				}
			}
			if got.Header.Get("X-Other") != "kept" || len(got.Header) != len(req.Header) {
				t.Errorf("%s: stored %v", spelling, got.Header)
			}
		}
	}
}

func TestACredentialIsNoPartOfAKeyInClear(t *testing.T) {
	t.Parallel()
	for what, tc := range inKey {
		for _, header := range credentialHeaders {
			for _, name := range []string{strings.ToLower(header), strings.ReplaceAll(strings.ToLower(header), "-", "_")} {
				file := strings.ReplaceAll(tc.file, "FIELD", `"header['`+name+`']"`)
				now, pinned := errorsOf(file)
				if len(now) != 1 || now[0].Code != "credential" || now[0].Key != tc.key || now[0].Line == 0 ||
					!strings.Contains(now[0].Problem, what) || !strings.Contains(now[0].Fix, "sha256(header['"+name+"'])") {
					t.Errorf("%s reads %s: %v", what, name, now)
				}
				if len(pinned) != 0 {
					t.Errorf("%s reads %s: the stored version isn't readable: %v", what, name, pinned)
				}
			}
		}
		for _, unnamed := range []string{`"header[json.name]"`, `"header['x-' + json.name]"`, `"header.map(n, header[n]).join('')"`} {
			now, pinned := errorsOf(strings.ReplaceAll(tc.file, "FIELD", unnamed))
			if len(now) != 1 || now[0].Code != "credential" || !strings.Contains(now[0].Problem, what) || len(pinned) != 0 {
				t.Errorf("%s reads %s: %v, and as a stored version %v", what, unnamed, now, pinned)
			}
		}
		for _, sound := range []string{
			`"sha256(header[json.name])"`, `"sha256(header['authorization'])"`, `"has(header.authorization) ? 'a' : 'b'"`, `"'authorization' in header ? 'a' : 'b'"`, `"header['x-tenant']"`,
		} {
			if now, _ := errorsOf(strings.ReplaceAll(tc.file, "FIELD", sound)); len(now) != 0 {
				t.Errorf("%s reads %s: %v", what, sound, now)
			}
		}
	}
}

func TestACredentialThatIsASecretPlaceIsHashed(t *testing.T) {
	t.Parallel()
	for what, tc := range inKey {
		set := load(t, strings.ReplaceAll(tc.file, "FIELD", "header.authorization")+"    secret: [header.authorization]\n")
		d := derive(t, set, request(t, "POST https://api.test/things", `{"name":"n"}`, "Authorization: Bearer "+secretWord))
		if all := identityOf(d) + d.Subkey + d.Account; strings.Contains(all, secretWord) || !strings.Contains(all, "sha256") {
			t.Errorf("%s: %s", what, all)
		}
	}
}

// A record that was made under a version that this program would refuse is found again.
func TestAStoredVersionKeepsTheKeysThatItMade(t *testing.T) {
	t.Parallel()
	for what, tc := range inKey {
		c, findings := LoadPinned([]byte(strings.ReplaceAll(tc.file, "FIELD", "header.authorization")), nil, Defaults{})
		if c == nil {
			t.Fatal(findings)
		}
		op := c.Operations[0]
		d, err := op.Under(op, OwnHosts, request(t, "POST https://api.test/things", `{"name":"n"}`, "Authorization: as it was"), false)
		if err != nil || d.Derived == nil || !strings.Contains(identityOf(d.Derived)+d.Subkey+d.Account, "as it was") {
			t.Errorf("%s: %+v, %v", what, d, err)
		}
	}
}

func TestTextsForPeopleShowNoCredential(t *testing.T) {
	t.Parallel()
	for _, header := range credentialHeaders {
		name := strings.ToLower(header)
		set, op := operation(t, mutationWith(`describe: "by {header['`+name+`']}, {header[json.which]}"`))
		req := request(t, "POST https://api.test/things", `{"which":"`+name+`"}`, header+": "+secretWord)
		if got := derive(t, set, req).Target; got != "by <secret>, <secret>" {
			t.Errorf("%s: %s", header, got)
		}
		if reason := op.because(errMissing); reason != "" {
			t.Errorf("%s: an error may quote it: %s", header, reason)
		}
	}
}

func TestNothingAsksByACredentialOfTheScript(t *testing.T) {
	t.Parallel()
	const read = "get: /a, query: {k: {cel: \"header['x-api-key']\"}}"
	for name, tc := range map[string]struct{ file, code, key string }{
		"a probe": {withOperation("reconcile: [{probe: {" + read + ", observe: [{when: response.json.ok, is: applied}]}}]"),
			"probe-secret", "operations[0].reconcile[0].probe.query.k.cel"},
		"a watch":      {withOperation("watch: {" + read + ", until: response.json.ok, max: 1h}"), "watch-secret", "operations[0].watch.query.k.cel"},
		"a kept value": {withOperation(keeps("\"header['x-api-key']\"")), "send-secret", "operations[0].send[0].keep.id"},
		"an undo": {withOperation("compensate: {delete: '/a/{object}', header: {x-by: {cel: \"header['x-api-key']\"}}}"),
			"undo-secret", "operations[0].compensate.header.x-by.cel"},
		"a comparison": {withOperation("payload: {compare: \"header['x-api-key'] == stored.header['x-api-key'] ? 'minor' : 'significant'\"}"),
			"secret", "operations[0].payload.compare"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now, pinned := errorsOf(tc.file)
			if len(now) != 1 || now[0].Code != tc.code || now[0].Key != tc.key || !strings.Contains(now[0].Problem, "x-api-key") {
				t.Errorf("errors %v", now)
			}
			if len(pinned) != 0 {
				t.Errorf("the stored version isn't readable: %v", pinned)
			}
		})
	}
}

func TestFieldsNamedLikeCredentialsAreMaskedUnlessTheRuleNamesThem(t *testing.T) {
	t.Parallel()
	fields := []string{"Dd-Api-Key", "X_Csrf_Token", "Token", "x-hook-secret", "X-Password", "X-Auth-Key", "X-Forwarded-Authorization", "X-Service-Credentials"}
	_, bare := operation(t, mutationWith(""))
	for _, name := range fields {
		got := bare.Redact(request(t, "POST https://api.test/things", "", name+": v"))
		if values := got.Header[http.CanonicalHeaderKey(name)]; len(values) != 1 || values[0] != secretShown {
			t.Errorf("%s is stored: %v", name, got.Header)
		}
	}
	for _, name := range []string{"Idempotency-Key", "X-Tokens", "Broken", "X-Token-Count", "Secretary", "X-Request-Id"} {
		if got := bare.Redact(request(t, "POST https://api.test/things", "", name+": v")); got.Header.Get(name) != "v" {
			t.Errorf("%s is masked", name)
		}
	}
	for _, keys := range []string{
		"payload: {headers: [X-Sync-Token]}", "payload: {minor: [\"header['x-sync-token']\"]}", "subkey: header['x-sync-token']",
		"native_key: {header: X-Sync-Token}", "describe: \"{header['x-sync-token']}\"",
	} {
		_, op := operation(t, mutationWith(keys))
		if got := op.Redact(request(t, "POST https://api.test/things", "", "X-Sync-Token: v")); got.Header.Get("X-Sync-Token") != "v" {
			t.Errorf("%s: a field that the rule names is masked", keys)
		}
	}
}

func TestTheFieldOfTheConfiguredCredentialIsMasked(t *testing.T) {
	t.Parallel()
	settings := []Settings{{Connector: "test", CredentialHeader: "X-Door"}}
	set := load(t, withOperation(), settings...)
	pinned, findings := LoadPinned([]byte(withOperation()), settings, Defaults{})
	if pinned == nil {
		t.Fatal(findings)
	}
	for _, op := range []*Operation{set.Connectors()[0].Operations[0], pinned.Operations[0]} {
		for _, name := range []string{"X-Door", "x_door"} {
			if got := op.Redact(request(t, "POST https://api.test/things", "", name+": v")); got.Header[http.CanonicalHeaderKey(name)][0] != secretShown {
				t.Errorf("stored %v", got.Header)
			}
		}
	}
}

func TestASecretFieldIsMaskedWithUnderscoresToo(t *testing.T) {
	t.Parallel()
	_, op := operation(t, mutationWith(`secret: ["header['x-tok']", "response.header['x-new']"]`))
	for _, name := range []string{"X-Tok", "X_Tok", "x_tok"} {
		if got := op.Redact(request(t, "POST https://api.test/things", "", name+": v")); got.Header[http.CanonicalHeaderKey(name)][0] != secretShown {
			t.Errorf("stored %v", got.Header)
		}
	}
	got := op.RedactResponse(&Response{Status: 200, Header: map[string][]string{"X_new": {"v"}}, Trailer: map[string][]string{"X_new": {"v"}}})
	if got.Header["X_new"][0] != secretShown || got.Trailer["X_new"][0] != secretShown {
		t.Errorf("stored %v, %v", got.Header, got.Trailer)
	}
}

// A credential may be payload: then it counts as it is, and is never vouched for once it is
// masked.
func TestACredentialThatIsPayloadIsNotTakenForAlike(t *testing.T) {
	t.Parallel()
	set, op := operation(t, mutationWith("payload: {headers: [X-Api-Key], minor: [json.a]}"))
	a := request(t, "POST https://api.test/things", `{"a":1}`, "X-Api-Key: one")
	b := request(t, "POST https://api.test/things", `{"a":1}`, "X-Api-Key: two")
	if derive(t, set, a).PayloadDigest == derive(t, set, b).PayloadDigest {
		t.Error("two keys are one payload")
	}
	if c := op.Compare(op.Redact(a), b); c.Likeness != Significant || len(c.Changes) != 0 {
		t.Errorf("%+v", c)
	}
}

func TestEveryDigestOfABodyKeepsItFromBeingChanged(t *testing.T) {
	t.Parallel()
	_, op := operation(t, mutationWith("marker: {json: m}"))
	for _, name := range digestHeaders {
		req := request(t, "POST https://api.test/things", `{"a":1}`, name+": x")
		_, refusal := op.Outgoing(req, caseMutation())
		wantRefusal(t, refusal, ProblemAmbiguous, "a digest of its body in "+name)
		if h := carried(req.Header); len(h[name]) != 0 {
			t.Errorf("a step says %s of another body", name)
		}
	}
}
