package integration

import (
	"errors"
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
func (w *world) obligations() []wire.Obligation {
	w.t.Helper()
	list, err := w.api.Obligations(w.t.Context(), client.Filter{All: true})
	if err != nil {
		w.t.Fatal(err)
	}
	return list.Items
}

// obligation waits until the undoing of an object stands so, and tells how it stands if it never does.
func (w *world) obligation(object, standing string) wire.Obligation {
	w.t.Helper()
	var found wire.Obligation
	var last []wire.Obligation
	w.t.Cleanup(func() {
		if w.t.Failed() && found.ID == "" {
			w.t.Logf("obligations: %+v", last)
		}
	})
	w.poll("the undoing of "+object+" is "+standing, func() bool {
		last = w.obligations()
		for _, o := range last {
			if o.Object == object && o.Standing == standing {
				found = o
				return true
			}
		}
		return false
	})
	return found
}

// run has an obligation met, as a person.
func (w *world) run(o wire.Obligation) (*wire.Obligation, error) {
	return w.api.RunObligation(w.t.Context(), o.ID, wire.DecideObligation{Actor: "ann", Reason: "twice", Version: o.Version})
}

func (w *world) mustRun(o wire.Obligation) {
	w.t.Helper()
	if _, err := w.run(o); err != nil {
		w.t.Fatalf("run %s: %v", o.Object, err)
	}
}

// doubled starts the program with a bank that books n times under one marker.
func doubled(t *testing.T, connector string, n int) (*world, *upstream) {
	t.Helper()
	w := prepare(t)
	bank := w.fake(connector, "bank", `{"native_keys": false}`)
	w.start()
	bank.armFault(twice(n))
	if a := w.open("a").transfer(bank, "R-1"); a.status != http.StatusCreated {
		t.Fatalf("the script got %v", a)
	}
	return w, bank
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

// TestOfTwoTheNewerIsTakenBack is document 002's third outcome: more than one is there, one
// is kept and the others compensated.
func TestOfTwoTheNewerIsTakenBack(t *testing.T) {
	t.Parallel()
	w, bank := doubled(t, "cancelling-bank", 3)
	w.obligation("tr_000002", wire.StandingDone)
	w.obligation("tr_000003", wire.StandingDone)
	bank.want("transfer:R-1", 3, 1)
	if got := effectsOf(bank.tally(), "cancel:"); len(got) != 2 || got[0] != "cancel:tr_000003" || got[1] != "cancel:tr_000002" {
		t.Errorf("taken back: %v, want the newest first and the oldest kept", got)
	}
	m := w.mutationOf("transfer.create")
	if m.State != "applied" || len(m.Obligations) != 2 || m.Escalation == nil || m.Escalation.Kind != "duplicate" {
		t.Errorf("the mutation is %s, owes %v, and tells a person of %+v", m.State, m.Obligations, m.Escalation)
	}
	again := w.again("a").transfer(bank, "R-1")
	if again.header.Get("Keep-Replayed") != "true" {
		t.Errorf("a replay gave %v", again)
	}
	if got := w.obligations(); len(got) != 2 || got[0].Sent != 1 {
		t.Errorf("obligations: %+v", got)
	}
}

// mutationOf is the one record of an operation.
func (w *world) mutationOf(operation string) *wire.Mutation {
	w.t.Helper()
	list := w.mutations(client.Filter{Operation: operation})
	if len(list) != 1 {
		w.t.Fatalf("%d mutations of %s", len(list), operation)
	}
	return w.show(list[0].ID)
}

// A cancellation whose answer is lost is made once more, and finds nothing to cancel.
func TestALostUndoIsDoneOnce(t *testing.T) {
	t.Parallel()
	w := prepare(t)
	bank := w.fake("cancelling-bank", "bank", `{"native_keys": false}`)
	w.start()
	bank.armFault(on("cancel:tr_000002", script.Fault{Steps: []script.Step{{Do: script.Commit}, {Do: script.Close}}}))
	bank.armFault(on("transfer:R-1", twice(2)))
	w.open("a").transfer(bank, "R-1").wantApplied(http.StatusCreated)
	o := w.obligation("tr_000002", wire.StandingDone)
	bank.want("cancel:tr_000002", 1, 2)
	if m := w.show(o.ID); m.Result == nil || m.Result.Status != http.StatusNotFound || m.Undo == nil || m.Undo.Object != "tr_000002" {
		t.Errorf("undone with %+v, of %+v", m.Result, m.Undo)
	}
}

// What the bank won't undo now is tried as often as the rule says, then a person is asked,
// who may have it tried again.
func TestUndosAreBoundedAndThenAPersonIsAsked(t *testing.T) {
	t.Parallel()
	w := prepare(t)
	bank := w.fake("cancelling-bank", "bank", `{"native_keys": false}`)
	w.start()
	bank.armFault(on("cancel:tr_000002", script.Fault{Times: 4, Steps: []script.Step{{Do: script.Status, Status: http.StatusTooEarly}}}))
	bank.armFault(on("transfer:R-1", twice(2)))
	w.open("a").transfer(bank, "R-1").wantApplied(http.StatusCreated)
	o := w.obligation("tr_000002", wire.StandingGivenUp)
	bank.want("cancel:tr_000002", 0, 3)
	if m := w.show(o.ID); m.Escalation == nil || m.Escalation.Kind != "undo" || o.Sent != 3 {
		t.Errorf("after %d sendings a person is asked %+v", o.Sent, m.Escalation)
	}
	_, err := w.api.RunObligation(t.Context(), o.ID, wire.DecideObligation{Actor: "ann", Reason: "again", Version: o.Version - 1})
	wantProblem(t, err, "version", http.StatusConflict)
	w.mustRun(o)
	o = w.obligation("tr_000002", wire.StandingDone)
	bank.want("cancel:tr_000002", 1, 5)
	if _, err = w.run(o); err == nil {
		t.Error("what is done was run again")
	}
	wantProblem(t, err, "not-allowed", http.StatusConflict)
}

// A rule without auto leaves it to a person, who begins with the newest.
func TestAPersonHasDuplicatesUndone(t *testing.T) {
	t.Parallel()
	w, bank := doubled(t, "reversing-bank", 4)
	older, middle, newest := w.obligation("tr_000002", wire.StandingOwed), w.obligation("tr_000003", wire.StandingOwed), w.obligation("tr_000004", wire.StandingOwed)
	w.wantOwed(3, 3)
	_, err := w.run(older)
	wantProblem(t, err, "not-allowed", http.StatusConflict)
	// Its answer is lost, and the bank would pay back again: it is looked up instead.
	bank.armFault(on("reversal:tr_000004", script.Fault{Steps: []script.Step{{Do: script.Commit}, {Do: script.Close}}}))
	w.mustRun(newest)
	w.obligation("tr_000004", wire.StandingDone)
	bank.want("reversal:tr_000004", 1, 1)
	if _, err := w.api.WaiveObligation(t.Context(), middle.ID, wire.DecideObligation{Actor: "ann", Reason: "agreed", Version: middle.Version}); err != nil {
		t.Fatal(err)
	}
	w.obligation("tr_000003", wire.StandingWaived)
	// Nothing is there to be paid back: that is done.
	bank.armFault(on("reversal:tr_000002", script.Fault{Steps: []script.Step{{Do: script.Status, Status: http.StatusNotFound}}}))
	w.mustRun(w.obligation("tr_000002", wire.StandingOwed))
	w.obligation("tr_000002", wire.StandingDone)
	bank.want("reversal:tr_000002", 0, 1)
	bank.want("reversal:tr_000003", 0, 0)
	bank.want("reversal:tr_000001", 0, 0)
	w.wantOwed(0, 0)
}

// wantOwed holds what the status counts of obligations.
func (w *world) wantOwed(all, byPerson int) {
	w.t.Helper()
	st, err := w.api.Status(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	if st.Owed != all || st.OwedByPerson != byPerson {
		w.t.Errorf("%d are owed, %d by a person; want %d and %d", st.Owed, st.OwedByPerson, all, byPerson)
	}
}

// TestItHappenedAndIsToBeUndone is document 002's resolve --compensate.
func TestItHappenedAndIsToBeUndone(t *testing.T) {
	t.Parallel()
	w := prepare(t)
	bank := w.fake("opaque-bank", "bank", `{"native_keys": false}`)
	w.start()
	bank.arm("commit-close")
	w.open("a").transfer(bank, "R-1").wantRefusal("unknown-outcome", 424, "")
	m := w.awaitState("a", "indeterminate")
	decision := wire.Resolve{Action: wire.ActionHappened, NoResult: true, Compensate: true}
	_, err := w.tryResolve(m, decision)
	wantProblem(t, err, "bad-request", http.StatusBadRequest)
	decision.Object = "tr_000001"
	after := w.resolve(m, decision)
	if after.State != "applied" || len(after.Obligations) != 1 {
		t.Fatalf("it is %s and owes %v", after.State, after.Obligations)
	}
	w.obligation("tr_000001", wire.StandingDone)
	bank.want("reversal:tr_000001", 1, 1)
	_, err = w.tryResolve(after, decision)
	wantProblem(t, err, "not-allowed", http.StatusConflict)
}

// Killed in the middle of an undo, it is done once.
func TestKilledInTheMiddleOfAnUndo(t *testing.T) {
	t.Parallel()
	for _, connector := range []string{"cancelling-bank", "reversing-bank"} {
		for _, point := range []string{"reconcilers.redispatch_recorded", "reconcilers.redispatch_answered"} {
			t.Run(connector+" at "+point, func(t *testing.T) {
				t.Parallel()
				w := prepare(t, crashing)
				bank := w.fake(connector, "bank", `{"native_keys": false}`)
				if err := w.spawn(point + ":1"); err != nil {
					t.Fatal(err)
				}
				bank.armFault(on("transfer:R-1", twice(2)))
				answer := w.open("a").try(t.Context(), http.MethodPost, bank.URL()+"/transfers", order("R-1"))
				undo := "cancel:tr_000002"
				// What begins the undo is answered beside it: the kill may come first.
				if connector == "reversing-bank" {
					undo = "reversal:tr_000002"
					answer.wantApplied(http.StatusCreated)
					if _, err := w.run(w.obligation("tr_000002", wire.StandingOwed)); err != nil {
						if p, refused := errors.AsType[*wire.Problem](err); refused {
							t.Fatalf("the person's word was refused: %v", p)
						}
					}
				} else if answer.err == nil {
					answer.wantApplied(http.StatusCreated)
				}
				<-w.child.gone
				if !w.child.killed() {
					t.Fatal("it was not killed")
				}
				if err := w.spawn(""); err != nil {
					t.Fatal(err)
				}
				w.obligation("tr_000002", wire.StandingDone)
				if got := bank.tally().Effects(undo); got != 1 {
					t.Errorf("%s took effect %d times", undo, got)
				}
				if err := w.child.end(); err != nil {
					t.Errorf("the program ended with %v", err)
				}
			})
		}
	}
}
