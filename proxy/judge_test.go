package proxy

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"keep-proxy/ledger"
	"keep-proxy/upstream"
)

// What a body doesn't say because the rest of it is missing, or because it can't be read, it
// must not seem to deny.
func TestABodyThatCantBeReadWholeDecidesNothing(t *testing.T) {
	t.Parallel()
	declined := strings.Replace(testRules, "success: response.json.ok == true", `outcome:
      - {when: "response.text.contains('declined')", then: failed, class: logic}`, 1)
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		state  ledger.State
	}{
		"a whole one": {func(rw http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(rw, "accepted") }, ledger.Applied},
		"a cut one": {func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(rw, "thank you; it was ")
			_ = http.NewResponseController(rw).Flush()
			panic(http.ErrAbortHandler)
		}, ledger.Indeterminate},
		"one in a coding that nobody asked for": {func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Content-Encoding", "br")
			_, _ = io.WriteString(rw, "\x0b\x02\x80")
		}, ledger.Indeterminate},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
				rw.Header().Set("Content-Type", "text/plain")
				c.answer(rw, r)
			})
			w.use(declined)
			w.open("a").post("/shape", `{"to":"x"}`)
			if m := w.mutation("a"); m.State != c.state || m.Committed != (c.state == ledger.Applied) {
				t.Errorf("it is %s (%s), committed %t, want %s", m.State, m.Reason, m.Committed, c.state)
			}
		})
	}
}

func lostSending(kind upstream.VerdictKind, v ledger.Verdict) *sending {
	s := &sending{w: &work{}}
	s.Verdict.Kind, s.Dispatch.Verdict = kind, v
	return s
}

// A success stays one though nothing but that is left of it.
func TestASuccessThatTheProxyLostIsKnownToHaveHappened(t *testing.T) {
	t.Parallel()
	for kind, want := range map[upstream.VerdictKind]ledger.Verdict{
		upstream.Applied: ledger.VerdictCommitted, upstream.Committed: ledger.VerdictCommitted, upstream.TooLarge: ledger.VerdictCommitted,
		upstream.Failed: ledger.VerdictUncertain, upstream.Uncertain: ledger.VerdictUncertain,
	} {
		s := lostSending(kind, "")
		got := lostFinish(s, ledger.Stamp{BootID: "b"}).Dispatch
		if got.Verdict != want {
			t.Errorf("a verdict of kind %v that was lost is %s, want %s", kind, got.Verdict, want)
		}
		if got.Ended.BootID != "b" {
			t.Errorf("it ended at %+v", got.Ended)
		}
		s.Dispatch.Ended.BootID = "earlier"
		if got := lostFinish(s, ledger.Stamp{BootID: "b"}).Dispatch.Ended; got.BootID != "earlier" {
			t.Errorf("its end is known, and was moved to %+v", got)
		}
	}
	s := lostSending(upstream.Applied, ledger.VerdictAccepted)
	if got := lostFinish(s, ledger.Stamp{BootID: "b"}).Dispatch.Verdict; got != ledger.VerdictUncertain {
		t.Errorf("a 202 that was lost is %s", got)
	}
}

// An answer that the disk took and doesn't give back is no empty one: what a rule would make
// of that is not asked.
func TestAnAnswerThatIsLostDecidesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, digests, func(c *Config) { c.Ledger.Store = unreadSpools{c.Ledger.Store, 1} })
	w.use(strings.Replace(testRules, "success: response.json.ok == true", `outcome:
      - {when: "!response.text.contains('ok')", then: failed, class: logic}`, 1))
	wantProblem(t, w.open("a").post("/shape", payX), "unknown-outcome", http.StatusFailedDependency, "")
	if m := w.mutation("a"); m.State != ledger.Indeterminate || !m.Current().BodyComplete {
		t.Errorf("it is %s: %s, %+v", m.State, m.Reason, m.Current())
	}
	w.wantSends("/shape", 1)
}
