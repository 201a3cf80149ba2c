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
