package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"keep-proxy/admin/wire"
)

// newAudit makes the commands that show what the ledger has kept, and that it is whole.
func newAudit() *cobra.Command {
	verify := newLedgerVerify()
	verify.Short = "Check the whole history and every record, as ledger verify does; exit 1 if anything is wrong"
	return group("audit", "Verify and export the history", verify, newAuditExport())
}

func newAuditExport() *cobra.Command {
	var a adminFlags
	var run string
	cmd := &cobra.Command{
		Use:   "export [--run ID]",
		Short: "Write the history, or that of one run with its records and evidence, as JSON lines",
		Long: "Writes one JSON object a line. Of one run these are the run, its mutations and their events. The last line\n" +
			"has counts. If it is missing the export was cut, and the command fails. Contents of requests and answers\n" +
			"are named by their digests.",
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.with(cmd, func(ctx context.Context, c *connection) error { return export(ctx, cmd, c, run) })
		},
	}
	a.bind(cmd)
	cmd.Flags().StringVar(&run, "run", "", "only this run")
	return cmd
}

func export(ctx context.Context, cmd *cobra.Command, c *connection, run string) error {
	p := newProgress(cmd.ErrOrStderr())
	lines := int64(0)
	end, err := c.Audit(ctx, run, func(line []byte) error {
		lines++
		p.step("lines", lines, 0)
		_, err := cmd.OutOrStdout().Write(append(line, '\n'))
		return err
	})
	p.end()
	if problem, ok := errors.AsType[*wire.Problem](err); ok && problem.Status == 404 {
		return fmt.Errorf("audit export: there is no run %s; keep-proxy runs list has those there are", run)
	}
	if err != nil {
		return err
	}
	cmd.PrintErrf("%s, %s\n", counted(end.Mutations, "mutation"), counted(end.Events, "event"))
	return nil
}
