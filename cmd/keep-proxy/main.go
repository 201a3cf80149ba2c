// Command keep-proxy is a sidecar proxy. It makes sure that no mutation it carried takes effect twice, and that no
// outcome is guessed. Nothing continues on top of an unknown.
//
// # Failure
//
// Every error is told on standard error, with what to do, and by the exit code. A
// configuration with a fault is refused. A command that needs the ledger asks the proxy
// that serves it, or opens it where none does. One that can do neither has changed nothing.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"keep-proxy/app"
	"keep-proxy/cli/child"
	"keep-proxy/cli/managed"
	"keep-proxy/cli/netns"
	"keep-proxy/ledger"
)

func main() {
	if netns.IsStage() {
		os.Exit(netns.Stage())
	}
	os.Exit(run(context.Background(), os.Args[1:], streams{os.Stdin, os.Stdout, os.Stderr}))
}

// run runs one command line and returns its exit code.
func run(ctx context.Context, args []string, s streams) int {
	if err := app.ArmFaults(); err != nil {
		fmt.Fprintln(s.err, "keep-proxy:", err)
		return codeUsage
	}
	root := newRoot(s) //nolint:contextcheck // Commands get the context when they are executed.
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err != nil && strings.HasPrefix(err.Error(), "unknown command ") {
		err = usage("%w; see keep-proxy --help", err) // as cobra says it, which has no code of its own
	}
	if text := sentence(cmd, err); text != "" {
		fmt.Fprintln(s.err, "keep-proxy:", text)
	}
	return exitCode(err)
}

// sentence is what an error tells a person; empty for one that says all by its code, or was told.
func sentence(cmd *cobra.Command, err error) string {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[*exitError](err); ok && (e.err == nil || e.told) {
		return ""
	}
	text := said(cmd, err)
	if errors.Is(err, ledger.ErrFormat) {
		text += "; this is keep-proxy " + version()
	}
	// Findings of a configuration are lines.
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = printable(line)
	}
	return strings.Join(lines, "\n")
}

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
	// told says that a person was told of err before the end.
	told bool
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

// told marks an error of which a person was told before the end.
func told(err error) error { return &exitError{code: exitCode(err), err: err, told: true} }

// usage marks an error of the command line itself.
func usage(format string, args ...any) error {
	return &exitError{code: codeUsage, err: fmt.Errorf(format, args...)}
}

// noRun marks an error that kept a run from being opened.
func noRun(err error) error {
	if err == nil {
		return nil
	}
	return &exitError{code: managed.CodeNoRun, err: err}
}

// exitCode is the one place where errors become exit codes.
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
