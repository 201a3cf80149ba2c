package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"keep-proxy/admin/client"
	"keep-proxy/admin/wire"
)

// newObligations makes the commands about what is owed.
func newObligations() *cobra.Command {
	return group("obligations", "List what is to be undone, and decide on it",
		newObligationsList(),
		newObligationsDecide("run", "Have an effect undone now, newer ones first", (*client.Client).RunObligation),
		newObligationsDecide("waive", "Let what would be undone stay", (*client.Client).WaiveObligation),
	)
}

func newObligationsList() *cobra.Command {
	var l listFlags
	var f client.ObligationFilter
	cmd := &cobra.Command{
		Use: "list", Short: "List what is owed, newest first", Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return l.with(cmd, func(ctx context.Context, c *connection) error {
				f.Filter = l.filter
				list, err := c.Obligations(ctx, f)
				if err != nil {
					return err
				}
				if l.json {
					return writeJSON(cmd.OutOrStdout(), list)
				}
				more(cmd, list.Next)
				return obligationTable(cmd.OutOrStdout(), list.Items, time.Now())
			})
		},
	}
	l.bind(cmd)
	cmd.Flags().StringVar(&f.Connector, "connector", "", "only of this connector")
	cmd.Flags().BoolVar(&f.All, "all", false, "those that are met or waived, too")
	return cmd
}

func obligationTable(w io.Writer, list []wire.Obligation, now time.Time) error {
	rows := make([][]string, 0, len(list))
	for _, o := range list {
		rows = append(rows, []string{
			o.ID, o.Standing, o.Mutation, strconv.Itoa(o.Order), clip(o.Object, 32), strconv.Itoa(o.Sent), ago(now, o.UpdatedAt), clip(o.Target, 70),
		})
	}
	return table(w, []string{"ID", "STANDING", "MUTATION", "ORDER", "OBJECT", "SENT", "UPDATED", "TARGET"}, rows)
}

// newObligationsDecide makes a command that decides on one obligation.
func newObligationsDecide(
	use, short string, decide func(*client.Client, context.Context, string, wire.DecideObligation) (*wire.Obligation, error),
) *cobra.Command {
	var s showFlags
	var d wire.DecideObligation
	cmd := &cobra.Command{
		Use: use + " ID --reason TEXT", Short: short, Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if d.Reason == "" {
				return usage("obligations %s: --reason is missing; say why, it is kept with the record", use)
			}
			return s.with(cmd, func(ctx context.Context, c *connection) error {
				o, err := decideObligation(ctx, c, args[0], d, decide)
				if err != nil {
					// What is open instead is said in flags of resolve, which this command doesn't have.
					return fmt.Errorf("obligation %s: %w", args[0], err)
				}
				if s.json {
					return writeJSON(cmd.OutOrStdout(), o)
				}
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s is %s: %s\n", o.ID, o.Standing, printable(o.Target))
				return err
			})
		},
	}
	s.bind(cmd)
	cmd.Flags().StringVar(&d.Reason, "reason", "", "why; it is kept with the record")
	cmd.Flags().StringVar(&d.Actor, "actor", person(), "who decides")
	cmd.Flags().Int64Var(&d.Version, "version", 0, "the version that was looked at (default the one it has now)")
	return cmd
}

// decideObligation decides on the version that the person named, else on the present one.
func decideObligation(
	ctx context.Context, c *connection, id string, d wire.DecideObligation,
	decide func(*client.Client, context.Context, string, wire.DecideObligation) (*wire.Obligation, error),
) (*wire.Obligation, error) {
	if d.Version == 0 {
		m, err := c.Mutation(ctx, id)
		if err != nil {
			return nil, err
		}
		if m.Undo == nil {
			return nil, errors.New("it is no obligation; see keep-proxy obligations list")
		}
		id, d.Version = m.ID, m.Version
	}
	o, err := decide(c.Client, ctx, id, d)
	return o, unsaid(err, "mutations show "+id)
}
