package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"keep-proxy/cli/child"
	"keep-proxy/cli/managed"
)

// Exit codes that are not a run's (see package managed) or a child's.
const (
	codeOK     = 0
	codeFailed = 1
	codeUsage  = 64 // as sysexits.h has it, as the next one
	codeAbsent = 69 // status could not ask: its 1 and 2 mean something else

	// codeUnknown and codeEscalated are status's.
	codeUnknown   = 1
	codeEscalated = 2
)

// exitError ends the program with a code. Without err nothing more is told.
type exitError struct {
	code int
	err  error
}

// Error is the cause's text.
func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

// Unwrap returns the cause.
func (e *exitError) Unwrap() error { return e.err }

// quietly ends the program with a code, and nothing more to tell.
func quietly(code int) error {
	if code == codeOK {
		return nil
	}
	return &exitError{code: code}
}

// toldError is an error of which a person was told before the end.
type toldError struct{ err error }

// Error is the cause's text.
func (e *toldError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *toldError) Unwrap() error { return e.err }

// usage marks an error of the command line itself.
func usage(format string, args ...any) error {
	return &exitError{codeUsage, fmt.Errorf(format, args...)}
}

// noRun marks an error that kept a run from being opened.
func noRun(err error) error {
	if err == nil {
		return nil
	}
	return &exitError{managed.CodeNoRun, err}
}

// exitCode is the one place where errors become exit codes:
//
//  1. none: codeOK;
//  2. one that carries a code: that;
//  3. a command that could not be started: a shell's code;
//  4. any other: codeFailed.
func exitCode(err error) int {
	if err == nil {
		return codeOK
	}
	if e, ok := errors.AsType[*exitError](err); ok {
		return e.code
	}
	if e, ok := errors.AsType[*child.StartError](err); ok {
		return e.Code
	}
	return codeFailed
}

// usageArgs makes an argument check's error one of usage.
func usageArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return usage("%s: %w; see %s --help", cmd.Name(), err, cmd.CommandPath())
		}
		return nil
	}
}
