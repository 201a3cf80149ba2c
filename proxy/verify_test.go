package proxy

import (
	"testing"

	"keep-proxy/ledger"
)

// That the world disagreed once with a stored result is no answer to whoever asks next: it is
// asked again, and only a person's word spares that.
func TestAReplayIsVerifiedEachTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t, created, func(c *Config) { c.Inliner = &goneInliner{} })
	w.use(changed("    identity: {to: json.to}\n    reconcile:\n      - probe:", "    identity: {to: json.to}\n    verify_on_replay: strict\n    reconcile:\n      - probe:"))
	first := w.open("a")
	wantAnswer(t, first.post("/ask", payX), 201, `{"id":1}`, false)
	w.end(first)
	for n := range 3 {
		r := w.open("a")
		wantProblem(t, r.post("/ask", payX), "verify-failed", 424, "no longer shows it")
		if m := w.mutation("a"); m.Verification == nil || m.Verification.Count != n+1 || m.Verification.Said != ledger.SaidDisagrees {
			t.Errorf("after %d replays: %+v", n+1, m.Verification)
		}
	}
	w.wantSends("/ask", 1)
}
