package integration

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"keep-proxy/internal/fakes/script"
)

// vendors starts the fakes of real APIs, and gives a test time to hold their answers, also
// on a slow machine: some make a hundred other objects meanwhile.
func vendors(s *settings) { s.Vendors, s.Response, s.Total = true, "3m", "4m" }

// aside sends a request past the proxy, as another client of the same API does.
func (w *world) aside(target, contentType, body string) {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, target, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("Content-Type", contentType)
	r.Header.Set("Authorization", "Bearer somebody-else")
	resp, err := w.others.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if text, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode/100 != 2 {
		w.t.Fatalf("%s: %d %s %v", target, resp.StatusCode, text, err)
	}
}

// thenLost commits, waits at the gate, and loses the answer.
func thenLost() script.Fault {
	return script.Fault{Name: "committed, held, lost", Steps: []script.Step{{Do: script.Commit}, {Do: script.Wait, Hold: "lost"}, {Do: script.Close}}}
}

const form = "application/x-www-form-urlencoded"

func (s *scriptRun) refund(payment string, amount int) reply {
	s.w.t.Helper()
	body := url.Values{"payment_intent": {payment}, "amount": {fmt.Sprint(amount)}}.Encode()
	return s.do(http.MethodPost, s.w.stripe.URL()+"/v1/refunds", body,
		field("Content-Type", form), field("Authorization", "Bearer script-token"), field("Idempotency-Key", "the script's own"))
}

func TestStripeRefundsAreResentUnderTheProxysKey(t *testing.T) {
	t.Parallel()
	for _, fault := range []string{"commit-close", "commit-500", "close", "own-500"} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, vendors)
			w.stripe.arm(fault)
			a := w.open("a").refund("pi_1", 500)
			if fault == "own-500" {
				// Stripe keeps its own failure under the key, so the resend sees it too.
				a.wantRefusal("unknown-outcome", 424, "goes on asking")
				// On a slow machine the next try is sent before this looks.
				w.stripe.await("it was sent again", received("refund:pi_1", 2))
				if got := w.stripe.tally().Effects("refund:pi_1"); got != 0 {
					t.Errorf("it took effect %d times, want 0", got)
				}
				return
			}
			a.wantApplied(http.StatusOK)
			w.again("a").refund("pi_1", 500).wantReplay(a)
			w.stripe.want("refund:pi_1", 1, 2)
			for _, e := range w.stripe.tally().Events {
				if e.Key == "the script's own" {
					t.Error("the script's own key went out")
				}
			}
		})
	}
}

func TestAStripeRefundIsFoundOnALaterPage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, vendors)
	// A cut success closes the way of resending.
	w.stripe.armFault(script.Fault{Steps: []script.Step{{Do: script.Commit}, {Do: script.Wait, Hold: "lost"}, {Do: script.Cut}}})
	answer := make(chan reply, 1)
	run := w.open("a")
	go func() { answer <- run.refund("pi_1", 500) }()
	w.stripe.await("the refund arrived", received("refund:pi_1", 1))
	for range 101 {
		w.aside(w.stripe.URL()+"/v1/refunds", form, "payment_intent=pi_1&amount=1&metadata[refund_ref]=other")
	}
	w.stripe.Release("lost")
	a := (<-answer).wantApplied(http.StatusOK)
	if !strings.Contains(a.body, `"amount":500`) {
		t.Errorf("found %s", a.body)
	}
	w.stripe.want("refund:pi_1", 1, 1)
}

func (s *scriptRun) issue(title string) reply {
	s.w.t.Helper()
	return s.do(http.MethodPost, s.w.github.URL()+"/repos/Octo/Hello/issues", fmt.Sprintf(`{"title":%q,"body":"How it broke"}`, title),
		field("Authorization", "Bearer script-token"))
}

func TestAGitHubIssueIsFoundByItsMarker(t *testing.T) {
	t.Parallel()
	for name, others := range map[string]int{"on the first page": 0, "on the second page": 101} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, vendors)
			w.github.armFault(thenLost())
			answer := make(chan reply, 1)
			run := w.open("a")
			go func() { answer <- run.issue("It broke") }()
			w.github.await("the issue arrived", received("issue:octo/hello:It broke", 1))
			for i := range others {
				w.aside(w.github.URL()+"/repos/octo/hello/issues", "application/json", fmt.Sprintf(`{"title":"Another %d","body":"It broke"}`, i))
			}
			w.github.Release("lost")
			a := (<-answer).wantApplied(http.StatusCreated)
			if !strings.Contains(a.body, `"title":"It broke"`) || !strings.Contains(a.body, "keep:") {
				t.Errorf("found %s", a.body)
			}
			w.again("a").issue("It broke").wantReplay(a)
			w.github.want("issue:octo/hello:It broke", 1, 1)
		})
	}
}

func TestASecondIssueOfTheSameTitleFromElsewhereIsNotOurs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, vendors)
	w.aside(w.github.URL()+"/repos/octo/hello/issues", "application/json", `{"title":"It broke","body":"How it broke"}`)
	w.github.arm("close")
	w.open("a").issue("It broke").wantRefusal("unknown-outcome", 424, "goes on asking")
	w.github.want("issue:octo/hello:It broke", 1, 2)
}

func TestAGitHubIssueWithoutRoomForTheMarkerIsSentAsItIs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, vendors)
	text := strings.Repeat("é", 65_536)
	send := func(run *scriptRun, title string) reply {
		return run.do(http.MethodPost, w.github.URL()+"/repos/octo/hello/issues", fmt.Sprintf(`{"title":%q,"body":%q}`, title, text),
			field("Authorization", "Bearer script-token"), field("Content-Type", "application/json"))
	}
	a := send(w.open("a"), "It broke").wantApplied(http.StatusCreated)
	if !strings.Contains(a.body, text+`"`) || strings.Contains(a.body, "keep:") {
		t.Errorf("made %.200s", a.body)
	}
	if m := w.mutation("a"); !m.Unmarked {
		t.Errorf("the record doesn't say so: %+v", m)
	}
	send(w.again("a"), "It broke").wantReplay(a)

	// Nothing tells such an issue from another one, neither there nor missing.
	w.github.arm("commit-close")
	send(w.open("b"), "It broke again").wantRefusal("unknown-outcome", 424, "is unknown")
	if m := w.awaitState("b", "indeterminate"); !strings.Contains(m.Reason, "looks for the marker") {
		t.Errorf("asked because %s", m.Reason)
	}
	w.github.want("issue:octo/hello:It broke again", 1, 1)
}
