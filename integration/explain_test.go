package integration

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"keep-proxy/admin/wire"
)

// wouldBe is what explaining says of a request of item a now.
func (w *world) wouldBe(target, body string) string {
	w.t.Helper()
	text, err := w.api.Explain(w.t.Context(), wire.Explain{
		Method: http.MethodPost, URL: target, Headers: wire.Header{"Content-Type": {"application/json"}},
		Body: wire.Text(body), Workflow: "books", Item: "a",
	})
	if err != nil {
		w.t.Fatal(err)
	}
	var x struct {
		Now string `json:"now"`
	}
	if err := json.Unmarshal(text, &x); err != nil {
		w.t.Fatal(err)
	}
	return x.Now
}

func (w *world) wantWouldBe(target, body, words string) {
	w.t.Helper()
	if now := w.wouldBe(target, body); !strings.Contains(now, words) {
		w.t.Errorf("explained as %q, want %q", now, words)
	}
}

// TestExplainingKnowsWhatAPersonAccepted holds what is explained against what then happens.
func TestExplainingKnowsWhatAPersonAccepted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	url, other := w.keyed.URL()+"/transfers", orderOf(map[string]any{"reference": "R-1", "amount": 99})
	w.wantWouldBe(url, other, "It would be claimed and sent.")
	first := w.open("a").transfer(w.keyed, "R-1").wantApplied(http.StatusCreated)
	w.wantWouldBe(url, order("R-1"), "the stored answer would be replayed")
	w.wantWouldBe(url, other, "the payload differs (json.amount was 1250, is 99), so it would be refused as payload-mismatch")
	w.again("a").do(http.MethodPost, url, other).wantRefusal("payload-mismatch", 422, "json.amount was 1250, is 99")
	w.resolve(w.mutation("a"), wire.Resolve{Action: wire.ActionAcceptPayload})
	w.wantWouldBe(url, other, "the stored answer would be replayed")
	w.open("a").do(http.MethodPost, url, other).wantReplay(first)
	w.wantWouldBe(url, orderOf(map[string]any{"reference": "R-1", "amount": 98}), "payload-mismatch")
	w.keyed.want("transfer:R-1", 1, 1)
}

// Explaining asks nobody, also where only an earlier version of the rule asked the API
// for the account.
func TestExplainingUnderAVersionThatAskedForTheAccount(t *testing.T) {
	t.Parallel()
	w := prepare(t)
	mail := w.fake("asking-mail", "mail", "")
	now := w.settings.Connectors
	w.settings.Connectors = t.TempDir()
	rewriteConnectors(t, now, w.settings.Connectors, strings.NewReplacer())
	w.start()
	w.open("a").mailAs(mail, "ann", "one").wantApplied(http.StatusOK)
	w.wantWouldBe(mail.URL()+"/send", message("one"), "")
	rewriteConnectors(t, now, w.settings.Connectors, strings.NewReplacer("account: {get: /me, value: response.json.email, cache: 1h}\n", ""))
	w.restart()
	w.wantWouldBe(mail.URL()+"/send", message("one"), "An earlier version of its rule asks the API whose data it changes, and explaining asks nobody")
	if n := mail.reads("/me"); n != 1 {
		t.Errorf("the account was asked for %d times, want 1", n)
	}
	mail.want("mail:one", 1, 1)
}
