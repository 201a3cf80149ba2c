package ledger

import (
	"fmt"
	"strings"

	"keep-proxy/internal/names"
)

// Fault is what is wrong with one field of a decision, and how to mend it. Fields are named
// as in JSON.
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
