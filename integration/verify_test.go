package integration

import (
	"net/http"
	"testing"
	"time"

	"keep-proxy/admin/wire"
	"keep-proxy/internal/fakes/script"
)

// gone lets the bank list nothing, until it is cleared.
func gone() script.Fault {
	return script.Fault{
		Match: script.Match{Method: http.MethodGet, Path: "/transfers"}, Times: script.Always,
		Steps: []script.Step{{
			Do: script.Status, Status: http.StatusOK, Body: `{"items":[],"has_more":false}`,
			Header: map[string]string{"Content-Type": "application/json"},
		}},
	}
}

func TestAReplayIsVerified(t *testing.T) {
	t.Parallel()
	for mode, c := range map[string]struct {
		refused bool
		state   string
	}{
		"off": {false, ""}, "warn": {false, ""}, "strict": {true, "aborted"}, "human": {true, "paused:attention"},
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(s *settings) { s.Verify = mode })
			first := w.open("a").transfer(w.probed, "R-1").wantApplied(http.StatusCreated)
			w.again("a").transfer(w.probed, "R-1").wantReplay(first)
			w.pastSettle("a")
			w.probed.armFault(gone())
			run := w.again("a")
			a := run.transfer(w.probed, "R-1")
			w.probed.want("transfer:R-1", 1, 1)
			if !c.refused {
				a.wantReplay(first)
				if v := w.mutation("a").Verification; (v != nil) != (mode == "warn") {
					t.Errorf("verification %+v", v)
				}
				return
			}
			a.wantRefusal("verify-failed", 424, "no longer shows it")
			run.wantState(c.state)
			if mode != "human" {
				return
			}
			w.resolve(w.mutation("a"), wire.Resolve{Action: wire.ActionAcknowledge})
			w.open("a").transfer(w.probed, "R-1").wantReplay(first)
			w.probed.want("transfer:R-1", 1, 1)
		})
	}
}

// pastSettle waits until settle of the item's one mutation is over: its absence would be
// believed only then.
func (w *world) pastSettle(item string) {
	w.t.Helper()
	settle, err := time.ParseDuration(w.settings.Settle)
	if err != nil {
		w.t.Fatal(err)
	}
	ended := w.mutation(item).Dispatches[0].EndedAt
	w.poll("settle is over", func() bool { return time.Since(ended) > 2*settle })
}
