package main

import (
	"context"
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
	var l listFlags
	var running bool
	cmd := &cobra.Command{
		Use: "list", Short: "List runs, newest first", Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return l.with(cmd, func(ctx context.Context, c *connection) error {
				list, err := c.Runs(ctx, client.RunFilter{Filter: l.filter, Running: running})
				if err != nil {
					return err
				}
				if l.json {
					return writeJSON(cmd.OutOrStdout(), list)
				}
				more(cmd, list.Next)
				return runTable(cmd.OutOrStdout(), list.Items, time.Now())
			})
		},
	}
	l.bind(cmd)
	cmd.Flags().BoolVar(&running, "running", false, "only those that have not ended")
	return cmd
}

func runTable(w io.Writer, list []wire.Run, now time.Time) error {
	rows := make([][]string, 0, len(list))
	for _, r := range list {
		rows = append(rows, []string{r.ID, r.State, clip(r.Workflow, 24), clip(r.Item, 24), ago(now, r.OpenedAt), clip(r.Reason, 70)})
	}
	return table(w, []string{"ID", "STATE", "WORKFLOW", "ITEM", "AGE", "REASON"}, rows)
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
				if s.json {
					return writeJSON(cmd.OutOrStdout(), r)
				}
				if err := showRun(cmd.OutOrStdout(), r); err != nil {
					return err
				}
				list, err := c.Mutations(ctx, client.MutationFilter{Run: r.ID})
				if err != nil || len(list.Items) == 0 {
					return err
				}
				if _, err := io.WriteString(cmd.OutOrStdout(), "\n"); err != nil {
					return err
				}
				if list.Next != "" {
					rest := onSameLedger(again(cmd), "keep-proxy mutations list")
					cmd.PrintErrf("There is more: %s --run %s --cursor %s\n", rest, r.ID, list.Next)
				}
				return mutationTable(cmd.OutOrStdout(), list.Items, time.Now())
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
	var reason, actor string
	cmd := &cobra.Command{
		Use: "end ID --reason TEXT", Short: "Abort a run", Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if reason == "" {
				return usage("runs end: --reason is missing; say why, it is kept with the run")
			}
			return s.with(cmd, func(ctx context.Context, c *connection) error {
				r, err := c.EndRun(ctx, args[0], wire.EndRun{Reason: reason, Actor: actor})
				if err != nil {
					return err
				}
				if s.json {
					return writeJSON(cmd.OutOrStdout(), r)
				}
				return showRun(cmd.OutOrStdout(), r)
			})
		},
	}
	s.bind(cmd)
	cmd.Flags().StringVar(&reason, "reason", "", "why")
	cmd.Flags().StringVar(&actor, "actor", person(), "who ends it")
	return cmd
}
