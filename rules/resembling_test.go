package rules

import "testing"

// triggers has operations that change something by GET, beside reads of all else.
const triggers = connectorHead + `
  - name: run
    match: {method: GET, path: "/jobs/{id}:Run"}
    effect: mutation
    identity: {job: path.id}
    reconcile: [{none: why}]
    manual_check: look
  - name: confirm
    match: {method: [GET, POST], path: /confirm/, when: "query.?token.orValue('') != ''"}
    effect: mutation
    identity: {token: query.token}
    reconcile: [{none: why}]
    manual_check: look
  - name: admin
    match: {method: GET, path: "/admin/{rest...}"}
    effect: deny
  - name: admin.help
    match: {method: HEAD, path: "/admin/help"}
    effect: read
  - name: make
    match: {method: POST, path: /jobs}
    effect: mutation
    identity: {name: json.name}
    reconcile: [{none: why}]
    manual_check: look
`

// What a server may take for a GET that changes something is no read.
func TestWhatResemblesAMutatingGETIsNoRead(t *testing.T) {
	t.Parallel()
	set := load(t, triggers)
	for line, taken := range map[string]string{
		"HEAD https://api.test/jobs/7:Run":        "run",
		"GET https://api.test/jobs/7:run":         "run",
		"GET https://api.test/Jobs/7:Run/":        "run",
		"GET https://api.test/confirm?token=t":    "confirm",
		"HEAD https://api.test/confirm/?token=t":  "confirm",
		"GET https://api.test/confirm?token=%zz":  "confirm",
		"GET https://api.test/admin/users/":       "admin",
		"HEAD https://api.test/ADMIN/users":       "admin",
		"GET https://api.test/confirm":            "",
		"HEAD https://api.test/confirm/":          "",
		"OPTIONS https://api.test/jobs/7:Run":     "",
		"HEAD https://api.test/admin/help":        "",
		"GET https://api.test/jobs":               "",
		"GET https://api.test/JOBS/":              "",
		"GET https://api.test/jobs/7":             "",
		"HEAD https://elsewhere.test/jobs/7:Run":  "",
		"GET https://api.test/jobs/7%2F8:Run/log": "",
	} {
		m := set.Match(request(t, line, ""))
		switch {
		case taken != "":
			wantRefusal(t, m.Refusal, ProblemUnmatched, " for "+taken+" of the connector test")
			if m.Effect != EffectDeny {
				t.Errorf("%s: effect %v with a refusal", line, m.Effect)
			}
		case m.Refusal != nil || m.Effect != EffectRead && !m.Unmatched:
			t.Errorf("%s: %+v", line, m)
		}
	}
	if m := set.Match(request(t, "GET https://api.test/jobs/7:Run", "")); m.Operation == nil || m.Effect != EffectMutation {
		t.Errorf("the mutation itself: %+v", m)
	}
}

// Nor does it pass by a rule for all else.
func TestWhatResemblesAMutationIsNoReadOfAllElse(t *testing.T) {
	t.Parallel()
	set := load(t, connectorHead+`
  - name: pay
    match: {method: [POST, GET], path: "/v1/pay/{id}", when: "query.?dry.orValue('') == ''"}
    effect: mutation
    identity: {id: path.id}
    before: [rest]
    reconcile: [{none: why}]
    manual_check: look
  - {name: secret, match: {path: "/v1/secret/{x...}"}, effect: deny, before: [rest, open]}
  - {name: open, match: {method: POST, path: "/v1/secret/open/"}, effect: read, before: [rest]}
  - {name: rest, match: {method: [GET, HEAD, POST]}, effect: read}
  - {name: telemetry, match: {method: PUT, path: "/V1/Pay/{id}"}, effect: ignore}
`)
	for line, taken := range map[string]string{
		"POST https://api.test/v1/pay/7/":       "pay",
		"POST https://api.test/V1/Pay/7":        "pay",
		"HEAD https://api.test/v1/pay/7":        "pay",
		"POST https://api.test/v1/secret/a/":    "secret",
		"GET https://api.test/V1/secret":        "secret",
		"POST https://api.test/v1/secret/open/": "secret",
		"POST https://api.test/v1/pay/7/?dry=1": "",
		"POST https://api.test/v1/pay/7?dry=1":  "",
		"POST https://api.test/v1/search":       "",
		"PUT https://api.test/V1/Pay/7":         "",
		"OPTIONS https://api.test/V1/Pay/7":     "",
	} {
		m := set.Match(request(t, line, ""))
		switch {
		case taken != "":
			wantRefusal(t, m.Refusal, ProblemUnmatched, " for "+taken+" of the connector test")
			if m.Effect != EffectDeny {
				t.Errorf("%s: effect %v with a refusal", line, m.Effect)
			}
		case m.Refusal != nil || !m.Effect.passes():
			t.Errorf("%s: %+v", line, m)
		}
	}
}
