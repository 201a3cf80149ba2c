package integration

import (
	"net/http"
	"testing"

	"keep-proxy/admin/client"
	"keep-proxy/admin/wire"
	"keep-proxy/internal/fakes/oracle"
	"keep-proxy/internal/fakes/script"
)

// twice books twice under one marker, as a gateway that retries inside does, and loses
// the answer.
func twice(n int) script.Fault {
	f := script.Fault{}
	for range n {
		f.Steps = append(f.Steps, script.Step{Do: script.Commit})
	}
	f.Steps = append(f.Steps, script.Step{Do: script.Close})
	return f
}

// on is a fault for requests of this identity.
func on(identity string, f script.Fault) script.Fault {
	f.Match.Identity = identity
	return f
}

// obligations lists every obligation, newest first.
func (w *world) obligations() []wire.Mutation {
	w.t.Helper()
	var out []wire.Mutation
	for _, m := range w.mutations(client.MutationFilter{}) {
		if m.Operation == "transfer.create/undo" {
			out = append(out, m)
		}
	}
	return out
}

// awaitUndone waits until each of n obligations is applied.
func (w *world) awaitUndone(n int) {
	w.t.Helper()
	w.poll("what is owed is undone", func() bool {
		done := 0
		for _, m := range w.obligations() {
			if m.State == "applied" {
				done++
			}
		}
		return done == n
	})
}

// effectsOf lists the identities that took effect with this prefix, in order.
func effectsOf(tally oracle.Tally, prefix string) []string {
	var out []string
	for _, e := range tally.Of(oracle.KindEffect) {
		if len(e.Identity) >= len(prefix) && e.Identity[:len(prefix)] == prefix {
			out = append(out, e.Identity)
		}
	}
	return out
}

// TestOfTwoTheNewerIsTakenBack is document 002's third outcome: two are there, one is
// kept and the other compensated.
func TestOfTwoTheNewerIsTakenBack(t *testing.T) {
	t.Parallel()
	w := prepare(t)
	bank := w.fake("cancelling-bank", "bank", `{"native_keys": false}`)
	w.start()
	bank.armFault(twice(3))
	a := w.open("a").transfer(bank, "R-1")
	if a.status != http.StatusCreated {
		t.Fatalf("the script got %v", a)
	}
	w.awaitUndone(2)
	bank.want("transfer:R-1", 3, 1)
	if got := effectsOf(bank.tally(), "cancel:"); len(got) != 2 || got[0] != "cancel:tr_000003" || got[1] != "cancel:tr_000002" {
		t.Errorf("taken back: %v, want the newest first and the oldest kept", got)
	}
	bank.want("cancel:tr_000001", 0, 0)
}
