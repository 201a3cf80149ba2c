package proxy

import (
	"testing"

	"keep-proxy/ledger"
)

// Whatever bears the run's credentials is its traffic: a read, a mutation, a refused request, a tunnel alone.
func TestARequestIsTheTrafficOfItsRun(t *testing.T) {
	t.Parallel()
	for name, ask := range map[string]func(r *run){
		"a read":            func(r *run) { r.get("/read") },
		"a mutation":        func(r *run) { r.post("/pay", payX) },
		"a refused request": func(r *run) { r.get("/nowhere") },
		"a refused tunnel":  func(r *run) { r.tunnelTo("nowhere.example:1") },
		"none of its own":   nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, created)
			other := w.open("b")
			r := w.open("a", func(o *ledger.OpenRun) { o.RequireTraffic, o.OnFailure = true, ledger.FailureReturn })
			if ask == nil {
				other.get("/read")
			} else {
				ask(r)
			}
			_, err := w.ledger.FinishRun(t.Context(), r.id, ledger.OutcomeFailed, false)
			if err != nil || r.state().Traffic != (ask != nil) {
				t.Errorf("the run is %+v, %v", r.state(), err)
			}
		})
	}
}
