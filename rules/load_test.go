package rules

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// keeps is a sending in steps that keeps an expression.
func keeps(what string) string {
	return "send: [{prepare: a, post: /a, keep: {id: " + what + "}}, {commit: , post: '/b/{mutation.kept.id}'}]"
}

// withOperation is a file with keys added to (or replaced in) a sound operation.
func withOperation(lines ...string) string {
	op := []string{
		"name: make", "match: {method: POST, path: /things}", "effect: mutation", "identity: {name: json.name}",
		`reconcile: [{none: "no read"}]`, "manual_check: look",
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

func TestProblemsOfAFileAreNamed(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name, file      string
		code, key, part string
		line            int
	}{
		{"nothing at all", "", "yaml", "", "empty", 0},
		{"no YAML", "apiVersion: [", "yaml", "", "not YAML", 2},
		{"expression with brackets in a flow list", "apiVersion: keep/v1\nhosts: [api{.test]", "yaml", "", "not YAML", 2},
		{"a control character", "apiVersion: keep/v1\nconnector: a\x01\n", "yaml", "", "a control character (U+0001)", 2},
		{"another encoding", "apiVersion: keep/v1\ntitle: caf\xe9\n", "yaml", "", "byte 0xe9 is no UTF-8", 2},
		{"two documents", "apiVersion: keep/v1\n---\nx: 1\n", "yaml", "", "more than one", 2},
		{"a list", "- 1\n", "type", "", "must be a map", 1},
		{"another version", strings.Replace(withOperation(), "keep/v1", "keep/v2", 1), "value", "apiVersion", "no format that this version reads", 1},
		{"no version", "connector: a\n", "missing", "apiVersion", "missing", 1},
		{"unknown key", withOperation("effects: x"), "unknown-key", "operations[0].effects", "unknown key", 13},
		{"key twice", withOperation() + "    name: again\n", "repeated-key", "operations[0].name", "already on line 7", 13},
		{"alias", withOperation("repeat: &a refuse"), "yaml", "operations[0].repeat", "anchors", 13},
		{"tag", withOperation("repeat: !x refuse"), "yaml", "operations[0].repeat", "tags", 13},
		{"merge key", withOperation("<<: {}"), "yaml", "operations[0]", "plain word", 13},
		{"bad connector name", strings.Replace(withOperation(), "connector: test", "connector: Te st", 1), "value", "connector", "no name", 2},
		{"bad operation name", withOperation("name: a b"), "value", "operations[0].name", "no name", 12},
		{"a wildcard host", strings.Replace(withOperation(), "api.test", `"*.api.test:8443"`, 1), "host", "hosts[0]", "write \"{x}.api.test\", in quotes", 4},
		{"version 0", strings.Replace(withOperation(), "version: 1", "version: 0", 1), "value", "version", "whole number", 3},
		{"host with scheme", strings.Replace(withOperation(), "api.test", "https://api.test", 1), "host", "hosts[0]", "neither scheme nor path", 4},
		{"no reads", strings.Replace(withOperation(), "reads: safe-methods\n", "", 1), "missing", "reads", "nothing says which other requests", 1},
		{"reads of another kind", strings.Replace(withOperation(), "safe-methods", "all", 1), "value", "reads", "not one of", 5},
		{"rate without per", strings.Replace(withOperation(), "operations:", "rate: {requests: 5}\noperations:", 1), "missing", "rate.per", "missing", 6},
		{"effect missing", withOperation("effect: -"), "missing", "operations[0].effect", "missing", 7},
		{"effect unknown", withOperation("effect: write"), "value", "operations[0].effect", "not one of", 12},
		{"effect unknown of what was meant as a mutation", withOperation("effect: mutate", "native_key: {header: a}", "reconcile: [{resend: {}}]"), "resend", "operations[0].reconcile[0]", "needs native_key.window", 13},
		{"match missing", withOperation("match: -"), "missing", "operations[0].match", "missing", 7},
		{"match of everything", withOperation(`match: {path: "/{x...}"}`), "match-all", "operations[0].match", "matches everything", 12},
		{"empty match", withOperation(`match: {}`), "match-all", "operations[0].match", "matches everything", 12},
		{"lower-case method", withOperation("match: {method: post}"), "value", "operations[0].match.method[0]", "no method", 12},
		{"TRACE", withOperation("match: {method: TRACE}"), "value", "operations[0].match.method[0]", "no method", 12},
		{"bad path", withOperation("match: {method: POST, path: things}"), "path", "operations[0].match.path", "no path pattern", 12},
		{"identity missing", withOperation("identity: -"), "missing", "operations[0].identity", "nothing says what the mutation changes", 7},
		{"identity of a constant", withOperation(`identity: {a: "'x'"}`), "identity", "operations[0].identity", "derives nothing", 12},
		{"identity empty", withOperation("identity: {}"), "missing", "operations[0].identity", "empty", 12},
		{"expression that does not parse", withOperation("identity: {a: json.}"), "expression", "operations[0].identity.a", "does not compile", 12},
		{"expression with the wrong type", withOperation("identity: {a: method.x}"), "expression", "operations[0].identity.a", "does not compile", 12},
		{"variable that is not there yet", withOperation("identity: {a: response.status}"), "expression", "operations[0].identity.a", "undeclared reference", 12},
		{"kept values", withOperation("describe: \"{mutation.kept.draft}\""), "variable", "operations[0].describe", "reads what no step before it keeps", 13},
		{"expression as a list", withOperation("subkey: [json.a]"), "type", "operations[0].subkey", "must be an expression", 13},
		{"path variable that no pattern has", withOperation("identity: {a: path.id}"), "variable", "operations[0].identity.a", "no pattern has {id}", 12},
		{"path variable of a probe that no pattern has", withOperation("reconcile: [{probe: {get: '/a/{path.id}', observe: [{when: response.json.ok, is: applied}]}}]"), "variable", "operations[0].reconcile[0].probe.get", "no pattern has {id}", 12},
		{"host variable that no pattern has", withOperation("identity: {a: host.region}"), "variable", "operations[0].identity.a", "no pattern has {region}", 12},
		{"text with an open brace", withOperation("describe: \"a {json.a\""), "expression", "operations[0].describe", "opening brace", 13},
		{"text with a stray brace", withOperation("describe: \"a } b\""), "expression", "operations[0].describe", "closing brace", 13},
		{"ignored place of an unknown root", withOperation("payload: {ignore: [body.x]}"), "place", "operations[0].payload.ignore[0]", "can't be used here", 13},
		{"ignored place too deep", withOperation("payload: {ignore: [query.x.y]}"), "place", "operations[0].payload.ignore[0]", "no single place", 13},
		{"volatile header as payload", withOperation("payload: {headers: [Authorization]}"), "value", "operations[0].payload.headers[0]", "changes from run to run", 13},
		{"native key without a place", withOperation("native_key: {format: uuid}"), "missing", "operations[0].native_key", "no place", 13},
		{"native key in two places", withOperation("native_key: {header: a, query: b}"), "value", "operations[0].native_key.query", "already in header", 13},
		{"short UUID", withOperation("native_key: {header: a, max_length: 30}"), "value", "operations[0].native_key.max_length", "36 characters", 13},
		{"native key in a list", withOperation(`native_key: {json: "a[*].b"}`), "place", "operations[0].native_key.json", "not to a list", 13},
		{"marker in two places", withOperation("marker: {form: a, json: b}"), "value", "operations[0].marker", "exactly one place", 13},
		{"append without text", withOperation("marker: {append: json.a}"), "missing", "operations[0].marker.text", "needs a text", 13},
		{"append without marker", withOperation("marker: {append: json.a, text: x}"), "value", "operations[0].marker.text", "does not hold the marker", 13},
		{"outcome without then", withOperation("outcome: [{when: response.status == 1}]"), "missing", "operations[0].outcome[0]", "needs when and then", 13},
		{"failure without class", withOperation("outcome: [{when: response.status == 1, then: failed}]"), "missing", "operations[0].outcome[0].class", "needs its class", 13},
		{"success with class", withOperation("outcome: [{when: response.status == 1, then: applied, class: logic}]"), "value", "operations[0].outcome[0].class", "only a failure", 13},
		{"otherwise in the middle", withOperation("outcome: [{otherwise: uncertain}, {when: response.status == 1, then: applied}]"), "value", "operations[0].outcome[0]", "must be the last", 13},
		{"duration without unit", withOperation("settle: 10"), "value", "operations[0].settle", "duration", 13},
		{"negative duration", withOperation("timeout: -5s"), "value", "operations[0].timeout", "above zero", 13},
		{"size without unit", withOperation("max_body: 10"), "value", "operations[0].max_body", "size", 13},
		{"weaker settle", withOperation("settle: 10s"), "weaker", "operations[0].settle", "weaker than the default 5m0s", 13},
		{"weaker confirmations", withOperation("absent_confirmations: 1"), "weaker", "operations[0].absent_confirmations", "weaker than the default 2", 13},
		{"weaker spacing", withOperation("absent_spacing: 1s"), "weaker", "operations[0].absent_spacing", "weaker than the default 10s", 13},
		{"bounds without a source", withOperation("bounds: {commit: 1s, lag: 1s}"), "missing", "operations[0].bounds", "needs commit, lag and source", 13},
		{"bounds that can't be added up", withOperation("bounds: {commit: 2562047h, lag: 2562047h, source: measured}"), "bounds", "operations[0].bounds", "does not cover", 13},
		{"settle within the bounds", withOperation("settle: 3s", "bounds: {commit: 2s, lag: 1s, source: measured}"), "bounds", "operations[0].bounds", "does not cover", 14},
		{"no way to find out", withOperation("reconcile: -"), "no-reconcile", "operations[0].reconcile", "no way to find out", 7},
		{"empty list of ways", withOperation("reconcile: []"), "no-reconcile", "operations[0].reconcile", "empty", 12},
		{"two strategies in one entry", withOperation("reconcile: [{resend: {}, none: x}]"), "value", "operations[0].reconcile[0]", "exactly one of", 12},
		{"a strategy after none", withOperation("native_key: {header: a, window: 24h}", "reconcile: [{none: x}, {resend: {}}]"), "value", "operations[0].reconcile[1]", "none must be the last", 13},
		{"keys of a probe beside it", withOperation("reconcile: [{probe: , get: /a, observe: []}]"), "type", "operations[0].reconcile[0].probe", "stand beside it", 12},
		{"none as a word", withOperation(`reconcile: [none]`), "type", "operations[0].reconcile[0]", "none stands alone", 12},
		{"resend as a word", withOperation(`reconcile: [resend]`), "type", "operations[0].reconcile[0]", "resend stands alone", 12},
		{"identity as an expression", withOperation("identity: json.name"), "type", "operations[0].identity", "a map of names to expressions, or none", 12},
		{"none without a reason", withOperation(`reconcile: [{none: ""}]`), "empty", "operations[0].reconcile[0].none", "empty", 12},
		{"a replay that can't be verified", withOperation("verify_on_replay: strict"), "verify", "operations[0].verify_on_replay", "nothing says how", 13},
		{"resend without key", withOperation("reconcile: [{resend: {}}]"), "resend", "operations[0].reconcile[0]", "needs a native_key", 12},
		{"resend without window", withOperation("native_key: {header: a}", "reconcile: [{resend: {}}]"), "resend", "operations[0].reconcile[0]", "needs native_key.window", 13},
		{"a window of zero", withOperation("native_key: {header: a, window: 0s}", "reconcile: [{resend: {}}]"), "value", "operations[0].native_key.window", "above zero", 12},
		{"resend in too short a window", withOperation("native_key: {header: a, window: 16m}", "reconcile: [{resend: {}}]"), "resend", "operations[0].reconcile[0]", "too short", 13},
		{"resend with a settle that can't be added up", withOperation("native_key: {header: a, window: 24h}", "settle: 2562047h47m", "reconcile: [{resend: {}}]"), "resend", "operations[0].reconcile[0]", "too short", 14},
		{"resend of a secret body", withOperation("native_key: {header: a, window: 24h}", "secret: [json.card]", "reconcile: [{resend: {}}]"), "resend-secret", "operations[0].reconcile[0]", "json.card is secret", 14},
		{"a secret of an answer that is kept", withOperation("secret: [response.json.id]", keeps("response.json.id")), "send-secret", "operations[0].send[0].keep.id", `"response.json.id" is secret`, 14},
		{"the text of an answer with a secret that is kept", withOperation("secret: [response.json.id]", keeps("response.text")), "send-secret", "operations[0].send[0].keep.id", `"response.text" is secret`, 14},
		{"secret of nothing", withOperation("secret: [json]"), "place", "operations[0].secret[0]", "no single place", 13},
		{"secret outside an answer", withOperation("secret: [response.status]"), "place", "operations[0].secret[0]", "no place of an answer", 13},
		{"keys of a mutation on a read", withOperation("effect: read", "settle: 10m"), "no-effect", "operations[0].settle", "no mutation", 13},
		{"a URL with a query besides", withOperation(`watch: {get: "{response.header.location}", query: {a: b}, until: response.json.done, max: 1h}`), "value", "operations[0].watch.query", "a query of its own", 13},
		{"a probe by a URL", withOperation(`reconcile: [{probe: {get: "{json.name}", observe: [{when: response.status == 200, is: applied}]}}]`), "path", "operations[0].reconcile[0].probe.get", "no path", 12},
		{"a look by two values", withOperation(`watch: {get: "{response.json.a}{response.json.b}", until: response.json.done, max: 1h}`), "path", "operations[0].watch.get", "no path", 13},
		{"a time of what is denied", withOperation("effect: deny", "identity: -", "reconcile: -", "manual_check: -", "timeout: 1h"), "no-effect", "operations[0].timeout", "no mutation", 10},
		{"before nothing", withOperation("before: [x]"), "before", "operations[0].before", "no other operation", 7},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			set, findings := Load([]File{{Name: "bad.yaml", Data: []byte(tc.file)}}, nil, Defaults{})
			if set != nil {
				t.Fatal("the file loads")
			}
			i := slices.IndexFunc(findings, func(f Finding) bool {
				return f.Code == tc.code && f.Key == tc.key && strings.Contains(f.Problem, tc.part)
			})
			if i < 0 {
				t.Fatalf("no finding [%s] %s: …%s…\n%v", tc.code, tc.key, tc.part, findings)
			}
			f := findings[i]
			if f.Line != tc.line || f.File != "bad.yaml" || f.Fix == "" || f.Severity != SeverityError {
				t.Errorf("finding %+v, want line %d, the file, a fix and an error", f, tc.line)
			}
		})
	}
}

func TestProbesThatCannotWorkAreNamed(t *testing.T) {
	t.Parallel()
	probe := func(s string) string { return withOperation("reconcile: [{probe: {" + s + "}}]") }
	const ask = "get: /things, "
	const listing = ask + "candidates: response.json, ours: found.a == mutation.marker, id: found.id, "
	cases := []struct{ name, file, code, part string }{
		{"asks nothing", probe("observe: [{when: 'true', is: applied}]"), "missing", "makes no request"},
		{"sees nothing", probe("get: /things"), "missing", "nothing about what it sees"},
		{"observe and candidates", probe(listing + "tie: unique, observe: []"), "value", "either observe or candidates"},
		{"query in the path", probe("get: '/things?a=b', observe: []"), "path", "holds no query"},
		{"path that is not plain", probe("get: /a/../b, observe: []"), "path", "plain form"},
		{"get with a body", probe("get: /a, json: {}, observe: []"), "value", "get has no body"},
		{"credentials in the header", probe("get: /a, header: {Authorization: x}, observe: []"), "value", "no header that a rule may set"},
		{"no id", probe(ask + "candidates: response.json, ours: 'true', tie: unique"), "missing", "id is missing"},
		{"no tie", probe(listing), "missing", "tie is missing"},
		{"marker tie without a marker", probe(listing + "tie: marker"), "tie", "needs a marker"},
		{"vendor key tie without a key", probe(listing + "tie: vendor_key"), "tie", "needs a native_key"},
		{"marker tie that looks elsewhere", probe(ask + "candidates: response.json, ours: found.a == 'x', id: found.id, tie: marker"), "tie", "does not look at mutation.marker"},
		{"content tie without a time", probe(listing + "tie: content"), "missing", "needs created"},
		{"unique tie without a time", probe(listing + "tie: unique"), "missing", "tie: unique needs created"},
		{"pages without a bound", probe(listing + "tie: unique, pages: {next: link}"), "missing", "max is missing"},
		{"pages that go on in two ways", probe(listing + "tie: unique, pages: {next: link, more: 'true', set: {a: b}, max: 3}"), "value", "either by next"},
		{"pages that go nowhere", probe(listing + "tie: unique, pages: {max: 3}"), "missing", "how the listing goes on"},
		{"observe of a status that isn't judged", probe("get: /a, observe: [{when: response.status == 404, is: absent}]"), "missing", "\"response.status == 404\" is about another one"},
		{"observe of a class of statuses", probe("get: /a, observe: [{when: response.status >= 500, is: retry}]"), "missing", "only 200 is judged"},
		{"a step that observes one", probe("steps: [{name: a, get: /a, observe: [{when: 'response.status in [200, 410]', is: absent}]}]"), "missing", "only 200 is judged"},
		{"observe with ours", probe("get: /a, observe: [], ours: 'true'"), "no-effect", "nothing with observe"},
		{"observation as duplicate", probe("get: /a, observe: [{when: 'true', is: duplicate}]"), "value", "not one of"},
		{"result that is no success", probe(listing + "tie: unique, result: {status: 404}"), "value", "whole number"},
		{"secret in the path", withOperation("secret: [json.token]", "reconcile: [{probe: {get: '/t/{json.token}', observe: []}}]"), "probe-secret", "secret place"},
		{"number as JSON has none", probe("get: /a, observe: [], json: {a: 0x10}"), "value", "no number as JSON"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			_, findings := Load([]File{{Name: "bad.yaml", Data: []byte(tc.file)}}, nil, Defaults{})
			if !slices.ContainsFunc(findings, func(f Finding) bool {
				return f.Code == tc.code && strings.Contains(f.Problem, tc.part) && f.Line > 0 && f.Fix != ""
			}) {
				t.Errorf("no finding [%s] …%s…\n%v", tc.code, tc.part, findings)
			}
		})
	}
}

func TestAMissingKeyIsNamedByItsPlace(t *testing.T) {
	t.Parallel()
	cases := []struct{ name, file, key string }{
		{"of a probe", withOperation("reconcile: [{probe: {get: /a, candidates: response.json, ours: 'true', id: found.id}}]"),
			"operations[0].reconcile[0].probe.tie"},
		{"of a program", withOperation("reconcile: [{exec: {timeout: 5s}}]"), "operations[0].reconcile[0].exec.command"},
		{"of a case", withOperation() + "cases: [{name: x, request: {url: 'https://api.test/'}}]\n", "cases[0].expect"},
		{"of a case's request", withOperation() + "cases: [{name: x, request: {method: GET}, expect: {operation: a}}]\n", "cases[0].request.url"},
		{"of the rate", withOperation() + "rate: {requests: 5}\n", "rate.per"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			_, findings := Load([]File{{Name: "bad.yaml", Data: []byte(tc.file)}}, nil, Defaults{})
			if !slices.ContainsFunc(findings, func(f Finding) bool { return f.Code == "missing" && f.Key == tc.key }) {
				t.Errorf("no finding at %s\n%v", tc.key, findings)
			}
		})
	}
}

func TestATabInTheIndentationIsNamed(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		file string
		tab  bool
	}{
		"a tab":      {"apiVersion: keep/v1\nhosts:\n\t- api.test\n", true},
		"a backtick": {"apiVersion: keep/v1\nhosts: `x`\n", false},
	} {
		_, findings := Load([]File{{Name: "bad.yaml", Data: []byte(tc.file)}}, nil, Defaults{})
		if len(findings) != 1 || findings[0].Code != "yaml" || strings.Contains(findings[0].Fix, "tab") != tc.tab {
			t.Errorf("%s: findings %v, of which the fix says tab: %t wanted", name, findings, tc.tab)
		}
	}
}

func TestAllProblemsOfAllFilesAreFoundAtOnce(t *testing.T) {
	t.Parallel()
	_, findings := Load([]File{
		{Name: "b.yaml", Data: []byte(withOperation("efect: x", "settle: 1", "repeet: y"))},
		{Name: "a.yaml", Data: []byte("connector: x")},
	}, []Settings{{Connector: "tset"}}, Defaults{})
	var got []string
	for _, f := range findings {
		got = append(got, fmt.Sprintf("%s:%d %s", f.File, f.Line, f.Code))
	}
	want := []string{
		":0 settings", "a.yaml:1 missing", "a.yaml:1 missing", "a.yaml:1 missing", "a.yaml:1 missing",
		"b.yaml:13 unknown-key", "b.yaml:14 value", "b.yaml:15 unknown-key",
	}
	if !slices.Equal(got, want) {
		t.Errorf("findings\n%v\nwant\n%v", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for part, fix := range map[string]string{"efect": "did you mean effect?", "repeet": "did you mean repeat?", "tset": "did you mean test?"} {
		if !slices.ContainsFunc(findings, func(f Finding) bool { return strings.Contains(f.Key, part) && f.Fix == fix }) {
			t.Errorf("no fix %q for %s:\n%v", fix, part, findings)
		}
	}
}

func TestConnectorsDoNotShareHostsOrNames(t *testing.T) {
	t.Parallel()
	one := File{Name: "one.yaml", Data: []byte(withOperation())}
	other := File{Name: "two.yaml", Data: []byte(strings.Replace(withOperation(), "connector: test", "connector: other", 1))}
	_, findings := Load([]File{one, other}, nil, Defaults{})
	if len(findings) != 1 || findings[0].Code != "host-overlap" || findings[0].File != "two.yaml" || findings[0].Line != 4 {
		t.Errorf("findings: %v", findings)
	}
	if set, findings := Load([]File{one, other}, []Settings{{Connector: "other", Hosts: []string{"other.test"}}}, Defaults{}); set == nil {
		t.Errorf("with another host: %v", findings)
	}
	_, findings = Load([]File{one, one}, nil, Defaults{})
	if len(findings) != 1 || findings[0].Code != "repeated-connector" {
		t.Errorf("findings: %v", findings)
	}
}

// Of two connectors with one name in common it can't be told whose the records under it are.
func TestAConnectorsEarlierNamesAreItsOwn(t *testing.T) {
	t.Parallel()
	file := func(name, was string) File {
		head := "connector: " + name + "\nwas: " + was
		return File{Name: name + ".yaml", Data: []byte(strings.NewReplacer("connector: test", head, "[api.test]", "["+name+".test]").Replace(withOperation()))}
	}
	for _, c := range []struct {
		name  string
		files []File
		loads bool
	}{
		{"one name", []File{file("a", "b")}, true},
		{"several", []File{file("a", "[b, c]"), file("d", "[e]")}, true},
		{"its own", []File{file("a", "[b, a]")}, false},
		{"no name", []File{file("a", "B")}, false},
		{"one that is there", []File{file("a", "[b]"), file("b", "[c]")}, false},
		{"another one's earlier name", []File{file("a", "[b, c]"), file("d", "[c]")}, false},
	} {
		set, findings := Load(c.files, nil, Defaults{})
		if (set != nil) != c.loads || !c.loads && findings[0].Code == "host-overlap" {
			t.Errorf("%s: %v", c.name, findings)
		}
		if c.loads && !slices.Contains(set.Connector("a").Was, "b") {
			t.Errorf("%s: was %v", c.name, set.Connector("a").Was)
		}
	}
}

func TestOperationsThatBothFitNeedAnOrder(t *testing.T) {
	t.Parallel()
	op := func(name, match, more string) string {
		return "  - {name: " + name + ", match: {" + match + "}, effect: read" + more + "}\n"
	}
	cases := []struct {
		name, a, b string
		overlap    bool
	}{
		{"different methods", op("a", "method: GET, path: /x", ""), op("b", "method: PUT, path: /x", ""), false},
		{"different paths", op("a", "method: PUT, path: /x", ""), op("b", "method: PUT, path: /y", ""), false},
		{"any method", op("a", "path: /x", ""), op("b", "method: PUT, path: /x", ""), true},
		{"literal and variable", op("a", "method: PUT, path: /x", ""), op("b", "method: PUT, path: '/{v}'", ""), true},
		{"an order", op("a", "method: PUT, path: /x", ", before: [b]"), op("b", "method: PUT, path: '/{v}'", ""), false},
		{"an order from below", op("a", "method: PUT, path: '/{v}'", ""), op("b", "method: PUT, path: /x", ", before: a"), false},
		{"one condition", op("a", "method: PUT, when: query.a == 'x'", ""), op("b", "method: PUT", ""), true},
		{"a condition and its negation", op("a", "method: PUT, when: \"json.a.startsWith('x')\"", ""), op("b", "method: PUT, when: \"!(json.a.startsWith('x'))\"", ""), false},
		{"a negation that binds closer", op("a", "method: PUT, when: \"json.a || json.b\"", ""), op("b", "method: PUT, when: \"!json.a || json.b\"", ""), true},
		{"two constants", op("a", "method: PUT, when: json.a == 'x'", ""), op("b", "method: PUT, when: json.a == 'y'", ""), false},
		{"one constant twice", op("a", "method: PUT, when: json.a == 'x'", ""), op("b", "method: PUT, when: json.a == 'x'", ""), true},
		{"two values", op("a", "method: PUT, when: json.a == 'x'", ""), op("b", "method: PUT, when: json.b == 'y'", ""), true},
		{"more than a comparison", op("a", "method: PUT, when: \"json.a == 'x' || true\"", ""), op("b", "method: PUT, when: json.a == 'y'", ""), true},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			_, findings := Load([]File{{Name: "t.yaml", Data: []byte(connectorHead + tc.a + tc.b)}}, nil, Defaults{})
			got := slices.ContainsFunc(findings, func(f Finding) bool { return f.Code == "overlap" })
			if got != tc.overlap || !tc.overlap && len(findings) > 0 {
				t.Errorf("overlap: %v, want %v\n%v", got, tc.overlap, findings)
			}
		})
	}
	circle := op("a", "method: PUT, path: /x", ", before: [b]") + op("b", "method: PUT, path: '/{v}'", ", before: [a]")
	if _, findings := Load([]File{{Data: []byte(connectorHead + circle)}}, nil, Defaults{}); !strings.Contains(findings.Error(), "circle") {
		t.Errorf("a circle loads: %v", findings)
	}
}

func TestNumbersComeFromTheStrongestSource(t *testing.T) {
	t.Parallel()
	bounded := []string{"bounds: {commit: 1s, lag: 1s, source: measured}"}
	sec, min30, one := time.Second*20, 30*time.Minute, 1
	cases := []struct {
		name     string
		lines    []string
		defaults Defaults
		over     Override
		settle   time.Duration
		times    int
	}{
		{"built in", nil, Defaults{}, Override{}, 5 * time.Minute, 2},
		{"configured stronger", nil, Defaults{Settle: time.Hour, Confirmations: 3}, Override{}, time.Hour, 3},
		{"configured weaker holds not", nil, Defaults{Settle: time.Second, Confirmations: 1}, Override{}, 5 * time.Minute, 2},
		{"configured weaker with bounds", bounded, Defaults{Settle: time.Minute, Confirmations: 1}, Override{}, time.Minute, 1},
		{"the rule's own", []string{"settle: 10m"}, Defaults{Settle: time.Hour}, Override{}, 10 * time.Minute, 2},
		{"the rule's own, weaker, with bounds", append([]string{"settle: 30s", "absent_confirmations: 1"}, bounded...), Defaults{}, Override{}, 30 * time.Second, 1},
		{"overridden stronger", []string{"settle: 10m"}, Defaults{}, Override{Settle: &min30}, min30, 2},
		{"overridden weaker holds not", []string{"settle: 10m"}, Defaults{}, Override{Settle: &sec, Confirmations: &one}, 10 * time.Minute, 2},
		{"overridden weaker with bounds", bounded, Defaults{}, Override{Settle: &sec, Confirmations: &one}, sec, 1},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			set, findings := Load([]File{{Name: "t.yaml", Data: []byte(withOperation(tc.lines...))}},
				[]Settings{{Connector: "test", Overrides: map[string]Override{"make": tc.over}}}, tc.defaults)
			if set == nil {
				t.Fatal(findings)
			}
			op := set.Connector("test").Operation("make")
			if op.Settle != tc.settle || op.Confirmations != tc.times || len(findings) > 0 {
				t.Errorf("settle %v, %d times, %v; want %v, %d", op.Settle, op.Confirmations, findings, tc.settle, tc.times)
			}
		})
	}
}

func TestOverridesAreChecked(t *testing.T) {
	t.Parallel()
	zero, size, long := time.Duration(0), int64(0), 20*time.Minute
	cases := []struct {
		name string
		op   string
		over Override
		part string // empty: loads
	}{
		{"unknown operation", "mkae", Override{}, "no operation has this name; did you mean make?"},
		{"settle of zero", "make", Override{Settle: &zero}, "make.settle: must be above zero"},
		{"timeout of zero", "make", Override{Timeout: &zero}, "make.timeout: must be above zero"},
		{"size of zero", "make", Override{MaxBody: &size}, "make.max_body: must be above zero"},
		{"unknown on_absent", "make", Override{OnAbsent: "hope"}, "write fail, redispatch or escalate"},
		{"unknown block scope", "make", Override{BlockScope: "run"}, "write workflow, item or mutation"},
		{"timeout beyond the total is cut", "make", Override{Timeout: &long, OnAbsent: OnAbsentEscalate, BlockScope: "item"}, ""},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			settings := []Settings{{Connector: "test", Overrides: map[string]Override{tc.op: tc.over}}}
			set, findings := Load([]File{{Name: "t.yaml", Data: []byte(withOperation())}}, settings, Defaults{})
			if tc.part != "" {
				if set != nil || !strings.Contains(findings.Error(), tc.part) {
					t.Errorf("findings %v, want %q", findings, tc.part)
				}
				return
			}
			if set == nil {
				t.Fatal(findings)
			}
			op := set.Connector("test").Operation("make")
			if op.Timeout != DefaultTotal || op.OnAbsent != OnAbsentEscalate || op.BlockScope != "item" {
				t.Errorf("timeout %v, on_absent %v, block scope %v", op.Timeout, op.OnAbsent, op.BlockScope)
			}
		})
	}
}

func TestAPinnedVersionLoadsWithTodaysSettings(t *testing.T) {
	t.Parallel()
	long := time.Hour
	settings := []Settings{
		{Connector: "gone", Hosts: []string{"gone.test"}},
		{Connector: "test", Hosts: []string{"new.test"}, Overrides: map[string]Override{"make": {Settle: &long}, "later": {}}},
	}
	now := load(t, withOperation())
	c, findings := LoadPinned(now.Connector("test").Content, settings, Defaults{})
	if c == nil {
		t.Fatal(findings)
	}
	if c.Hash != now.Connector("test").Hash || c.Hosts[0] != "new.test" || c.Operation("make").Settle != long {
		t.Errorf("hash %s, hosts %v, settle %v", c.Hash, c.Hosts, c.Operation("make").Settle)
	}
	if m := c.Match(request(t, "POST https://new.test/things", `{"name":"a"}`)); m.Operation == nil || m.Effect != EffectMutation {
		t.Errorf("match: %+v", m)
	}
	if m := c.Match(request(t, "POST https://api.test/things", "{}")); !m.Unmatched || m.Effect != EffectDeny {
		t.Errorf("another host: %+v", m)
	}
	if c, findings := LoadPinned([]byte("x: 1"), nil, Defaults{}); c != nil || !findings.Failed() {
		t.Error("a broken stored file loads")
	}
}

func FuzzLoad(f *testing.F) {
	f.Add([]byte(withOperation()))
	f.Add([]byte(withOperation("marker: {append: json.a, text: \"{mutation.marker}\"}", "payload: {ignore: ['json.a[*]']}")))
	f.Add([]byte("a: &b [*b]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		set, findings := Load([]File{{Name: "f.yaml", Data: data}}, nil, Defaults{})
		if (set == nil) != findings.Failed() {
			t.Fatalf("set %v with findings %v", set, findings)
		}
		for _, finding := range findings {
			if finding.Code == "" || finding.Problem == "" || finding.Fix == "" {
				t.Fatalf("incomplete finding %+v", finding)
			}
		}
		if set == nil {
			return
		}
		for _, c := range set.Connectors() {
			if again, findings := LoadPinned(c.Content, nil, Defaults{}); again == nil || again.Hash != c.Hash {
				t.Fatalf("does not load again: %v", findings)
			}
		}
	})
}

func TestTheMendOfANameSaysWhatItMayHold(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]string{
		strings.Replace(withOperation(), "connector: test", "connector: Pay", 1): "use lower-case letters, digits and -, at most 64, beginning with a letter or digit",
		withOperation("name: a b"): "use letters, digits, ., _ and -, at most 100, beginning with a letter or digit",
	} {
		_, findings := Load([]File{{Name: "bad.yaml", Data: []byte(file)}}, nil, Defaults{})
		if len(findings) != 1 || findings[0].Fix != want {
			t.Errorf("findings %v, want the fix %q", findings, want)
		}
	}
}
