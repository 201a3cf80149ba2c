package powerloss

import (
	"fmt"
	"os"
	"sync"
)

// Steps counts the steps that are passed, and writes them down.
type Steps struct {
	// Trace is a file that gets a line for each step.
	Trace string `json:"trace"`
	// Begun is a file: before it is there, steps are neither counted nor written down.
	Begun string `json:"begun"`
	// Kill names the step to end the program at, "" for none.
	Kill string `json:"kill"`

	mu     sync.Mutex
	trace  *os.File
	passed map[string]int
	begun  bool
}

// Pass counts a passing of the step and reports whether the program is to end there.
func (s *Steps) Pass(name string) (kill bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.begun {
		_, err := os.Stat(s.Begun)
		if s.begun = err == nil; !s.begun {
			return false, nil
		}
	}
	if s.trace == nil {
		s.passed = map[string]int{}
		if s.trace, err = os.OpenFile(s.Trace, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err != nil {
			return false, err
		}
	}
	s.passed[name]++
	name = fmt.Sprintf("%s #%d", name, s.passed[name])
	if _, err := fmt.Fprintln(s.trace, name); err != nil {
		return false, err
	}
	return name == s.Kill, nil
}
