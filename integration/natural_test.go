package integration

import (
	"net/http"
	"testing"
)

// TestALostStateIsSetAgain is resend: natural from end to end: whether the request took
// effect or not, the state is set once more after settle, and then it is known.
func TestALostStateIsSetAgain(t *testing.T) {
	t.Parallel()
	for fault, effects := range map[string]int{"commit-close": 2, "close": 1} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			// The request is answered before anything is asked, so that settle can't be over by then.
			w := newWorld(t, func(s *settings) { s.Inline = "0s" })
			w.hooks.arm(fault)
			set := func(s *scriptRun) reply { return s.do(http.MethodPut, w.hooks.URL()+"/hook/state/x", "on") }
			set(w.open("a")).wantRefusal("unknown-outcome", 424, "goes on asking")
			m := w.awaitState("a", "applied")
			if m.Result == nil || m.Result.Source != "answer" || len(m.Dispatches) != 2 {
				t.Errorf("result %+v after %d sendings", m.Result, len(m.Dispatches))
			}
			w.hooks.want("hook:state/x", effects, 2)
			if a := set(w.open("a")); a.status != http.StatusOK || a.header.Get("Keep-Replayed") != "true" {
				t.Errorf("the next run got %v", a)
			}
			w.hooks.want("hook:state/x", effects, 2)
		})
	}
}
