package reconcilers

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"keep-proxy/internal/fault"
	"keep-proxy/internal/verdict"
	"keep-proxy/ledger"
	"keep-proxy/rules"
)

// viaNatural has, beside the operation that makes things, two that set one's state.
const viaNatural = viaNone + `  - name: thing.set
    match: {method: PUT, path: "/things/{reference}"}
    effect: mutation
    identity: {reference: path.reference}
    reconcile:
      - resend: {natural: true}
OTHERWISE    manual_check: "Look at the thing {path.reference}"
  - name: thing.delete
    match: {method: DELETE, path: "/things/{reference}"}
    effect: mutation
    identity: {reference: path.reference}
    reconcile:
      - none: "it is a test"
    manual_check: "Look at the thing {path.reference}"
`

// stateWorld counts the settings of a state.
type stateWorld struct {
	*world
	sets []string
}

func newStateWorld(t *testing.T, otherwise string) *stateWorld {
	t.Helper()
	w := &stateWorld{world: newWorld(t, strings.Replace(viaNatural, "OTHERWISE", otherwise, 1))}
	w.answer(func(rw http.ResponseWriter) bool {
		rw.WriteHeader(http.StatusNoContent)
		return true
	})
	w.by(http.MethodPut)
	return w
}

// by makes requests of this method from now on.
func (w *stateWorld) by(method string) {
	w.make = func(reference string) *rules.Request {
		req, refusal := rules.Rebuild(method, "http://"+w.api.host()+"/things/"+reference,
			http.Header{"Content-Type": {"application/json"}, "X-Account": {"acct_1"}}, []byte(`{"on":true}`))
		if refusal != nil {
			w.Fatal(refusal)
		}
		return req
	}
}

// answer is how the API answers a state that is set.
func (w *stateWorld) answer(with func(http.ResponseWriter) bool) {
	w.api.script(func(rw http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPut {
			return false
		}
		w.sets = append(w.sets, r.URL.Path)
		return with(rw)
	})
}

func (w *stateWorld) wantSets(n int) {
	w.Helper()
	if len(w.sets) != n {
		w.Errorf("the state was set %d times, want %d", len(w.sets), n)
	}
}

// A state is set again only once nothing that was sent before can undo it: the scope
// stays stopped for all that time.
func TestAStateIsSetAgainAfterSettle(t *testing.T) {
	t.Parallel()
	w := newStateWorld(t, "")
	m := w.uncertain(w.claim("a"), true)
	w.inline(m)
	w.wantSets(0)
	if m = w.read(m); m.State != ledger.InFlight {
		t.Fatalf("it is %s after the inline try", m.State)
	}
	if _, err := w.ledger.Park(t.Context(), m.Key, m.Current().ID, w.now().Wall, "lost"); err != nil {
		t.Fatal(err)
	}
	for w.now().Wall.Before(m.Dispatches[0].Ended.Wall.Add(4 * time.Minute)) {
		w.after(time.Minute)
		if now := w.wants(m, ledger.NeedsReconcile, "nothing that was sent before"); now.Tries != 0 {
			t.Fatalf("waiting used up %d tries", now.Tries)
		}
	}
	w.wantSets(0)
	for n := 0; n < 20 && w.read(m).State == ledger.NeedsReconcile; n++ {
		w.due(m)
	}
	now := w.wants(m, ledger.Applied, "")
	w.wantSets(1)
	if now.Result == nil || now.Result.Status != http.StatusNoContent || !now.Current().Resend {
		t.Errorf("result %+v by %+v", now.Result, now.Current())
	}
}

// settledUnknown is a lost setting of a state, after settle.
func (w *stateWorld) settledUnknown(reference string) *ledger.Mutation {
	w.Helper()
	m := w.unknown(reference)
	w.clock.Advance(6 * time.Minute)
	return m
}

func TestAStateThatWasChangedSinceIsNotSetAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		between func(w *stateWorld)
		sets    int
	}{
		"the same thing was deleted": {func(w *stateWorld) {
			w.by(http.MethodDelete)
			w.unknown("a")
		}, 0},
		"a deletion is under way": {func(w *stateWorld) {
			w.by(http.MethodDelete)
			w.claim("a")
		}, 0},
		"another thing was deleted": {func(w *stateWorld) {
			w.by(http.MethodDelete)
			w.claim("b")
		}, 1},
		"it was deleted under a rule with other words for it": {func(w *stateWorld) {
			w.by(http.MethodDelete)
			w.rule = strings.ReplaceAll(w.rule, "{reference: path.reference}", `{reference: "'thing ' + path.reference"}`)
			w.unknown("a")
		}, 0},
		"it was deleted under a rule with other words for the account": {func(w *stateWorld) {
			w.by(http.MethodDelete)
			w.rule = strings.Replace(w.rule, "account: header[?'x-account'].orValue('')", `account: "'of ' + header[?'x-account'].orValue('')"`, 1)
			w.unknown("a")
		}, 0},
		"another thing was deleted, at the address of this one by a redirect": {func(w *stateWorld) {
			w.by(http.MethodDelete)
			w.redirected("b", "/things/a")
		}, 0},
		"another thing was made": {func(w *stateWorld) {
			w.make = nil
			w.claim("b")
		}, 1},
		"the deletion certainly failed": {func(w *stateWorld) {
			w.by(http.MethodDelete)
			m := w.claim("a")
			d := *m.Current()
			d.Verdict, d.Class, d.Ended = ledger.VerdictFailed, verdict.Logic, w.now()
			if _, err := w.ledger.EndDispatch(w.Context(), ledger.EndDispatch{Key: m.Key, Dispatch: d}); err != nil {
				w.Fatal(err)
			}
		}, 1},
		"the deletion did not happen, by a person's word": {func(w *stateWorld) {
			w.by(http.MethodDelete)
			m := w.unknown("a")
			if _, err := w.ledger.Resolve(w.Context(), ledger.Resolve{
				Key: m.Key, Version: m.Version, Action: ledger.OnDidNotHappen, Force: true, Actor: "ann", Reason: "a test",
			}); err != nil {
				w.Fatal(err)
			}
		}, 0},
		"the ledger was restored": {func(w *stateWorld) {
			if _, err := w.ledger.Restored(w.Context(), w.now().Wall.Add(-time.Hour), "ann", "a test"); err != nil {
				w.Fatal(err)
			}
		}, 0},
		"it was restored, and a person confirmed that": {func(w *stateWorld) {
			_, err := w.ledger.Restored(w.Context(), w.now().Wall.Add(-time.Hour), "ann", "a test")
			_, confirming := w.ledger.ConfirmGaps(w.Context(), ledger.ConfirmGap{Actor: "ann", Reason: "a test"})
			if err := errors.Join(err, confirming); err != nil {
				w.Fatal(err)
			}
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newStateWorld(t, "")
			m := w.unknown("a")
			w.clock.Advance(time.Minute)
			c.between(w)
			w.after(6 * time.Minute)
			w.wantSets(c.sets)
			state := ledger.Applied
			if c.sets == 0 {
				state = ledger.Indeterminate
			}
			w.wants(m, state, "")
		})
	}
}

// Two identities tell two things apart only by the same names.
func TestAnIdentityWithANameMoreTellsNothingApart(t *testing.T) {
	t.Parallel()
	w := newStateWorld(t, "")
	rule := strings.Replace(w.rule, `identity: {reference: path.reference}
    reconcile:
      - none: "it is`, `identity: {reference: path.reference, how: "'for good'"}
    reconcile:
      - none: "it is`, 1)
	if rule == w.rule {
		t.Fatal("the rule is another one")
	}
	w.rule = rule
	m := w.unknown("a")
	w.clock.Advance(time.Minute)
	w.by(http.MethodDelete)
	w.claim("b")
	w.after(6 * time.Minute)
	w.wantSets(0)
	w.wants(m, ledger.Indeterminate, "")
}

// An identity may tell apart two settings of the same thing, each of which is meant once.
func TestAStateIsNotSetAgainWhereItsIdentityNamesTheStepToo(t *testing.T) {
	t.Parallel()
	w := newStateWorld(t, "")
	rule := strings.Replace(w.rule, `reference: path.reference}
    reconcile:
      - resend`, `reference: path.reference, step: "query.?step"}
    reconcile:
      - resend`, 1)
	if rule == w.rule {
		t.Fatal("the rule is another one")
	}
	w.rule = rule
	set := w.make
	step := func(n string) {
		w.make = func(reference string) *rules.Request {
			before := set(reference)
			req, refusal := rules.Rebuild(http.MethodPut, before.URL()+"?step="+n, before.Header, before.Body())
			if refusal != nil {
				w.Fatal(refusal)
			}
			return req
		}
	}
	step("1")
	m := w.unknown("a")
	w.clock.Advance(time.Minute)
	step("2")
	w.claim("a")
	w.after(6 * time.Minute)
	w.wantSets(0)
	w.wants(m, ledger.Indeterminate, "")
}

// What was read before the sending was recorded is read again before byte one.
func TestAStateThatIsChangedBeforeByteOneIsNotSetAgain(t *testing.T) {
	w := newStateWorld(t, "")
	m := w.unknown("a")
	disarm, err := fault.Do("reconcilers.resend_recorded", 1, func() {
		w.by(http.MethodDelete)
		w.claim("a")
	})
	if err != nil {
		t.Fatal(err)
	}
	defer disarm()
	w.after(6 * time.Minute)
	w.wantSets(0)
	if d := w.read(m).Current(); !d.Resend || d.Verdict != ledger.VerdictNotSent {
		t.Errorf("dispatch %+v, want a resend that was not sent", d)
	}
}

func TestAStateWhoseTimeIsOverBeforeByteOneIsNotSetAgain(t *testing.T) {
	w := newStateWorld(t, "")
	m := w.unknown("a")
	disarm, err := fault.Do("reconcilers.resend_recorded", 1, func() { w.clock.Sleep(25 * time.Hour) })
	if err != nil {
		t.Fatal(err)
	}
	defer disarm()
	w.after(6 * time.Minute)
	w.wantSets(0)
	if d := w.read(m).Current(); !d.Resend || d.Verdict != ledger.VerdictNotSent || !strings.Contains(d.Error+d.Reason, "too late") {
		t.Errorf("dispatch %+v, want a resend that was not sent", d)
	}
}

func TestAStateIsNotSetAgainADayLater(t *testing.T) {
	t.Parallel()
	w := newStateWorld(t, "")
	m := w.unknown("a")
	w.after(25 * time.Hour)
	w.wantSets(0)
	w.wants(m, ledger.Indeterminate, "too late")
}

// While settle is not over, what can be asked is asked.
func TestAStateIsLookedAtBeforeItIsSetAgain(t *testing.T) {
	t.Parallel()
	w := newStateWorld(t, `      - probe:
          get: /things
          observe: [{when: "response.status == 200", is: applied}]
`)
	m := w.unknown("a")
	w.after(10 * time.Second)
	w.wants(m, ledger.Applied, "condition holds")
	w.wantSets(0)
}

func TestAFailureToSetTheStateAgainLeavesItUnknown(t *testing.T) {
	t.Parallel()
	w := newStateWorld(t, "")
	w.answer(func(rw http.ResponseWriter) bool {
		rw.WriteHeader(http.StatusForbidden)
		return true
	})
	m := w.settledUnknown("a")
	w.after(time.Minute)
	now := w.wants(m, ledger.NeedsReconcile, "")
	if !now.ResendClosed {
		t.Error("it may be sent again after a failure verdict")
	}
	w.due(m)
	w.wants(m, ledger.Indeterminate, "used up")
	w.wantSets(1)
}

// blind is a ledger that can't say what was changed since when it is asked for the n-th time.
type blind struct {
	Ledger
	n int
}

func (b *blind) LaterOfTarget(ctx context.Context, m *ledger.Mutation) (string, error) {
	if b.n--; b.n == 0 {
		return "", errors.New("the disk hangs")
	}
	return b.Ledger.LaterOfTarget(ctx, m)
}

func TestNothingIsSetAgainWhileTheLedgerCannotTell(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		n, sendings int
	}{
		"when it is decided": {1, 1},
		"before byte one":    {2, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newStateWorld(t, "")
			m := w.unknown("a")
			w.wrap = func(l Ledger) Ledger { return &blind{l, c.n} }
			w.start()
			w.after(6 * time.Minute)
			w.wantSets(0)
			now := w.wants(m, ledger.NeedsReconcile, "")
			if n := len(now.Dispatches); n != c.sendings || n > 1 && now.Current().Verdict != ledger.VerdictNotSent {
				t.Errorf("%d sendings are recorded, the last %+v", n, now.Current())
			}
		})
	}
}
