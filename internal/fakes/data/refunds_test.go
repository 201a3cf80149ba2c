package data_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"keep-proxy/internal/fakes/apitest"
	"keep-proxy/internal/fakes/data"
	"keep-proxy/internal/fakes/oracle"
	"keep-proxy/internal/fakes/script"
)

// load loads the fake of a file.
func load(tb testing.TB, file string) *data.Fake {
	tb.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		tb.Fatal(err)
	}
	fake, err := data.Load(content)
	if err != nil {
		tb.Fatal(err)
	}
	return fake
}

// bench is a fake with a client that has credentials.
type bench struct{ *apitest.Bench }

func start(t *testing.T) bench {
	t.Helper()
	return bench{apitest.Start(t, load(t, "testdata/refunds.yaml"))}
}
func (b bench) post(form string, fields ...string) apitest.Reply {
	return b.Do("POST", "/v1/refunds", form, append([]string{"Authorization", "Bearer sk_test", "Content-Type", "application/x-www-form-urlencoded"}, fields...)...)
}

func (b bench) get(target string, fields ...string) apitest.Reply {
	return b.Do("GET", target, "", append([]string{"Authorization", "Bearer sk_test"}, fields...)...)
}

// refund is a refund as the API shows it.
type refund struct {
	ID            string            `json:"id"`
	Object        string            `json:"object"`
	Amount        int64             `json:"amount"`
	Charge        *string           `json:"charge"`
	Created       int64             `json:"created"`
	Currency      string            `json:"currency"`
	Metadata      map[string]string `json:"metadata"`
	PaymentIntent *string           `json:"payment_intent"`
	Reason        *string           `json:"reason"`
	Status        string            `json:"status"`
}

func TestRefundIsMadeAndShown(t *testing.T) {
	t.Parallel()
	b := start(t)
	reply := b.post("payment_intent=pi_1&amount=500&metadata[keep_id]=m1&metadata[refund_ref]=r1&expand[]=charge", "Idempotency-Key", "k1")
	var got refund
	reply.Is(200, "").Into(&got)
	if got.Object != "refund" || got.Amount != 500 || got.Metadata["keep_id"] != "m1" || got.Charge != nil ||
		*got.PaymentIntent != "pi_1" || got.Created != apitest.Epoch.Unix() {
		t.Errorf("refund %+v", got)
	}
	if reply.Header.Get("Idempotency-Key") != "k1" {
		t.Errorf("fields %v", reply.Header)
	}
	b.get("/v1/refunds/"+got.ID).Is(200, got.ID)
	b.get("/v1/refunds/"+got.ID, "Stripe-Account", "acct_2").Is(404, "resource_missing")
	if n := b.Counted().Effects("refund:pi_1:r1"); n != 1 {
		t.Errorf("%d effects", n)
	}
}

func TestRefundIsRefused(t *testing.T) {
	t.Parallel()
	b := start(t)
	tests := []struct {
		name, form string
		fields     []string
		status     int
		want       string
	}{
		{"no payment", "amount=5", nil, 400, "parameter_missing"},
		{"an unknown parameter", "charge=ch_1&amuont=5", nil, 400, "parameter_unknown"},
		{"an amount that is no number", "charge=ch_1&amount=x", nil, 400, "parameter_invalid_integer"},
		{"an amount of nothing", "charge=ch_1&amount=0", nil, 400, "parameter_invalid_integer"},
		{"more than the payment holds", "charge=ch_1&amount=1000001", nil, 400, "charge_already_refunded"},
		{"a body that is no form", "charge=%zz", nil, 400, "parameter_missing"},
		{"a key that is too long", "charge=ch_1", []string{"Idempotency-Key", strings.Repeat("k", 256)}, 400, "255"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b.post(tt.form, tt.fields...).Is(tt.status, tt.want)
		})
	}
	b.Do("POST", "/v1/refunds", "charge=ch_1").Is(401, "API key")
	b.get("/v1/charges").Is(404, "has no GET")
	if n := len(b.Counted().Of(oracle.KindEffect)); n != 0 {
		t.Errorf("%d effects of refused requests", n)
	}
}

func TestKeyKeepsStatusAndBody(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, fault   string
		first, second int
		replayed      bool
		effects       int
	}{
		{"a success", "answer", 200, 200, true, 1},
		{"an answer that was lost on the way", "commit-502", 502, 200, true, 1},
		{"a 500 of the endpoint after the refund", "commit-own-500", 500, 500, true, 1},
		{"a 500 of the endpoint without one", "own-500", 500, 500, true, 0},
		{"a 503 in front of the endpoint", "503", 503, 200, false, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := start(t)
			b.ArmNamed(tt.fault)
			b.post("charge=ch_1&amount=5", "Idempotency-Key", "k").Is(tt.first, "")
			again := b.post("charge=ch_1&amount=5", "Idempotency-Key", "k").Is(tt.second, "")
			if got := again.Header.Get("Idempotent-Replayed") == "true"; got != tt.replayed {
				t.Errorf("replayed: %t, want %t", got, tt.replayed)
			}
			if n := b.Counted().Effects("refund:ch_1"); n != tt.effects {
				t.Errorf("%d effects, want %d", n, tt.effects)
			}
		})
	}
}

func TestNothingIsKeptOfRefusedParameters(t *testing.T) {
	t.Parallel()
	b := start(t)
	b.post("charge=ch_1&amount=x", "Idempotency-Key", "k").Is(400, "parameter_invalid_integer")
	b.post("charge=ch_1&amount=5", "Idempotency-Key", "k").Is(200, "re_")
	b.post("charge=ch_1&amount=6", "Idempotency-Key", "k").Is(400, "idempotency_error")
	b.post("charge=ch_1&amount=6", "Idempotency-Key", "k", "Stripe-Account", "acct_2").Is(200, "re_")
	b.Advance(24 * time.Hour)
	b.post("charge=ch_1&amount=6", "Idempotency-Key", "k").Is(200, "re_")
}

func TestConflictWhileTheFirstRuns(t *testing.T) {
	t.Parallel()
	b := start(t)
	b.ArmNamed("hang-inside")
	first := make(chan apitest.Reply, 1)
	go func() {
		reply, err := b.Try("POST", "/v1/refunds", "charge=ch_1", "Authorization", "Bearer sk_test", "Content-Type", "application/x-www-form-urlencoded", "Idempotency-Key", "k")
		if err != nil {
			t.Error(err)
		}
		first <- reply
	}()
	b.Await(oracle.KindHeld, 1)
	b.post("charge=ch_1", "Idempotency-Key", "k").Is(409, "idempotency_key_in_use")
	b.Release(script.GateHang)
	reply := <-first
	reply.Is(200, "re_")
	b.post("charge=ch_1", "Idempotency-Key", "k").Is(200, "re_1")
}

func TestFullRefundTwice(t *testing.T) {
	t.Parallel()
	b := start(t)
	b.post("charge=ch_1&amount=400000").Is(200, `"amount":400000`)
	b.post("charge=ch_1").Is(200, `"amount":600000`)
	b.post("charge=ch_1").Is(400, "charge_already_refunded")
	b.post("charge=ch_2").Is(200, `"amount":1000000`)
}

func TestListPages(t *testing.T) {
	t.Parallel()
	b := start(t)
	for i := range 5 {
		b.post(fmt.Sprintf("payment_intent=pi_%d&amount=%d", i%2, i+1)).Is(200, "")
	}
	var amounts []int64
	after := ""
	for pages := 1; ; pages++ {
		var page struct {
			Object, URL string
			HasMore     bool     `json:"has_more"`
			Data        []refund `json:"data"`
		}
		b.get("/v1/refunds?payment_intent=pi_0&limit=2"+after).Is(200, `"object":"list"`).Into(&page)
		for _, r := range page.Data {
			amounts = append(amounts, r.Amount)
		}
		if !page.HasMore {
			break
		}
		after = "&starting_after=" + page.Data[len(page.Data)-1].ID
	}
	if got := fmt.Sprint(amounts); got != "[5 3 1]" {
		t.Errorf("amounts %s, want newest first", got)
	}
	b.get("/v1/refunds?starting_after=re_9").Is(400, "resource_missing")
	b.get("/v1/refunds?limit=101").Is(400, "parameter_invalid_integer")
	b.get("/v1/refunds?charge=ch_9").Is(200, `"data":[]`)
	b.get("/v1/refunds", "Stripe-Account", "acct_2").Is(200, `"data":[]`)
}

func TestRestartKeepsRefundsAndKeys(t *testing.T) {
	t.Parallel()
	b := start(t)
	want := b.post("charge=ch_1&amount=5", "Idempotency-Key", "k1", "Stripe-Account", "acct_2").Is(200, "")
	b.ArmNamed("own-500")
	b.post("charge=ch_2&amount=5", "Idempotency-Key", "k2").Is(500, "")
	b.End()
	api := load(t, "testdata/refunds.yaml")
	b2 := bench{apitest.Continue(t, api, b.LogPath())}
	if got := b2.post("charge=ch_1&amount=5", "Idempotency-Key", "k1", "Stripe-Account", "acct_2"); got.Body != want.Body {
		t.Errorf("got %s, want %s", got.Body, want.Body)
	}
	b2.post("charge=ch_2&amount=5", "Idempotency-Key", "k2").Is(500, "")
	b2.get("/v1/refunds?charge=ch_1", "Stripe-Account", "acct_2").Is(200, "re_1")
	if err := api.Adjust([]byte(`{"lag":"1h"}`)); err != nil {
		t.Fatal(err)
	}
	b2.get("/v1/refunds?charge=ch_1", "Stripe-Account", "acct_2").Is(200, `"data":[]`)
	if err := api.Adjust([]byte(`{"payment":0}`)); err == nil {
		t.Error("a setting that isn't there was taken")
	}
}
