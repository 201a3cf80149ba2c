package integration

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"keep-proxy/admin/wire"
)

// wouldBe is what explaining says of a request of item a now.
func (w *world) wouldBe(target, body string, edits ...func(*wire.Explain)) string {
	w.t.Helper()
	asked := wire.Explain{
		Method: http.MethodPost, URL: target, Headers: wire.Header{"Content-Type": {"application/json"}},
		Body: wire.Text(body), Workflow: "books", Item: "a",
	}
	for _, edit := range edits {
		edit(&asked)
	}
	text, err := w.api.Explain(w.t.Context(), asked)
	if err != nil {
		w.t.Fatal(err)
	}
	var x struct {
		Now     string `json:"now"`
		Refused string `json:"refused"`
	}
	if err := json.Unmarshal(text, &x); err != nil {
		w.t.Fatal(err)
	}
	return x.Refused + x.Now
}

func (w *world) wantWouldBe(target, body, words string, edits ...func(*wire.Explain)) {
	w.t.Helper()
	if now := w.wouldBe(target, body, edits...); !strings.Contains(now, words) {
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

// What can't be made into the request that goes out is refused where it would be sent, and
// nowhere else.
func TestExplainingWhatCantBeSent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const name, digest = "Content-Digest", "sha-256=:x:"
	url := w.probed.URL() + "/transfers"
	digested := func(e *wire.Explain) { e.Headers[name] = []string{digest} }
	field := func(r *http.Request) { r.Header.Set(name, digest) }
	const failed = "It would be recorded as failed, and nothing sent."
	w.wantWouldBe(url, order("R-1"), "ambiguous-request"+failed, digested)
	w.open("a").do(http.MethodPost, url, order("R-1"), field).wantRefusal("ambiguous-request", 422, name)
	w.wantWouldBe(url, order("R-1"), "ambiguous-request"+failed, digested)
	w.wantWouldBe(url, order("R-1"), "is failed: it would be claimed again and sent.")
	first := w.again("a").transfer(w.probed, "R-1").wantApplied(http.StatusCreated)
	w.wantWouldBe(url, order("R-1"), "the stored answer would be replayed", digested)
	w.again("a").do(http.MethodPost, url, order("R-1"), field).wantReplay(first)
	w.probed.want("transfer:R-1", 1, 1)
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
