package proxy

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"keep-proxy/ledger"
	"keep-proxy/rules"
)

// steppedRules send one mail by a draft, within a rate.
const steppedRules = `apiVersion: keep/v1
connector: api
version: 1
title: Test API
hosts: ["HOST"]
reads: safe-methods
rate: {requests: 1, per: 1h}
operations:
  - name: mail
    match: {method: POST, path: /mail}
    effect: mutation
    describe: "Mail {json.to}"
    identity: {to: json.to}
    send:
      - prepare: draft
        post: /drafts
        json: {to: {cel: json.to}}
        keep: {draft: response.json.id}
      - commit:
        post: /drafts/send
        json: {id: {cel: mutation.kept.draft}}
    reconcile:
      - none: "the test API can't be asked"
    manual_check: "look"
`

// oneTurn admits the first request and nothing more.
type oneTurn struct{ turns int }

func (o *oneTurn) Turn(context.Context, *rules.Connector) error {
	if o.turns++; o.turns > 1 {
		return errors.New("too many already")
	}
	return nil
}

// A step that was answered and a rate that doesn't admit the next one in time are no
// refusal by the API: waiting mends it.
func TestWhatTheRateHoldsBackBetweenStepsIsTransient(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(rw, `{"id":"d1"}`)
	}, func(c *Config) { c.Turns = &oneTurn{} })
	w.use(steppedRules)
	r := w.open("a", func(o *ledger.OpenRun) { o.OnFailure = ledger.FailureReturn })
	answer := r.post("/mail", `{"to":"bob"}`)
	if !strings.Contains(answer.body, "did not admit the next step") || strings.Contains(answer.body, "othing was sent") {
		t.Errorf("got %d %s", answer.status, answer.body)
	}
	if m := w.mutation("a"); m.State != ledger.Failed || m.Class != ledger.ClassTransient {
		t.Errorf("it is %s, class %s: %s", m.State, m.Class, m.Reason)
	}
	w.wantSends("/drafts", 1)
	w.wantSends("/drafts/send", 0)
}

// What the steps gave is all that can be asked about later: the commit is not sent
// without it.
func TestWhatStepsGaveMustBeKept(t *testing.T) {
	t.Parallel()
	var w *world
	w = newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/drafts" {
			w.store.FailBefore()
		}
		rw.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(rw, `{"id":"d1"}`)
	})
	w.use(strings.Replace(steppedRules, "rate: {requests: 1, per: 1h}\n", "", 1))
	if answer := w.open("a").post("/mail", `{"to":"bob"}`); answer.status < http.StatusBadRequest {
		t.Errorf("got %d %s", answer.status, answer.body)
	}
	w.wantSends("/drafts", 1)
	w.wantSends("/drafts/send", 0)
}

// What a cut answer gave may be a part of what it would have given.
func TestACutStepGivesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/drafts/send" {
			return
		}
		rw.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(rw, `d1`)
		_ = http.NewResponseController(rw).Flush()
		panic(http.ErrAbortHandler)
	})
	w.use(strings.NewReplacer("rate: {requests: 1, per: 1h}\n", "", "response.json.id", "response.text").Replace(steppedRules))
	if answer := w.open("a").post("/mail", `{"to":"bob"}`); answer.status < http.StatusBadRequest {
		t.Errorf("got %d %s", answer.status, answer.body)
	}
	if m := w.mutation("a"); m.State != ledger.Failed || m.Kept != nil {
		t.Errorf("it is %s (%s), kept %v", m.State, m.Reason, m.Kept)
	}
	w.wantSends("/drafts", 1)
	w.wantSends("/drafts/send", 0)
}

// A draft was made, so that it isn't true that nothing was sent.
func TestACommitThatCantBeMadeOwnsUpToItsSteps(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(rw, `{"id":".."}`)
	})
	w.use(strings.NewReplacer("rate: {requests: 1, per: 1h}\n", "", "/drafts/send", "/drafts/{mutation.kept.draft}/send").Replace(steppedRules))
	answer := w.open("a").post("/mail", `{"to":"bob"}`)
	if answer.status < http.StatusBadRequest || !strings.Contains(answer.body, "Nothing was sent but what prepares it.") {
		t.Errorf("got %d %s", answer.status, answer.body)
	}
	if m := w.mutation("a"); m.State != ledger.Failed || strings.Contains(m.Reason, "othing was sent.") || m.Current().Ended.BootID == "" {
		t.Errorf("it is %s: %s", m.State, m.Reason)
	}
	w.wantSends("/drafts", 1)
	w.wantSends("/drafts/../send", 0)
}

// What an answer means goes by the method of the request that it answers, the commit, and
// not by that of the script's: 404 on DELETE may be this deletion's own work.
func TestACommitIsJudgedByItsOwnMethod(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/drafts" {
			rw.WriteHeader(http.StatusNotFound)
			return
		}
		rw.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(rw, `{"id":"d1"}`)
	})
	w.use(strings.NewReplacer("rate: {requests: 1, per: 1h}\n", "", "method: POST", "method: DELETE").Replace(steppedRules))
	g := send(w.open("a").client, http.MethodDelete, w.upstream.URL+"/mail", `{"to":"bob"}`)
	if m := w.mutation("a"); m.State != ledger.Failed || m.Dispatches[0].Status != http.StatusNotFound {
		t.Errorf("it is %s, %s; answered with %d %s", m.State, m.Reason, g.status, g.body)
	}
	w.wantSends("/drafts/send", 1)
}
