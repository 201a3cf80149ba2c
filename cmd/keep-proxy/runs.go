package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"keep-proxy/admin/client"
	"keep-proxy/admin/wire"
)

// newRuns makes the commands that read and end runs.
func newRuns() *cobra.Command {
	return group("runs", "List, show and end runs", newRunsList(), newRunsShow(), newRunsEnd())
}

func newRunsList() *cobra.Command {
	var running bool
	columns := columns[wire.Run]{
		[]string{"ID", "STATE", "WORKFLOW", "ITEM", "AGE", "REASON"},
		func(now time.Time, r *wire.Run) []string {
			return []string{r.ID, r.State, clip(r.Workflow, 24), clip(r.Item, 24), ago(now, r.OpenedAt), clip(r.Reason, 70)}
		},
	}
	cmd := listing("List runs, newest first", columns, func(ctx context.Context, c *connection, f client.Filter) (*wire.List[wire.Run], error) {
		f.Running = running
		return c.Runs(ctx, f)
	})
	cmd.Flags().BoolVar(&running, "running", false, "only those that have not ended")
	return cmd
}

func newRunsShow() *cobra.Command {
	var s showFlags
	cmd := &cobra.Command{
		Use: "show ID", Short: "Show a run and its mutations", Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return s.with(cmd, func(ctx context.Context, c *connection) error {
				r, err := c.Run(ctx, args[0])
				if err != nil {
					return err
				}
				if err := output(cmd, s.json, r, showRun); err != nil || s.json {
					return err
				}
				list, err := c.Mutations(ctx, client.Filter{Run: r.ID})
				if err != nil || len(list.Items) == 0 {
					return err
				}
				if list.Next != "" {
					rest := onSameLedger(again(cmd), "keep-proxy mutations list")
					cmd.PrintErrf("There is more: %s --run %s --cursor %s\n", rest, r.ID, list.Next)
				}
				fmt.Fprintln(cmd.OutOrStdout())
				return mutationColumns.write(cmd.OutOrStdout(), list.Items)
			})
		},
	}
	s.bind(cmd)
	return cmd
}

func showRun(w io.Writer, r *wire.Run) error {
	return facts(w,
		"run", r.ID,
		"state", r.State,
		"class", r.Class,
		"reason", r.Reason,
		"cause", r.Cause,
		"workflow", r.Workflow,
		"item", r.Item,
		"title", r.Title,
		"opened", stamp(r.OpenedAt),
		"ended", stamp(r.EndedAt),
		"expires", stamp(r.ExpiresAt),
		"resume", r.ResumeHint,
	)
}

func newRunsEnd() *cobra.Command {
	var s showFlags
	var d decider
	cmd := &cobra.Command{
		Use: "end ID --reason TEXT", Short: "Abort a run", Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return answer(&s, cmd, func(ctx context.Context, c *connection) (*wire.Run, error) {
				return c.EndRun(ctx, args[0], wire.EndRun{Reason: d.reason, Actor: d.actor})
			}, showRun)
		},
	}
	s.bind(cmd)
	d.bind(cmd, "why", "who ends it")
	return cmd
}
