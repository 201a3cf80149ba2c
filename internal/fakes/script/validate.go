package script

import (
	"errors"
	"fmt"
	"net/http"
)

// traits says what an action is and which fields it takes.
type traits struct {
	ends      bool // it answers the request or ends its connection
	first     bool // it may only be the first step
	status    fieldUse
	body      bool
	header    bool
	wait      fieldUse // hold or for
	bytes     bool
	chunked   bool
	needsHand bool // it sends the answer in hand, so a commit or fail comes before it
}

type fieldUse int

const (
	forbidden fieldUse = iota
	optional
	required
)

var actions = map[Action]traits{
	Early:  {ends: true, first: true, status: required, body: true, header: true},
	Commit: {status: optional, body: true, wait: optional},
	Fail:   {status: required, body: true, wait: optional},
	Wait:   {wait: required},
	Gone:   {ends: true},
	Answer: {ends: true, chunked: true, needsHand: true},
	Status: {ends: true, status: required, body: true, header: true},
	Cut:    {ends: true, bytes: true, chunked: true, needsHand: true},
	Slow:   {ends: true, bytes: true, wait: required, needsHand: true},
	Huge:   {ends: true, bytes: true},
	Close:  {ends: true},
	Reset:  {ends: true},
	Abort:  {ends: true},
}

// Validate reports everything that is wrong with the fault.
func (f Fault) Validate() error {
	var errs []error
	if f.Times < Always {
		errs = append(errs, fmt.Errorf("times %d: use a count, or %d for always", f.Times, Always))
	}
	if f.EarlyAnswer() && f.Match.Identity != "" {
		errs = append(errs, errors.New("match.identity: an early answer is given before the body is read"))
	}
	ends, inHand := 0, false
	for i, step := range f.Steps {
		t := actions[step.Do]
		errs = append(errs, step.validate(i, t))
		if t.needsHand && !inHand {
			errs = append(errs, fmt.Errorf("steps[%d] %s: nothing to send: put a commit or fail before it", i, step.Do))
		}
		if t.ends {
			ends++
		}
		inHand = inHand || step.Do == Commit || step.Do == Fail
	}
	if ends != 1 {
		errs = append(errs, fmt.Errorf("steps: %d of them end the request, want exactly 1", ends))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("script: fault %q: %w", f.Name, err)
	}
	return nil
}

func (s Step) validate(i int, t traits) error {
	var errs []error
	bad := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("steps[%d] %s: "+format, append([]any{i, s.Do}, args...)...))
	}
	if _, known := actions[s.Do]; !known {
		bad("unknown action")
		return errors.Join(errs...)
	}
	if t.first && i > 0 {
		bad("must be the first step")
	}
	s.checkStatus(t, bad)
	s.checkWait(t, bad)
	if !t.body && s.Body != "" || !t.header && len(s.Header) > 0 {
		bad("takes no body or header")
	}
	if !t.bytes && s.Bytes != 0 || s.Bytes < 0 {
		bad("bytes %d", s.Bytes)
	}
	if !t.chunked && s.Chunked {
		bad("can't be chunked")
	}
	return errors.Join(errs...)
}

func (s Step) checkStatus(t traits, bad func(string, ...any)) {
	switch {
	case s.Status == 0 && t.status == required:
		bad("needs a status")
	case s.Status != 0 && t.status == forbidden:
		bad("takes no status")
	case s.Status != 0 && (s.Status < 200 || s.Status > 599):
		bad("status %d is not a final status", s.Status)
	case s.Status == http.StatusNoContent && s.Body != "":
		bad("status 204 has no body")
	case t.status == optional && s.Status == 0 && s.Body != "":
		bad("a body needs a status")
	}
}

func (s Step) checkWait(t traits, bad func(string, ...any)) {
	given := 0
	if s.Hold != "" {
		given++
	}
	if s.For != 0 {
		given++
	}
	switch {
	case given > 1:
		bad("hold and for exclude each other")
	case given == 0 && t.wait == required:
		bad("needs hold or for")
	case given > 0 && t.wait == forbidden:
		bad("takes no hold and no for")
	}
}

// EarlyAnswer reports whether the fault answers before the body is read.
func (f Fault) EarlyAnswer() bool { return len(f.Steps) > 0 && f.Steps[0].Do == Early }
