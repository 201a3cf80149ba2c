package fakes_test

import (
	"net/http"
	"testing"

	"keep-proxy/internal/fakes"
	"keep-proxy/internal/fakes/bank"
	"keep-proxy/internal/fakes/data"
	"keep-proxy/internal/fakes/quotes"
	"keep-proxy/internal/fakes/server"
)

// api makes a fake that a file describes.
func api(tb testing.TB, name string) *data.Fake {
	tb.Helper()
	made, err := fakes.New(name)
	if err != nil {
		tb.Fatal(err)
	}
	return made.(*data.Fake)
}

func TestIdentities(t *testing.T) {
	t.Parallel()
	apis := map[string]server.API{
		"bank": bank.New(bank.Defaults()), "github": api(t, "github"), "quotes": quotes.New(),
		"stripe": api(t, "stripe"), "webhook": api(t, "webhook"), "mail": api(t, "mail"),
	}
	tests := []struct {
		name, api, method, path, body, want string
	}{
		{"a read of the bank", "bank", "GET", "/transfers", "", ""},
		{"a transfer", "bank", "POST", "/transfers", `{"reference":"R-1"}`, "transfer:R-1"},
		{"a notice", "bank", "POST", "/notices", `{"reference":"R-1"}`, "notice:R-1"},
		{"a transfer that names nothing", "bank", "POST", "/transfers", `{}`, "POST /transfers"},
		{"half a transfer", "bank", "POST", "/transfers", `{"reference":"R-1"`, "POST /transfers"},
		{"a transfer that is cancelled", "bank", "DELETE", "/transfers/tr_1", "", "cancel:tr_1"},
		{"a deletion that the bank does not know", "bank", "DELETE", "/notices/no_1", "", "DELETE /notices/no_1"},
		{"a refund of a payment intent", "stripe", "POST", "/v1/refunds", "payment_intent=pi_1&amount=5", "refund:pi_1"},
		{"a refund of a charge", "stripe", "POST", "/v1/refunds", "charge=ch_1", "refund:ch_1"},
		{"a refund of both", "stripe", "POST", "/v1/refunds", "charge=ch_1&payment_intent=pi_1", "refund:pi_1"},
		{"a refund with a reference", "stripe", "POST", "/v1/refunds", "charge=ch_1&metadata%5Brefund_ref%5D=a", "refund:ch_1:a"},
		{"a refund of nothing", "stripe", "POST", "/v1/refunds", "amount=5", "POST /v1/refunds"},
		{"a read of refunds", "stripe", "GET", "/v1/refunds", "", ""},
		{"an issue", "github", "POST", "/repos/Octo/Hello/issues", `{"title":" Broken "}`, "issue:octo/hello:Broken"},
		{"a pull request", "github", "POST", "/repos/Octo/Hello/pulls", `{"title":"x","head":"h","base":"b"}`, "pull:octo/hello:h:b"},
		{"a change of an issue", "github", "PATCH", "/repos/Octo/Hello/issues/7", `{"state":"closed"}`, "issue-update:octo/hello#7"},
		{"an issue that isn't JSON", "github", "POST", "/repos/o/r/issues", `{`, "POST /repos/o/r/issues"},
		{"another place of GitHub", "github", "POST", "/repos/o/r/forks", `{}`, "POST /repos/o/r/forks"},
		{"a read of issues", "github", "HEAD", "/repos/o/r/issues", "", ""},
		{"a delivery", "webhook", "PUT", "/hook/a/b", "x", "hook:a/b"},
		{"a read of a hook", "webhook", "GET", "/hook/a", "", ""},
		{"a draft", "mail", "POST", "/drafts", `{"subject":"a"}`, "draft:a"},
		{"a draft that is sent", "mail", "POST", "/drafts/send", `{"id":"a.7"}`, "mail:a"},
		{"a message", "mail", "POST", "/send", `{"subject":"a"}`, "mail:a"},
		{"a quote", "quotes", "GET", "/quote/ACME", "", ""},
		{"a mutation of a quote", "quotes", "DELETE", "/quote/ACME", "", "DELETE /quote/ACME"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			header := http.Header{}
			if tt.api == "stripe" {
				header.Set("Content-Type", "application/x-www-form-urlencoded")
			}
			got := apis[tt.api].Identity(&server.Request{Method: tt.method, Path: tt.path, Body: []byte(tt.body), Header: header})
			if got != tt.want {
				t.Errorf("identity %q, want %q", got, tt.want)
			}
		})
	}
}
