package ledger_test

import (
	"errors"
	"testing"

	"keep-proxy/ledger"
)

// owing plans the undoing of objects.
func owing(objects ...string) func(*ledger.Observe) {
	return func(o *ledger.Observe) {
		for _, object := range objects {
			o.Owed = append(o.Owed, ledger.Owed{Object: object, Record: ledger.Mutation{
				PayloadDigest: "undo " + object, Request: ledger.Request{Method: "DELETE", URL: "https://bank.test/" + object},
			}})
		}
	}
}

func TestNothingIsOwedOfWhatIsOnlyAlike(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.unknown("a")
	w.see("a", ledger.SeenDuplicate, objects("o1", "o2"), owing("o2"))
	if m := w.is("a", ledger.Indeterminate); len(m.Obligations) > 0 {
		t.Errorf("it owes %v", m.Obligations)
	}
	// That it happened is known of this one, and still not which object is whose.
	w = newWorld(t)
	w.unknown("a")
	head(w, "a")
	w.see("a", ledger.SeenDuplicate, objects("o1", "o2"), owing("o2"))
	if m := w.is("a", ledger.Applied); len(m.Obligations) > 0 {
		t.Errorf("what is committed owes %v", m.Obligations)
	}
}

func TestOnlyTheNewerObjectsAreOwed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.unknown("a")
	for _, wrong := range [][]string{{"o1"}, {"o1", "o2"}, {"o2"}, {"o3", "o2"}} {
		_, err := w.Observe(t.Context(), w.observation("a", ledger.SeenDuplicate, strong, objects("o1", "o2", "o3"), owing(wrong...)))
		if !errors.Is(err, ledger.ErrInvalid) {
			t.Errorf("owing %v of three: %v", wrong, err)
		}
	}
	w.is("a", ledger.NeedsReconcile)
	w.see("a", ledger.SeenDuplicate, strong, objects("o1", "o2", "o3"), owing("o2", "o3"))
	if m := w.is("a", ledger.Applied); len(m.Obligations) != 2 {
		t.Errorf("it owes %v", m.Obligations)
	}
}

// The one effect that there is must not be taken back because it was counted twice.
func TestAnObjectIsNoDuplicateOfItself(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.unknown("a")
	for _, twice := range [][]string{{"o1", "o1"}, {"o1", "o2", "o1"}} {
		w.see("a", ledger.SeenDuplicate, strong, objects(twice...), owing(twice[1:]...))
		if m := w.is("a", ledger.NeedsReconcile); len(m.Obligations) > 0 {
			t.Errorf("of %v it owes %v", twice, m.Obligations)
		}
	}
}

func TestAPersonDoesNotUndoWhatIsAnothersOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.open(item("other"))
	w.finish("other", w.send(r, "other"), ledger.VerdictUncertain)
	w.see("other", ledger.SeenApplied, objects("o1"))
	w.unknown("a")
	decision := w.decision("a", ledger.OnHappened, none, func(r *ledger.Resolve) {
		var planned ledger.Observe
		owing("o1")(&planned)
		r.Compensate = &planned.Owed[0]
	})
	if _, err := w.Resolve(t.Context(), decision); !errors.Is(err, ledger.ErrInvalid) {
		t.Errorf("got %v, want a refusal", err)
	}
	if m := w.is("a", ledger.NeedsReconcile); len(m.Obligations) > 0 {
		t.Errorf("it owes %v", m.Obligations)
	}
}
