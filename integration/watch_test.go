package integration

import (
	"net/http"
	"testing"

	"keep-proxy/internal/fakes/script"
)

// accepted answers 202, after the given steps.
func accepted(before ...script.Step) script.Fault {
	return script.Fault{Steps: append(before, script.Step{
		Do: script.Status, Status: http.StatusAccepted, Body: `{"id":"tr_000001"}`,
		Header: map[string]string{"Content-Type": "application/json"},
	})}
}

func TestAnAcceptedMutationIsFollowedToItsEnd(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault   script.Fault
		state   string
		effects int
	}{
		"it took effect": {accepted(script.Step{Do: script.Commit}), "applied", 1},
		"it did not":     {accepted(), "failed", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := prepare(t)
			bank := w.fake("watched-bank", "bank", "")
			w.start()
			bank.armFault(c.fault)
			run := w.open("a")
			first := run.transfer(bank, "R-1")
			if first.status != http.StatusAccepted || first.body != `{"id":"tr_000001"}` || first.header.Get("Keep-Replayed") != "" {
				t.Fatalf("the script got %v", first)
			}
			// It stops nothing, and the script may look for itself.
			if a := run.read(bank); c.state == "applied" && a.status != http.StatusOK {
				t.Errorf("a read meanwhile got %v", a)
			}
			m := w.awaitState("a", c.state)
			bank.want("transfer:R-1", c.effects, 1)
			if c.state != "applied" {
				if m.Class != "precondition" || m.Result != nil {
					t.Errorf("class %s, result %+v", m.Class, m.Result)
				}
				return
			}
			again := w.again("a").transfer(bank, "R-1")
			if again.status != http.StatusAccepted || again.header.Get("Keep-Replayed") != "true" || again.body != first.body {
				t.Errorf("a replay gave %v", again)
			}
			bank.want("transfer:R-1", 1, 1)
		})
	}
}
