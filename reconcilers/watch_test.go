package reconcilers

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"keep-proxy/internal/verdict"
	"keep-proxy/ledger"
)

// viaWatch follows a 202; what is lost can't be asked about.
const viaWatch = viaNone + `    watch:
      get: "/jobs/{response.json.id}"
      every: 1m
      until: response.json.state == 'done'
      failed_when: response.json.state == 'failed'
      max: 1h
`

// accepted ends the current dispatch with a 202 that names a job.
func (w *world) accepted(m *ledger.Mutation) *ledger.Mutation {
	w.Helper()
	body := []byte(`{"id":"j1"}`)
	sum := sha256.Sum256(body)
	d := *m.Current()
	d.Verdict, d.Ended, d.Head, d.Status, d.BodyComplete = ledger.VerdictAccepted, w.now(), true, http.StatusAccepted, true
	out, err := w.ledger.EndDispatch(w.Context(), ledger.EndDispatch{
		Key: m.Key, Dispatch: d, NextTryAt: w.clock.Now().Add(time.Minute), Body: body,
		Result: &ledger.Result{
			Status: http.StatusAccepted, Header: ledger.Header{"Content-Type": {"application/json"}},
			Body: ledger.Body{SHA256: hex.EncodeToString(sum[:]), Size: int64(len(body))},
		},
	})
	if err != nil {
		w.Fatal(err)
	}
	if !out.Mutation.Watching || out.Mutation.Unresolved() || out.Mutation.State != ledger.NeedsReconcile {
		w.Fatalf("watching %v, state %s", out.Mutation.Watching, out.Mutation.State)
	}
	return out.Mutation
}

// A URL is asked for as it came, also after a restart. One that was masked, or leads elsewhere, is asked by nobody, and
// a person decides when the time is over.
func TestALookByTheURLOfAnAnswer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		location string
		asked    string
	}{
		"as it came":  {"/operations/a%2Fb?api-version=2&t=%7e", "/operations/a%2Fb?api-version=2&t=%7e"},
		"masked":      {"/operations/1?sig=<secret>", ""},
		"of another":  {"https://elsewhere.test/operations/1", ""},
		"to a change": {"/things", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, strings.Replace(viaWatch, "/jobs/{response.json.id}", "{response.header.location}", 1)+`
  - name: thing.make
    match: {method: GET, path: /things}
    effect: mutation
    identity: none
    reconcile: [{none: "why"}]
    manual_check: look
`)
			m := w.claim("a")
			body := []byte(`{"id":"j1"}`)
			sum := sha256.Sum256(body)
			d := *m.Current()
			d.Verdict, d.Ended, d.Head, d.Status, d.BodyComplete = ledger.VerdictAccepted, w.now(), true, http.StatusCreated, true
			_, err := w.ledger.EndDispatch(w.Context(), ledger.EndDispatch{
				Key: m.Key, Dispatch: d, NextTryAt: w.clock.Now().Add(time.Minute), Body: body,
				Result: &ledger.Result{
					Status: http.StatusCreated, Header: ledger.Header{"Location": {c.location}},
					Body: ledger.Body{SHA256: hex.EncodeToString(sum[:]), Size: int64(len(body))},
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			w.restart()
			w.api.answering(200, http.Header{"Content-Type": {"application/json"}}, `{"state":"done"}`)
			w.after(time.Minute)
			_, gets, _ := w.api.counts()
			if c.asked == "" {
				w.after(time.Hour)
				if now := w.wants(m, ledger.Indeterminate, ""); gets != 0 || !now.Escalated() {
					t.Errorf("%d looks; a person is asked: %t", gets, now.Escalated())
				}
				return
			}
			if now := w.wants(m, ledger.Applied, "until is true"); gets != 1 || w.api.gets[0].RequestURI != c.asked || strings.Contains(fmt.Sprint(now.Observations), "api-version") {
				t.Errorf("%d looks, %v; told as %v", gets, w.api.gets, now.Observations)
			}
		})
	}
}

func TestAWatchedMutationComesToItsEnd(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status int
		body   string
		state  ledger.State
		reason string
	}{
		"done":             {200, `{"state":"done"}`, ledger.Applied, "until is true"},
		"failed":           {200, `{"state":"failed"}`, ledger.Failed, "failed_when is true"},
		"pending":          {200, `{"state":"running"}`, ledger.NeedsReconcile, "neither"},
		"gone":             {404, `{"state":"failed"}`, ledger.NeedsReconcile, "instead of 200"},
		"of another form":  {200, `{}`, ledger.NeedsReconcile, "can't be evaluated"},
		"broken upstream":  {500, `{"state":"done"}`, ledger.NeedsReconcile, "instead of 200"},
		"nothing readable": {200, `<html>`, ledger.NeedsReconcile, "can't be evaluated"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, viaWatch)
			m := w.accepted(w.claim("a"))
			w.api.answering(c.status, http.Header{"Content-Type": {"application/json"}}, c.body)
			w.after(59 * time.Second)
			if _, gets, _ := w.api.counts(); gets != 0 {
				t.Errorf("%d looks before it was time", gets)
			}
			w.after(time.Second)
			now := w.wants(m, c.state, c.reason)
			if _, gets, _ := w.api.counts(); gets != 1 || w.api.gets[0].URL.Path != "/jobs/j1" {
				t.Errorf("%d looks, the last at %v", gets, w.api.gets)
			}
			switch c.state {
			case ledger.Applied:
				if w.resultOf(now) != `{"id":"j1"}` || now.Result.Status != http.StatusAccepted {
					t.Errorf("result %+v", now.Result)
				}
			case ledger.Failed:
				if now.Class != verdict.Precondition || now.Result != nil || now.Watching || !now.Escalated() {
					t.Errorf("class %s, result %+v", now.Class, now.Result)
				}
			default:
				if !now.Watching || now.Result == nil || !now.NextTryAt.Equal(w.clock.Now().Add(time.Minute)) {
					t.Errorf("watching %v, next look %v", now.Watching, now.NextTryAt)
				}
			}
		})
	}
}

// Looking at what was accepted keeps to the API's Retry-After, of which a day at most is obeyed.
func TestTheNextLookIsNotBeforeItsRetryAfter(t *testing.T) {
	t.Parallel()
	for after, want := range map[string]time.Duration{
		"": time.Minute, "1": time.Minute, "300": 5 * time.Minute, "8640000": 24 * time.Hour,
	} {
		w := newWorld(t, strings.Replace(viaWatch, "max: 1h", "max: 48h", 1))
		m := w.accepted(w.claim("a"))
		w.api.answering(http.StatusServiceUnavailable, http.Header{"Retry-After": {after}}, "")
		w.after(time.Minute)
		if got := w.wants(m, ledger.NeedsReconcile, "").NextTryAt.Sub(w.clock.Now()); got != want {
			t.Errorf("Retry-After %q: the next look is in %v, want %v", after, got, want)
		}
	}
}

// A Retry-After puts a look off for MaxAge at most, and never brings it forward.
func TestARetryAfterPutsALookOffForSoLong(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	s := Settings{Base: 10 * time.Second, MaxAge: 2 * time.Hour}
	for _, c := range []struct{ every, after, want time.Duration }{
		{time.Minute, 0, time.Minute},
		{time.Minute, time.Hour, time.Hour},
		{time.Minute, 3 * time.Hour, 2 * time.Hour},
		{5 * time.Hour, 3 * time.Hour, 5 * time.Hour},
		{5 * time.Hour, 9 * time.Hour, 5 * time.Hour},
		{0, 0, 10 * time.Second},
	} {
		m := &ledger.Mutation{Payload: ledger.Payload{Policy: ledger.Policy{WatchEvery: c.every}}}
		if got := s.nextLook(m, now, now.Add(c.after)).Sub(now); got != c.want {
			t.Errorf("every %v, Retry-After %v: the next look is in %v, want %v", c.every, c.after, got, c.want)
		}
	}
}

// What a cache has from before the sending is of something else: neither that it took effect nor that
// it failed, after which it would be sent again.
func TestALookAtWhatACacheHasFromBeforeTheSendingShowsNothing(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		age, word string
		between   func(w *world)
		want      ledger.State
	}{
		{"0", "failed", nil, ledger.Failed},
		{"50", "failed", nil, ledger.Failed},
		{"61", "failed", nil, ledger.NeedsReconcile},
		{"3000", "failed", nil, ledger.NeedsReconcile},
		{"soon", "failed", nil, ledger.NeedsReconcile},
		{"10", "failed", (*world).reboot, ledger.NeedsReconcile},
		{"50", "done", nil, ledger.Applied},
		{"3000", "done", nil, ledger.NeedsReconcile},
	} {
		w := newWorld(t, viaWatch)
		w.ended(w.claim("a"), ledger.VerdictFailed)
		w.clock.Advance(time.Hour)
		m := w.accepted(w.claim("a"))
		w.api.answering(200, http.Header{"Content-Type": {"application/json"}, "Age": {c.age}}, `{"state":"`+c.word+`"}`)
		if c.between != nil {
			c.between(w)
		}
		w.after(time.Minute)
		reason := ""
		if c.want == ledger.NeedsReconcile {
			reason = "a cache answered (Age: " + c.age + ")"
		}
		w.wants(m, c.want, reason)
	}
}

func TestALookThatIsCutShowsNothing(t *testing.T) {
	t.Parallel()
	for _, word := range []string{"done", "failed"} {
		w := newWorld(t, viaWatch)
		m := w.accepted(w.claim("a"))
		w.api.script(func(rw http.ResponseWriter, _ *http.Request) bool {
			rw.Header().Set("Content-Type", "application/json")
			rw.Header().Set("Content-Length", "100")
			_, _ = rw.Write([]byte(`{"state":"` + word + `"}`))
			_ = http.NewResponseController(rw).Flush()
			panic(http.ErrAbortHandler)
		})
		w.after(time.Minute)
		if now := w.wants(m, ledger.NeedsReconcile, "no whole answer"); !now.Watching {
			t.Errorf("%s: it is followed no longer", word)
		}
	}
}

func TestAWatchThatTakesTooLongAsksAPerson(t *testing.T) {
	t.Parallel()
	w := newWorld(t, viaWatch)
	m := w.accepted(w.claim("a"))
	w.api.answering(200, http.Header{"Content-Type": {"application/json"}}, `{"state":"running"}`)
	w.after(30 * time.Minute)
	w.wants(m, ledger.NeedsReconcile, "")
	w.restart()
	w.after(30 * time.Minute)
	now := w.wants(m, ledger.Indeterminate, "")
	if !now.Escalated() || now.Watching || now.Result != nil || !now.Unresolved() || !strings.Contains(now.Reason, "in its time") {
		t.Errorf("escalated %v, watching %v, result %+v (%s)", now.Escalated(), now.Watching, now.Result, now.Reason)
	}
}

// A resend that is accepted without the whole answer that says where to look is no success.
func TestAResendWhose202IsCutIsUnknown(t *testing.T) {
	t.Parallel()
	w := newWorld(t, strings.Replace(viaWatch, "- none:", "- resend: {}\n      - none:", 1))
	m := w.unknown("a")
	w.api.script(func(rw http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPost {
			return false
		}
		rw.Header().Set("Content-Type", "application/json")
		rw.Header().Set("Content-Length", "100")
		rw.WriteHeader(http.StatusAccepted)
		_, _ = rw.Write([]byte(`{"id":"j1"}`))
		_ = http.NewResponseController(rw).Flush()
		panic(http.ErrAbortHandler)
	})
	w.after(10 * time.Second)
	now := w.wants(m, ledger.NeedsReconcile, "")
	if d := now.Current(); now.Committed || now.Watching || !d.Resend || d.Verdict != ledger.VerdictUncertain {
		t.Errorf("committed %v, watching %v, sending %+v", now.Committed, now.Watching, d)
	}
}

// A job that failed says nothing of an earlier sending whose end is unknown.
func TestAFailureWhileAnEarlierSendingIsUnresolvedAsksAPerson(t *testing.T) {
	t.Parallel()
	w := newWorld(t, strings.Replace(viaWatch, "- none:", "- resend: {}\n      - none:", 1))
	m := w.unknown("a")
	w.api.script(func(rw http.ResponseWriter, r *http.Request) bool {
		rw.Header().Set("Content-Type", "application/json")
		if r.Method == http.MethodPost {
			rw.WriteHeader(http.StatusAccepted)
			_, _ = rw.Write([]byte(`{"id":"j1"}`))
			return true
		}
		_, _ = rw.Write([]byte(`{"state":"failed"}`))
		return true
	})
	w.after(10 * time.Second)
	if now := w.wants(m, ledger.NeedsReconcile, ""); !now.Watching {
		t.Fatalf("the resend's 202 is not followed: %+v", now.Current())
	}
	w.after(time.Minute)
	w.wants(m, ledger.Indeterminate, "earlier sending")
}

// Who sends it makes no difference: a redispatch that is accepted has not taken effect yet.
func TestARedispatchThatIsAcceptedIsFollowed(t *testing.T) {
	t.Parallel()
	_, follow, _ := strings.Cut(viaWatch, viaNone)
	w := newWorld(t, viaRedispatch+follow)
	m := w.unknown("a")
	w.api.script(func(rw http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPost {
			return false
		}
		rw.Header().Set("Content-Type", "application/json")
		rw.WriteHeader(http.StatusAccepted)
		_, _ = rw.Write([]byte(`{"id":"j1"}`))
		return true
	})
	// Nothing is believed absent while a job could still take effect.
	w.after(time.Hour + ledger.DefaultSettle)
	w.after(10 * time.Second)
	w.after(0)
	now := w.wants(m, ledger.NeedsReconcile, "")
	if d := now.Current(); !now.Watching || !d.Redispatch || d.Verdict != ledger.VerdictAccepted {
		t.Errorf("watching %v, sending %+v", now.Watching, d)
	}
}
