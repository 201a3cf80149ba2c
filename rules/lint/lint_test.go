package lint

import (
	"slices"
	"strings"
	"testing"

	"keep-proxy/rules"
)

// connectorHead begins a connector file for api.test; operations follow.
const connectorHead = `apiVersion: keep/v1
connector: test
version: 1
hosts: [api.test]
reads: safe-methods
operations:
`

// withOperation is a file with keys added to, or replaced in, a sound operation.
func withOperation(lines ...string) string {
	op := []string{
		"name: make", "match: {method: POST, path: /things}", "effect: mutation", "identity: {name: json.name}",
		`reconcile: [{none: "no read"}]`, "manual_check: look", "on_no_result: {status: 200}",
	}
	for _, line := range lines {
		key, _, _ := strings.Cut(line, ":")
		op = slices.DeleteFunc(op, func(old string) bool { return strings.HasPrefix(old, key+":") })
		if !strings.HasSuffix(line, ": -") {
			op = append(op, line)
		}
	}
	return connectorHead + "  - " + strings.Join(op, "\n    ") + "\n"
}

// withRead is a file with a sound read, and keys added or replaced.
func withRead(lines ...string) string {
	return withOperation(append([]string{"effect: read", "identity: -", "reconcile: -", "manual_check: -", "on_no_result: -"}, lines...)...)
}

// check loads a file and looks at it.
func check(t *testing.T, file string) rules.Findings {
	t.Helper()
	set, findings := rules.Load([]rules.File{{Name: "test.yaml", Data: []byte(file)}}, nil, rules.Defaults{})
	if set == nil {
		t.Fatalf("load:\n%v\n%s", findings, file)
	}
	out := Check(set)
	for _, f := range out {
		if f.Severity != rules.SeverityWarning || f.File != "test.yaml" || f.Line == 0 || f.Fix == "" {
			t.Errorf("finding %+v, want a warning with its place and a fix", f)
		}
	}
	return out
}

func TestAMatchOfEveryMethodIsWarnedOf(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ file, part string }{
		{withOperation("match: {path: /things}"), "takes GET, HEAD and OPTIONS for mutations"},
		{withOperation("match: [{method: POST, path: /a}, {path: /things}]"), "takes GET, HEAD and OPTIONS for mutations"},
		{withRead("match: {path: /things}"), "lets every one pass unrecorded, DELETE among them"},
		{withOperation("match: {path: /things, when: method == 'POST'}"), ""},
		{withOperation("match: {method: POST, path: /things}"), ""},
	} {
		findings := check(t, tc.file)
		i := slices.IndexFunc(findings, func(f rules.Finding) bool {
			return f.Code == "any-method" && f.Severity == rules.SeverityWarning && f.Line > 0
		})
		if (i >= 0) != (tc.part != "") || i >= 0 && !strings.Contains(findings[i].Problem, tc.part) {
			t.Errorf("%s\n%v, want …%s…", tc.file, findings, tc.part)
		}
	}
}

// What a narrower block scope leaves free may set the same while it is set again.
func TestNaturalWithANarrowBlockScopeIsWarnedOf(t *testing.T) {
	t.Parallel()
	for scope, warned := range map[string]bool{"": false, "block_scope: workflow": false, "block_scope: item": true, "block_scope: mutation": true} {
		keys := []string{"match: {method: PUT, path: /things}", "reconcile: [{resend: {natural: true}}]"}
		if scope != "" {
			keys = append(keys, scope)
		}
		findings := check(t, withOperation(keys...))
		found := slices.ContainsFunc(findings, func(f rules.Finding) bool {
			return f.Code == "resend" && f.Severity == rules.SeverityWarning && f.Line > 0
		})
		if found != warned {
			t.Errorf("%q: warned %v, want %v: %v", scope, found, warned, findings)
		}
	}
}

// Which of its matches a request fits is no part of a mutation's key.
func TestMatchesThatAreTwoThingsAreWarnedOf(t *testing.T) {
	t.Parallel()
	for list, warned := range map[string]bool{
		`[{method: POST, path: "/vms/{id}/start"}, {method: POST, path: "/vms/{id}/stop"}]`:               true,
		`[{method: POST, path: "/vms/{id}:start"}, {method: POST, path: "/vms/{id}:stop"}]`:               true,
		`[{method: POST, path: "/vms/{id}"}, {method: POST, path: "/vms/{id}/archive"}]`:                  true,
		`[{method: POST, path: "/v1/vms/{id}"}, {method: POST, path: "/v2/vms/{id}"}]`:                    false,
		`[{method: POST, path: "/{group}/{id}/push"}, {method: POST, path: "/{id}/push"}]`:                false,
		`[{method: POST, path: "/vms"}, {method: PUT, when: "header['x'] == 'y'"}]`:                       false,
		`{method: POST, path: "/vms/{id}/start"}`:                                                         false,
		`[{method: POST, path: "/{hook...}"}, {method: POST, path: "/{hook...}/", when: "method != ''"}]`: false,
	} {
		findings := check(t, withOperation("match: "+list))
		found := slices.ContainsFunc(findings, func(f rules.Finding) bool {
			return f.Code == "spelling" && f.Severity == rules.SeverityWarning && f.Line > 0 && strings.HasPrefix(f.Key, "operations[0].match[")
		})
		if found != warned {
			t.Errorf("%s: warned %v, want %v: %v", list, found, warned, findings)
		}
	}
}

// What has the name of a credential is stored in clear where it is part of a key or payload.
func TestWhatIsNamedLikeACredentialIsWarnedOf(t *testing.T) {
	t.Parallel()
	for keys, warned := range map[string]int{
		"payload: {headers: [X-Sync-Token]}": 1, "subkey: header['x-sync-token']": 1, "payload: {minor: [\"header['x-sync-token']\"]}": 0,
		"subkey: sha256(header['x-sync-token'])": 0, "describe: \"{header['x-sync-token']}\"": 0,
		"subkey: query.api_key": 1, "subkey: query_all.api_key[0]": 1, "subkey: query.page_token": 0, "subkey: sha256(query.api_key)": 0,
		"subkey: \"query.map(name, query[name]).join()\"": 1,
	} {
		findings := check(t, withOperation(keys))
		if len(findings) != warned || warned > 0 && findings[0].Code != "credential" {
			t.Errorf("%s: %v", keys, findings)
		}
	}
	if findings := check(t, withOperation("subkey: header['x-sync-token']", "secret: [\"header['x-sync-token']\"]")); len(findings) > 0 {
		t.Errorf("what is hashed is warned of: %v", findings)
	}
}

// A native key that goes where identity is read takes from the API what the script writes there.
func TestANativeKeyWhereIdentityIsReadIsWarnedOf(t *testing.T) {
	t.Parallel()
	for lines, part := range map[[2]string]string{
		{"native_key: {json: name}"}: "the key goes to json.name, which identity.name reads",
		{"native_key: {header: Idempotency-Key}", "subkey: header['idempotency-key']"}:                           "header['idempotency-key'], which subkey reads",
		{"native_key: {query: key}", "subkey: query.key"}:                                                        "query['key'], which subkey reads",
		{"native_key: {header: Idempotency-Key, when_present: keep_first}", "subkey: header['idempotency-key']"}: "",
	} {
		findings := check(t, withOperation(slices.DeleteFunc(lines[:], func(s string) bool { return s == "" })...))
		i := slices.IndexFunc(findings, func(f rules.Finding) bool { return f.Code == "replaced" })
		if part == "" && i >= 0 || part != "" && (i < 0 || findings[i].Line < 12 || !strings.Contains(findings[i].Problem, part)) {
			t.Errorf("%v: %v, want …%s…", lines, findings, part)
		}
	}
}

// A marker that is written where nobody looks for it is never found, and what it marks counts as
// absent.
func TestAMarkerThatOursDoesNotLookAtIsWarnedOf(t *testing.T) {
	t.Parallel()
	for at, warned := range map[string]bool{"{json: metadata.other}": true, "{json: metadata.keep_id}": false, `{form: "metadata[keep_id]"}`: false} {
		findings := check(t, withOperation("marker: "+at, "reconcile: [{probe: {get: /a, candidates: response.json, "+
			"ours: found.metadata.keep_id == mutation.marker, tie: marker, id: found.id}}]"))
		if found := slices.ContainsFunc(findings, func(f rules.Finding) bool { return f.Code == "tie" && f.Line > 0 }); found != warned {
			t.Errorf("%s: warned %t, want %t: %v", at, found, warned, findings)
		}
	}
}

// One page of a listing shows no absence.
func TestAnAbsenceOfOnePageIsWarnedOf(t *testing.T) {
	t.Parallel()
	for lines, warned := range map[string]bool{
		"absence_is_proof: true": true, "absence_is_proof: true, pages: {next: link, max: 3}": false, "absence_is_proof: false": false,
	} {
		findings := check(t, withOperation("reconcile: [{probe: {get: /a, candidates: response.json.items, ours: found.name == json.name, tie: unique, id: found.id, created: found.at, "+lines+"}}]"))
		if found := slices.ContainsFunc(findings, func(f rules.Finding) bool { return f.Code == "pages" && f.Line > 0 }); found != warned {
			t.Errorf("%s: warned %t, want %t: %v", lines, found, warned, findings)
		}
	}
}

// A rule that nothing gets to says nothing of the requests that it was written for.
func TestAnOperationThatNothingGetsToIsWarnedOf(t *testing.T) {
	t.Parallel()
	const mutation = ", effect: mutation, identity: {id: query.id}, reconcile: [{none: why}], manual_check: look"
	for first, second := range map[string]string{"effect: read": "{x}", mutation[2:]: "{x}", "effect: deny": "{x}"} {
		file := connectorHead + "  - {name: a, match: {method: POST, path: '/" + second + "'}" + mutation + ", before: b}\n" +
			"  - {name: b, match: {method: POST, path: /p}, " + first + "}\n"
		if findings := check(t, file); !slices.ContainsFunc(findings, func(f rules.Finding) bool { return f.Code == "unreached" && f.Key == "operations[1].match" }) {
			t.Errorf("%s: %v", file, findings)
		}
	}
}
