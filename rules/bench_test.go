package rules_test

import (
	"net/http"
	"strings"
	"testing"

	"keep-proxy/rules"
)

// kibibyte is a JSON body of 1 KiB, as a payment API gets it.
func kibibyte() []byte {
	body := `{"from":"DE89370400440532013000","to":"FR1420041010050500013M02606","amount":150000,` +
		`"currency":"EUR","reference":"INV-2026-000417","urgent":false,"metadata":{"order":"O-99","tenant":"acme"},` +
		`"lines":[{"sku":"A-1","quantity":2,"price":199.5},{"sku":"B-7","quantity":1,"price":1101}],"note":"`
	return []byte(body + strings.Repeat("n", 1024-len(body)-2) + `"}`)
}

// BenchmarkDecide is everything that rules do before a mutation can be claimed.
func BenchmarkDecide(b *testing.B) {
	set, findings := rules.Load(bundled(b), nil, rules.Defaults{})
	if set == nil {
		b.Fatal(findings)
	}
	raw := rules.Raw{
		Method: http.MethodPost, Scheme: "https", Authority: "bank.keep-proxy.test", Target: "/transfers",
		Header: http.Header{"Content-Type": {"application/json"}, "User-Agent": {"bench"}}, Body: kibibyte(), HasBody: true,
	}
	b.Run("normalise", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, refusal := rules.Normalise(raw); refusal != nil {
				b.Fatal(refusal)
			}
		}
	})
	b.Run("match+derive", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			req, _ := rules.Normalise(raw)
			m := set.Match(req)
			if _, refusal := m.Operation.Derive(req, m); refusal != nil {
				b.Fatal(refusal)
			}
		}
	})
	b.Run("outgoing", func(b *testing.B) {
		b.ReportAllocs()
		req, _ := rules.Normalise(raw)
		m := set.Match(req)
		for b.Loop() {
			if _, refusal := m.Operation.Outgoing(req, rules.Mutation{Marker: "m", VendorKey: "k"}); refusal != nil {
				b.Fatal(refusal)
			}
		}
	})
}

// BenchmarkGraphQL is what rules do for a mutation of GraphQL, as a vendor's SDK sends it.
func BenchmarkGraphQL(b *testing.B) {
	set, findings := rules.Load([]rules.File{{Name: "g.yaml", Data: []byte(`apiVersion: keep/v1
connector: graphql
version: 1
hosts: [api.test]
reads: []
account: header[?'x-account'].orValue('')
operations:
  - {name: query, match: {method: POST, path: /graphql, graphql: {operation: query}}, effect: read}
  - {name: other, match: {method: POST, path: /graphql, graphql: {operation: mutation, field: [issueUpdate, issueDelete]}}, effect: deny}
  - name: create
    match: {method: POST, path: /graphql, graphql: {operation: mutation, field: issueCreate}}
    effect: mutation
    describe: "Create {graphql.args.input.title}"
    identity: {team: graphql.args.input.teamId, title: graphql.args.input.title.trim()}
    native_key: {graphql: input.id, format: uuid4, when_present: keep_first}
    reconcile: [{none: why}]
    manual_check: look
`)}}, nil, rules.Defaults{})
	if set == nil {
		b.Fatal(findings)
	}
	raw := rules.Raw{
		Method: http.MethodPost, Scheme: "https", Authority: "api.test", Target: "/graphql",
		Header: http.Header{"Content-Type": {"application/json"}}, HasBody: true,
		Body: []byte(`{"query":"fragment Issue on IssuePayload {\n  __typename\n  lastSyncId\n  issue {\n    id\n    identifier\n    url\n  }\n  success\n}\n\n` +
			`mutation createIssue($input: IssueCreateInput!) {\n  issueCreate(input: $input) {\n    ...Issue\n  }\n}","variables":{"input":{` +
			`"teamId":"9cfb482a-81e3-4154-b5b9-2c805e70a02d","title":"It broke","priority":2,"labelIds":["a","b"],"description":"` + strings.Repeat("d", 512) + `"}}}`),
	}
	b.ReportAllocs()
	for b.Loop() {
		req, _ := rules.Normalise(raw)
		m := set.Match(req)
		if _, refusal := m.Operation.Derive(req, m); refusal != nil {
			b.Fatal(refusal)
		}
		if _, refusal := m.Operation.Outgoing(req, rules.Mutation{VendorKey: "k"}); refusal != nil {
			b.Fatal(refusal)
		}
	}
}
