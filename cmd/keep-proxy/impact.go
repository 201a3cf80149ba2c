package main

import (
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"keep-proxy/admin/client"
	"keep-proxy/admin/wire"
)

// impactFlags are the flags of impact.
type impactFlags struct {
	adminFlags

	filter client.Filter
	since  string
	until  string
	json   bool
	csv    bool
}

// newImpact makes the command that lists what a rule version, a time or a run touched.
func newImpact() *cobra.Command {
	var f impactFlags
	cmd := &cobra.Command{
		Use:   "impact (--connector C [--version V] | --since T [--until T] | --run R | --workflow W)",
		Short: "List what a rule version, a time or a run touched",
		Long: "Lists mutations with their items and results: what a wrong rule, a bad hour or a bad run touched.\n" +
			"A time selects what was made, sent, looked up or changed in it. Selections narrow each other.",
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.json && f.csv {
				return usage("impact: --json and --csv exclude each other; give one of them")
			}
			return f.run(cmd)
		},
	}
	f.bind(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.filter.Connector, "connector", "", "of this connector")
	flags.IntVar(&f.filter.Version, "version", 0, "made under this version of the connector's file")
	flags.StringVar(&f.filter.Run, "run", "", "made or sent by this run")
	flags.StringVar(&f.filter.Workflow, "workflow", "", "of this workflow")
	flags.StringVar(&f.since, "since", "", "touched since this time (2006-01-02T15:04:05Z), or so long ago (24h)")
	flags.StringVar(&f.until, "until", "", "touched until this time, or so long ago")
	flags.BoolVar(&f.json, "json", false, "as JSON")
	flags.BoolVar(&f.csv, "csv", false, "as CSV, with a head")
	return cmd
}

func (f *impactFlags) run(cmd *cobra.Command) error {
	f.filter.Since, f.filter.Until = f.since, f.until
	if reflect.ValueOf(f.filter).IsZero() {
		return usage("impact: nothing is asked about; give --connector, --run, --workflow, --since or --until")
	}
	return f.with(cmd, func(ctx context.Context, c *connection) error {
		list, err := c.Impact(ctx, f.filter)
		if err != nil {
			return err
		}
		items := map[string]bool{}
		for _, t := range list {
			items[t.ItemID] = true
		}
		cmd.PrintErrf("%s of %s\n", counted(len(list), "mutation"), counted(len(items), "item"))
		switch {
		case f.json:
			return writeJSON(cmd.OutOrStdout(), wire.List[wire.Touched]{Items: list})
		case f.csv:
			return impactCSV(cmd.OutOrStdout(), list)
		}
		return impactTable(cmd.OutOrStdout(), list)
	})
}

func impactTable(w io.Writer, list []wire.Touched) error {
	rows := make([][]string, 0, len(list))
	for _, t := range list {
		rows = append(rows, []string{
			clip(t.Workflow, 24), clip(t.Item, 32), t.ItemState, t.Mutation, t.State, statusWord(t.Status),
			fmt.Sprintf("%s.%s v%d", t.Connector, t.Operation, t.ConnectorVersion), stamp(t.CreatedAt), clip(t.Target, 50),
		})
	}
	return table(w, []string{"WORKFLOW", "ITEM", "ITEM IS", "MUTATION", "STATE", "RESULT", "OPERATION", "MADE", "TARGET"}, rows)
}

// statusWord is a status, a dash for none.
func statusWord(status int) string {
	if status == 0 {
		return "-"
	}
	return strconv.Itoa(status)
}

func impactCSV(w io.Writer, list []wire.Touched) error {
	c := csv.NewWriter(w)
	rows := [][]string{{
		"workflow", "item", "item_id", "attempt", "item_state", "mutation", "state", "connector", "connector_version", "operation",
		"account", "target", "run", "dispatches", "status", "result_state", "created_at", "updated_at",
	}}
	for _, t := range list {
		rows = append(rows, []string{
			t.Workflow, t.Item, t.ItemID, strconv.Itoa(t.Attempt), t.ItemState, t.Mutation, t.State, t.Connector,
			strconv.Itoa(t.ConnectorVersion), t.Operation, t.Account, t.Target, t.Run, strconv.Itoa(t.Dispatches),
			strconv.Itoa(t.Status), t.ResultState, t.CreatedAt.UTC().Format(time.RFC3339Nano), t.UpdatedAt.UTC().Format(time.RFC3339Nano),
		})
	}
	return c.WriteAll(rows)
}
