// Command keep-proxy is a sidecar proxy that makes sure that no mutation it
// carried takes effect twice, that no outcome is guessed, and that nothing
// continues on top of an unknown.
//
// # Failure
//
// Whatever goes wrong is told on standard error, with what to do, and by the exit code
// (exit.go). A configuration with a fault is not gone on with. A command that needs the
// ledger asks the proxy that serves it, or opens it where none does; one that can do
// neither has changed nothing.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"keep-proxy/app"
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:], streams{os.Stdin, os.Stdout, os.Stderr}))
}

// run runs one command line and returns its exit code. An error is told in one
// line on standard error.
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

// sentence is what an error tells a person; empty for one that says all by its
// code, or was told.
func sentence(cmd *cobra.Command, err error) string {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[*exitError](err); ok && e.err == nil {
		return ""
	}
	if _, ok := errors.AsType[*toldError](err); ok {
		return ""
	}
	// Findings of a configuration are lines; what else they hold is not ours to obey.
	lines := strings.Split(said(cmd, err), "\n")
	for i, line := range lines {
		lines[i] = printable(line)
	}
	return strings.Join(lines, "\n")
}
