package integration

import (
	"errors"
	"net/http"
	"strconv"
	"testing"

	"keep-proxy/admin/client"
	"keep-proxy/admin/wire"
	"keep-proxy/internal/fakes/script"
)

// TestTheFourOutcomesOfOneTransfer is the table of document 002 over one connector: what the
// bank holds of a transfer whose answer was lost decides, and the bank's own log judges.
func TestTheFourOutcomesOfOneTransfer(t *testing.T) {
	t.Parallel()
	lost := script.Fault{Steps: []script.Step{{Do: script.Commit}, {Do: script.Close}}}
	unreadable := script.Fault{
		Match: script.Match{Method: http.MethodGet, Path: "/transfers*"}, Times: script.Always,
		Steps: []script.Step{{Do: script.Status, Status: http.StatusInternalServerError}},
	}
	for _, c := range []struct {
		name   string
		faults []script.Fault
		// state is that of the record, asked whether a person is, in the end.
		state string
		asked string
		// sends, booked and cancelled are what the bank's log holds.
		sends, booked, cancelled int
	}{
		{"none is there: one goes out", []script.Fault{{Steps: []script.Step{{Do: script.Close}}}}, "applied", "", 2, 1, 0},
		{"one is there: it is confirmed", []script.Fault{lost}, "applied", "", 1, 1, 0},
		{"two are there: one is taken back", []script.Fault{twice(2)}, "applied", "duplicate", 1, 2, 1},
		{"it can't be told: a person is asked", []script.Fault{unreadable, lost}, "indeterminate", "indeterminate", 1, 1, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := prepare(t, redispatching, func(s *settings) {
				if c.state == "indeterminate" {
					s.MaxAttempts = 3
				}
			})
			bank := w.fake("cancelling-bank", "bank", `{"native_keys": false}`)
			w.start()
			for _, f := range c.faults {
				bank.armFault(f)
			}
			w.open("a").transfer(bank, "R-1")
			var m *wire.Mutation
			w.poll("the transfer is "+c.state, func() bool {
				m = w.mutationOf("transfer.create")
				return m.State == c.state
			})
			if c.cancelled > 0 {
				w.obligation("tr_000002", wire.StandingDone)
			}
			asked := ""
			if m.Escalation != nil {
				asked = m.Escalation.Kind
			}
			if asked != c.asked {
				t.Errorf("a person is asked about %q, want %q", asked, c.asked)
			}
			_, err := w.tryOpen("a", takeover)
			if c.state == "indeterminate" {
				wantProblem(t, err, "blocked", http.StatusLocked)
			} else {
				if err != nil {
					t.Fatal(err)
				}
				if again := w.again("a").transfer(bank, "R-1"); again.status != http.StatusCreated || again.header.Get("Keep-Replayed") != "true" {
					t.Errorf("the next run got %v", again)
				}
			}
			bank.want("transfer:R-1", c.booked, c.sends)
			if got := effectsOf(bank.tally(), "cancel:"); len(got) != c.cancelled {
				t.Errorf("taken back: %v, want %d", got, c.cancelled)
			}
			if got := bank.tally().Effects("cancel:tr_000001"); got != 0 {
				t.Errorf("the oldest was taken back %d times", got)
			}
		})
	}
}

// TestKilledWhileAPersonHasItUndone kills the program at each step of the commit that holds
// a person's resolve --compensate: a record that happened owes its undoing, one that is
// unknown still owes nothing, and it is undone once.
func TestKilledWhileAPersonHasItUndone(t *testing.T) {
	t.Parallel()
	for _, point := range []string{
		"badgerstore.before_commit", "badgerstore.before_log", "badgerstore.after_log", "badgerstore.after_publish",
	} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			w := prepare(t, crashing)
			bank := w.fake("opaque-bank", "bank", `{"native_keys": false}`)
			w.mustSpawn()
			bank.arm("commit-close")
			w.open("a").transfer(bank, "R-1").wantRefusal("unknown-outcome", 424, "")
			w.awaitState("a", "indeterminate")
			w.child.kill()
			if !w.undoneThrough(point) {
				t.Error("it was never killed while the decision was recorded")
			}
			w.obligation("tr_000001", wire.StandingDone)
			bank.want("transfer:R-1", 1, 1)
			if got := bank.tally().Effects("reversal:tr_000001"); got != 1 {
				t.Errorf("it was undone %d times", got)
			}
			if err := w.child.end(); err != nil {
				t.Errorf("the program ended with %v", err)
			}
		})
	}
}

// undoneThrough decides in processes that are killed at the first, second, ... passing of a
// point until the decision is there, and leaves one running that isn't killed. It reports
// whether one died with the decision under way.
func (w *world) undoneThrough(point string) (killed bool) {
	w.t.Helper()
	for n := range 40 {
		if err := w.spawn(point + ":" + strconv.Itoa(n+1)); err != nil {
			if !errors.Is(err, errDied) {
				w.t.Fatal(err)
			}
			continue
		}
		m, err := w.decided()
		if err == nil && m.State == "indeterminate" {
			decision := wire.Resolve{Action: wire.ActionHappened, NoResult: true, Compensate: true, Object: "tr_000001"}
			_, err = w.tryResolve(m, decision)
		}
		if err == nil {
			w.child.kill()
			break
		}
		<-w.child.gone
		killed = killed || m != nil && w.child.killed()
	}
	w.mustSpawn()
	if m, err := w.decided(); err != nil || m.State != "applied" {
		w.t.Fatalf("it was never decided: %+v, %v", m, err)
	}
	return killed
}

// decided reads the transfer's record and what it owes, which must fit. An error says that
// the program is gone.
func (w *world) decided() (*wire.Mutation, error) {
	w.t.Helper()
	page, err := w.api.Mutations(w.t.Context(), client.Filter{Operation: "transfer.create"})
	if err != nil {
		return nil, err
	}
	if len(page.Items) != 1 {
		w.t.Fatalf("%d transfers are recorded", len(page.Items))
	}
	m, err := w.api.Mutation(w.t.Context(), page.Items[0].ID)
	if err != nil {
		return nil, err
	}
	owed, err := w.api.Obligations(w.t.Context(), client.Filter{All: true})
	if err != nil {
		return nil, err
	}
	want := map[string]int{"indeterminate": 0, "applied": 1}
	if n, known := want[m.State]; !known || len(m.Obligations) != n || len(owed.Items) != n {
		w.t.Errorf("it is %s, names %d obligations, and %d are recorded", m.State, len(m.Obligations), len(owed.Items))
	}
	return m, nil
}
