package rules

import (
	"strings"
	"testing"
)

// files stores what comes under a path, and reads nothing of it.
const files = `
  - name: put
    match: {method: PUT, path: "/o/{key...}"}
    effect: mutation
    encoded_slash: keep
    identity: {key: path.key}
    reconcile: [{none: why}]
    manual_check: look
  - name: publish
    match: {method: PUT, path: "/pkg/{spec}/{mode}"}
    effect: mutation
    identity: {name: "path.spec.split('@')[0]", mode: string(path.mode).lowerAscii()}
    reconcile: [{none: why}]
    manual_check: look
  - name: named
    match: {method: POST, path: "/named"}
    effect: mutation
    identity: {name: json.name}
    reconcile: [{none: why}]
    manual_check: look
`

// A file is what it is written like, also where that happens to be JSON.
func TestWhatIsNotDeclaredAsJSONIsComparedByItsBytes(t *testing.T) {
	t.Parallel()
	set, _ := operation(t, files)
	digest := func(target, body string, header ...string) string {
		method := "PUT"
		if target == "/named" {
			method = "POST"
		}
		return derive(t, set, request(t, method+" https://api.test"+target, body, header...)).PayloadDigest
	}
	const octets, text, declared = "Content-Type: application/octet-stream", "Content-Type: text/csv", "Content-Type: application/json"
	for _, c := range []struct {
		name, target, one, other, header string
		same                             bool
	}{
		{"a version as bytes", "/o/VERSION", "1.10", "1.1", octets, false},
		{"a version as nothing", "/o/VERSION", "1.10", "1.1", "", false},
		{"a text as CSV", "/o/a.csv", `"A"`, ` "\u0041" `, text, false},
		{"an object as bytes", "/o/a", `{"a":1}`, `{"a":1.0}`, octets, false},
		{"an object as JSON", "/o/a", `{"a":1}`, `{"a":1.0}`, declared, true},
		{"a number as JSON", "/o/a", "1.10", "1.1", declared, true},
		{"an object as nothing", "/o/a", `{"a":1}`, `{ "a":1 }`, "", true},
		{"an object of which the rule reads", "/named", `{"name":"n","a":1}`, `{ "a":1, "name":"n" }`, "Content-Type: text/plain", true},
	} {
		var header []string
		if c.header != "" {
			header = []string{c.header}
		}
		if same := digest(c.target, c.one, header...) == digest(c.target, c.other, header...); same != c.same {
			t.Errorf("%s: %s and %s are the same payload: %v", c.name, c.one, c.other, same)
		}
	}
}

// Of a variable of which identity takes a part, the rest says what is done.
func TestTheRestOfAPathVariableIsPayload(t *testing.T) {
	t.Parallel()
	set, op := operation(t, files)
	put := func(target string) *Derived { return derive(t, set, request(t, "PUT https://api.test"+target, "x")) }
	one, other, spelt := put("/pkg/lodash@1/on"), put("/pkg/lodash@2/on"), put("/pkg/lodash@1/ON")
	if identityOf(one) != identityOf(other) || one.PayloadDigest == other.PayloadDigest {
		t.Error("another version of a package is the same payload")
	}
	if identityOf(one) != identityOf(spelt) || one.PayloadDigest != spelt.PayloadDigest {
		t.Error("another spelling of what is identity as a whole is another payload")
	}
	if identity := op.identity[0]; !op.identifiesWhole("path", identity.name) {
		t.Error("a plain chain is not all of its variable")
	}
}

// Where no pattern takes the path apart, it is all payload: a charge is no refund of the same number.
func TestThePathOfAMatchWithoutOneIsPayload(t *testing.T) {
	t.Parallel()
	set, op := operation(t, `
  - name: change
    match: {method: POST}
    effect: mutation
    identity: {id: json.id}
    reconcile: [{none: why}]
    manual_check: look
`)
	of := func(target string) (*Request, *Derived) {
		req := request(t, "POST https://api.test"+target, `{"id":1}`, jsonHeader)
		return req, derive(t, set, req)
	}
	first, refund := of("/refunds")
	second, charge := of("/charges")
	if identityOf(refund) != identityOf(charge) || refund.PayloadDigest == charge.PayloadDigest || refund.SignificantDigest == charge.SignificantDigest {
		t.Error("another path is the same payload")
	}
	c := op.Compare(first, second)
	if c.Likeness != Significant || len(c.Changes) != 1 || c.Changes[0].Place != "path" || c.Changes[0].Stored != `"/refunds"` || c.Changes[0].Asked != `"/charges"` {
		t.Errorf("compared: %+v", c)
	}
	for pair, same := range map[[2]string]bool{
		{"/a:b", "/a%3ab"}: true, {"/a/", "/%61/"}: true, {"/a", "/a/"}: false, {"/a", "/A"}: false, {"/", "/a"}: false,
	} {
		_, one := of(pair[0])
		if _, other := of(pair[1]); (one.PayloadDigest == other.PayloadDigest) != same {
			t.Errorf("%s and %s are one payload: %t", pair[0], pair[1], !same)
		}
	}
}

// a/b and a%2Fb are two objects, and a variable of several segments would be one value for both.
func TestAnEscapedSlashWithinSeveralSegmentsIsRefused(t *testing.T) {
	t.Parallel()
	set, _ := operation(t, files)
	if m := set.Match(request(t, "PUT https://api.test/o/a/b", "x")); m.Refusal != nil {
		t.Errorf("a path without one: %v", m.Refusal)
	}
	if m := set.Match(request(t, "PUT https://api.test/o/a%2Fb", "x")); m.Refusal == nil || m.Refusal.Problem != ProblemAmbiguous {
		t.Errorf("within several segments: %v", m.Refusal)
	}
	if m := set.Match(request(t, "PUT https://api.test/o/a%252Fb", "x")); m.Refusal != nil {
		t.Errorf("an escaped percent sign: %v", m.Refusal)
	}
	if m := set.Match(request(t, "GET https://api.test/o/a%2Fb", "")); m.Refusal != nil {
		t.Errorf("a read: %v", m.Refusal)
	}
}

// A condition over elements reads names that its text doesn't tell.
func TestNamesThatDifferInCaseAreSeenInLoops(t *testing.T) {
	t.Parallel()
	set, _ := operation(t, `
  - name: batch
    match: {method: POST, path: /batch, when: "json.ops.all(o, o.op == 'get')"}
    effect: read
    before: [change]
  - name: change
    match: {method: POST, path: /batch}
    effect: mutation
    identity: {ids: "json.ops.map(o, string(o.id)).join(',')"}
    reconcile: [{none: why}]
    manual_check: look
`)
	for body, refused := range map[string]bool{
		`{"ops":[{"op":"get","id":1}],"Ops":1}`:                   true,
		`{"ops":[{"op":"get","Op":"delete","id":1}]}`:             true,
		`{"ops":[{"op":"get","id":1,"\u017fee":1,"see":2}]}`:      true, // the long s
		`{"ops":[{"op":"set","id":1,"ID":2}]}`:                    true,
		`{"ops":[{"op":"set","id":1,"deep":[{"a":1,"A":2}]}]}`:    true,
		`{"ops":[{"op":"get","id":1}],"note":{"a":1,"A":2}}`:      false,
		`{"ops":[{"op":"set","id":1},{"op":"get","id":2}],"x":1}`: false,
	} {
		req := request(t, "POST https://api.test/batch", body, "Content-Type: application/json")
		m := set.Match(req)
		refusal := m.Refusal
		if refusal == nil && m.Effect == EffectMutation {
			_, refusal = m.Operation.Derive(req, m)
		}
		if got := refusal != nil && strings.Contains(refusal.Detail, "only in case"); got != refused {
			t.Errorf("%s: %v", body, refusal)
		}
	}
}

// What is read of a list's elements, of what a function gives, or under a computed index, has names too; so has
// what lists all values.
func TestNamesThatDifferInCaseAreSeenWhereverTheyAreRead(t *testing.T) {
	t.Parallel()
	for when, requests := range map[string]map[string]bool{
		"json.all(o, o.?op.orValue('get') == 'get')": {
			`[{"op":"get","Op":"delete"}]`: true, `[{"Op":"delete"}]`: true, `[{"op":"get"},{"OP":"delete"}]`: true,
			`[{"op":"get","at":{"a":1,"A":2}}]`: true, `[{"op":"get"},{}]`: false, `[]`: false,
		},
		"json.ops.all(o, o.?op.orValue('get') == 'get')":     {`{"ops":[{"Op":"delete"}]}`: true, `{"ops":[{"op":"get"}],"Op":1}`: false},
		"last(json.ops).?op.orValue('get') == 'get'":         {`{"ops":[{"Op":"delete"}]}`: true, `{"ops":[{"a":1}]}`: false},
		"json.?call.orValue({}).?op.orValue('get') == 'get'": {`{"call":{"OP":"delete"}}`: true, `{"Call":{"op":"delete"}}`: true, `{"call":{}}`: false},
		"json.ops[json.n].?op.orValue('get') == 'get'":       {`{"n":0,"ops":[{"Op":"delete"}]}`: true, `{"n":0,"ops":[{}]}`: false},
		"!('force' in json.with)":                            {`{"with":{"Force":true}}`: true, `{"with":{"f":true}}`: false},
		"query_all.?op.orValue([]).all(o, o == 'get')":       {`?Op=delete`: true, `?op=get&OP=delete`: true, `?op=get&a=1&A=2`: false, ``: false},
		"!query_all.exists(k, k == 'force')":                 {`?a=1&A=2`: true, `?a=1`: false},
		"form_all.?op.orValue([]).all(o, o == 'get')":        {`Op=delete`: true, `op=get`: false},
	} {
		set, _ := operation(t, `
  - name: batch
    match: {method: POST, path: /batch, when: "`+when+`"}
    effect: read
`)
		for what, refused := range requests {
			target, body, header := what, "{}", jsonHeader
			switch {
			case strings.HasPrefix(when, "form_all"):
				target, body, header = "", what, formHeader
			case !strings.Contains(when, "query_all"):
				target, body = "", what
			}
			m := set.Match(request(t, "POST https://api.test/batch"+target, body, header))
			if got := m.Refusal != nil && strings.Contains(m.Refusal.Detail, "only in case"); got != refused {
				t.Errorf("%s of %s: %v", when, what, m.Refusal)
			}
			if !refused && m.Effect != EffectRead {
				t.Errorf("%s of %s: %+v", when, what, m)
			}
		}
	}
}

// A server that takes "_" for "-" would merge the script's key with ours.
func TestAKeyBehindUnderscoresIsRefused(t *testing.T) {
	t.Parallel()
	for _, present := range []string{"refuse", "replace"} {
		set, op := operation(t, `
  - name: pay
    match: {method: POST, path: /pay}
    effect: mutation
    identity: {to: json.to}
    native_key: {header: Idempotency-Key, when_present: `+present+`}
    reconcile: [{none: why}]
    manual_check: look
`)
		req := request(t, "POST https://api.test/pay", `{"to":"x"}`, "Content-Type: application/json", "Idempotency_Key: theirs")
		derive(t, set, req)
		if _, refusal := op.Outgoing(req, Mutation{ID: "i", Marker: "m", VendorKey: "k"}); refusal == nil || refusal.Problem != ProblemAmbiguous {
			t.Errorf("when_present: %s: %v", present, refusal)
		}
	}
}
