package trials

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"keep-proxy/admin/wire"
	"keep-proxy/internal/fakes/data"
	"keep-proxy/internal/fakes/oracle"
	"keep-proxy/internal/fakes/script"
	"keep-proxy/rules"
)

// Kind is one kind of trial.
type Kind struct {
	// Short heads its column, Name is its name, Means says what is done and what must hold.
	Short, Name, Means string
	// run says what came of it; an error is what was seen of a failure.
	run func(*trial) (Cell, error)
}

// Kinds are the trials, in the order of the table. Each documented error is one more.
func Kinds() []Kind {
	return []Kind{
		{"applied", "applied", "Nothing goes wrong. One effect.", applied},
		{"replayed", "replayed", "The script is run again. It gets the stored answer; nothing is sent.", replayed},
		{"found", "lost answer found", "It takes effect, and the answer is lost. Still one effect.", lostAndThere},
		{"absent", "lost answer absent", "It is lost before it takes effect. Once that is certain it is sent again. One effect.", lostAndAbsent},
		{"late", "late commit inside settle", "The connection breaks, and it takes effect only shortly before `settle` is over. One effect.", lateCommit},
		{"twice", "duplicate found", "The API itself does it twice. Somebody is told.", duplicate},
		{"429", "429 with Retry-After", "The API wants to be asked later. It is sent again then. One effect.", throttled},
		{"changed", "changed payload", "The script is run again and sends something else under the same identity. Nothing is sent.", changedPayload},
		{"two items", "two items", "Another item asks for the same, and its request is lost. What the first one made isn't taken for its own.", twoItems},
		{"resend", "resend inside the window", "The answer is lost, and it is sent again under its key. One effect.", resendInside},
		{"too late", "resend after the window", "The answer is lost, and the API can't be reached before its keys are forgotten. One effect.", resendAfter},
	}
}

// errorKinds are the documented errors of an operation.
func errorKinds(fake *data.Fake, operation string) (all []Kind) {
	for _, e := range fake.Errors() {
		if len(e.Operations) > 0 && !slices.Contains(e.Operations, operation) {
			continue
		}
		name := ErrorPrefix + e.Name
		if e.Expect != data.ExpectApplied {
			all = append(all, Kind{"", name, "", func(t *trial) (Cell, error) { return t.documented(e, false) }})
		}
		if e.Expect != data.ExpectFailed {
			all = append(all, Kind{"", name + ", after the effect", "", func(t *trial) (Cell, error) { return t.documented(e, true) }})
		}
	}
	return all
}

// ErrorPrefix is what the names of trials begin with that give a documented error.
const ErrorPrefix = "error: "

var (
	commit = script.Step{Do: script.Commit}
	lose   = script.Step{Do: script.Close}
)

// finish runs the script again until the outcome is known, and holds what came of it against the log: no more effects
// than these, and as many if it counts as applied.
func (t *trial) finish(item string, effects int) (Cell, error) {
	for failures := 0; failures <= maxFailures; failures++ {
		m, err := t.settled(item)
		if err != nil {
			return Cell{}, err
		}
		made, _, err := t.tally()
		switch {
		case err != nil:
			return Cell{}, err
		case len(made) > effects:
			return Cell{}, fmt.Errorf("the fake counts %d effects of one mutation, which is %s: %s", len(made), m.State, m.Reason)
		case m.State == "indeterminate":
			return asks(m), nil
		case m.State == "applied" && len(made) < effects:
			return Cell{}, fmt.Errorf("it counts as applied, and the fake counts %d effects", len(made))
		case m.State == "applied":
			return t.again(item, effects)
		case t.refusable && failures == maxFailures:
			return Cell{Outcome: OK, Said: "the API refuses a second one"}, nil
		}
		t.send(item, t.sample.Request) // It failed for certain: the script may do it again.
	}
	return Cell{}, errors.New("it fails for certain, again and again")
}

// maxFailures is how often a script is told that its request certainly failed before that is taken as final.
const maxFailures = 3

// asks is the cell of a mutation that a person is asked about. What the last look-up came to is added: the rule may be
// wrong there.
func asks(m *wire.Mutation) Cell {
	said := m.ManualCheck
	if n := len(m.Observations); n > 0 {
		said = strings.TrimSpace(said) + " (asked in vain: " + m.Observations[n-1].Reason + ")"
	}
	return Cell{Outcome: Person, Said: said}
}

// idle is the cell of a trial that there isn't for this operation.
func idle(why string) (Cell, error) { return Cell{Outcome: Idle, Said: why}, nil }

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

// faulty sends the request once into the steps, and finishes.
func (t *trial) faulty(name string, steps ...script.Step) (Cell, error) {
	if err := t.arm(name, steps...); err != nil {
		return Cell{}, err
	}
	t.send("a", t.sample.Request)
	return t.finish("a", 1)
}

func lostAndThere(t *trial) (Cell, error) { return t.faulty("answer lost", commit, lose) }

func lostAndAbsent(t *trial) (Cell, error) { return t.faulty("request lost", lose) }

// lateCommit has the commit come as late as the API may be, or else as late as settle allows.
func lateCommit(t *trial) (Cell, error) {
	if err := t.arm("late", lose, script.Step{Do: script.Wait, Hold: script.GateLate}, commit); err != nil {
		return Cell{}, err
	}
	late := t.fake.Commit()
	if late == 0 {
		late = t.sample.Operation.Settle * 9 / 10
	}
	for range 2 {
		t.send("a", t.sample.Request)
		if err := t.pass("a", late/2); err != nil {
			return Cell{}, err
		}
	}
	t.server.Release(script.GateLate)
	if err := t.ended(); err != nil {
		return Cell{}, err
	}
	return t.finish("a", 1)
}

// ended waits until the fake has ended the first request that makes the effect.
func (t *trial) ended() error {
	t.waits = "the fake's late commit"
	first := ""
	_, err := oracle.Wait(t.ctx, t.log.Path(), func(all oracle.Tally) bool {
		for _, e := range all.Events {
			if first == "" && e.Kind == oracle.KindHeld {
				first = e.Request
			}
			if e.Kind == oracle.KindEnded && e.Request == first {
				return true
			}
		}
		return false
	})
	return err
}

// duplicate: two effects of one request must show. An API that makes one of them is right as well.
func duplicate(t *trial) (Cell, error) {
	if err := t.arm("twice", commit, commit, lose); err != nil {
		return Cell{}, err
	}
	r := t.send("a", t.sample.Request)
	made, _, err := t.tally()
	switch {
	case err != nil:
		return Cell{}, err
	case len(made) == 0:
		return Cell{}, fmt.Errorf("the fake counts no effect: %s", r)
	case len(made) == 1:
		return t.finish("a", 1)
	case data.Did(made[0]) != "create":
		return idle("a second effect sets the same state")
	}
	m, err := t.settled("a")
	if err != nil {
		return Cell{}, err
	}
	made, _, err = t.tally()
	switch told := m.State == "applied" && m.Escalation != nil && m.Escalation.ClosedAt.IsZero(); {
	case err != nil:
		return Cell{}, err
	case len(made) > 2:
		return Cell{}, fmt.Errorf("the API did it twice, and it was sent again: %d effects", len(made))
	case told || len(m.Obligations) > 0:
		return Cell{Outcome: OK, Said: "a person is told of the second"}, nil
	case m.State == "indeterminate":
		return asks(m), nil
	}
	return Cell{}, fmt.Errorf("the API did it twice, and nobody is told: it is %s: %s", m.State, m.Reason)
}

// settled is the item's record once the program doesn't ask any more.
func (t *trial) settled(item string) (*wire.Mutation, error) {
	m, err := t.mutation(item)
	for range rounds {
		switch {
		case err != nil:
			return nil, err
		case !asking(m):
			for _, o := range m.Observations {
				t.doubtful = t.doubtful || strings.Contains(o.Reason, "another mutation")
			}
			return m, nil
		}
		m, err = t.look(item, m)
	}
	return nil, fmt.Errorf("the outcome isn't known after %d rounds", rounds)
}

// documented gives a documented error in place of the API's own answer.
func (t *trial) documented(e data.DocumentedError, took bool) (Cell, error) {
	step, err := e.Step()
	if err != nil {
		return Cell{}, err
	}
	if took {
		return t.faulty(e.Name, commit, step)
	}
	return t.faulty(e.Name, step)
}

// throttled: how long the API wants to be left alone is kept.
func throttled(t *trial) (Cell, error) {
	const wait = 7 * time.Second
	if err := t.arm("429", script.Step{Do: script.Status, Status: 429, Header: map[string]string{"Retry-After": "7"}}); err != nil {
		return Cell{}, err
	}
	began := t.clock.Now()
	t.send("a", t.sample.Request)
	m, err := t.mutation("a")
	switch {
	case err != nil:
		return Cell{}, err
	case m.State == "failed" && m.RetryAfter.Sub(began) < wait-time.Second:
		return Cell{}, fmt.Errorf("the answer's Retry-After isn't kept: again after %v", m.RetryAfter)
	}
	if err := t.pass("a", wait+time.Second); err != nil {
		return Cell{}, err
	}
	return t.finish("a", 1)
}

// changedPayload: another payload of what was applied is never sent.
func changedPayload(t *trial) (Cell, error) {
	if t.sample.Changed == nil {
		return idle("another body is another mutation, or there is no body")
	}
	if first := t.send("a", t.sample.Request); first.header.Get("Keep-State") != "applied" {
		return t.finish("a", 1)
	}
	_, before, err := t.tally()
	if err != nil {
		return Cell{}, err
	}
	r := t.send("a", *t.sample.Changed)
	made, sends, err := t.tally()
	switch {
	case err != nil:
		return Cell{}, err
	case sends != before || len(made) != 1:
		return Cell{}, fmt.Errorf("it was sent: the fake counts %d effects", len(made))
	case r.replayed():
		return Cell{Outcome: OK, Said: "the rule covers the difference"}, nil
	case !bytes.Contains(bytes.ToLower(bytes.ReplaceAll(r.body, []byte("-"), nil)), []byte("payloadmismatch")): // AWS writes it in one word.
		return Cell{}, fmt.Errorf("the script isn't told of the difference: %s", r)
	}
	return Cell{Outcome: OK}, nil
}

// twoItems: the second item's request is lost before it takes effect.
func twoItems(t *trial) (Cell, error) {
	if first := t.send("a", t.sample.Request); first.header.Get("Keep-State") != "applied" {
		return t.finish("a", 1)
	}
	made, _, err := t.tally()
	if err != nil || len(made) != 1 {
		return Cell{}, errors.Join(err, fmt.Errorf("the fake counts %d effects of the first item", len(made)))
	}
	if err := t.arm("request lost", lose); err != nil {
		return Cell{}, err
	}
	t.send("b", t.sample.Request)
	t.refusable = true
	if data.Did(made[0]) == "create" {
		a, err := t.mutation("a")
		b, lost := t.mutation("b")
		if k := t.sample.Operation.NativeKey; err == nil && lost == nil && k != nil && k.WhenPresent == rules.PresentKeepFirst && a.VendorKey == b.VendorKey {
			return t.finish("b", 1) // Both have the script's own key: to the API they are one.
		}
		return t.finish("b", 2)
	}
	m, err := t.settled("b") // The state is as both want it. It may be set twice.
	switch {
	case err != nil:
		return Cell{}, err
	case m.State == "indeterminate":
		return asks(m), nil
	}
	return Cell{Outcome: OK, Said: "both set the same state"}, nil
}

// resendInside is about operations with a key that lets them be sent again.
func resendInside(t *trial) (Cell, error) {
	if !resends(t.sample.Operation) {
		return idle("it isn't sent again by a key")
	}
	cell, err := t.faulty("answer lost", commit, lose)
	if err != nil || cell.Outcome != OK {
		return cell, err
	}
	if _, sends, err := t.tally(); err != nil || sends < 2 {
		return Cell{Outcome: Idle, Said: "it is found before it is sent again"}, err
	}
	return cell, nil
}

// resendAfter has the API not answer anything until its keys are forgotten.
func resendAfter(t *trial) (Cell, error) {
	if !resends(t.sample.Operation) {
		return idle("it isn't sent again by a key")
	}
	if t.fake.KeyWindow() == 0 {
		return idle("the fake has no keys that it forgets")
	}
	own := t.own()
	fault := script.Fault{Name: "answer lost", Steps: []script.Step{commit, lose}, Match: script.Match{Method: "*", When: func(s script.Subject) bool {
		return own.When(s) && t.down.CompareAndSwap(false, true)
	}}}
	if err := t.server.Arm(fault); err != nil {
		return Cell{}, err
	}
	t.send("a", t.sample.Request)
	if err := t.pass("a", t.fake.KeyWindow()+time.Minute); err != nil {
		return Cell{}, err
	}
	t.down.Store(false)
	return t.finish("a", 1)
}

// resends reports whether the operation is sent again because of its key.
func resends(op *rules.Operation) bool {
	return op.NativeKey != nil && op.NativeKey.Window > 0 &&
		slices.ContainsFunc(op.Strategies, func(s rules.Strategy) bool { return s.Kind == rules.StrategyResend && !s.Natural })
}
