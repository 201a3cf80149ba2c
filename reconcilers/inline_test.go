package reconcilers

import (
	"context"
	"net/http"
	"testing"
	"time"

	"keep-proxy/ledger"
)

func TestInlineTryFindsWhatHappened(t *testing.T) {
	t.Parallel()
	w := newWorld(t, viaProbe)
	m := w.uncertain(w.claim("a"), true)
	w.api.commit("a", m.Marker, "")
	if now := w.inline(m); now.State != ledger.Applied || now.Result == nil {
		t.Errorf("state %s, result %+v; want applied with its result", now.State, now.Result)
	}
	if logged := w.log.String(); logged == "" {
		t.Error("the try was not logged")
	}
}

func TestInlineResend(t *testing.T) {
	t.Parallel()
	w := newWorld(t, viaBoth)
	m := w.uncertain(w.claim("a"), true)
	if now := w.inline(m); now.State != ledger.Applied || !now.Current().Resend {
		t.Errorf("state %s; want applied by the resend", now.State)
	}
	if posts, gets, things := w.api.counts(); posts != 1 || gets != 0 || things != 1 {
		t.Errorf("%d sends, %d reads, %d things", posts, gets, things)
	}
}

func TestInlineTryThatSaysNothingLeavesItInFlight(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		operation string
		prepare   func(w *world)
	}{
		"absence can't be believed yet": {viaProbe, func(*world) {}},
		"an answer that can't be used":  {viaProbe, func(w *world) { w.api.answering(http.StatusBadGateway, nil, "") }},
		"a resend without an answer":    {viaBoth, func(w *world) { w.api.script(hangUp) }},
		"a resend that failed":          {viaResend, func(w *world) { w.api.answering(http.StatusBadRequest, nil, "") }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, tc.operation)
			m := w.uncertain(w.claim("a"), true)
			tc.prepare(w)
			now := w.inline(m)
			if now.State != ledger.InFlight || !now.Unresolved() {
				t.Fatalf("state %s, unresolved %v; want in flight and unresolved", now.State, now.Unresolved())
			}
			out, err := w.ledger.Park(t.Context(), now.Key, now.Current().ID, w.r.NextTry(now), "unknown")
			if err != nil {
				t.Fatal(err)
			}
			if out.Mutation.State == ledger.InFlight || !out.Mutation.Unresolved() {
				t.Errorf("parked as %s", out.Mutation.State)
			}
		})
	}
}

func TestTheInlineTrysRetryAfterHoldsForTheNextTry(t *testing.T) {
	t.Parallel()
	w := newWorld(t, viaProbe)
	m := w.uncertain(w.claim("a"), true)
	w.api.answering(http.StatusTooManyRequests, http.Header{"Retry-After": {"3600"}}, "no")
	now := w.inline(m)
	out, err := w.ledger.Park(t.Context(), now.Key, now.Current().ID, w.r.NextTry(now), "unknown")
	if err != nil {
		t.Fatal(err)
	}
	if got := out.Mutation.NextTryAt.Sub(w.clock.Now()); got != time.Hour {
		t.Errorf("next try in %v, want an hour", got)
	}
}

func TestInlineTryIsNotMade(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		settings Settings
		change   func(m *ledger.Mutation)
	}{
		"when it is switched off":                {Settings{Inline: -1}, func(*ledger.Mutation) {}},
		"while the dispatch runs":                {Settings{}, func(m *ledger.Mutation) { m.Dispatches[0].Verdict = "" }},
		"for a record that the runner has":       {Settings{}, func(m *ledger.Mutation) { m.State = ledger.NeedsReconcile }},
		"while the API wants to be left alone":   {Settings{}, func(m *ledger.Mutation) { m.RetryAfter = m.CreatedAt.Add(time.Hour) }},
		"for a record that is settled meanwhile": {Settings{}, func(m *ledger.Mutation) { m.State = ledger.Applied }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, viaProbe)
			w.set = tc.settings
			w.start()
			m := w.uncertain(w.claim("a"), true)
			tc.change(m)
			if now := w.inline(m); now != m {
				t.Errorf("the record became %+v", now)
			}
			if posts, gets, _ := w.api.counts(); posts+gets != 0 {
				t.Errorf("%d requests were sent", posts+gets)
			}
		})
	}
}

func TestInlineTryIsBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, viaProbe)
	w.set = Settings{Inline: 50 * time.Millisecond}
	w.start()
	m := w.uncertain(w.claim("a"), true)
	release := make(chan struct{})
	defer close(release)
	w.api.script(func(http.ResponseWriter, *http.Request) bool { <-release; return false })
	now := w.inline(m)
	if now.State != ledger.InFlight {
		t.Fatalf("state %s", now.State)
	}
	if o := last(now); o.Seen != ledger.SeenRetry {
		t.Errorf("observation %+v, want a retry", o)
	}
}

func TestDecisionByAPersonDuringTheTryStands(t *testing.T) {
	t.Parallel()
	w := newWorld(t, viaProbe)
	m := w.unknown("a")
	w.api.commit("a", m.Marker, "")
	w.api.script(func(http.ResponseWriter, *http.Request) bool {
		_, err := w.ledger.Resolve(context.WithoutCancel(w.Context()), ledger.Resolve{
			Key: m.Key, Action: ledger.OnSkip, Actor: "ada", Reason: "not needed", Version: m.Version,
		})
		if err != nil {
			t.Error(err)
		}
		return false
	})
	if c := w.after(10 * time.Second); c.Dropped != 1 {
		t.Errorf("counts %+v, want one dropped", c)
	}
	now := w.wants(m, ledger.Skipped, "")
	if len(now.Observations) != 0 {
		t.Errorf("observations %+v; the dropped one must leave no trace", now.Observations)
	}
}

// An outcome that is still to be recorded keeps its record from whoever would ask meanwhile.
func TestNoInlineTryIsMadeOfARecordThatIsTaken(t *testing.T) {
	t.Parallel()
	w := newWorld(t, viaBoth)
	m := w.uncertain(w.claim("a"), true)
	if !w.r.busy.claim(m.Key) {
		t.Fatal("the record is taken by nobody")
	}
	if now := w.inline(m); now != m {
		t.Errorf("the record became %+v", now)
	}
	if posts, gets, _ := w.api.counts(); posts+gets != 0 {
		t.Errorf("%d requests were sent", posts+gets)
	}
	w.r.busy.free(m.Key)
	if now := w.inline(m); now.State != ledger.Applied {
		t.Errorf("once it is free it becomes %s", now.State)
	}
}

// Asking may send: a resend is a way to ask.
func TestNoInlineTryIsMadeWhileSendingIsKeptBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, viaBoth)
	m := w.uncertain(w.claim("a"), true)
	w.r.halted = func() bool { return true }
	if now := w.inline(m); now != m {
		t.Errorf("the record became %+v", now)
	}
	if posts, gets, _ := w.api.counts(); posts+gets != 0 {
		t.Errorf("%d requests were sent", posts+gets)
	}
}
