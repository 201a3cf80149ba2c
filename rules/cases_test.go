package rules

import (
	"slices"
	"strings"
	"testing"
)

// caseFile is a connector whose cases can be right or wrong.
const caseFile = connectorHead + `
  - name: make
    match: {method: POST, path: /things}
    effect: mutation
    identity: {name: json.name}
    subkey: json.?sub.orValue('')
    marker: {json: mark}
    outcome: [{when: response.status == 409, then: failed, class: logic}]
    reconcile:
      - probe:
          get: /things
          candidates: response.json
          ours: found.?mark.orValue('') == mutation.marker
          tie: marker
          id: found.id
          result: {status: 201, header: {x: y}, json: {cel: found}}
  - {name: look, match: {method: POST, path: /search}, effect: read}
  - {name: empty, match: {method: POST, path: /empty}, effect: mutation, identity: none, reconcile: [{none: why}], manual_check: look}
cases:
`

func TestCasesSayWhatDiffers(t *testing.T) {
	t.Parallel()
	const things = "request: {method: POST, url: 'https://api.test/things', body: {name: n}}"
	const found = "probe: [{body: [{id: i, mark: " + CaseMarker + "}]}]"
	cases := []struct {
		name, line string
		part       string // "": holds
	}{
		{"right", things + ", expect: {operation: make, identity: {name: n}, subkey: '', account: ''}", ""},
		{"another operation", things + ", expect: {operation: look}", `operation is "make", expected "look"`},
		{"another identity", things + ", expect: {identity: {name: m}}", `identity is "{\"name\":\"n\"}", expected "{\"name\":\"m\"}"`},
		{"another subkey", things + ", expect: {subkey: s}", `subkey is "", expected "s"`},
		{"another account", things + ", expect: {account: a}", `account is "", expected "a"`},
		{"refused as it says", "request: {method: POST, url: 'https://api.test/things', body: {}}, expect: {refused: identity}", ""},
		{"refused unexpectedly", "request: {method: POST, url: 'https://api.test/things', body: {}}, expect: {operation: make}", `refused is "identity", expected ""`},
		{"refused unexpectedly, with why", "request: {method: POST, url: 'https://api.test/things', body: {}}, expect: {operation: make}", "identity.name (json.name) has no value"},
		{"refused where it writes", "request: {method: POST, url: 'https://api.test/things', body: '[]'}, expect: {operation: make}", `refused is "identity", expected ""`},
		{"refused as ambiguous", "request: {method: POST, url: 'https://api.test//'}, expect: {refused: ambiguous-request}", ""},
		{"not refused", things + ", expect: {refused: denied}", `refused is "", expected "denied"`},
		{"a read that isn't refused", "request: {method: POST, url: 'https://api.test/search'}, expect: {operation: look, refused: denied}", `refused is "", expected "denied"`},
		{"another host", "request: {method: POST, url: 'https://other.test/things'}, expect: {operation: make}", "host is none of the connector's"},
		{"the verdict", things + ", response: {status: 409}, expect: {verdict: failed, class: logic}", ""},
		{"another verdict", things + ", response: {status: 409}, expect: {verdict: applied, class: logic}", `verdict is "failed", expected "applied"`},
		{"another class", things + ", response: {status: 409}, expect: {verdict: failed, class: transient}", `class is "logic", expected "transient"`},
		{"a verdict that the table has", things + ", response: {status: 200}, expect: {verdict: applied}",
			`verdict is "default", expected "applied" (no condition of the rule is true, so that the table by status decides)`},
		{"another verdict, with why", things + ", response: {status: 409}, expect: {verdict: applied, class: logic}", "(the rule's condition holds: response.status == 409)"},
		{"another class, with why", things + ", response: {status: 409}, expect: {verdict: failed, class: transient}", "(the rule's condition holds: response.status == 409)"},
		{"a verdict of no answer", things + ", expect: {verdict: default}", "expect.verdict is compared with nothing; add response:"},
		{"a class of no answer", things + ", expect: {class: logic}", "expect.class is compared with nothing; add response:"},
		{"an observation of nothing", things + ", expect: {observation: applied}", "expect.observation is compared with nothing; add probe:"},
		{"an observation of an empty list", things + ", probe: [], expect: {observation: retry}", "expect.observation is compared with nothing; add probe:"},
		{"a result of nothing", things + ", expect: {result: {status: 201}}", "expect.result is compared with nothing; add probe:"},
		{"what was kept of no steps", things + ", expect: {kept: {}}", "expect.kept is compared with nothing; add send:"},
		{"an identity of what is refused", "request: {method: POST, url: 'https://api.test/things', body: {}}, expect: {refused: identity, identity: {name: n}}", "expect.identity is compared with nothing"},
		{"an identity of a read", "request: {method: POST, url: 'https://api.test/search'}, expect: {operation: look, identity: {}}", "expect.identity is compared with nothing"},
		{"an operation of what none can be told of", "request: {method: POST, url: 'https://api.test//'}, expect: {operation: make, refused: ambiguous-request}", "expect.operation is compared with nothing"},
		{"no verdict", things + ", response: {status: 200}, expect: {verdict: default}", ""},
		{"the observation", things + ", " + found + ", expect: {observation: applied, result: {status: 201, headers: {x: y}, body: {mark: " + CaseMarker + ", id: i}}}", ""},
		{"another observation", things + ", " + found + ", expect: {observation: absent}", `observation is "applied", expected "absent"`},
		{"another result", things + ", " + found + ", expect: {observation: applied, result: {status: 200, headers: {x: z}, body: {}}}", `result status is "201", expected "200"`},
		{"no result", things + ", probe: [{body: []}], expect: {observation: absent, result: {}}", "there is no result"},
		{"an answer too many", things + ", probe: [{body: []}, {body: []}], expect: {observation: absent}", "ends after 1 answer"},
		{"what is asked", things + ", " + found + ", expect: {observation: applied, asked: {url: 'https://api.test/things', headers: {accept: application/json}}}", ""},
		{"what is asked, without an answer", things + ", expect: {asked: {url: 'https://api.test/things'}}", ""},
		{"another address asked", things + ", expect: {asked: {url: 'https://api.test/other'}}", `asked[0] url is "https://api.test/things", expected "https://api.test/other"`},
		{"more asked", things + ", " + found + ", expect: {observation: applied, asked: [{url: 'https://api.test/things'}, {url: 'https://api.test/things'}]}", "1 request is asked, expected 2"},
		{"nobody to ask", "request: {method: POST, url: 'https://api.test/search'}, expect: {asked: {url: 'https://api.test/things'}}", "expect.asked is compared with nothing"},
		{"another observation, with what was asked", things + ", " + found + ", expect: {observation: absent}", ", asked GET https://api.test/things"},
		{"no probe to play", "request: {method: POST, url: 'https://api.test/empty'}, probe: [{}], expect: {observation: absent}", "has no probe"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			set := load(t, caseFile+"  - {name: the case, "+tc.line+"}\n")
			findings := set.RunCases()
			if tc.part == "" {
				if len(findings) > 0 {
					t.Errorf("does not hold: %v", findings)
				}
				return
			}
			if !slices.ContainsFunc(findings, func(f Finding) bool {
				return strings.Contains(f.Problem+"; "+f.Fix, tc.part) && f.Line == 26 && f.Key == "cases[0]" && f.Value == "the case" && f.Severity == SeverityError
			}) {
				t.Errorf("findings %v, want %q", findings, tc.part)
			}
		})
	}
}

// What asks reads the request as it is stored.
func TestCasesAskByWhatIsStored(t *testing.T) {
	t.Parallel()
	const probe, both = "reconcile: [{probe: {get: '/things/{form.ref}', observe: [{when: response.json.ok, is: applied}]}}]",
		"reconcile: [{probe: {get: \"/things/{has(form.ref) ? form.ref : json.ref}\", observe: [{when: response.json.ok, is: applied}]}}]"
	const undo = "reconcile: [{none: why}]\n    compensate: {delete: '/things/{form.ref}/{object}'}"
	for name, tc := range map[string]struct{ keys, match, request, rest, part string }{
		"the secret is beside what it asks by":    {"secret: [form.token]\n    " + probe, "", "ref=a&token=t", "probe: [{body: {ok: true}}], expect: {observation: applied}", ""},
		"JSON is left alone":                      {"secret: [form.token]\n    " + both, "", `{"ref":"a"}`, "probe: [{body: {ok: true}}], expect: {observation: applied}", ""},
		"the whole body is masked":                {"secret: [json.token]\n    " + probe, "", "ref=a&token=t", "probe: [{body: {ok: true}}], expect: {observation: applied}", "can't be asked about"},
		"the whole body is masked, and not asked": {"secret: [json.token]\n    " + probe, "", "ref=a&token=t", "expect: {operation: make}", "can't be asked about"},
		"judged by a body that is masked":         {"secret: [json.token]\n    " + strings.NewReplacer("/{form.ref}", "", ".ok", ".ref == form.ref").Replace(probe), "", "ref=a&token=t", "probe: [{body: {ref: a}}], expect: {observation: applied}", "observation is"},
		"an undo by a body that is masked":        {"secret: [json.token]\n    " + undo, "", "ref=a&token=t", "undo: o, expect: {sent: {method: DELETE, url: 'https://api.test/things/a/o'}}", "can't be undone"},
		"an undo beside a secret":                 {"secret: [form.token]\n    " + undo, "", "ref=a&token=t", "undo: o, expect: {sent: {method: DELETE, url: 'https://api.test/things/a/o'}}", ""},
		"another operation's by what is masked":   {"secret: [json.token]\n    " + probe, "form.ref == 'a'", "ref=a&token=t", "expect: {operation: make}", "can't be asked about"},
		"of which nothing is asked":               {"secret: [json.token]", "", "ref=a&token=t", "expect: {operation: make}", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rule := mutationWith(tc.keys)
			if strings.Contains(tc.keys, "reconcile:") {
				rule = strings.Replace(rule, "    reconcile: [{none: why}]\n", "", 1)
			}
			if tc.match != "" {
				rule = strings.Replace(rule, "path: /things}", `path: /things, when: "`+tc.match+`"}`, 1)
			}
			kind := "application/x-www-form-urlencoded"
			if strings.HasPrefix(tc.request, "{") {
				kind = "application/json"
			}
			findings := load(t, connectorHead+rule+"cases:\n  - {name: c, request: {method: POST, url: 'https://api.test/things', headers: {content-type: "+kind+
				"}, body: '"+tc.request+"'}, "+tc.rest+"}\n").RunCases()
			if tc.part == "" && len(findings) > 0 || tc.part != "" && (len(findings) != 1 || !strings.Contains(findings[0].Problem, tc.part)) {
				t.Errorf("%v, want %q", findings, tc.part)
			}
		})
	}
}

// A probe that wants more answers than a case has is retry whatever the rule says, so that a case
// which expects that would hold, and test nothing.
func TestACaseGivesAProbeAllItAsksFor(t *testing.T) {
	t.Parallel()
	file := withOperation("reconcile: [{probe: {get: /things, candidates: response.json.items, ours: found.id == 1, tie: unique, id: found.id, created: found.at, "+
		"pages: {more: response.json.next, set: {page: '2'}, max: 5}}}]") + "cases:\n"
	const ask = "  - {name: the case, request: {method: POST, url: 'https://api.test/things', body: {name: n}}, expect: {observation: retry}, probe: "
	for probe, part := range map[string]string{
		"[{body: {items: [], next: true}}]":                                               "the probe asks on after 1 answer, for /things?page=2: its answer is missing under probe",
		"[{body: {items: [], next: true}}, {status: 500}]":                                "",
		"[{body: {items: [{id: 1, at: '2026-01-02T04:00:00Z'}], next: true}}, {body: 1}]": "",
	} {
		findings := load(t, file+ask+probe+"}\n").RunCases()
		if part == "" && len(findings) > 0 || part != "" && (len(findings) != 1 || !strings.Contains(findings[0].Problem, part)) {
			t.Errorf("%s: %v, want %q", probe, findings, part)
		}
	}
}

func TestBrokenCasesDoNotLoad(t *testing.T) {
	t.Parallel()
	for line, part := range map[string]string{
		"name: x, request: {url: 'https://a/'}":                                                   "expect is missing",
		"name: x, expect: {operation: a}":                                                         "request is missing",
		"request: {url: 'https://a/'}, expect: {operation: a}":                                    "name is missing",
		"name: x, request: {method: GET}, expect: {operation: a}":                                 "url is missing",
		"name: x, request: {url: '/a'}, expect: {operation: a}":                                   "no absolute URL",
		"name: x, request: {url: 'https://a/'}, expect: {}":                                       "expects nothing",
		"name: x, request: {url: 'https://a/', body: {a: {cel: b.}}}, expect: {operation: a}":     "does not compile",
		"name: x, request: {url: 'https://a/', body: {a: {cel: json.a}}}, expect: {operation: a}": "no expressions",
		"name: x, request: {url: 'https://a/'}, expect: {verdict: maybe}":                         "not one of",
		"name: x, request: {url: 'https://a/'}, expect: {surprise: 1}":                            "unknown key",
	} {
		_, findings := Load([]File{{Data: []byte(caseFile + "  - {" + line + "}\n")}}, nil, Defaults{})
		if !findings.Failed() || !strings.Contains(findings.Error(), part) {
			t.Errorf("%s: %v, want %q", line, findings, part)
		}
	}
}

func TestCasesAreWrittenForTheFilesOwnHosts(t *testing.T) {
	t.Parallel()
	file := caseFile + "  - {name: the case, request: {method: POST, url: 'https://api.test/things', body: {name: n}}, expect: {operation: make}}\n"
	for _, hosts := range [][]string{nil, {"127.0.0.1:9999"}} {
		if found := load(t, file, Settings{Connector: "test", Hosts: hosts}).RunCases(); len(found) > 0 {
			t.Errorf("with hosts %v: %v", hosts, found)
		}
	}
}

// A host that a pattern of the same connector fits too is the host alone, whichever is written first.
func TestCasesFindTheHostAsRequestsDo(t *testing.T) {
	t.Parallel()
	set := load(t, strings.Replace(connectorHead, "hosts: [api.test]", `hosts: ["{cell}.api.test", eu.api.test]`, 1)+`
  - name: make
    match: {method: POST, path: /make}
    effect: mutation
    identity: {cell: "host.?cell.orValue('the one')"}
    reconcile: [{none: why}]
    manual_check: look
cases:
  - name: at a host of its own
    request: {method: POST, url: "https://eu.api.test/make"}
    expect: {operation: make, identity: {cell: the one}}
  - name: at another one
    request: {method: POST, url: "https://us.api.test/make"}
    expect: {operation: make, identity: {cell: us}}
`)
	if failed := set.RunCases(); len(failed) > 0 {
		t.Errorf("cases: %v", failed)
	}
	req := request(t, "POST https://eu.api.test/make", "")
	if m := set.Connectors()[0].Match(req); len(m.Host) != 0 || identityOf(derive(t, set, req)) != `{"cell":"the one"}` {
		t.Errorf("by the connector alone: %+v", m)
	}
}
