package rules

import (
	"slices"
	"strings"
	"testing"
)

// named are names of credentials, as APIs have them. harmlessNames only look like it.
var (
	named = []string{
		"Ocp-Apim-Subscription-Key", "X-Functions-Key", "X-RapidAPI-Key", "X-Honeycomb-Team", "X-Session-Id", "DD-APPLICATION-KEY", "X-Amz-Credential",
		"X-JWT", "X-Master-Key", "X-License-Key", "AccessKey", "Accesskey", "apikey", "hapikey", "X_SUBSCRIPTION_KEY", "clientSecret", "Session", "SessionId",
		"X-Hub-Signature-256", "X-Auth", "user[password]", "oauth2_token", "key", "X-Api-Key-2", "sig", "X-Service-Credentials", "OK-ACCESS-PASSPHRASE",
		"X-Forwarded-Authorization", "Page-Session", "X-Next-Secret", "X-Next-Api-Key",
	}
	harmlessNames = []string{
		"Idempotency-Key", "X-Idempotency-Key", "idempotencyKey", "Idempotence-Key", "Idempotency-Token", "Dedup-Key", "page_token", "pageToken", "NextToken",
		"nextPageToken", "next_key", "Continuation-Token", "x-ms-documentdb-partitionkey", "PartitionKey", "sort-key", "sortKey", "X-Tokens", "X-Token-Count",
		"Secretary", "Broken", "monkey", "X-Steam", "X-Request-Id", "Key-Id", "", "123", "Keep-Subkey", "Content-Type", "Accept",
	}
)

func TestNamesOfCredentialsAreKnownByTheirShape(t *testing.T) {
	t.Parallel()
	for _, name := range named {
		if !NamedLikeCredential(name) {
			t.Errorf("%s is no credential", name)
		}
	}
	for _, name := range harmlessNames {
		if NamedLikeCredential(name) {
			t.Errorf("%s is a credential", name)
		}
	}
}

func TestMembersOfTheQueryAreMaskedByTheirShape(t *testing.T) {
	t.Parallel()
	const masked = "%3Csecret%3E"
	for name, tc := range map[string]struct{ keys, query, want string }{
		"named like a credential":      {"", "a=1&api_key=k&X-Amz-Signature=s&page_token=p&a=%7e", "a=1&api_key=" + masked + "&X-Amz-Signature=" + masked + "&page_token=p&a=%7e"},
		"spelt in escapes":             {"", "%61pi%5Fkey=k", "api_key=" + masked},
		"given twice":                  {"", "token=a&b=1&token=c", "token=" + masked + "&b=1"},
		"in what can't be read":        {"", "a=1;token=k", masked},
		"beside what can't be read":    {"", "token=k&a=%zz", masked},
		"a name that can't be read":    {"", "tok%zzen=k", masked},
		"nothing in what isn't read":   {"", "a=1;b=2", "a=1;b=2"},
		"none":                         {"", "a=1&b", "a=1&b"},
		"named by the rule":            {`describe: "{query.api_key}"`, "api_key=k", "api_key=k"},
		"named as minor":               {`payload: {minor: [query.api_key]}`, "api_key=k", "api_key=k"},
		"named to be normalised":       {`payload: {normalise: {query.api_key: case}}`, "api_key=k", "api_key=k"},
		"named as the native key":      {`native_key: {query: api_key}`, "api_key=k", "api_key=k"},
		"named in a condition":         {`outcome: [{when: "response.status == 409 && query.api_key == 'a'", then: failed, class: logic}]`, "api_key=k", "api_key=k"},
		"only ignored":                 {`payload: {ignore: [query.api_key]}`, "api_key=k", "api_key=" + masked},
		"only its digest is in a key":  {`subkey: sha256(query.api_key)`, "api_key=k", "api_key=" + masked},
		"another is named":             {`describe: "{query.key}"`, "api_key=k&key=v", "api_key=" + masked + "&key=v"},
		"secret, and named by it too":  {"describe: \"{query.key}\"\n    secret: [query.key]", "key=v", "key=" + masked},
		"secret, with another's shape": {"secret: [query.code]", "code=v&token=k", "code=" + masked + "&token=" + masked},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, op := operation(t, mutationWith(tc.keys))
			req := request(t, "POST https://api.test/things?"+tc.query, `{"name":"n"}`)
			if got := op.Redact(req).Target(); got != "/things?"+tc.want {
				t.Errorf("stored as %s, want %s", got, tc.want)
			}
			if again := op.Redact(op.Redact(req)).Target(); again != "/things?"+tc.want {
				t.Errorf("masked twice it is %s", again)
			}
		})
	}
}

// What the key has a digest of is no more to be stored than any other credential.
func TestADigestInTheKeyNamesNoFieldAsHarmless(t *testing.T) {
	t.Parallel()
	for keys, want := range map[string]string{"subkey: sha256(header['x-team'])": secretShown, "subkey: header['x-team']": "blue"} {
		_, op := operation(t, mutationWith(keys))
		if got := op.Redact(request(t, "POST https://api.test/things", "", "X-Team: blue")).Header.Get("X-Team"); got != want {
			t.Errorf("%s: stored %s", keys, got)
		}
	}
}

func TestTextsAndQuestionsShowNoMaskedMemberOfTheQuery(t *testing.T) {
	t.Parallel()
	set, op := operation(t, strings.Replace(mutationWith(`describe: "{query} {query_all.size()} {query[json.which]}"`), "{none: why}",
		"{probe: {get: /things, query: {names: {cel: 'query.map(name, name).join()'}}, observe: [{when: response.json.ok, is: applied}]}}", 1))
	req := request(t, "POST https://api.test/things?api_key="+secretWord+"&a=1", `{"name":"n","which":"api_key"}`)
	if got := derive(t, set, req).Target; strings.Contains(got, secretWord) {
		t.Errorf("shown as %s", got)
	}
	for _, tc := range []struct {
		req *Request
		ok  bool
	}{{req, true}, {op.Redact(req), false}, {op.Redact(request(t, "POST https://api.test/things?a=1", `{"name":"n"}`)), true}} {
		if _, err := op.Strategies[0].Probe.Begin(Env{Request: tc.req}); (err == nil) != tc.ok {
			t.Errorf("%s: %v", tc.req.Target(), err)
		}
	}
}

// An answer that was masked where it is stored says nothing of where to look.
func TestNothingIsAskedByWhatIsMasked(t *testing.T) {
	t.Parallel()
	const look = "max: 1h, until: response.json.ok"
	for name, asks := range map[string]string{
		"in its path": `get: "/jobs/{response.json.id}"`, "in its query": "get: /jobs, query: {id: {cel: response.json.id}}",
		"in a field": "get: /jobs, header: {x-job: {cel: response.json.id}}",
	} {
		_, op := operation(t, mutationWith("watch: {"+asks+", "+look+"}"))
		for id, ok := range map[string]bool{"7": true, "of <secret>": false} {
			_, err := op.Watch.Ask(Env{Request: request(t, "POST https://api.test/things", "")}, &Response{Status: 202, Complete: true, Body: []byte(`{"id":"` + id + `"}`)})
			if (err == nil) != ok {
				t.Errorf("%s: %s: %v", name, id, err)
			}
		}
	}
}

// Two credentials in the query are masked alike, and are two payloads all the same.
func TestMaskedMembersOfTheQueryAreNotTakenForAlike(t *testing.T) {
	t.Parallel()
	set, op := operation(t, mutationWith("payload: {minor: [json.a]}"))
	a := request(t, "POST https://api.test/things?api_key=one", `{"a":1}`)
	b := request(t, "POST https://api.test/things?api_key=two", `{"a":1}`)
	if derive(t, set, a).PayloadDigest == derive(t, set, b).PayloadDigest {
		t.Error("two keys are one payload")
	}
	for _, stored := range []*Request{op.Redact(a), a} { // The second one as older versions stored it.
		if c := op.Compare(stored, b); c.Likeness != Significant || slices.ContainsFunc(c.Changes, func(c Change) bool { return c.Stored+c.Asked != "" }) {
			t.Errorf("%+v", c)
		}
	}
}
