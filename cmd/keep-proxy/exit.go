package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"keep-proxy/cli/child"
	"keep-proxy/cli/managed"
	"keep-proxy/ledger"
)

// Exit codes that are not a run's (see package managed) or a child's.
const (
	codeOK     = 0
	codeFailed = 1
	codeUsage  = 64 // as sysexits.h has it, so that it is never taken for status's 1 or 2

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

// exitCodes maps errors to codes, the most special ones first.
var exitCodes = []struct {
	is   func(error) bool
	code func(error) int
}{
	{as[*exitError], func(err error) int { e, _ := errors.AsType[*exitError](err); return e.code }},
	{as[*child.StartError], func(err error) int { e, _ := errors.AsType[*child.StartError](err); return e.Code }},
	{func(err error) bool { return errors.Is(err, ledger.ErrLocked) }, func(error) int { return codeFailed }},
}

func as[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// exitCode is the one place where errors become exit codes.
func exitCode(err error) int {
	if err == nil {
		return codeOK
	}
	for _, row := range exitCodes {
		if row.is(err) {
			return row.code(err)
		}
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
