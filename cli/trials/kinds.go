package trials

import (
	"bytes"
	"errors"
	"fmt"

	"keep-proxy/internal/fakes/script"
)

// kind is one kind of trial. run says what came of it; an error is what was seen of a failure.
type kind struct {
	name string
	run  func(*trial) (Cell, error)
}

// all are the trials, in the order of the table.
var all = []kind{
	{"applied", applied},
	{"replayed", replayed},
	{"lost answer found", lostAndThere},
}

var (
	commit = script.Step{Do: script.Commit}
	lose   = script.Step{Do: script.Close}
)

// finish runs the script again until the outcome is known, and holds what came of it against the log: no more effects
// than these, and as many if it counts as applied.
func (t *trial) finish(item string, effects int) (Cell, error) {
	for range rounds {
		m, err := t.mutation(item)
		if err != nil {
			return Cell{}, err
		}
		if m == nil {
			return Cell{}, errors.New("the request isn't recorded: it is refused, or is no mutation")
		}
		made, _, err := t.tally()
		switch {
		case err != nil:
			return Cell{}, err
		case len(made) > effects:
			return Cell{}, fmt.Errorf("the fake counts %d effects of one mutation, which is %s: %s", len(made), m.State, m.Reason)
		case m.State == "indeterminate":
			return Cell{Outcome: Person, Said: m.ManualCheck}, nil
		case m.State == "applied" && len(made) < effects:
			return Cell{}, fmt.Errorf("it counts as applied, and the fake counts %d effects", len(made))
		case m.State == "applied":
			return t.again(item, effects)
		case asking(m):
			err = t.look(item, m)
		default: // It failed for certain: the script may do it again.
			t.send(item, t.sample.Request)
		}
		if err != nil {
			return Cell{}, err
		}
	}
	return Cell{}, fmt.Errorf("the outcome isn't known after %d rounds", rounds)
}

// again runs the script once more: what was applied isn't sent again.
func (t *trial) again(item string, effects int) (Cell, error) {
	_, before, err := t.tally()
	if err != nil {
		return Cell{}, err
	}
	r := t.send(item, t.sample.Request)
	made, sends, err := t.tally()
	switch {
	case err != nil:
		return Cell{}, err
	case sends != before || len(made) != effects:
		return Cell{}, fmt.Errorf("it was sent again after it was applied; the fake counts %d effects", len(made))
	case !r.replayed():
		return Cell{}, fmt.Errorf("the script gets no stored answer: %s", r)
	}
	return Cell{Outcome: OK}, nil
}

// applied: nothing goes wrong.
func applied(t *trial) (Cell, error) {
	r := t.send("a", t.sample.Request)
	m, err := t.mutation("a")
	switch {
	case err != nil:
		return Cell{}, err
	case m == nil:
		return Cell{}, fmt.Errorf("nothing is recorded: %s", r)
	case m.State == "failed":
		return Cell{}, fmt.Errorf("it failed: %s; the fake refuses the request, or the rule's outcome is wrong", r)
	}
	return t.finish("a", 1)
}

// replayed: the script is run again.
func replayed(t *trial) (Cell, error) {
	first := t.send("a", t.sample.Request)
	if first.header.Get("Keep-State") != "applied" {
		return t.finish("a", 1)
	}
	second := t.send("a", t.sample.Request)
	if second.status != first.status || !bytes.Equal(second.body, first.body) {
		return Cell{}, fmt.Errorf("the first run got %s, the second %s", first, second)
	}
	return t.again("a", 1)
}

// lostAndThere: it takes effect, and the answer is lost.
func lostAndThere(t *trial) (Cell, error) {
	if err := t.arm("answer lost", commit, lose); err != nil {
		return Cell{}, err
	}
	t.send("a", t.sample.Request)
	return t.finish("a", 1)
}
