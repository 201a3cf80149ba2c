package ledger_test

import (
	"strings"
	"testing"
	"time"

	"keep-proxy/internal/verdict"
	"keep-proxy/ledger"
)

// sentAlike asks about what could be of a as well, and counts who was asked about.
func (w *world) sentAlike(alike bool) (why string, asked int) {
	w.t.Helper()
	why, err := w.SentAlike(w.t.Context(), w.mutation("a"), func(*ledger.Mutation) bool {
		asked++
		return alike
	})
	w.ok(err)
	return why, asked
}

func TestOnlyWhatMayHaveMadeItIsAskedAbout(t *testing.T) {
	t.Parallel()
	another := func(q *ledger.Claim) { q.Record.Operation = "other" }
	for name, tc := range map[string]struct {
		other func(w *world)
		want  bool
	}{
		"nobody":                      {func(*world) {}, false},
		"an answer of after":          {func(w *world) { w.applied("b") }, true},
		"an answer to something else": {func(w *world) { w.applied("b", another) }, false},
		"an answer to what another version of the rule names otherwise": {func(w *world) {
			w.applied("b", another, func(q *ledger.Claim) { q.Record.ConnectorHash = "later" })
		}, true},
		"one that is unknown":    {func(w *world) { w.unknown("b") }, true},
		"one that is being sent": {func(w *world) { w.send(w.open(returns), "b") }, true},
		"one that failed": {func(w *world) {
			w.finish("b", w.send(w.open(returns), "b"), ledger.VerdictFailed, class(verdict.Logic))
		}, false},
		"one whose steps had no end": {func(w *world) { w.unknown("b", inSteps) }, false},
		"one that a person calls done": {func(w *world) {
			w.unknown("b")
			w.exhaust("b")
			w.decide("b", ledger.OnHappened, func(c *ledger.Resolve) { c.NoResult = true })
		}, true},
		"one of which one object is known": {func(w *world) {
			w.unknown("b")
			w.see("b", ledger.SeenApplied, objects("o1"))
		}, false},
		"one of which several objects are known": {func(w *world) {
			w.unknown("b")
			w.see("b", ledger.SeenDuplicate, strong, objects("o1", "o2"))
		}, false},
		"one of which several objects may be, as a person says": {func(w *world) {
			w.unknown("b")
			w.see("b", ledger.SeenDuplicate, objects("o1", "o2"))
			w.decide("b", ledger.OnHappened, none)
		}, true},
		"a success of which several objects may be": {func(w *world) {
			w.finish("b", w.send(w.open(returns), "b"), ledger.VerdictCommitted)
			w.see("b", ledger.SeenDuplicate, objects("o1", "o2"))
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.unknown("a", func(q *ledger.Claim) { q.Record.Policy.BlockScope = ledger.BlockMutation })
			w.pass(time.Second)
			tc.other(w)
			why, asked := w.sentAlike(true)
			if (why != "") != tc.want || (asked > 0) != tc.want {
				t.Errorf("%q, asked about %d", why, asked)
			}
			if why, _ := w.sentAlike(false); why != "" {
				t.Errorf("what isn't alike: %q", why)
			}
		})
	}
}

// What was answered before can't have made it, however much that is. Of what may have, no more is looked
// at than the bound says.
func TestWhatWasSentBeforeIsNotCountedAmongWhatIsLookedAt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before bool
		want   string
	}{"before": {true, ""}, "since": {false, "too many mutations were made since"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			others := func() {
				r := w.open(returns)
				for range 25 {
					other := "other" + w.id()
					w.finish(other, w.send(r, other), ledger.VerdictApplied)
				}
				_, err := w.FinishRun(t.Context(), r.ID, "done", true)
				w.ok(err)
				w.pass(time.Second)
			}
			if c.before {
				others()
			}
			w.unknown("a", func(q *ledger.Claim) { q.Record.Policy.BlockScope = ledger.BlockMutation })
			w.pass(time.Second)
			if !c.before {
				others()
			}
			l := ledger.New(paged{w.store}, ledger.Config{Now: func() ledger.Stamp { return w.now }})
			why, err := l.SentAlike(t.Context(), w.mutation("a"), func(*ledger.Mutation) bool { return false })
			if err != nil || !strings.HasPrefix(why, c.want) || why != "" && c.want == "" {
				t.Errorf("%q, %v, want %q", why, err, c.want)
			}
		})
	}
}

// Of a time that the ledger doesn't know nobody can say what was made in it.
func TestWhatWasMadeInAGapIsNobodys(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.unknown("a")
	w.restored()
	if why, _ := w.sentAlike(false); !strings.Contains(why, "doesn't know all") {
		t.Errorf("%q", why)
	}
}
