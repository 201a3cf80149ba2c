package ledger

import (
	"errors"
	"fmt"
	"strings"

	"keep-proxy/internal/names"
)

// Errors of a Store.
var (
	// ErrNotFound: there is no such record.
	ErrNotFound = errors.New("not in the ledger")
	// ErrVersion: the record was changed since it was read.
	ErrVersion = errors.New("the record has changed meanwhile")
	// ErrEvidence: the upstream object is evidence for another mutation.
	ErrEvidence = errors.New("the object is evidence for another mutation")
	// ErrUnavailable: the store can't commit; nothing may be sent on its word.
	ErrUnavailable = errors.New("ledger unavailable")
	// ErrLowSpace: too little free disk for new mutations. It is an ErrUnavailable.
	ErrLowSpace = fmt.Errorf("%w: low disk space", ErrUnavailable)
	// ErrBodyDropped: retention removed the content, or its loss was accepted.
	ErrBodyDropped = errors.New("the content was dropped by retention or by an accepted loss")
)

// Errors of opening a Store. Each text names the command that goes on deliberately.
var (
	// ErrLocked: another process has the ledger open.
	ErrLocked = errors.New("ledger in use")
	// ErrMissing: there was a ledger and it is gone.
	ErrMissing = errors.New("ledger missing")
	// ErrForeign: the ledger has another id than the one expected.
	ErrForeign = errors.New("another ledger")
	// ErrDamaged: stored content doesn't match its checksum.
	ErrDamaged = errors.New("ledger damaged")
	// ErrShortened: the ledger ends before what was acknowledged.
	ErrShortened = errors.New("ledger shorter than acknowledged")
	// ErrFormat: the ledger was written by another version, which this one doesn't read.
	ErrFormat = errors.New("ledger of another format")
)

// Errors of commands.
var (
	// ErrInvalid: the command itself is wrong: a field is missing or unknown.
	ErrInvalid = errors.New("invalid command")
	// ErrNotAllowed: the transition table doesn't hold this move.
	ErrNotAllowed = errors.New("not allowed")
	// ErrItemDone: the item is done or skipped.
	ErrItemDone = errors.New("the item is done")
	// ErrItemBusy: another run of the item and attempt is running.
	ErrItemBusy = errors.New("the item is busy")
	// ErrItemAttention: the item waits for a person.
	ErrItemAttention = errors.New("the item needs attention")
	// ErrItemUnresolved: a mutation of the item is unresolved, watching or in flight.
	ErrItemUnresolved = errors.New("the item is unresolved")
	// ErrItemState: the item's state doesn't allow this. It is an ErrNotAllowed.
	ErrItemState = fmt.Errorf("%w in this state of the item", ErrNotAllowed)
	// ErrAttempt: the attempt isn't the item's current one.
	ErrAttempt = errors.New("not the current attempt")
	// ErrBlocked: the scope is stopped by an unresolved mutation.
	ErrBlocked = errors.New("stopped by an unresolved mutation")
	// ErrRunUnfinished: a mutation of the run keeps it from finishing.
	ErrRunUnfinished = errors.New("the run is unfinished")
	// ErrRunEnded: the run is over.
	ErrRunEnded = errors.New("the run is over")
)

// NotAllowedError says which move was refused and which are open.
type NotAllowedError struct {
	State  State
	On     Trigger
	Reason string
	// Open lists the triggers that a person may use now.
	Open []Trigger
}

// Error names the state, the trigger and the reason.
func (e *NotAllowedError) Error() string {
	return fmt.Sprintf("%s is not allowed on a mutation in state %s: %s", e.On, e.State, e.Reason)
}

// Unwrap makes it an ErrNotAllowed.
func (e *NotAllowedError) Unwrap() error { return ErrNotAllowed }

// BlockedError names what stops a scope.
type BlockedError struct {
	Blockers []Blocker
}

// Error names the first blocker.
func (e *BlockedError) Error() string {
	if len(e.Blockers) == 0 {
		return ErrBlocked.Error()
	}
	b := e.Blockers[0]
	return fmt.Sprintf("%s %s (%s) of item %q", ErrBlocked, b.ID, b.State, b.Item)
}

// Unwrap makes it an ErrBlocked.
func (e *BlockedError) Unwrap() error { return ErrBlocked }

// Fault is what is wrong with one field of a decision, named as in JSON, and how to mend it.
type Fault struct{ Field, What, How string }

// InvalidError is the refusal of a decision that is wrong whatever the record says.
type InvalidError struct{ Faults []Fault }

// Error names each field.
func (e *InvalidError) Error() string {
	parts := []string{ErrInvalid.Error()}
	for _, f := range e.Faults {
		parts = append(parts, f.Field+": "+f.What)
	}
	return strings.Join(parts, "; ")
}

// Unwrap makes it an ErrInvalid.
func (e *InvalidError) Unwrap() error { return ErrInvalid }

// add collects a fault where wrong holds.
func (e *InvalidError) add(wrong bool, field, what, how string) {
	if wrong {
		e.Faults = append(e.Faults, Fault{field, what, how})
	}
}

// err is nil without any fault.
func (e *InvalidError) err() error {
	if len(e.Faults) == 0 {
		return nil
	}
	return e
}

// maxReason is the longest reason, in bytes.
const maxReason = 2000

// TextFault says what is wrong with a text that people read, which may have several lines.
func TextFault(text string) (what, how string) {
	switch {
	case len(text) > maxReason:
		return fmt.Sprintf("longer than %d bytes", maxReason), "shorten it"
	case !names.Shown(strings.NewReplacer("\n", " ", "\t", " ").Replace(text)):
		return "control characters", "leave them out"
	}
	return "", ""
}

// CheckDecision refuses a decision that says no reason, or not whose it is.
func CheckDecision(actor, reason string) error {
	var e InvalidError
	e.decided(actor, reason)
	return e.err()
}

func (e *InvalidError) decided(actor, reason string) {
	missing := strings.TrimSpace(reason) == ""
	e.add(missing, "reason", "missing", "say why, for whoever reads the history")
	what, how := TextFault(reason)
	e.add(!missing && what != "", "reason", what, how)
	what, how = names.Fault(actor)
	e.add(what != "", "actor", what, how)
}
