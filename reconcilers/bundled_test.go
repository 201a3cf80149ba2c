package reconcilers

import (
	"crypto/x509"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"testing"
	"time"

	"keep-proxy/connectors"
	"keep-proxy/internal/clock"
	"keep-proxy/internal/fakes"
	"keep-proxy/internal/fakes/testca"
	"keep-proxy/ledger"
	"keep-proxy/rules"
	"keep-proxy/upstream"
)

// vendor is a bundled connector with the fake of its API.
type vendor struct {
	connector, api string
	path           string
	header         http.Header
	body           string
	// identity is what the fake's log counts.
	identity string
}

var vendors = map[string]vendor{
	"the demo's bank": {
		"demo-bank", "bank", "/transfers", http.Header{"Content-Type": {"application/json"}},
		`{"from":"alice","to":"bob","amount":1500,"currency":"EUR","reference":"R-17"}`, "transfer:R-17",
	},
	"Stripe, a connected account": {
		"stripe", "stripe", "/v1/refunds",
		http.Header{"Content-Type": {"application/x-www-form-urlencoded"}, "Stripe-Account": {"acct_7"}},
		"payment_intent=pi_1&amount=500", "refund:pi_1",
	},
	"Stripe, an account named by its context": {
		"stripe", "stripe", "/v1/refunds",
		http.Header{"Content-Type": {"application/x-www-form-urlencoded"}, "Stripe-Context": {"acct_7"}},
		"payment_intent=pi_1&amount=500", "refund:pi_1",
	},
	"Stripe, an account named twice": {
		"stripe", "stripe", "/v1/refunds",
		http.Header{"Content-Type": {"application/x-www-form-urlencoded"}, "Stripe-Account": {"acct_7"}, "Stripe-Context": {"acct_7/acct_8"}},
		"payment_intent=pi_1&amount=500", "refund:pi_1",
	},
	"GitHub": {
		"github", "github", "/repos/ada/engine/issues", http.Header{"Content-Type": {"application/json"}},
		`{"title":"It rattles","body":"When it runs."}`, "issue:ada/engine:It rattles",
	},
}

// against makes a world of a bundled connector and its fake.
func against(t *testing.T, v vendor) (*world, *fakes.Fake) {
	t.Helper()
	ca, err := testca.New()
	if err != nil {
		t.Fatal(err)
	}
	fake, err := fakes.Start(fakes.Options{API: v.api, Log: filepath.Join(t.TempDir(), "log"), CA: ca})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = fake.Close() })
	w := newWorld(t, viaNone)
	w.clock = clock.NewFake(time.Now())
	w.rule = bundled(t, v.connector)
	w.hosts = []rules.Settings{{Connector: v.connector, Hosts: []string{fake.Addr()}}}
	w.user = w.hosts
	w.roots = x509.NewCertPool()
	w.roots.AppendCertsFromPEM(ca.PEM())
	w.make = func(string) *rules.Request {
		req, refusal := rules.Rebuild(http.MethodPost, "https://"+fake.Addr()+v.path, v.header, []byte(v.body))
		if refusal != nil {
			t.Fatal(refusal)
		}
		return req
	}
	w.start()
	return w, fake
}

// bundled is the text of a bundled connector.
func bundled(t *testing.T, name string) string {
	t.Helper()
	files, err := connectors.Files()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if f.Name == name {
			return string(f.Data)
		}
	}
	t.Fatalf("no bundled connector %s", name)
	return ""
}

// send makes the effect of a claimed mutation, whose answer is lost.
func (w *world) send(m *ledger.Mutation) {
	w.Helper()
	req := w.make("")
	set, findings := rules.Load([]rules.File{{Name: "rule", Data: []byte(w.rule)}}, w.hosts, rules.Defaults{})
	if findings.Failed() {
		w.Fatal(findings.Error())
	}
	out, refusal := set.Match(req).Operation.Outgoing(req, rules.Mutation{ID: m.ID, Marker: m.Marker, VendorKey: m.VendorKey})
	if refusal != nil {
		w.Fatal(refusal)
	}
	target, err := url.Parse(out.URL())
	if err != nil {
		w.Fatal(err)
	}
	header := out.Header.Clone()
	header.Set(w.creds.header, w.creds.value)
	got := w.r.wire.send(w.Context(), &upstream.Request{
		Method: out.Method, URL: target, Header: header, Body: upstream.Bytes(out.Body()),
	}, 1<<20)
	if got.status/100 != 2 {
		w.Fatalf("the API answered %d: %s", got.status, got.body)
	}
}

func TestBundledConnectorsFindWhatHappened(t *testing.T) {
	t.Parallel()
	for name, v := range vendors {
		for _, resends := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, resend open %v", name, resends), func(t *testing.T) {
				t.Parallel()
				w, fake := against(t, v)
				m := w.claim("")
				w.send(m)
				m = w.uncertain(m, false)
				if !resends {
					w.clock.Advance(23 * time.Hour)
				}
				w.due(m)
				now := w.wants(m, ledger.Applied, "")
				if now.ResultState != ledger.ResultKnown {
					t.Errorf("result %s, want known", now.ResultState)
				}
				tally, err := fake.Tally()
				if err != nil {
					t.Fatal(err)
				}
				if n := tally.Effects(v.identity); n != 1 {
					t.Errorf("%d effects, want 1", n)
				}
			})
		}
	}
}
