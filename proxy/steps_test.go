package proxy

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"keep-proxy/internal/verdict"
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
	if m := w.mutation("a"); m.State != ledger.Failed || m.Class != verdict.Transient {
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

// stepped are the rules of a draft with neither a rate nor any form for what it gives.
func stepped(pairs ...string) string {
	return strings.NewReplacer(append([]string{"rate: {requests: 1, per: 1h}\n", ""}, pairs...)...).Replace(steppedRules)
}

// A step's answer that the disk took and doesn't give back is not an empty one.
func TestAStepWhoseAnswerIsLostGivesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, digests, func(c *Config) { c.Ledger.Store = unreadSpools{c.Ledger.Store, 1} })
	w.use(stepped("response.json.id", "\"'the draft ' + response.text\""))
	wantProblem(t, w.open("a").post("/mail", `{"to":"bob"}`), "not-sent", http.StatusBadGateway, "can't be read")
	if m := w.mutation("a"); m.State != ledger.Failed || m.Kept != nil || m.Current().Verdict != ledger.VerdictNotSent {
		t.Errorf("it is %s (%s), kept %v, %s", m.State, m.Reason, m.Kept, m.Current().Verdict)
	}
	w.wantSends("/drafts", 1)
	w.wantSends("/drafts/send", 0)
}

// What an API says against a step is the script's answer, but not a part of it that looks whole.
func TestARefusedStepWhoseAnswerIsCutIsNotTheAnswer(t *testing.T) {
	t.Parallel()
	for name, cut := range map[string]bool{"whole": false, "cut": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(rw http.ResponseWriter, _ *http.Request) {
				rw.WriteHeader(http.StatusUnprocessableEntity)
				_, _ = io.WriteString(rw, "never mind")
				_ = http.NewResponseController(rw).Flush()
				if cut {
					panic(http.ErrAbortHandler)
				}
			})
			w.use(stepped())
			g, want := w.open("a").post("/mail", `{"to":"bob"}`), ledger.VerdictFailed
			if cut {
				wantProblem(t, g, "not-sent", http.StatusBadGateway, "the step draft failed")
				want = ledger.VerdictNotSent
			} else {
				wantAnswer(t, g, http.StatusUnprocessableEntity, "never mind", false)
			}
			if m := w.mutation("a"); m.State != ledger.Failed || m.Class != verdict.Precondition || m.Current().Verdict != want {
				t.Errorf("it is %s, %s, class %s: %s", m.State, m.Current().Verdict, m.Class, m.Reason)
			}
			w.wantSends("/drafts/send", 0)
		})
	}
}

// breaking are credentials that can't be had, nor can the ledger be told of it.
type breaking struct{ store *troubled }

func (b breaking) Always(string, string, string) (name, value string, ok bool, err error) {
	b.store.updates.Store(true)
	return sealed{}.Always("", "", "")
}

// Where the ledger can't be told that nothing took effect, that is unknown to the script, whose run
// is over; it is recorded as it was once the ledger can be told.
func TestWhatWasNotSentIsUnknownUntilItIsRecorded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		path   string
		sealed bool
		sends  int
	}{
		"a step gave nothing":       {"/mail", false, 1},
		"a step can't be made":      {"/mail", true, 0},
		"the request can't be made": {"/pay", true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &troubled{}
			w := newWorld(t, func(rw http.ResponseWriter, _ *http.Request) {
				s.updates.Store(true)
				_, _ = io.WriteString(rw, "{}")
			}, func(conf *Config) {
				s.Store, conf.Ledger.Store = conf.Ledger.Store, s
				if c.sealed {
					conf.Credentials = breaking{s}
				}
			})
			if c.path == "/mail" {
				w.use(stepped())
			}
			r := w.open("a")
			wantProblem(t, r.post(c.path, payX), "unknown-outcome", http.StatusFailedDependency, "could not be recorded")
			wantProblem(t, r.get("/read"), "run-aborted", http.StatusFailedDependency, "could not be recorded")
			s.updates.Store(false)
			w.waitState("a", ledger.Failed)
			w.waitRecorded()
			if d := w.mutation("a").Current(); d.Verdict != ledger.VerdictNotSent || d.Ended.BootID == "" {
				t.Errorf("it ended as %+v", d)
			}
			w.wantSends("/drafts", c.sends)
			w.wantSends("/drafts/send", 0)
			w.wantSends("/pay", 0)
		})
	}
}
