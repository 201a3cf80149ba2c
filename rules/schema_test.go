package rules

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// formatKeys is every key of the connector format by level, with a use of it that
// is sound by itself: a key either works or is refused as not built yet.
var formatKeys = []struct {
	level string
	file  func(line string) string
	works []string
}{
	{
		"connector",
		func(line string) string {
			head := connectorHead
			if name, _, _ := strings.Cut(line, ":"); strings.Contains(head, "\n"+name+": ") || strings.HasPrefix(head, name+": ") {
				head = strings.Join(slices.DeleteFunc(strings.SplitAfter(head, "\n"), func(l string) bool { return strings.HasPrefix(l, name+":") }), "")
			}
			if strings.HasPrefix(line, "operations") {
				return strings.Replace(head, "operations:\n", "", 1) + line + "\n"
			}
			return line + "\n" + head + simpleMutation
		},
		[]string{
			"apiVersion: keep/v1", "extends: shop", "connector: other", "version: 2", "title: Other", "hosts: [other.test]", "paths: ['/{any...}']", "host_group: others", "reads: [/x]",
			"account: header['x-a']", "account: {get: /me, value: response.json.id, cache: 1h, given: \"'fixed'\"}",
			"account: {post: /me, json: {a: b}, value: response.json.id}", "account: {post: /me, form: {a: b}, token: {form: token}, value: response.json.id}", "account: {post: /me, token: {json: token}, value: response.json.id}", "block_scope: item", "trust_refused: true", "rate: {requests: 5, per: 1s}", "outcome: [{when: response.status == 409, then: uncertain}]", "operations: []",
			"aws: {service: sqs}",
			"parameters: {p: {type: list, default: [a], description: d}, q: {default: '', type: text}, r: {type: number, default: 5}, s: {type: boolean, default: true}}",
			"evidence: [{claim: it has no key, status: unverified}]",
			"cases: [{name: c, request: {url: 'https://api.test/'}, expect: {refused: unmatched}}]",
		},
	},
	{
		"operation",
		func(line string) string {
			if strings.HasPrefix(line, "stream") {
				return withOperation("match: {method: POST, path: /x, jsonrpc: {method: a}}", line)
			}
			return withOperation(line)
		},
		[]string{
			"compensate: {delete: '/things/{object}'}", "stream: true",
			"name: other", "match: {method: PUT, path: /x}", "before: []", "effect: mutation", "describe: x", "identity: none", "subkey: json.s",
			"payload: {ignore: [json.a]}", "native_key: {header: k}", "marker: {json: m}", "marker: {header: x-m}", "native_key: {aws: Token}", "match: {aws: {action: [A, B]}, method: POST}", "outcome: [{otherwise: uncertain}]", "success: response.status == 200",
			"reconcile: [{none: why}]", "on_absent: fail", "on_absent: redispatch", "max_dispatches: 3", "verify_on_replay: off", "verify_on_replay: \"off\"",
			"watch: {get: /a, query: {a: b}, header: {x: y}, expect: response.status == 200, every: 5s, until: response.json.done, failed_when: 'false', class: logic, max: 1h}", "on_absent: escalate", "manual_check: x", "max_body: 1MiB", "repeat: replay", "repeat: refuse",
			"watch: {get: \"{response.header['location']}\", until: response.json.done, max: 1h}",
			"secret: [json.s]", "settle: 10m", "absent_confirmations: 3", "absent_spacing: 1m", "block_scope: mutation",
			"bounds: {commit: 1s, lag: 1s, source: x}", "encoded_slash: keep", "empty_segments: keep", "timeout: 5s",
			"subkey_header: forbidden", "subkey_header: optional", "subkey_header: required", "drift: warn", "drift: refuse", "drift: allow", "was: [old]", "accept: [{no-result: why}]",
			"send: [{prepare: a, post: /a, json: {x: 1}, query: {a: b}, expect: response.status == 200, keep: {id: response.json.id}}, {commit: , put: /b, form: {id: {cel: mutation.kept.id}}}]",
			"send: [{prepare: a, patch: /a, keep: {id: response.json.id}}, {commit: , post: '/b/{mutation.kept.id}', header: {a: b}}]",
			"evidence: [{claim: c, url: 'https://x.test/', quote: no such key, date: 2026-01-31, status: verified}]",
			"on_skip: {status: 404, header: {a: b}, json: {id: {cel: json.name}}}", "on_no_result: {status: 200}",
		},
	},
	{
		"an operation that is passed on",
		func(line string) string { return withRead(line) },
		[]string{"timeout: 1h", "upgrade: [websocket, chat/2]", "upgrade: websocket"},
	},
	{
		"compensate",
		func(line string) string { return withOperation("compensate: {" + line + "}") },
		[]string{
			"delete: '/a/{object}', auto: true, max_dispatches: 3", "put: '/a/{object}', json: {gone: true}, header: {x: y}",
			"post: /a, query: {id: {cel: object}}, native_key: {header: k}, outcome: [{when: response.status == 409, then: applied}], reconcile: [{none: why}]",
			"patch: '/a/{object}', reconcile: [{probe: {get: '/a/{object}', expect: response.status == 404, observe: [{when: response.status == 404, is: applied}]}}]",
		},
	},
	{
		"match",
		func(line string) string { return withOperation("match: {method: POST, " + line + "}") },
		[]string{"path: /x", "when: json.a == 1", "jsonrpc: {method: a}", "jsonrpc: {method: [a, b]}", "jsonrpc: {method: a, answer: false}", "mail: {from: body}", "mail: {from: json.raw, encoding: base64url}"},
	},
	{
		"a match of reads",
		func(line string) string { return withRead("match: {method: POST, path: /x, " + line + "}") },
		[]string{"graphql: {operation: query}", "graphql: {operation: mutation, field: [a, b]}", "graphql: {operation: query, persisted: [abc]}"},
	},
	{
		"payload",
		func(line string) string { return withOperation("payload: {" + line + "}") },
		[]string{"ignore: [json.a]", "minor: [json.a]", "headers: [x-a]", "normalise: {json.a: whitespace}", "compare: \"'minor'\""},
	},
	{
		"native_key",
		func(line string) string {
			if strings.HasPrefix(line, "header") || strings.HasPrefix(line, "json") || strings.HasPrefix(line, "form:") || strings.HasPrefix(line, "query") {
				return withOperation("native_key: {" + line + "}")
			}
			return withOperation("native_key: {header: k, " + line + "}")
		},
		[]string{
			"header: k", "json: a.k", "form: k", "query: k", "format: uuid", "format: uuid4", "format: hex", "format: token", "max_length: 64", "charset: a-zA-Z0-9_-", "min_length: 16", "replays: all", "replays: success", "replays: none", "replays: conflict",
			"mismatch: error", "mismatch: cached", "mismatch: executed", "mismatch: separate", "window: 24h",
			"when_present: replace", "when_present: keep_first", "when_present: refuse",
		},
	},
	{
		"a mutation of GraphQL",
		func(line string) string {
			return withOperation("match: {method: POST, path: /graphql, graphql: {operation: mutation, field: f}}", "identity: {id: graphql.args.id}", line)
		},
		[]string{
			"native_key: {graphql: input.id}", "marker: {graphql: input.ref}", "marker: {append: graphql.args.input.body, text: '{mutation.marker}'}", "payload: {ignore: [graphql.args.a]}", "on_skip: {graphql: {id: 1}}",
			"reconcile: [{probe: {post: /graphql, json: {query: '{ a }'}, observe: [{when: has(response.graphql.data), is: applied}], result: {graphql: {}}}}]",
		},
	},
	{
		"marker",
		func(line string) string { return withOperation("marker: {" + line + "}") },
		[]string{"json: a.b", "form: \"m[k]\"", "append: json.a, text: \"{mutation.marker}\"", "json: m, max_length: 65536", "form: m, max_length: 64KiB",
			"query: q", "append: form.a, text: \"{mutation.marker}\"", "json: a, value: {b: {cel: mutation.marker}}", "append: json.a, value: {cel: mutation.marker}, max_length: 100"},
	},
	{
		"outcome",
		func(line string) string { return withOperation("outcome: [{" + line + "}]") },
		[]string{"when: response.status == 1, then: failed, class: logic", "when: response.status == 1, then: applied", "when: response.status == 1, then: continues", "otherwise: uncertain", "when: response.status == 1, then: uncertain, retry_after: duration('1m')"},
	},
	{
		"reconcile",
		func(line string) string {
			if strings.Contains(line, "natural") {
				return withOperation("match: {method: PUT, path: /things}", "reconcile: [{"+line+"}]")
			}
			return withOperation("native_key: {header: k, window: 24h}", "reconcile: [{"+line+"}]")
		},
		[]string{"resend: {}", "resend: {natural: true}", "probe: {head: /a, observe: [{when: response.status == 200, is: applied}]}", "probe: {get: /a, observe: [{when: 'true', is: absent}]}", "none: why", "exec: [cmd]",
			"exec: {command: [cmd, a], timeout: 5s, memory: 64MiB, output: 1KiB, tie: vendor_key, absence_is_proof: true}",
		},
	},
	{
		"probe",
		func(line string) string {
			base := "get: /a, candidates: response.json, ours: 'true', tie: unique, id: found.id, "
			if !strings.HasPrefix(line, "created") {
				base += "created: found.at, "
			}
			if strings.HasPrefix(line, "post") || strings.HasPrefix(line, "observe") || strings.HasPrefix(line, "get") || strings.HasPrefix(line, "step") {
				base = ""
			}
			return withOperation("reconcile: [{probe: {" + base + line + "}}]")
		},
		[]string{
			"get: /a, observe: [{when: 'true', is: applied}], result: {status: 201, header: {a: b}, json: {}}", "post: /a, json: {a: 1}, observe: [{when: 'true', is: retry}]",
			"header: {x: y}", "query: {a: b}", "absence_is_proof: true", "expect: response.status == 200", "created: found.at", "resolution: 1s",
			"pages: {next: link, max: 3}", "pages: {more: 'true', set: {a: b}, max: 3}",
			"steps: [{name: a, get: /a, observe: [{when: 'true', step: b}]}, {name: b, get: /b, observe: [{when: 'true', is: absent}]}]",
		},
	},
	{
		"bounds and rate",
		func(line string) string { return withOperation("settle: 10m", line) },
		[]string{"bounds: {commit: 1m, lag: 1m, source: x}"},
	},
	{
		"cases",
		func(line string) string {
			return withOperation() + "cases: [{name: c, request: {method: POST, url: 'https://api.test/things', headers: {a: b}, body: '{}'}, " + line + "}]\n"
		},
		[]string{
			"expect: {operation: make, identity: {name: n}, subkey: '', account: '', refused: identity}",
			"response: {status: 200, headers: {a: [b, c]}, body: {a: 1}}, expect: {verdict: failed, class: logic}",
			"send: [{status: 200}], expect: {kept: {a: b}, asked: [{url: 'https://api.test/things'}], sent: [{method: POST, url: 'https://api.test/things', headers: {a: b}, body: {}}]}",
			"parameters: {}, expect: {operation: make}",
			"undo: o1, response: {status: 204}, expect: {verdict: applied}",
			"probe: [{status: 200}], expect: {observation: applied, result: {status: 201, headers: {a: b}, body: {}}}",
		},
	},
}

func TestEveryKeyOfTheFormatWorks(t *testing.T) {
	t.Parallel()
	for _, level := range formatKeys {
		for _, line := range level.works {
			set, findings := Load([]File{
				{Name: "f.yaml", Data: []byte(level.file(line))}, {Data: []byte(bundledFile), Bundled: "shop", Base: true},
			}, nil, Defaults{})
			if set == nil {
				t.Errorf("%s: %s\n%v\n%s", level.level, line, findings, level.file(line))
			}
		}
	}
}

func TestEveryKeyOfTheSchemaIsTried(t *testing.T) {
	t.Parallel()
	tried := fmt.Sprint(formatKeys)
	for _, l := range []level{
		levelConnector, levelParameter, levelRate, levelAccount, levelToken, levelOperation, levelMatch, levelAWS, levelAWSMatch, levelGraphQL, levelJSONRPC, levelMail, levelPayload, levelNativeKey, levelMarker, levelOutcome,
		levelStrategy, levelSend, levelResend, levelProbe, levelObserve, levelPages, levelResult, levelBounds, levelEvidence, levelCompensate, levelCase, levelCaseAsk, levelCaseAnswer, levelExpect,
	} {
		for _, key := range l.Known {
			if strings.Contains(tried, key+":") || key == "name" || slices.Contains([]string{"candidates", "ours", "tie", "id", "request", "method", "url"}, key) {
				continue
			}
			t.Errorf("%s has the key %s, which no test tries", l.Name, key)
		}
	}
}
