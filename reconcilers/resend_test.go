package reconcilers

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"keep-proxy/internal/fault"
	"keep-proxy/ledger"
	"keep-proxy/rules"
)

func TestResendOfWhatNeverArrived(t *testing.T) {
	t.Parallel()
	w := newWorld(t, viaResend)
	m := w.unknown("a")
	if c := w.after(10 * time.Second); c.Applied != 1 {
		t.Fatalf("counts %+v, want one applied", c)
	}
	now := w.wants(m, ledger.Applied, "")
	if posts, _, things := w.api.counts(); posts != 1 || things != 1 {
		t.Errorf("%d sends made %d things, want 1 and 1", posts, things)
	}
	sent := w.api.posts[0]
	if got := sent.Header.Get("Idempotency-Key"); got != m.VendorKey {
		t.Errorf("sent under key %q, want the record's %q", got, m.VendorKey)
	}
	if got := sent.Header.Get("Authorization"); got != w.creds.value {
		t.Errorf("sent with credential %q", got)
	}
	if w.api.things[0].KeepID != m.Marker {
		t.Errorf("marker %q, want %q", w.api.things[0].KeepID, m.Marker)
	}
	if body := w.resultOf(now); now.Result.Status != http.StatusCreated || body == "" || now.Result.Source != "answer" {
		t.Errorf("result %+v %q, want the answer", now.Result, body)
	}
	if d := now.Current(); !d.Resend || d.Verdict != ledger.VerdictApplied || d.Generation != m.Generation || len(now.Dispatches) != 2 {
		t.Errorf("dispatch %+v", d)
	}
}

func TestResendOfWhatArrivedIsTheAPIsReplay(t *testing.T) {
	t.Parallel()
	w := newWorld(t, viaResend)
	m := w.unknown("a")
	made := w.api.commit("a", m.Marker, m.VendorKey)
	w.after(10 * time.Second)
	w.wants(m, ledger.Applied, "")
	if posts, _, things := w.api.counts(); posts != 1 || things != 1 {
		t.Errorf("%d sends made %d things, want 1 and 1 (%s)", posts, things, made.ID)
	}
}

func TestResendWithoutSuccessLeavesItUnknown(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		answer func(w *world)
		// next is the strategy of the try after it.
		next string
	}{
		"409 in progress is uncertain, so it is sent again": {func(w *world) { w.api.answering(http.StatusConflict, nil, "{}") }, "resend"},
		"a lost answer is uncertain":                        {func(w *world) { w.api.script(hangUp) }, "resend"},
		"500 is uncertain":                                  {func(w *world) { w.api.answering(http.StatusInternalServerError, nil, "") }, "resend"},
		"400 is a failure of the resend alone":              {func(w *world) { w.api.answering(http.StatusBadRequest, nil, "") }, "probe"},
		"401 is a failure of the resend alone":              {func(w *world) { w.api.answering(http.StatusUnauthorized, nil, "") }, "probe"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, viaBoth)
			m := w.unknown("a")
			tc.answer(w)
			w.after(10 * time.Second)
			now := w.wants(m, ledger.NeedsReconcile, "")
			if now.ResendTries != 1 || now.Current().Ended.BootID == "" {
				t.Fatalf("%d resends, the last ended %v; want one with its end", now.ResendTries, now.Current().Ended)
			}
			w.api.script(nil)
			before, _, _ := w.api.counts()
			w.due(m)
			if posts, gets, _ := w.api.counts(); (posts > before) != (tc.next == "resend") || (gets > 0) != (tc.next == "probe") {
				t.Errorf("then %d sends and %d reads, want a %s", posts-before, gets, tc.next)
			}
		})
	}
}

func TestThreeResendsThenTheNextStrategy(t *testing.T) {
	t.Parallel()
	w := newWorld(t, viaBoth)
	m := w.unknown("a")
	w.api.script(func(rw http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPost {
			rw.WriteHeader(http.StatusServiceUnavailable)
		}
		return r.Method == http.MethodPost
	})
	for range 6 {
		w.due(m)
	}
	if posts, gets, _ := w.api.counts(); posts != 3 || gets != 3 {
		t.Errorf("%d sends and %d reads, want 3 and then probes only", posts, gets)
	}
}

func TestThreeResendsThenAPerson(t *testing.T) {
	t.Parallel()
	w := newWorld(t, viaResend)
	m := w.unknown("a")
	w.api.answering(http.StatusServiceUnavailable, nil, "")
	for range 3 {
		w.due(m)
		w.wants(m, ledger.NeedsReconcile, "")
	}
	w.due(m)
	if now := w.wants(m, ledger.Indeterminate, "can't be read back"); !now.Escalated() {
		t.Error("nobody was asked")
	}
	if posts, _, _ := w.api.counts(); posts != 3 {
		t.Errorf("%d sends, want 3", posts)
	}
}

// 24 h: age + 10 min deadline + 5 min settle must stay below 21 h 36 min.
func TestNothingIsSentWhenTheWindowIsNearlyOver(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		age   func(w *world)
		sends int
	}{
		"well inside":                   {func(w *world) { w.clock.Advance(21 * time.Hour) }, 1},
		"nearly over":                   {func(w *world) { w.clock.Advance(21*time.Hour + 21*time.Minute) }, 0},
		"nearly over by a sleep":        {func(w *world) { w.clock.Sleep(21*time.Hour + 21*time.Minute) }, 0},
		"nearly over by the wall clock": {func(w *world) { w.clock.JumpWall(21*time.Hour + 21*time.Minute) }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, viaBoth)
			m := w.unknown("a")
			tc.age(w)
			w.after(0)
			posts, gets, _ := w.api.counts()
			if posts != tc.sends || gets != 1-tc.sends {
				t.Errorf("%d sends and %d reads, want %d and %d", posts, gets, tc.sends, 1-tc.sends)
			}
			if got := w.read(m).ResendTries; got != tc.sends {
				t.Errorf("%d resends recorded, want %d", got, tc.sends)
			}
		})
	}
}

func TestWindowThatEndsAfterTheResendWasRecorded(t *testing.T) {
	w := newWorld(t, viaBoth)
	m := w.unknown("a")
	disarm, err := fault.Do("reconcilers.resend_recorded", 1, func() { w.clock.Sleep(24 * time.Hour) })
	if err != nil {
		t.Fatal(err)
	}
	defer disarm()
	w.after(10 * time.Second)
	now := w.wants(m, ledger.NeedsReconcile, "")
	if posts, _, _ := w.api.counts(); posts != 0 {
		t.Fatalf("%d sends after the window was over", posts)
	}
	if d := now.Current(); !d.Resend || d.Verdict != ledger.VerdictNotSent || d.BytesWritten != 0 {
		t.Errorf("dispatch %+v, want one that was not sent", d)
	}
}

func TestLossOfTheProcessDuringAResend(t *testing.T) {
	for name, point := range map[string]string{
		"before it was sent":      "reconcilers.resend_recorded",
		"before its end was kept": "reconcilers.resend_answered",
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, viaBoth)
			m := w.unknown("a")
			disarm, err := fault.Do(point, 1, func() { w.store.FailBefore() })
			if err != nil {
				t.Fatal(err)
			}
			defer disarm()
			if point == "reconcilers.resend_recorded" {
				w.api.script(hangUp)
			}
			w.after(10 * time.Second)
			w.api.script(nil)
			w.restart()
			if now := w.wants(m, ledger.NeedsReconcile, ""); now.ResendTries != 1 {
				t.Fatalf("%d resends recorded, want 1", now.ResendTries)
			}
			for n := 0; n < 20 && w.read(m).State == ledger.NeedsReconcile; n++ {
				w.due(m)
			}
			posts, _, things := w.api.counts()
			if point == "reconcilers.resend_answered" {
				w.wants(m, ledger.Applied, "")
			}
			if things > 1 {
				t.Errorf("%d sends made %d things", posts, things)
			}
		})
	}
}

func TestSuccessfulResendThatTheLedgerDoesNotTakeIsNotReported(t *testing.T) {
	w := newWorld(t, viaResend)
	m := w.unknown("a")
	disarm, err := fault.Do("reconcilers.resend_answered", 1, func() { w.store.FailBefore() })
	if err != nil {
		t.Fatal(err)
	}
	defer disarm()
	if c := w.after(10 * time.Second); c.Errors != 1 || c.Applied != 0 {
		t.Errorf("counts %+v, want one error", c)
	}
	w.restart()
	w.wants(m, ledger.NeedsReconcile, "")
}

func TestCommittedIsNeverSentAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, viaBoth)
	m := w.claim("a")
	w.api.commit("a", m.Marker, m.VendorKey)
	d := *m.Current()
	d.Verdict, d.Ended = ledger.VerdictCommitted, w.now()
	if _, err := w.ledger.EndDispatch(t.Context(), ledger.EndDispatch{Key: m.Key, Dispatch: d, NextTryAt: w.r.NextTry(m)}); err != nil {
		t.Fatal(err)
	}
	w.after(10 * time.Second)
	now := w.wants(m, ledger.Applied, "")
	if posts, gets, _ := w.api.counts(); posts != 0 || gets != 1 || now.ResultState != ledger.ResultKnown {
		t.Errorf("%d sends, %d reads, result %s; want a probe for the result only", posts, gets, now.ResultState)
	}
}

func TestCutAnswerOfAResendIsCommitted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, viaBoth)
	m := w.unknown("a")
	w.api.script(func(rw http.ResponseWriter, r *http.Request) bool {
		return r.Method == http.MethodPost && cut(rw, r)
	})
	w.after(10 * time.Second)
	if now := w.wants(m, ledger.NeedsReconcile, ""); !now.Committed || now.Current().Verdict != ledger.VerdictCommitted {
		t.Errorf("committed %v, verdict %s", now.Committed, now.Current().Verdict)
	}
}

// A key that signs replaces all that the script's own signature had.
func TestAKeyThatSignsStandsForAToken(t *testing.T) {
	t.Parallel()
	for value, posts := range map[string]int{"AWS4-HMAC-SHA256 VOUCHER": 1, "Bearer of the operator": 0} {
		w := newWorld(t, viaResend)
		w.scripted = http.Header{"Authorization": {"AWS4-HMAC-SHA256 Credential=a"}, "X-Amz-Security-Token": {"of the script"}}
		w.creds = fixed{header: "Authorization", value: value}
		m := w.unknown("a")
		w.due(m)
		if got, _, _ := w.api.counts(); got != posts {
			t.Errorf("%s: %d sends: %s", value, got, w.read(m).Reason)
		}
	}
}

func TestNothingIsSentAgainWithoutItsCredential(t *testing.T) {
	t.Parallel()
	w := newWorld(t, viaResend)
	w.scripted = http.Header{"Authorization": {"Bearer of the script"}, "X-Api-Key": {"of the script"}}
	m := w.unknown("a")
	w.due(m)
	w.wants(m, ledger.Indeterminate, "no credential is configured in place of X-Api-Key")
	if posts, _, _ := w.api.counts(); posts != 0 {
		t.Errorf("%d sends", posts)
	}
}

// A credential of the query isn't stored either, and nothing is configured in its place.
func TestNothingIsSentAgainWithoutTheCredentialOfItsQuery(t *testing.T) {
	t.Parallel()
	for query, missing := range map[string]string{"?api_key=of+the+script&page_token=p": "query.api_key", "?a=1;token=t": "query.<secret>", "?page_token=p": ""} {
		w := newWorld(t, viaResend)
		w.make = func(reference string) *rules.Request {
			req := w.request(reference)
			with, refusal := rules.Rebuild(req.Method, req.URL()+query, req.Header, req.Body())
			if refusal != nil {
				t.Fatal(refusal)
			}
			return with
		}
		m := w.unknown("a")
		w.due(m)
		posts, _, _ := w.api.counts()
		if missing == "" {
			w.wants(m, ledger.Applied, "")
		} else if w.wants(m, ledger.Indeterminate, "no credential is configured in place of "+missing); posts != 0 {
			t.Errorf("%s: %d sends", query, posts)
		}
	}
}

// What comes behind the answer to a resend is kept with it, as a script's would be.
func TestAResendKeepsTrailers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, viaResend)
	m := w.unknown("a")
	w.api.answering(http.StatusCreated, http.Header{
		http.TrailerPrefix + "Sum": {"7 " + w.creds.value}, http.TrailerPrefix + "Keep-State": {"failed"},
	}, "{}")
	w.after(10 * time.Second)
	now := w.wants(m, ledger.Applied, "")
	if now.Result == nil || len(now.Result.Trailer) != 1 || len(now.Result.Trailer["Sum"]) != 1 {
		t.Fatalf("the result is %+v", now.Result)
	}
	if got := now.Result.Trailer["Sum"][0]; !strings.HasPrefix(got, "7 ") || strings.Contains(got, w.creds.value) {
		t.Errorf("kept is %q", got)
	}
}

// An upstream that can't be reached uses no resend up, but its time is over like that of any
// other way to ask, although the proxy is started again meanwhile.
func TestAResendThatReachesNobodyEndsWithAPerson(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		rule string
		undo bool
	}{
		"under a vendor key": {viaResend, false},
		"of an undo":         {viaNone + "    compensate: {delete: \"/things/{object}\"}\n", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, tc.rule)
			w.rule = strings.Replace(w.rule, "window: 24h", "window: 720h", 1)
			m := w.unknown("a")
			if tc.undo {
				m = w.owed(m, "t1")
				w.api.script(hangUp)
				w.after(6 * time.Minute)
				m = w.wants(m, ledger.NeedsReconcile, "")
			}
			w.leave()
			since := w.clock.Now()
			started := since
			for n := 0; n < 400 && w.read(m).State == ledger.NeedsReconcile; n++ {
				w.due(m)
				if w.clock.Now().Sub(started) > 10*time.Hour {
					w.restart()
					started = w.clock.Now()
				}
			}
			if now := w.wants(m, ledger.Indeterminate, ""); !now.Escalated() {
				t.Error("nobody was asked")
			}
			if took := w.clock.Now().Sub(since); took < 24*time.Hour || took > 25*time.Hour {
				t.Errorf("a person is asked after %v, want a day", took)
			}
		})
	}
}
